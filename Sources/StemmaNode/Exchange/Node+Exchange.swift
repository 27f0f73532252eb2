import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

extension Node {
  func withWriterLock<Result>(_ body: () throws(NodeError) -> Result) throws(NodeError) -> Result {
    let lock = try takeLock()
    defer { lock.release() }
    return try body()
  }

  /// The greeting for a peer with these rights. A peer with limited rights learns nothing of other
  /// partitions. The scope then has its rights. Origins without events of readable partitions have
  /// no names.
  func greeting(
    for rights: Rights = .everything, _ held: VersionVector
  ) throws(NodeError) -> Greeting {
    let (readable, writable, isLimited) = (rights.readable, rights.writable, rights.isLimited)
    let shown =
      isLimited ? Set(held.partitions.filter { readable.contains($0.key) }.flatMap(\.value.keys)) : []
    var named = metadata.origins.map { NamedOrigin($0, nodeName: metadata.name, isOwn: true) }
    named += metadata.names.filter { !isLimited || shown.contains($0.key) }
      .map { NamedOrigin($0.key, nodeName: $0.value, isOwn: false) }
    var losses: [StreamLoss] = []
    for loss in metadata.corruption?.losses ?? [] {
      let partition = Partition(loss.partition)
      guard readable.contains(partition) || writable.contains(partition),
        let origin = UInt64(loss.origin, radix: 16)
      else { continue }
      losses.append(
        StreamLoss(partition, Origin(origin), from: SequenceNumber(loss.from), to: SequenceNumber(loss.to)))
    }
    let scope = isLimited ? try Self.scope(readable.patterns + writable.patterns) : metadata.scope
    return Greeting(
      logID: metadata.logID, nodeName: metadata.name, origins: named, schema: SDL.print(schema),
      scope: scope, isUnfinished: metadata.unfinishedClone != nil, losses: losses)
  }

  /// Whether the log belongs to the local user. The indexes of another user's log are not trusted.
  var isOwn: Bool {
    get throws(NodeError) {
      do throws(LogError) { return try ports.fileSystem.isOwn(log.directory) } catch { throw .log(error) }
    }
  }

  private func sessionNode(
    _ link: any PeerLink, _ task: Session.Task, _ held: VersionVector
  ) throws(NodeError) -> Session.Node {
    Session.Node(
      greeting: try greeting(held), schema: schema, trustsIndexes: link.isOwn, takesCopies: task == .pull,
      sharesMemory: link.sharesMemory, skipsForeignPartitions: link.isRecorded)
  }

  // MARK: Peers

  /// The peers that a remote's name or an address denotes; nil: all remotes.
  package func peers(_ text: String?) throws(NodeError) -> [RemotePeer] {
    guard let text else {
      if metadata.remotes.isEmpty { throw .noRemotes }
      return metadata.remotes
    }
    if let remote = metadata.remotes.first(where: { $0.name == text }) { return [remote] }
    guard PeerAddress(text).isDirectory else { return [RemotePeer(name: text, address: text)] }
    do {
      if try ports.exists(NodeMetadata.fileName, in: text) { return [RemotePeer(name: text, address: text)] }
    } catch { throw .log(error) }
    if let lost = try Self.lostMetadata(in: text, ports) { throw lost }
    throw .unknownRemote(text, known: metadata.remotes.map(\.name))
  }

  package func addRemote(_ name: String, _ address: String) throws(NodeError) {
    try withWriterLock { () throws(NodeError) in
      metadata = try Self.readMetadata(directory, ports)
      guard !metadata.remotes.contains(where: { $0.name == name }) else {
        throw .notAPeer(path: name, reason: "a remote of that name is there; remove it first")
      }
      if PeerAddress(address).isDirectory { _ = try Self.readMetadata(address, ports) }
      metadata.remotes.append(RemotePeer(name: name, address: PeerAddress.stored(address)))
      try saveMetadata()
    }
  }

  package func removeRemote(_ name: String) throws(NodeError) {
    try changeRemote(name) { (index) throws(NodeError) in metadata.remotes.remove(at: index) }
  }

  /// Changes the address of a remote. The record of its last exchange is removed.
  package func setRemote(_ name: String, _ address: String) throws(NodeError) {
    try changeRemote(name) { (index) throws(NodeError) in
      if PeerAddress(address).isDirectory { _ = try Self.readMetadata(address, ports) }
      metadata.remotes[index] = RemotePeer(name: name, address: PeerAddress.stored(address))
    }
  }

  private func changeRemote(_ name: String, _ change: (Int) throws(NodeError) -> Void) throws(NodeError) {
    try withWriterLock { () throws(NodeError) in
      metadata = try Self.readMetadata(directory, ports)
      guard let index = metadata.remotes.firstIndex(where: { $0.name == name }) else {
        throw .unknownRemote(name, known: metadata.remotes.map(\.name))
      }
      try change(index)
      try saveMetadata()
    }
  }

  /// The scope of a remote, and what it holds. A directory is read. Of a peer on another machine it
  /// is the state after the last successful exchange; nil: there was none.
  func holding(of remote: RemotePeer) throws(NodeError) -> TransferRequest? {
    guard PeerAddress(remote.address).isDirectory else {
      return try PeerVectors(directory: directory, ports: ports).holding(of: remote.address)
    }
    let peer = try Self.open(at: remote.address, options.ofPeer(writes: false))
    return TransferRequest(
      scope: NarrowedScope(peer.metadata.scope), versionVector: try peer.reading { try $0.versionVector() })
  }

  // MARK: Clone

  /// Makes a node from another: its schema and some or all partitions. The source becomes the
  /// remote `source`. Repeating the clone, or a pull, continues an unfinished one.
  ///
  /// - Returns: the result of the transfer. The clone is unfinished if partitions with lost events
  ///   were left out (`TransferReport.missing`).
  /// - Throws: `.unfinishedClone` if the transfer into the new node failed; `.alreadyANode`;
  ///   `.notAPeer` if the source is an unfinished clone.
  package static func clone(
    from source: String, to directory: String, partitions: [String], name: String?,
    options: OpeningOptions = OpeningOptions(mode: .write), connect: Connector? = nil,
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> TransferReport {
    let remote = RemotePeer(name: sourceName, address: PeerAddress.stored(source))
    let connect = connect ?? directories(options, progress)
    let link = try connect(RemotePeer(name: sourceName, address: source), nil, false)
    let greeting = link.greeting
    func closing<T>(_ body: () throws(NodeError) -> T) throws(NodeError) -> T {
      do throws(NodeError) { return try body() } catch {
        _ = try link.close(after: error)
        throw error
      }
    }
    let (scope, schema) = try closing { () throws(NodeError) in
      // The copy would be indistinguishable from a complete clone.
      guard !greeting.isUnfinished else {
        throw .notAPeer(path: source, reason: "\(Explanations.unfinishedPeer), and nothing was cloned")
      }
      do throws(SchemaError) { _ = try SDL.read(greeting.schema) } catch { throw .schema(error) }
      return (partitions.isEmpty ? greeting.scope : try Self.scope(partitions), greeting.schema)
    }
    let run = try closing { () throws(NodeError) in
      try Run([], within: [scope], own: nil, peer: greeting)
    }
    let node = try closing { () throws(NodeError) in
      do throws(NodeError) {
        return try create(
          at: directory, schema: schema, name: name, scope: scope,
          clone: (remote, greeting.logID, greeting), options: options)
      } catch .alreadyANode {
        let metadata = try readMetadata(directory, options.ports)
        guard let begun = metadata.unfinishedClone else {
          throw .alreadyANode(path: directory, source: source)
        }
        guard begun == greeting.logID, scope == metadata.scope, metadata.name == name ?? metadata.name
        else {
          let other = metadata.remotes.first { $0.name == sourceName }?.address
          throw .unfinishedClone(path: directory, source: other, nil)
        }
        let node = try open(at: directory, options)
        try node.moveSource(to: remote.address)
        return node
      }
    }
    let report: ExchangeReport
    var idle: [String] = []
    do throws(NodeError) {
      report = try node.recordingExchange(with: remote.address) { () throws(NodeError) in
        var exchanged = try node.exchange(over: link, .pull, run.scope, progress)
        try node.finishClone(from: greeting, announced: exchanged.announced)
        idle = try Self.idle(partitions, exchanged.announced)
        exchanged.report.missing = run.leftOut.first?.error
        return exchanged.report
      }
    } catch { throw .unfinishedClone(path: directory, source: source, error) }
    guard var pulled = report.pulled else { throw .corrupt(what: "a pull ended without a report") }
    pulled.notices =
      idle.map { Self.sentence(ofIdlePattern: $0, at: [greeting.nodeName]) } + report.notices
      + run.leftOut.map(\.sentence)
    pulled.leftOut = run.leftOut.flatMap(\.partitions)
    pulled.missing = report.missing.map { .unfinishedClone(path: directory, source: source, $0) }
    return pulled
  }

  /// Connects to directories only.
  private static func directories(
    _ options: OpeningOptions, _ progress: @escaping (UInt64, UInt64) -> Void
  ) -> Connector {
    { (remote, node, writes) throws(NodeError) in
      try directoryLink(remote.address, node, options, writes: writes, progress)
    }
  }

  /// Connects to the node in a directory.
  package static func directoryLink(
    _ address: String, _ node: Node?, _ options: OpeningOptions, writes: Bool,
    _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> any PeerLink {
    guard PeerAddress(address).isDirectory else {
      throw .notAPeer(path: address, reason: "only directories are reached here")
    }
    do throws(NodeError) {
      return try DirectoryLink(address, node, options: options, writes: writes, progress: progress)
    } catch .noNode where node != nil {
      throw .notAPeer(path: address, reason: "there is no node in that directory")
    }
  }

  /// The name of a clone's remote.
  private static let sourceName = "source"

  /// Updates the address of a clone's source, which has moved or is a copy.
  private func moveSource(to address: String) throws(NodeError) {
    try withWriterLock { () throws(NodeError) in
      metadata = try Self.readMetadata(directory, ports)
      guard let index = metadata.remotes.firstIndex(where: { $0.name == Self.sourceName }) else {
        metadata.remotes.append(RemotePeer(name: Self.sourceName, address: address))
        return try saveMetadata()
      }
      guard metadata.remotes[index].address != address else { return }
      metadata.remotes[index].address = address
      try saveMetadata()
    }
  }

  /// Marks the clone as finished after a pull from its source, or from another node that holds at
  /// least the same events. Returns true if it was another node.
  ///
  /// - Parameter announced: what the peer holds in the scope of the pull.
  @discardableResult
  private func finishClone(
    from peer: Greeting, announced: VersionVector?
  ) throws(NodeError) -> Bool {
    guard let source = metadata.unfinishedClone, !peer.isUnfinished,
      try Run([], within: [metadata.scope], own: self, peer: peer).leftOut.isEmpty
    else { return false }
    let isOther = source != peer.logID
    if isOther {
      let scopes = [Scope.everything, metadata.scope]
      guard scopes.contains(peer.scope), let announced else { return false }
      let held = try reading { try $0.versionVector() }
      guard held.eventCount > 0, held.lag(against: announced).allSatisfy({ $0.ahead == 0 }) else {
        return false
      }
    }
    try withWriterLock { () throws(NodeError) in
      metadata = try Self.readMetadata(directory, ports)
      metadata.unfinishedClone = nil
      try saveMetadata()
    }
    return isOther
  }

  // MARK: Exchange

  /// The number of attempts if scopes change during an exchange.
  private static let attempts = 3

  /// Pulls from a peer, pushes to it, or both. Records the time and the result with the remote.
  ///
  /// - Parameters:
  ///   - connect: connects to the peer; nil: to directories only.
  ///   - recordsEach: whether each exchange is recorded. Otherwise one without events is recorded
  ///     only if the last record has another result, or is a minute old.
  package func exchange(
    with remote: RemotePeer, pulls: Bool, pushes: Bool, partitions: [String], connect: Connector? = nil,
    recordsEach: Bool = true, progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ExchangeReport {
    try recordingExchange(with: PeerAddress.stored(remote.address), each: recordsEach) {
      () throws(NodeError) in
      try exchangeOnly(
        with: remote, pulls: pulls, pushes: pushes, partitions: partitions,
        connect: connect ?? Self.directories(options, progress), progress: progress)
    }
  }

  /// Records the exchange if a remote has this absolute address.
  private func recordingExchange(
    with address: String, each: Bool = true, _ body: () throws(NodeError) -> ExchangeReport
  ) throws(NodeError) -> ExchangeReport {
    let report: ExchangeReport
    do throws(NodeError) { report = try body() } catch {
      // A failure to record the exchange is a notice; the error of the exchange is thrown.
      if !error.isInUse {
        do throws(NodeError) {
          let last = metadata.remotes.first { $0.address == address }?.lastExchange
          try record(LastExchange(at: ports.clock.milliseconds(), error, after: last), address, each: each)
        } catch {
          notices.append("the failed exchange was not recorded: \(Explanations.text(of: error))")
        }
      }
      // The recorded exchange does not include this advice.
      if metadata.unfinishedClone != nil, case .notAPeer(let path, let reason) = error {
        throw .notAPeer(
          path: path,
          reason:
            "\(reason), and this one is an unfinished clone; \(step: .pull(NextStep.peer)) fetches the rest from "
            + "another node that has it all")
      }
      throw error
    }
    try record(LastExchange(at: ports.clock.milliseconds(), report), address, each: each, report)
    return report
  }

  /// How old the record of an exchange without events may become, in milliseconds.
  private static let recordInterval: UInt64 = 60_000

  private func record(
    _ exchange: LastExchange, _ address: String, each: Bool, _ report: ExchangeReport? = nil
  ) throws(NodeError) {
    guard options.mode == .write, let remote = metadata.remotes.first(where: { $0.address == address })
    else { return }
    if !each, let last = remote.lastExchange, last.problem == exchange.problem,
      exchange.pulled ?? 0 == 0, exchange.pushed ?? 0 == 0,
      exchange.time < last.time + Self.recordInterval
    {
      return
    }
    try withWriterLock { () throws(NodeError) in
      // A directory is compared with itself.
      if let report, !PeerAddress(address).isDirectory {
        try PeerVectors(directory: directory, ports: ports).record(report, of: address)
      }
      metadata = try Self.readMetadata(directory, ports)
      for index in metadata.remotes.indices where metadata.remotes[index].address == address {
        metadata.remotes[index].lastExchange = exchange
      }
      try saveMetadata()
    }
  }

  private func exchangeOnly(
    with remote: RemotePeer, pulls: Bool, pushes: Bool, partitions: [String], connect: Connector,
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ExchangeReport {
    try checkNames()
    let task: Session.Task = pulls && pushes ? .sync : pulls ? .pull : .push
    var attempts = 0
    while true {
      attempts += 1
      let link = try connect(remote, self, pushes)
      let peer = link.greeting
      let run: Run
      do throws(NodeError) {
        try locked { () throws(NodeError) in }
        run = try Run(partitions, within: [metadata.scope, peer.scope], own: self, peer: peer)
      } catch {
        _ = try link.close(after: error)
        throw error
      }
      let exchanged: Exchanged
      do throws(NodeError) {
        exchanged = try exchange(over: link, task, run.scope, progress)
      } catch .scopeChanged where attempts < Self.attempts {
        // Another process changed a scope; the run is chosen again.
        continue
      }
      var report = exchanged.report
      if pulls, partitions.isEmpty, !link.isRecorded,
        try finishClone(from: peer, announced: exchanged.announced)
      {
        report.notices.append("this clone counts as whole now: it has all that \(peer.nodeName) has")
      }
      if metadata.unfinishedClone != nil { report.notices.append(Explanations.unfinishedClone) }
      if peer.isUnfinished { report.notices.append("\(peer.nodeName): \(Explanations.unfinishedPeer)") }
      // For a sync the partitions of either node, otherwise those of the sender.
      var idle = partitions
      if pulls { idle = try Self.idle(idle, exchanged.announced) }
      if pushes { idle = try idlePatterns(idle) }
      let senders = (pulls ? [peer.nodeName] : []) + (pushes ? [metadata.name] : [])
      report.notices += idle.map { Self.sentence(ofIdlePattern: $0, at: senders) }
      report.notices += run.leftOut.map(\.sentence)
      report.pulled?.leftOut = run.partitionsLeftOut
      report.pushed?.leftOut = run.partitionsLeftOut
      report.missing = run.leftOut.first?.error
      return report
    }
  }

  /// The inclusions that match no announced partition. A peer does not announce excluded ones.
  private static func idle(_ patterns: [String], _ announced: VersionVector?) throws(NodeError) -> [String] {
    guard let announced else { return patterns }
    var idle: [String] = []
    for pattern in patterns where !pattern.hasPrefix("!") {
      let scope = try scope([pattern])
      if !announced.partitions.keys.contains(where: scope.contains) { idle.append(pattern) }
    }
    return idle
  }

  private static func sentence(ofIdlePattern pattern: String, at nodes: [String]) -> Notice {
    "no partition of \(Explanations.list(nodes, "or")) fits `\(pattern)`"
  }

  /// The version vector of the durable log. A reader's tables may be ahead of it, by relaxed
  /// commits and by commits that others have made since it opened the log.
  package func durableVector() throws(NodeError) -> VersionVector {
    if options.mode == .write {
      return try locked { () throws(NodeError) in try reading { try $0.versionVector() } }
    }
    var (held, token) = try reading { (try $0.versionVector(), try $0.token()) }
    guard token.position > log.durableEnd else { return held }
    try Self.wrapping {
      _ = try log.refresh()
      var events = log.unsyncedEvents(to: token.position, around: Omissions())
      while let event = try events.next()?.event {
        let head = held[event.partition, event.id.origin]
        held[event.partition, event.id.origin] = StreamHead(
          sequence: min(head.sequence, SequenceNumber(event.id.sequence.rawValue - 1)),
          hash: head.hash - event.digest.hash)
      }
    }
    return held
  }

  private struct Exchanged {
    var report: ExchangeReport
    /// The version vector of the peer in the scope of the pull.
    var announced: VersionVector?
  }

  /// Exchanges messages until the own side is done, and closes the link.
  private func exchange(
    over link: any PeerLink, _ task: Session.Task, _ run: Scope,
    _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> Exchanged {
    let own: Participant
    let opening: SessionMessage
    do throws(NodeError) {
      let held = try durableVector()
      let (session, greeting) = Session.opening(try sessionNode(link, task, held))
      own = Participant(self, session, held: held, bytesReadBefore: log.bytesRead, progress: progress)
      opening = greeting
    } catch {
      _ = try link.close(after: error)
      throw error
    }
    do throws(NodeError) {
      try link.send(opening)
      while own.summary == nil {
        try own.receive(try link.receive())
        if own.isGreeted {
          try own.begin { session throws(NodeError) in
            let held = try reading { try $0.versionVector() }
            return session.begin(
              task, node: try sessionNode(link, task, held), scope: metadata.scope, narrowedTo: run,
              versionVector: held)
          }
          if let peer = own.session.peer { try learn(peer) }
        }
        while let message = try own.next() { try link.send(message) }
      }
    } catch let failure {
      var error = failure
      // Complete batches are adopted, unless adoption is the failure.
      do throws(NodeError) { try own.adoptAll() } catch let other { error = other }
      do throws(NodeError) { _ = try link.close(after: error) } catch let other { error = other }
      // Adopted events stay; the tables are refreshed with them.
      try conclude(own)
      try leaveFork(error)
      throw error
    }
    try conclude(own)
    let peerNotices = try link.close(after: nil)
    guard let summary = own.summary, let peer = summary.peer else {
      throw .replication(.incomplete("the session ended without a summary"))
    }
    // The peer may have purged events since the messages were recorded.
    if !link.isRecorded { try acknowledge(summary, by: peer) }
    var report = ExchangeReport()
    report.peerVector = summary.peerVector
    report.exchanged = summary.exchanged
    report.peerScope = peer.scope
    report.pulled = summary.pulled.map { TransferReport($0, of: own) }
    report.pushed = summary.pushed.map { TransferReport($0) }
    report.notices = metadata.peerTypes.filter { $0.peer == peer.logID.description }
      .compactMap { $0.difference(from: schema)?.sentence }
    report.notices += notices + peerNotices.map { "\(peer.nodeName): \($0)" }
    return Exchanged(report: report, announced: own.announced)
  }

  /// A corrupt end of a journal hides an unknown number of events from readers.
  func checkEndOfLog() throws(NodeError) {
    if metadata.corruption == nil, !log.isHarmless(log.recovery.corruption) { try checkLogIsWhole() }
  }

  /// Stores the names of a peer's origins, and the fields that its schema declares with another
  /// type. A clone has the names from the beginning.
  func learn(_ greeting: Greeting) throws(NodeError) {
    var told = metadata
    told.learn(greeting)
    try told.learnTypes(of: greeting, against: schema)
    guard told != metadata, options.mode == .write else { return }
    try withWriterLock { () throws(NodeError) in
      metadata = try Self.readMetadata(directory, ports)
      metadata.learn(greeting)
      try metadata.learnTypes(of: greeting, against: schema)
      try saveMetadata()
    }
  }

  /// Refreshes the tables with the adopted events.
  func conclude(_ participant: Participant) throws(NodeError) {
    guard options.mode == .write else { return }
    try locked { () throws(NodeError) in
      let retired = participant.summary?.originsToRetire ?? []
      if retired.contains(metadata.origin) {
        try beginOrigin(because: "a peer holds more of this node's origin than the node itself")
      }
    }
    sealOrNote()
  }

  /// Begins a new origin if the fork concerns the origin that this node writes under.
  func leaveFork(_ error: NodeError) throws(NodeError) {
    guard options.mode == .write, case .replication(let reason) = error, let fork = reason.fork else {
      return
    }
    try locked { () throws(NodeError) in
      guard metadata.origin == fork.origin else { return }
      try beginOrigin(because: "a peer holds other events under this node's origin")
    }
  }

  /// Records the events that a peer holds. Removes its other acknowledgements for partitions
  /// outside of its scope, and for exchanged partitions.
  func acknowledge(_ summary: SessionSummary, by peer: Greeting) throws(NodeError) {
    guard options.mode == .write else { return }
    let name = peer.logID.description
    let exchanged = summary.exchanged
    try locked { () throws(NodeError) in
      var held: [Acknowledgement] = []
      for (partition, streams) in summary.peerVector.partitions {
        for (origin, head) in streams where metadata.mayOwn(origin) {
          held.append(
            Acknowledgement(peer: name, partition: partition, origin: origin, sequence: head.sequence))
        }
      }
      try Self.wrapping {
        try tables.write { transaction throws(TablesError) in
          try transaction.confirm(
            held, by: name, in: { exchanged?.contains($0) == true || !peer.scope.contains($0) })
        }
      }
    }
  }
}
