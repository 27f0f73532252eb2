import Foundation
import StemmaEvents
import StemmaNode
import StemmaSync

extension Store {
  /// The result of a sync with one peer.
  public struct SyncReport: Sendable {
    /// The transfer in one direction.
    public struct Transfer: Sendable {
      /// The partitions whose events were moved, by name.
      public let partitions: [String]
      /// The number of moved events.
      public let events: UInt64
      /// Read from the sender's log files, in bytes.
      public let bytesRead: UInt64
      /// Sent to the receiver, in bytes, compressed.
      public let bytesShipped: UInt64
      /// Partitions that were not exchanged, by name, because one node has lost events of them to
      /// corruption. Run `stemma repair` on that node.
      public let leftOut: [String]

      init(_ report: TransferReport) {
        partitions = report.partitions
        events = report.events
        bytesRead = report.bytesRead
        bytesShipped = report.bytesShipped
        leftOut = report.leftOut
      }
    }

    /// Nil if that direction was not asked for.
    public let pulled: Transfer?
    /// Nil if that direction was not asked for.
    public let pushed: Transfer?
    /// Notices for a person, of one sentence each.
    public let notices: [String]
  }

  // MARK: Exchange

  /// Exchanges events with a peer: another node's directory, or a remote's name; nil: every remote.
  ///
  /// On return, the pulled events are durable and in the tables, and the resolvers have seen their
  /// conflicts. Writes and reads go on during a run.
  ///
  /// `partitions` limits this run to some of those that both hold. A pattern that can match no
  /// partition of the models throws `failed`, and nothing is exchanged.
  /// - Throws: `failed` if the peer cannot be reached or is refused; earlier transfers stay.
  ///   `unresolved` if a resolver's decision fails; the exchange is complete then.
  @discardableResult
  public func sync(with peer: String? = nil, partitions: [PartitionPattern] = []) async throws -> [SyncReport]
  {
    try await exchange(partitions, pulls: true, pushes: true, with: Self.peers(peer))
  }

  /// Exchanges events with the node in a directory, which need not be a remote.
  @discardableResult
  public func sync(with directory: URL, partitions: [PartitionPattern] = []) async throws -> SyncReport {
    try await exchange(partitions, pulls: true, pushes: true, with: Self.peers(directory.path))[0]
  }

  /// Exchanges events with a peer: `.directory(_:)`, `.transport(_:open:)`, or `.http(_:token:)` of
  /// the module StemmaHTTP.
  ///
  /// As above. If the task is cancelled, the exchange ends at once, and this throws
  /// `CancellationError`. Complete batches stay, and the next sync transfers the rest. An exchange
  /// with a directory is finished.
  @discardableResult
  public func sync(with peer: SyncPeer, partitions: [PartitionPattern] = []) async throws -> SyncReport {
    let interruption = Interruption()
    return try await cancelling(interruption) {
      try await exchange(partitions, pulls: true, pushes: true) { node in
        [(peer.remote, peer.connect(node.options, interruption))]
      }[0]
    }
  }

  /// Exchanges events with another store of this process. Both resolve the conflicts that result.
  ///
  /// - Throws: `closed` if either of them is; otherwise as above.
  @discardableResult
  public func sync(with other: Store, partitions: [PartitionPattern] = []) async throws -> SyncReport {
    // The directory of a closed temporary store is deleted.
    if other.writer.isClosed { throw StoreError.closed }
    let report = try await exchanged(
      partitions, pulls: true, pushes: true, with: Self.peers(other.directory.path))[0]
    await other.noteOthers()
    // Both stores resolve, even if one fails. A failure is reported only once, so both are thrown.
    var reasons: [String] = []
    for store in [self, other] {
      do { try await store.resolveConflicts() } catch StoreError.unresolved(let why) { reasons.append(why) }
    }
    if !reasons.isEmpty { throw StoreError.unresolved(reasons.joined(separator: "; ")) }
    return report
  }

  /// Fetches the events that the peer has and this node lacks.
  @discardableResult
  public func pull(from peer: String? = nil, partitions: [PartitionPattern] = []) async throws -> [SyncReport]
  {
    try await exchange(partitions, pulls: true, pushes: false, with: Self.peers(peer))
  }

  /// Sends the events that this node has and the peer lacks.
  @discardableResult
  public func push(to peer: String? = nil, partitions: [PartitionPattern] = []) async throws -> [SyncReport] {
    try await exchange(partitions, pulls: false, pushes: true, with: Self.peers(peer))
  }

  /// Answers one sync of a peer at the other end of a transport, and closes that. The peer may read
  /// and write every partition that this store holds.
  ///
  /// On return, the received events are durable and in the tables, and the resolvers have seen
  /// their conflicts. If the task is cancelled, the session ends at once, and this throws
  /// `CancellationError`.
  /// - Throws: `failed` if the session fails. Complete batches stay, and the next sync transfers
  ///   the rest. It throws `unresolved` if a resolver's decision fails. The exchange is complete
  ///   then. It throws `readOnly` or `closed` before it uses the transport, which stays open then.
  public func answer(_ transport: some Transport) async throws {
    if options.isReadOnly { throw StoreError.readOnly }
    let interruption = Interruption()
    try await cancelling(interruption) {
      try await inspect(.write) { node in try Serving.answer(node, transport, interruption) }
    }
    await noteOthers()
    try await resolveConflicts()
  }

  /// Keeps this store in sync with peers, while `run()` of the result runs.
  ///
  /// `partitions` limits that to some of those that both hold. A pattern that can match no
  /// partition of the models throws at `run()`.
  public func keepInSync(with peers: SyncPeer..., partitions: [PartitionPattern] = []) -> ContinuousSync {
    ContinuousSync(self, peers, partitions)
  }

  /// Interrupts the exchange of `body` when the task is cancelled. If it fails, the store shows the
  /// events that it has adopted.
  private func cancelling<Result: Sendable>(
    _ interruption: Interruption, _ body: () async throws -> Result
  ) async throws -> Result {
    do { return try await withTaskCancellationHandler(operation: body) { interruption.interrupt() } } catch {
      await noteOthers()
      if interruption.isSet, case StoreError.failed = error { throw CancellationError() }
      throw error
    }
  }

  private typealias Peers = @Sendable (Node) throws -> [(remote: RemotePeer, connect: Connector?)]

  /// Another node's directory, or a remote's name; nil: every remote.
  private static func peers(_ peer: String?) -> Peers {
    { node in try node.peers(peer).map { ($0, nil) } }
  }

  private func exchange(
    _ partitions: [PartitionPattern], pulls: Bool, pushes: Bool, with peers: @escaping Peers
  ) async throws -> [SyncReport] {
    let reports = try await exchanged(partitions, pulls: pulls, pushes: pushes, with: peers)
    try await resolveConflicts()
    return reports
  }

  /// Does not ask the resolvers.
  private func exchanged(
    _ partitions: [PartitionPattern], pulls: Bool, pushes: Bool, with peers: @escaping Peers
  ) async throws -> [SyncReport] {
    if options.isReadOnly, pulls { throw StoreError.readOnly }
    // A node of its own, so that commits can run between received batches.
    let own = Self.resolved(directory.path)
    let reports = try await inspect(options.isReadOnly ? .read : .write) { node in
      let peers = try peers(node)
      if let same = peers.first(where: { Self.resolved($0.remote.address) == own }) {
        throw StoreError.failed(
          .unreachable, "\(same.remote.address) is this store's own directory: there is nothing to exchange")
      }
      let partitions = try partitions.map { try $0.checkedText(in: node.schema) }
      return try peers.map { remote, connect in
        let report = try node.exchange(
          with: remote, pulls: pulls, pushes: pushes, partitions: partitions, connect: connect,
          progress: { _, _ in })
        return SyncReport(
          pulled: report.pulled.map(SyncReport.Transfer.init),
          pushed: report.pushed.map(SyncReport.Transfer.init), notices: report.notices.map(\.description))
      }
    }
    await noteOthers()
    return reports
  }

  /// A path without symbolic links, `.` and `..`.
  private static func resolved(_ path: String) -> String {
    URL(fileURLWithPath: path).resolvingSymlinksInPath().standardizedFileURL.path
  }

  // MARK: Peers and partitions

  /// Adds a peer's directory as a remote with a name.
  public func addRemote(_ name: String, at directory: URL) async throws {
    try await administer { try $0.addRemote(name, directory.path) }
  }

  /// Removes a remote. Nothing changes at the peer, and events received from it stay.
  ///
  /// - Throws: `failed` if there is no remote of that name.
  public func removeRemote(_ name: String) async throws {
    try await administer { try $0.removeRemote(name) }
  }

  /// The partitions that this node holds, as patterns; `*` is all.
  public func scope() async throws -> [String] { try await inspect { $0.metadata.scope.patterns } }

  /// Changes which partitions this node holds. Partitions without a pattern are purged; added ones
  /// arrive with the next sync.
  ///
  /// With `discards`, a purge includes partitions with own events that no peer has confirmed.
  /// - Returns: the purged partitions.
  /// - Throws: `failed` if own events are not confirmed, or if an added pattern can match no
  ///   partition of the models; nothing is changed then.
  @discardableResult
  public func changeScope(
    adding: [PartitionPattern] = [], removing: [PartitionPattern] = [], discards: Bool = false
  ) async throws -> [String] {
    try await administer { node in
      let added = try adding.map { try $0.checkedText(in: node.schema) }
      // A pattern that matches nothing can be removed.
      let removed = try removing.map { try $0.text(in: node.schema) }
      return try node.changeScope(adding: added, removing: removed, discards: discards)
    }
  }

  private func administer<Result: Sendable>(
    _ body: @escaping @Sendable (Node) throws -> Result
  ) async throws -> Result {
    if options.isReadOnly { throw StoreError.readOnly }
    let result = try await inspect(.write, body)
    await noteOthers()
    return result
  }

  // MARK: Status

  /// The contents of a store, and its distance from its peers.
  public struct Status: Sendable {
    /// A remote, compared with this node.
    public struct Peer: Sendable {
      /// The remote's name.
      public let name: String
      /// Its directory.
      public let address: String
      /// Events that the peer has and this node lacks; nil if the peer cannot be read.
      public let behind: UInt64?
      /// Events that this node has and the peer lacks, in partitions that both hold; nil if the
      /// peer cannot be read.
      public let ahead: UInt64?
      /// Why the peer cannot be read, or what prevents a sync.
      public let problem: String?

      /// Whether neither lacks an event of a shared partition; false if the peer cannot be read.
      public var isInSync: Bool { behind == 0 && ahead == 0 && problem == nil }
    }

    /// The node's name, which identifies its changes.
    public let name: String
    /// The number of events in the log, of all nodes.
    public let events: UInt64
    /// The number of records, without deleted ones.
    public let records: UInt64
    /// The number of partitions with events.
    public let partitions: Int
    /// Open conflicts of values, deletions and cardinality, as in `Store.conflicts()`. Dangling
    /// references do not count, as their records may not have arrived yet.
    public let conflicts: UInt64
    /// The size of the log on disk, in bytes.
    public let logSize: UInt64
    /// The size of the tables on disk, in bytes: a cache that is rebuilt from the log.
    public let tablesSize: UInt64
    /// One for each remote.
    public let peers: [Peer]
    /// Notices for a person, of one sentence each.
    public let notices: [String]
  }

  /// Reads every remote.
  public func status() async throws -> Status {
    try await inspect { node in
      let status = try node.status()
      return Status(
        name: node.metadata.name, events: status.events, records: status.records,
        partitions: status.partitions,
        conflicts: status.conflicts, logSize: status.logBytes, tablesSize: status.tableBytes,
        peers: status.peers.map {
          Status.Peer(
            name: $0.name, address: $0.address, behind: $0.lag == nil ? nil : $0.behind,
            ahead: $0.lag == nil ? nil : $0.ahead, problem: $0.problem.map(\.description))
        },
        notices: (status.notices + node.notices.filter { !status.notices.contains($0) }).map(\.description)
      )
    }
  }
}
