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

  private var greeting: Greeting {
    var named = metadata.origins.map { NamedOrigin($0, nodeName: metadata.name, isOwn: true) }
    named += metadata.names.map { NamedOrigin($0.key, nodeName: $0.value, isOwn: false) }
    return Greeting(
      logID: metadata.logID, nodeName: metadata.name, origins: named, schema: SDL.print(schema),
      scope: metadata.scope)
  }

  /// The indexes of another user's log are not trusted.
  private func sessionNode(with peer: Node, _ task: Session.Task) throws(NodeError) -> Session.Node {
    do throws(LogError) {
      return Session.Node(
        greeting: greeting, schema: schema,
        trustsIndexes: try peer.ports.fileSystem.isOwn(peer.log.directory),
        takesCopies: task == .pull, sharesMemory: true)
    } catch { throw .log(error) }
  }

  // MARK: Peers

  /// The peers that a remote's name or a directory denotes; nil: all remotes.
  package func peers(_ text: String?) throws(NodeError) -> [RemotePeer] {
    guard let text else {
      if metadata.remotes.isEmpty { throw .noRemotes }
      return metadata.remotes
    }
    if let remote = metadata.remotes.first(where: { $0.name == text }) { return [remote] }
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
      _ = try Self.readMetadata(address, ports)
      metadata.remotes.append(RemotePeer(name: name, address: Self.absolute(address)))
      try saveMetadata()
    }
  }

  package func removeRemote(_ name: String) throws(NodeError) {
    try changeRemote(name) { (index) throws(NodeError) in metadata.remotes.remove(at: index) }
  }

  /// Changes the directory of a remote. The record of its last exchange is removed.
  package func setRemote(_ name: String, _ address: String) throws(NodeError) {
    try changeRemote(name) { (index) throws(NodeError) in
      _ = try Self.readMetadata(address, ports)
      metadata.remotes[index] = RemotePeer(name: name, address: Self.absolute(address))
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
    options: OpeningOptions = OpeningOptions(mode: .write), progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> TransferReport {
    let peer = try open(at: source, options.ofPeer(writes: false))
    // The copy would be indistinguishable from a complete clone.
    guard peer.metadata.unfinishedClone == nil else {
      throw .notAPeer(path: source, reason: "\(Explanations.unfinishedPeer), and nothing was cloned")
    }
    let scope: Scope
    do throws(ReplicationError) {
      scope = partitions.isEmpty ? peer.metadata.scope : try Scope(patterns: partitions)
    } catch { throw .replication(error) }
    try peer.checkNames()
    let (run, leftOut) = try run([], of: [peer], within: [scope])
    let node: Node
    do throws(NodeError) {
      let remote = RemotePeer(name: sourceName, address: absolute(source))
      node = try create(
        at: directory, schema: SDL.print(peer.schema), name: name, scope: scope,
        clone: (remote, peer.metadata.logID, peer.greeting), options: options)
    } catch .alreadyANode {
      let metadata = try readMetadata(directory, options.ports)
      guard let begun = metadata.unfinishedClone else { throw .alreadyANode(path: directory, source: source) }
      guard begun == peer.metadata.logID, scope == metadata.scope, metadata.name == name ?? metadata.name
      else {
        let other = metadata.remotes.first { $0.name == sourceName }?.address
        throw .unfinishedClone(path: directory, source: other, nil)
      }
      node = try open(at: directory, options)
      try node.moveSource(to: absolute(source))
    }
    let report: ExchangeReport
    do throws(NodeError) {
      report = try node.recordingExchange(with: absolute(source)) { () throws(NodeError) in
        var report = try node.exchange(node.session(with: peer, .pull, run, progress))
        try node.finishClone(from: peer)
        report.missing = leftOut.first?.error
        return report
      }
    } catch { throw .unfinishedClone(path: directory, source: source, error) }
    guard var pulled = report.pulled else { throw .corrupt(what: "a pull ended without a report") }
    pulled.notices =
      try peer.idlePatterns(partitions).map { Self.sentence(ofIdlePattern: $0, at: [peer]) } + report.notices
      + leftOut.map(\.sentence)
    pulled.leftOut = leftOut.flatMap(\.partitions)
    pulled.missing = report.missing.map { .unfinishedClone(path: directory, source: source, $0) }
    return pulled
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
  @discardableResult
  private func finishClone(from peer: Node) throws(NodeError) -> Bool {
    guard let source = metadata.unfinishedClone, peer.metadata.unfinishedClone == nil,
      try Self.run([], of: [peer], within: [metadata.scope]).leftOut.isEmpty
    else { return false }
    let isOther = source != peer.metadata.logID
    if isOther {
      let scopes = [Scope.everything, metadata.scope]
      guard scopes.contains(peer.metadata.scope) else { return false }
      let (held, theirs) = (
        try reading { try $0.versionVector() }, try peer.reading { try $0.versionVector() }
      )
      guard held.eventCount > 0, held.lag(against: theirs).allSatisfy({ $0.ahead == 0 }) else { return false }
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
  package func exchange(
    with remote: RemotePeer, pulls: Bool, pushes: Bool, partitions: [String],
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ExchangeReport {
    try recordingExchange(with: Self.absolute(remote.address)) { () throws(NodeError) in
      try exchangeOnly(
        with: remote, pulls: pulls, pushes: pushes, partitions: partitions, progress: progress)
    }
  }

  /// Records the exchange if a remote has this absolute address.
  private func recordingExchange(
    with address: String, _ body: () throws(NodeError) -> ExchangeReport
  ) throws(NodeError) -> ExchangeReport {
    let report: ExchangeReport
    do throws(NodeError) { report = try body() } catch {
      // A failure to record the exchange is a notice; the error of the exchange is thrown.
      if !error.isInUse {
        do throws(NodeError) {
          try record(LastExchange(at: ports.clock.milliseconds(), error), address)
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
    try record(LastExchange(at: ports.clock.milliseconds(), report), address)
    return report
  }

  private func record(_ exchange: LastExchange, _ address: String) throws(NodeError) {
    guard options.mode == .write, metadata.remotes.contains(where: { $0.address == address }) else { return }
    try withWriterLock { () throws(NodeError) in
      metadata = try Self.readMetadata(directory, ports)
      for index in metadata.remotes.indices where metadata.remotes[index].address == address {
        metadata.remotes[index].lastExchange = exchange
      }
      try saveMetadata()
    }
  }

  private func exchangeOnly(
    with remote: RemotePeer, pulls: Bool, pushes: Bool, partitions: [String],
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ExchangeReport {
    let peer: Node
    do throws(NodeError) {
      peer = try Self.open(at: remote.address, options.ofPeer(writes: pushes))
    } catch .noNode {
      throw .notAPeer(path: remote.address, reason: "there is no node in that directory")
    }
    let places = [directory, remote.address].map { URL(fileURLWithPath: $0).resolvingSymlinksInPath().path }
    guard places[0] != places[1] else {
      throw .notAPeer(path: remote.address, reason: "it is this node itself")
    }
    for node in [self, peer] { try node.checkNames() }
    let task: Session.Task = pulls && pushes ? .sync : pulls ? .pull : .push
    var attempts = 0
    var (report, leftOut) = (ExchangeReport(), [LeftOut]())
    while true {
      attempts += 1
      try locked { () throws(NodeError) in }
      let run: Scope
      (run, leftOut) = try Self.run(
        partitions, of: [self, peer], within: [metadata.scope, peer.metadata.scope])
      do throws(NodeError) {
        report = try exchange(session(with: peer, task, run, progress))
        break
      } catch .scopeChanged where attempts < Self.attempts {
        // Another process changed a scope; the run is chosen again.
        if pushes { try peer.locked { () throws(NodeError) in } }
      }
    }
    if pulls, partitions.isEmpty, try finishClone(from: peer) {
      report.notices.append("this clone counts as whole now: it has all that \(peer.metadata.name) has")
    }
    if metadata.unfinishedClone != nil { report.notices.append(Explanations.unfinishedClone) }
    if peer.metadata.unfinishedClone != nil {
      report.notices.append("\(peer.metadata.name): \(Explanations.unfinishedPeer)")
    }
    // For a sync the partitions of either node, otherwise those of the sender.
    let senders = (pulls ? [peer] : []) + (pushes ? [self] : [])
    report.notices += try Self.idlePatterns(partitions, at: senders).map {
      Self.sentence(ofIdlePattern: $0, at: senders)
    }
    report.notices += leftOut.map(\.sentence)
    let partitions = Set(leftOut.flatMap(\.partitions)).sorted()
    report.pulled?.leftOut = partitions
    report.pushed?.leftOut = partitions
    report.missing = leftOut.first?.error
    return report
  }

  /// The patterns that match no partition of any of the nodes.
  package static func idlePatterns(
    _ patterns: [String], at nodes: [Node]
  ) throws(NodeError) -> [String] {
    var idle = patterns
    for node in nodes { idle = try node.idlePatterns(idle) }
    return idle
  }

  private static func sentence(ofIdlePattern pattern: String, at nodes: [Node]) -> Notice {
    "no partition of \(Explanations.list(nodes.map(\.metadata.name), "or")) fits `\(pattern)`"
  }

  /// Partitions that are not exchanged, because a node lost events in them.
  private struct LeftOut {
    let node: String
    let losses: [RecordedCorruption.Loss]
    let partitions: [String]

    var sentence: Notice {
      partitions.count == 1
        ? "partition \(partitions[0]) was left out: \(node) has lost events of it"
        : "partitions \(Explanations.list(partitions, "and")) were left out: \(node) has lost events of them"
    }

    var error: NodeError {
      let lost = RecordedCorruption.words(losses) ?? "events"
      return .corrupt(what: "\(node) has lost \(lost), so what it has of these was left out: repair it first")
    }
  }

  /// The scope of a run: the requested partitions, without those in all `scopes` in which one of
  /// the nodes lost events.
  private static func run(
    _ patterns: [String], of nodes: [Node], within scopes: [Scope]
  ) throws(NodeError) -> (scope: Scope, leftOut: [LeftOut]) {
    var patterns = patterns.isEmpty ? Scope.everything.patterns : patterns
    let exchanged = NarrowedScope(scopes + [try scope(patterns)])
    var leftOut: [LeftOut] = []
    for node in nodes {
      guard let corruption = node.metadata.corruption else { continue }
      if corruption.isVague { try node.checkLogIsWhole() }
      let partitions = corruption.partitions.filter(exchanged.contains).sorted().map(\.description)
      guard !partitions.isEmpty else { continue }
      patterns += partitions.map { "!" + $0 }
      let losses = corruption.losses.filter { exchanged.contains(Partition($0.partition)) }
      leftOut.append(LeftOut(node: node.metadata.name, losses: losses, partitions: partitions))
    }
    return (try scope(patterns), leftOut)
  }

  private struct Pair {
    let task: Session.Task
    let run: Scope
    let own: Participant
    let peer: Participant
    let greeting: SessionMessage
  }

  private func session(
    with peer: Node, _ task: Session.Task, _ run: Scope, _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> Pair {
    let (opening, greeting) = Session.opening(try sessionNode(with: peer, task))
    let theirs = try peer.durableVector()
    return Pair(
      task: task, run: run,
      own: Participant(
        self, opening, held: try durableVector(), bytesReadBefore: log.bytesRead,
        progress: progress),
      peer: Participant(
        peer, .answering(try peer.sessionNode(with: self, task), versionVector: theirs), held: theirs,
        bytesReadBefore: 0,
        progress: progress),
      greeting: greeting)
  }

  /// The version vector of the durable log. A reader's tables may be ahead of it, by relaxed
  /// commits and by commits that others have made since it opened the log.
  private func durableVector() throws(NodeError) -> VersionVector {
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

  /// Exchanges messages until the side that opened the session is done.
  private func exchange(_ pair: Pair) throws(NodeError) -> ExchangeReport {
    let (own, peer) = (pair.own, pair.peer)
    var outgoing = [pair.greeting]
    var incoming: [SessionMessage] = []
    own.deliver = { message throws(NodeError) in incoming += try peer.receive(message) }
    peer.deliver = { message throws(NodeError) in outgoing += try own.receive(message) }
    // The closures form a reference cycle that would keep the files of both nodes open.
    defer { for side in [own, peer] { side.deliver = { _ in } } }
    do throws(NodeError) {
      while !outgoing.isEmpty || !incoming.isEmpty {
        let sent = outgoing
        outgoing = []
        for message in sent { incoming += try peer.receive(message) }
        let answers = incoming
        incoming = []
        for message in answers {
          outgoing += try own.receive(message)
          guard let greeting = own.greeted else { continue }
          own.greeted = nil
          try Self.refuseForks(self, peer.node, in: pair.run)
          let versionVector = try reading { try $0.versionVector() }
          outgoing += try own.messages(
            after: own.session.begin(
              pair.task, node: sessionNode(with: peer.node, pair.task), scope: metadata.scope,
              narrowedTo: pair.run,
              versionVector: versionVector))
          try learn(greeting)
          try peer.node.learn(self.greeting)
        }
      }
    } catch let failure {
      var error = failure
      // Complete batches are adopted, unless adoption is the failure.
      for side in [own, peer] {
        do throws(NodeError) { try side.adoptAll() } catch let other { error = other }
      }
      // Adopted events stay; the tables are refreshed with them.
      try conclude(own)
      try peer.node.conclude(peer)
      for node in [self, peer.node] { try node.leaveFork(error) }
      throw error
    }
    try conclude(own)
    try peer.node.conclude(peer)
    // A corrupt end of a journal hides an unknown number of events from readers.
    if peer.node.metadata.corruption == nil, !peer.node.log.isHarmless(peer.node.log.recovery.corruption) {
      try peer.node.checkLogIsWhole()
    }
    guard let summary = own.summary else {
      throw .replication(.incomplete("the session ended without a summary"))
    }
    try acknowledge(summary, by: peer.node, in: pair.run)
    if let theirs = peer.summary { try peer.node.acknowledge(theirs, by: self, in: pair.run) }
    var report = ExchangeReport()
    report.pulled = summary.pulled.map { TransferReport($0, of: own) }
    report.pushed = summary.pushed.map { TransferReport($0, of: peer) }
    report.notices = metadata.peerTypes.filter { $0.peer == peer.node.metadata.logID.description }
      .compactMap { $0.difference(from: schema)?.sentence }
    report.notices += notices + peer.node.notices.map { "\(peer.node.metadata.name): \($0)" }
    return report
  }

  /// Stores the names of a peer's origins, and the fields that its schema declares with another
  /// type. A clone has the names from the beginning.
  private func learn(_ greeting: Greeting) throws(NodeError) {
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
  private func conclude(_ participant: Participant) throws(NodeError) {
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
  private func leaveFork(_ error: NodeError) throws(NodeError) {
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
  private func acknowledge(
    _ summary: SessionSummary, by peer: Node, in run: Scope
  ) throws(NodeError) {
    guard options.mode == .write else { return }
    let name = peer.metadata.logID.description
    let exchanged = NarrowedScope([metadata.scope, peer.metadata.scope, run])
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
            held, by: name, in: { exchanged.contains($0) || !peer.metadata.scope.contains($0) })
        }
      }
    }
  }

  static func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }
}
