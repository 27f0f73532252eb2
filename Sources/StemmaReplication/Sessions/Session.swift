import StemmaEvents
import StemmaLog
import StemmaSchema

/// One side of a session, as a state machine: messages and facts go in, instructions come out. It
/// has no I/O and no clock. The caller transports the bytes, runs the shipment writer and adopts
/// batches.
///
/// The opening side sends `greeting` and passes the replies to `receive`. The first outcome is
/// `greeted`; then it calls `begin` with a task. The other side passes what it receives and follows
/// the outcomes. After `failed` or `finished` the session must not be used.
///
/// Invariants, which `checkInvariants` checks as far as the state shows them:
/// 1. Before both greetings are accepted, only a greeting or a refusal is sent.
/// 2. At any time, each side is either receiver or sender or neither.
/// 3. A batch is returned only after `ShipmentReader` has accepted it, and the next one only after
///   the caller has adopted it.
/// 4. An acknowledgement contains only events that the caller reported as durable.
package struct Session: Sendable {
  /// This node's configuration for the session.
  package struct Node: Sendable {
    package var greeting: Greeting
    package var schema: Schema
    /// The partitions that this node holds. The greeting may show fewer to a peer with few rights.
    package var scope: Scope
    /// The partitions that the peer may read, and write. Everything for a fully trusted peer.
    package var readable: Scope
    package var writable: Scope
    /// Whether the indexes of the peer's segments are trusted if their digests match: its log
    /// belongs to the local user.
    package var trustsIndexes: Bool
    /// Whether the peer may be a copy of this node's directory without events of its own. True for
    /// a pull, which transfers events and numbers none.
    package var takesCopies: Bool
    /// Whether both sides are in one process: then batches have no digest, and each is one chunk.
    package var sharesMemory: Bool
    /// Whether received partitions that were not requested are skipped instead of refused.
    package var skipsForeignPartitions: Bool

    package init(
      greeting: Greeting, schema: Schema, scope: Scope? = nil, readable: Scope = .everything,
      writable: Scope = .everything, trustsIndexes: Bool = false, takesCopies: Bool = false,
      sharesMemory: Bool = false, skipsForeignPartitions: Bool = false
    ) {
      self.skipsForeignPartitions = skipsForeignPartitions
      self.takesCopies = takesCopies
      self.sharesMemory = sharesMemory
      self.trustsIndexes = trustsIndexes
      self.greeting = greeting
      self.schema = schema
      self.scope = scope ?? greeting.scope
      self.readable = readable
      self.writable = writable
    }
  }

  package enum Task: Hashable, Sendable { case pull, push, sync }

  /// The caller's next step.
  package enum Outcome: Sendable {
    /// Wait for the next message.
    case wait
    case send([SessionMessage])
    /// Opening side: the peer's greeting arrived and is compatible; call `begin`. The node may
    /// change before, as in `clone`, which adopts the peer's schema and scope.
    case greeted(Greeting)
    /// Compare the history of this node with the sender's version vector, then continue receiving.
    case compare(VersionVector)
    /// Adopt the batch durably, apply it, then call `adopted`. Chunks of the next batch may be
    /// received before that; other threads decode it.
    case adopt(VerifiedBatch)
    /// Create a shipment: call `batch` for each batch, then `shipped`.
    case ship(ShipmentOrder)
    /// Answering side: one transfer is complete. Send the messages, then continue receiving.
    case transferred(SessionSummary, send: [SessionMessage])
    /// Opening side: everything is complete. Send the messages, then close.
    case finished(SessionSummary, send: [SessionMessage])
    /// Send the refusal, if there is one, and close. Batches that were adopted before stay.
    case failed(ReplicationError, send: SessionMessage?)
  }

  enum State: Sendable {
    /// Opening side: its greeting is sent. Answering side: no message has arrived.
    case waitingForGreeting
    case waitingToBegin
    /// Answering side, between transfers.
    case idle
    case waitingForRequest(NarrowedScope)
    case receiving(Receiving)
    /// The caller adopts a batch.
    case adopting(Receiving)
    case shipping(Shipping)
    case waitingForAcknowledgement(Shipping)
    case over
  }

  struct Receiving: Sendable {
    var request: TransferRequest
    var reader: ShipmentReader
    /// The chunks of the incoming batch, short ones joined. A single array would grow to twice its
    /// content, and keep that size while the batch is in use.
    var parts: [ArraySlice<UInt8>] = []
    /// The size of the parts in bytes.
    var partBytes = 0
    /// A complete batch that waits while the caller adopts the previous one.
    var next: ReceivedBatch?
    var summary: TransferSummary
    /// The durable events of the caller in scope.
    var versionVector: VersionVector
    /// The sender's version vector in scope, which this node covers after the transfer.
    var announced: VersionVector?
    /// How many batches were read.
    var batches: UInt64 = 0

    /// Adds a chunk; returns the batch that ends with it.
    mutating func assemble(_ chunk: Chunk) throws(ReplicationError) -> ReceivedBatch? {
      guard chunk.batch == batches else {
        throw .unexpectedMessage("chunk of batch \(chunk.batch)", expected: "batch \(batches)")
      }
      partBytes += chunk.bytes.count
      guard partBytes <= ReplicationLimits.batch else {
        throw .overLimit("batch", found: UInt64(partBytes), limit: UInt64(ReplicationLimits.batch))
      }
      if let before = parts.last?.count, before + chunk.bytes.count <= ReplicationLimits.chunk {
        parts[parts.count - 1] += chunk.bytes
      } else {
        parts.append(chunk.bytes)
      }
      guard chunk.isLast else { return nil }
      defer { (parts, partBytes) = ([], 0) }
      return reader.arrived(parts)
    }
  }

  struct Shipping: Sendable {
    var request: TransferRequest
    var summary: TransferSummary
    var batches: UInt64 = 0
    var end: TransferEnd?
    /// The version vector that the receiver must cover at the end.
    var held = VersionVector()
  }

  package private(set) var node: Node
  let opened: Bool
  var state: State
  package private(set) var peer: Greeting?
  /// The remaining tasks of the opening side, in order.
  private(set) var remaining: [Task] = []
  private(set) var run = NarrowedScope(.everything)
  var versionVector = VersionVector()
  package internal(set) var summary = SessionSummary()

  /// The opening side.
  package static func opening(_ node: Node) -> (session: Session, greeting: SessionMessage) {
    (Session(node: node, opened: true), .greeting(node.greeting))
  }

  /// The answering side. `versionVector`: all that the node holds.
  package static func answering(_ node: Node, versionVector: VersionVector) -> Session {
    var session = Session(node: node, opened: false)
    session.versionVector = versionVector
    return session
  }

  private init(node: Node, opened: Bool) {
    self.node = node
    self.opened = opened
    state = .waitingForGreeting
  }

  /// After `greeted`: starts the task. `scope` is the node's own scope, and `patterns` narrow this
  /// run. `versionVector` is all that the node holds.
  package mutating func begin(
    _ task: Task, node: Node, scope: Scope, narrowedTo patterns: Scope = .everything,
    versionVector: VersionVector
  ) -> Outcome {
    guard case .waitingToBegin = state else { preconditionFailure("begin comes once, after greeted") }
    self.node = node
    self.versionVector = versionVector
    run = NarrowedScope(scope, patterns)
    remaining = task == .sync ? [.pull, .push] : [task]
    return .send(next())
  }

  /// Processes a decoded message of the peer.
  package mutating func receive(_ message: SessionMessage) -> Outcome {
    do throws(ReplicationError) {
      if case .refusal(let error) = message {
        state = .over
        return .failed(.refusedByPeer(error), send: nil)
      }
      switch (state, message) {
      case (.waitingForGreeting, .greeting(let greeting)): return try greeted(by: greeting)
      case (.waitingForGreeting, .hello) where !opened: return .send([.greeting(node.greeting)])
      case (.idle, .request(let request)): return try ship(request)
      case (.idle, .offer(let scope)): return .send([ask(for: try accepted(scope))])
      case (.waitingForRequest(let offered), .request(let request)):
        return try ship(request, within: offered)
      case (.idle, .holding(let holding)): return try noted(holding)
      case (.receiving(let receiving), .holding(let holding)) where receiving.announced == nil:
        return try compare(holding, receiving)
      case (.receiving(let receiving), .chunk(let chunk)) where receiving.announced != nil:
        return try take(chunk, receiving)
      case (.adopting(let receiving), .chunk(let chunk)) where receiving.next == nil:
        return try takeAhead(chunk, receiving)
      case (.receiving(let receiving), .end(let end)) where receiving.announced != nil:
        return try finish(end, receiving)
      case (.waitingForAcknowledgement(let shipping), .acknowledgement(let versionVector)):
        return try acknowledged(versionVector, shipping)
      case (.adopting, _), (.shipping, _), (.waitingToBegin, _):
        throw .unexpectedMessage(message.name, expected: "none")
      case (.over, _): preconditionFailure("the session is over")
      default: throw .unexpectedMessage(message.name, expected: state.expected)
      }
    } catch {
      return fail(error)
    }
  }

  /// Reports an error of this side, or an undecodable message, to the peer and ends the session.
  package mutating func fail(_ error: ReplicationError) -> Outcome {
    state = .over
    return .failed(error, send: .refusal(error))
  }

  /// The connection has closed. Nil if that is expected.
  package mutating func closed() -> ReplicationError? {
    defer { state = .over }
    switch state {
    case .idle, .over: return nil
    case .waitingForGreeting where !opened: return nil
    default: return .incomplete("the peer closed the connection where \(state.expected) was expected")
    }
  }
}

// MARK: - Greeting

extension Session {
  private mutating func greeted(by greeting: Greeting) throws(ReplicationError) -> Outcome {
    // A copied directory has the same log id, but its own origin once it was opened for writing.
    guard
      node.takesCopies || greeting.logID != node.greeting.logID
        || greeting.ownOrigins != node.greeting.ownOrigins
    else { throw .sameLog(greeting.logID) }
    if !greeting.schema.hasSameBytes(as: node.greeting.schema) {
      let theirs: Schema
      do throws(SchemaError) { theirs = try SDL.read(greeting.schema).schema } catch {
        throw .schemaUnreadable(error.diagnostics.first?.message ?? "no reason given")
      }
      let conflicts = node.schema.conflictsWithPeer(theirs)
      guard conflicts.isEmpty else { throw .schemaConflict(conflicts.map { "\($0)" }) }
    }
    peer = greeting
    summary.peer = greeting
    state = opened ? .waitingToBegin : .idle
    return opened ? .greeted(greeting) : .send([.greeting(node.greeting)])
  }

  var names: (own: String, peer: String) {
    (node.greeting.nodeName, peer?.nodeName ?? "the peer")
  }

  /// Begins the next task of the opening side.
  private mutating func next() -> [SessionMessage] {
    guard !remaining.isEmpty else { return [] }
    switch remaining.removeFirst() {
    case .pull, .sync: return [ask(for: run)]
    case .push:
      state = .waitingForRequest(run)
      return [.offer(run)]
    }
  }

  /// The part of an offer that this node accepts. Partitions that the peer may only read are
  /// omitted: a read-only node offers what it holds.
  private func accepted(_ offered: NarrowedScope) throws(ReplicationError) -> NarrowedScope {
    try require(for: offered) { node.writable.contains($0) || node.readable.contains($0) }
    return offered.narrowed(to: node.scope).narrowed(to: node.writable)
  }

  /// Rejects forbidden partitions that are requested by name, and omits those that only globs
  /// match.
  func require(
    for scope: NarrowedScope, _ isPermitted: (Partition) -> Bool
  ) throws(ReplicationError) {
    let named = scope.scopes.flatMap(\.list).filter { !$0.isExclusion }.compactMap(\.partition)
    let denied = Set(named).filter { scope.contains($0) && !isPermitted($0) }.sorted()
    guard denied.isEmpty else { throw .notPermitted(denied) }
  }

  mutating func concluded(sending: [SessionMessage]) -> Outcome {
    guard opened else {
      state = .idle
      return .transferred(summary, send: sending)
    }
    let more = next()
    if !more.isEmpty { return .send(sending + more) }
    state = .over
    return .finished(summary, send: sending)
  }

  /// Records events that the peer holds; throws if they differ from this node's. Ignores partitions
  /// without rights: an error would show what this node holds of them.
  mutating func learn(_ all: VersionVector) throws(ReplicationError) {
    let theirs = permitted(all)
    if let fork = versionVector.restricted(to: { theirs.partitions[$0] != nil }).fork(
      against: theirs, names: names)
    {
      throw .fork(fork)
    }
    summary.peerVector.formUnion(theirs)
    retire(versionVector.origins(node.greeting.ownOrigins, behind: theirs))
  }

  /// The part of a peer's statement for which it has rights.
  func permitted(_ theirs: VersionVector) -> VersionVector {
    theirs.restricted { node.readable.contains($0) || node.writable.contains($0) }
  }

  mutating func retire(_ origins: [Origin]) {
    summary.originsToRetire = Set(summary.originsToRetire).union(origins).sorted()
  }
}

extension Session.State {
  /// The messages that the peer may send, in words.
  var expected: String {
    switch self {
    case .waitingForGreeting: "greeting"
    case .idle: "request, offer or holding"
    case .waitingForRequest: "request"
    case .receiving(let receiving) where receiving.announced == nil: "holding"
    case .receiving: "chunk or end"
    case .adopting(let receiving) where receiving.next == nil: "chunk"
    case .waitingForAcknowledgement: "acknowledgement"
    case .waitingToBegin, .adopting, .shipping, .over: "none"
    }
  }
}
