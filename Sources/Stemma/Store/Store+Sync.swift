import Foundation
import StemmaEvents
import StemmaNode

extension Store {
  /// What a sync moved.
  public struct SyncReport: Sendable {
    /// What went in one direction.
    public struct Transfer: Sendable {
      /// Those of which events were moved, by name.
      public let partitions: [String]
      /// How many events were moved.
      public let events: UInt64
      /// Read from the sender's log files, in bytes.
      public let bytesRead: UInt64
      /// Sent to the receiver, in bytes, compressed.
      public let bytesShipped: UInt64
      /// Those that were not exchanged, by name, as one of the two has lost events of them to damage of its log.
      /// `stemma repair` there mends it.
      public let leftOut: [String]

      init(_ report: Node.TransferReport) {
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
    /// Notes on the run for a person, of one sentence each.
    public let notices: [String]
  }

  // MARK: Exchange

  /// Exchanges events with a peer: another node's directory, or a remote's name; nil: every remote.
  ///
  /// The pulled events are durable and in the tables when this returns, and the resolvers have seen their conflicts.
  /// Writes and reads go on during a run.
  ///
  /// `partitions` narrows this run to some of those that both hold. A pattern that can match no partition of the models
  /// throws `failed`, and nothing is exchanged.
  /// - Throws: `failed` if the peer cannot be reached or is refused; what came before stays. `unresolved` if a resolver has
  ///   made a decision that cannot be; everything has come then.
  @discardableResult
  public func sync(with peer: String? = nil, partitions: [PartitionPattern] = []) async throws -> [SyncReport]
  {
    try await exchange(with: peer, partitions, pulls: true, pushes: true)
  }

  /// Exchanges events with the node in a directory, which need not be a remote.
  @discardableResult
  public func sync(with directory: URL, partitions: [PartitionPattern] = []) async throws -> SyncReport {
    try await exchange(with: directory.path, partitions, pulls: true, pushes: true)[0]
  }

  /// Exchanges events with another store of this process. Both decide the conflicts that have come.
  ///
  /// - Throws: `closed` if either of them is; otherwise as above.
  @discardableResult
  public func sync(with other: Store, partitions: [PartitionPattern] = []) async throws -> SyncReport {
    // Its directory may be gone with it.
    if other.writer.isClosed { throw StoreError.closed }
    let report = try await exchanged(with: other.directory.path, partitions, pulls: true, pushes: true)[0]
    await other.noteOthers()
    // Each store decides, also where the other one cannot. Each failure is reported once, so both are thrown.
    var reasons: [String] = []
    for store in [self, other] {
      do { try await store.resolveConflicts() } catch StoreError.unresolved(let why) { reasons.append(why) }
    }
    if !reasons.isEmpty { throw StoreError.unresolved(reasons.joined(separator: "; ")) }
    return report
  }

  /// Takes what the peer has and this node lacks.
  @discardableResult
  public func pull(from peer: String? = nil, partitions: [PartitionPattern] = []) async throws -> [SyncReport]
  {
    try await exchange(with: peer, partitions, pulls: true, pushes: false)
  }

  /// Gives what this node has and the peer lacks.
  @discardableResult
  public func push(to peer: String? = nil, partitions: [PartitionPattern] = []) async throws -> [SyncReport] {
    try await exchange(with: peer, partitions, pulls: false, pushes: true)
  }

  private func exchange(
    with peer: String?, _ partitions: [PartitionPattern], pulls: Bool, pushes: Bool
  ) async throws -> [SyncReport] {
    let reports = try await exchanged(with: peer, partitions, pulls: pulls, pushes: pushes)
    try await resolveConflicts()
    return reports
  }

  /// Without asking the resolvers.
  private func exchanged(
    with peer: String?, _ partitions: [PartitionPattern], pulls: Bool, pushes: Bool
  ) async throws -> [SyncReport] {
    if options.isReadOnly, pulls { throw StoreError.readOnly }
    // A node of its own, so that commits are made between the pieces that come.
    let own = Self.resolved(directory.path)
    let reports = try await inspect(options.isReadOnly ? .read : .write) { node in
      let peers = try node.peers(peer)
      if let same = peers.first(where: { Self.resolved($0.address) == own }) {
        throw StoreError.failed("\(same.address) is this store's own directory: there is nothing to exchange")
      }
      let partitions = try partitions.map { try $0.checkedText(in: node.schema) }
      return try peers.map { remote in
        let report = try node.exchange(
          with: remote, pulls: pulls, pushes: pushes, partitions: partitions, progress: { _, _ in })
        return SyncReport(
          pulled: report.pulled.map(SyncReport.Transfer.init),
          pushed: report.pushed.map(SyncReport.Transfer.init), notices: report.notices.map(StoreError.words))
      }
    }
    await noteOthers()
    return reports
  }

  /// A path without symbolic links and detours.
  private static func resolved(_ path: String) -> String {
    URL(fileURLWithPath: path).resolvingSymlinksInPath().standardizedFileURL.path
  }

  // MARK: Peers and partitions

  /// Remembers a peer's directory under a name.
  public func addRemote(_ name: String, at directory: URL) async throws {
    try await administer { try $0.addRemote(name, directory.path) }
  }

  /// Forgets a peer; nothing is changed there, and what came from it stays.
  ///
  /// - Throws: `failed` if there is no remote of that name.
  public func removeRemote(_ name: String) async throws {
    try await administer { try $0.removeRemote(name) }
  }

  /// Which partitions this node holds, as patterns; `*` is all.
  public func scope() async throws -> [String] { try await inspect { $0.mark.scope.patterns } }

  /// Changes which partitions this node holds. Partitions that no pattern covers are purged; added ones come
  /// with the next sync.
  ///
  /// With `discards`, partitions are purged too of which no peer has confirmed this node's own events.
  /// - Returns: the purged partitions.
  /// - Throws: `failed` if own events are not confirmed, or if an added pattern can match no partition of the
  ///   models; nothing was changed then.
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

  /// What a store holds, and how far it and its peers are apart.
  public struct Status: Sendable {
    /// A remote, compared with this node.
    public struct Peer: Sendable {
      /// The remote's name.
      public let name: String
      /// Its directory.
      public let address: String
      /// Events that the peer has and this node lacks, and the other way round; nil if the peer cannot be read.
      public let behind: UInt64?
      /// Events that this node has and the peer lacks, of the partitions that both hold; nil if the peer
      /// cannot be read.
      public let ahead: UInt64?
      /// Why it cannot be read, or what stands against a sync.
      public let problem: String?

      /// Whether neither lacks an event, of the partitions that both hold; false if the peer cannot be read.
      public var isInSync: Bool { behind == 0 && ahead == 0 && problem == nil }
    }

    /// The node's name, by which people tell its changes from others'.
    public let name: String
    /// How many events the log holds, of all nodes.
    public let events: UInt64
    /// How many records there are; deleted ones do not count.
    public let records: UInt64
    /// How many partitions there are events of.
    public let partitions: Int
    /// Open conflicts of values, of deletions and of cardinality, as `Store.conflicts()` lists them; dangling references do not
    /// count, as the records may be on their way.
    public let conflicts: UInt64
    /// On disk, in bytes.
    public let logSize: UInt64
    /// Of the tables, on disk, in bytes: a cache that can be made again from the log.
    public let tablesSize: UInt64
    /// One for each remote.
    public let peers: [Peer]
    /// What a person should look at; one sentence each.
    public let notices: [String]
  }

  /// Reads every remote.
  public func status() async throws -> Status {
    try await inspect { node in
      let status = try node.status()
      return Status(
        name: node.mark.name, events: status.events, records: status.records, partitions: status.partitions,
        conflicts: status.conflicts, logSize: status.logBytes, tablesSize: status.tableBytes,
        peers: status.peers.map {
          Status.Peer(
            name: $0.name, address: $0.address, behind: $0.lag == nil ? nil : $0.behind,
            ahead: $0.lag == nil ? nil : $0.ahead, problem: $0.problem.map(StoreError.words))
        },
        notices: (status.notices + node.notices.filter { !status.notices.contains($0) }).map(StoreError.words)
      )
    }
  }
}
