import StemmaEvents
import StemmaLog
import StemmaSchema

/// One side of a session, as a state machine: messages and facts go in, what to do comes out. No I/O, no
/// clock; the caller moves the bytes, runs the shipment writer and adopts pieces.
///
/// The side that opens calls `greeting`, sends it, and feeds what comes back to `receive`. The first outcome
/// is `greeted`; then it calls `begin` with a task. The other side feeds what it receives and does what comes
/// out. After `failed` or `finished` the session must not be used any more.
///
/// Invariants:
/// 1. Nothing is sent before both greetings agreed, except a greeting or a refusal.
/// 2. Each side is at most one of receiver and sender at any time.
/// 3. A piece is handed out only after `ShipmentReader` has accepted it, and the next one only after the
///    caller said that this one is adopted.
/// 4. An acknowledgement states only what the caller said is durable.
///
/// `checkInvariants` checks what of this the state shows.
package struct Session: Sendable {
  /// What the node knows about itself.
  package struct Node: Sendable {
    package var greeting: Greeting
    package var schema: Schema
    /// Partitions that the peer may read, and write. Everything for a peer that is trusted with the whole
    /// node.
    package var readable: Scope
    package var writable: Scope
    /// Whether the peer is believed in what the indexes of its sealed files say, whose digests hold: its log belongs to
    /// the user who asks.
    package var trustsIndexes: Bool
    /// Whether the peer may be a copy of this node's directory that has written nothing since: true of a pull, which gives the
    /// events of one to the other and numbers none.
    package var takesCopies: Bool
    /// Whether both sides are in one process: then pieces have no digests and are handed over whole, each in one chunk.
    package var sharesMemory: Bool

    package init(
      greeting: Greeting, schema: Schema, readable: Scope = .everything, writable: Scope = .everything,
      trustsIndexes: Bool = false, takesCopies: Bool = false, sharesMemory: Bool = false
    ) {
      self.takesCopies = takesCopies
      self.sharesMemory = sharesMemory
      self.trustsIndexes = trustsIndexes
      self.greeting = greeting
      self.schema = schema
      self.readable = readable
      self.writable = writable
    }
  }

  package enum Task: Hashable, Sendable { case pull, push, sync }

  /// What the caller must do next.
  package enum Outcome: Sendable {
    /// Wait for the next message.
    case wait
    case send([SessionMessage])
    /// The side that opened: the peer's greeting is here and fits; call `begin`. The node may be changed
    /// before, as `clone` does, which takes the peer's schema and scope.
    case greeted(Greeting)
    /// Adopt the piece durably, apply it, then call `adopted`. Chunks of the next piece may be received before that,
    /// which other threads then take apart.
    case adopt(VerifiedPiece)
    /// Make a shipment: call `piece` for each piece, then `shipped`.
    case ship(ShipmentOrder)
    /// The side that did not open: one transfer is over. Send the messages, then go on receiving.
    case transferred(SessionSummary, send: [SessionMessage])
    /// The side that opened: all is done. Send the messages, then close.
    case finished(SessionSummary, send: [SessionMessage])
    /// Send the refusal, if there is one, and close. What was adopted before stays.
    case failed(ReplicationError, send: SessionMessage?)
  }

  enum State: Sendable {
    /// The side that opened: its greeting is out. The other side: nothing has come yet.
    case waitingForGreeting
    case waitingToBegin
    /// The side that did not open, between transfers.
    case idle
    case waitingForRequest(NarrowedScope)
    case receiving(Receiving)
    /// The caller has a piece in its hands.
    case adopting(Receiving)
    case shipping(Shipping)
    case waitingForAcknowledgement(Shipping)
    case over
  }

  struct Receiving: Sendable {
    var request: TransferRequest
    var reader: ShipmentReader
    /// The chunks of the piece that is coming, short ones joined. One array of all would grow to twice what it holds,
    /// and stay so for as long as the piece is needed.
    var parts: [ArraySlice<UInt8>] = []
    /// Bytes of the parts.
    var partBytes = 0
    /// Has come whole while the caller has the piece before it in its hands.
    var next: ArrivedPiece?
    var summary: TransferSummary
    /// What the caller holds durably, of the scope.
    var knowledge: Knowledge
    /// How many were read.
    var pieces: UInt64 = 0

    /// Adds a chunk; gives the piece that ends with it.
    mutating func assemble(_ chunk: Chunk) throws(ReplicationError) -> ArrivedPiece? {
      guard chunk.piece == pieces else {
        throw .unexpectedMessage("chunk of piece \(chunk.piece)", expected: "piece \(pieces)")
      }
      partBytes += chunk.bytes.count
      guard partBytes <= ReplicationLimits.piece else {
        throw .overLimit("piece", found: UInt64(partBytes), limit: UInt64(ReplicationLimits.piece))
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
    var pieces: UInt64 = 0
    var end: TransferEnd?
  }

  package private(set) var node: Node
  let opened: Bool
  var state: State
  package private(set) var peer: Greeting?
  /// Tasks of the side that opened, in order: what is left.
  private(set) var remaining: [Task] = []
  private(set) var run = NarrowedScope(.everything)
  var knowledge = Knowledge()
  var summary = SessionSummary()

  /// The side that opens the session.
  package static func opening(_ node: Node) -> (session: Session, greeting: SessionMessage) {
    (Session(node: node, opened: true), .greeting(node.greeting))
  }

  /// The side that is called. `knowledge`: all that the node holds.
  package static func answering(_ node: Node, knowledge: Knowledge) -> Session {
    var session = Session(node: node, opened: false)
    session.knowledge = knowledge
    return session
  }

  private init(node: Node, opened: Bool) {
    self.node = node
    self.opened = opened
    state = .waitingForGreeting
  }

  /// After `greeted`: what to do. `scope` is the node's own scope and `patterns` narrow this run;
  /// `knowledge` is all that the node holds.
  package mutating func begin(
    _ task: Task, node: Node, scope: Scope, narrowedTo patterns: Scope = .everything, knowledge: Knowledge
  ) -> Outcome {
    guard case .waitingToBegin = state else { preconditionFailure("begin comes once, after greeted") }
    self.node = node
    self.knowledge = knowledge
    run = NarrowedScope(scope, patterns)
    remaining = task == .sync ? [.pull, .push] : [task]
    return .send(next())
  }

  /// A message of the peer, decoded.
  package mutating func receive(_ message: SessionMessage) -> Outcome {
    do throws(ReplicationError) {
      if case .refusal(let error) = message {
        state = .over
        return .failed(.refusedByPeer(error), send: nil)
      }
      switch (state, message) {
      case (.waitingForGreeting, .greeting(let greeting)): return try greeted(by: greeting)
      case (.idle, .request(let request)): return try ship(request)
      case (.idle, .offer(let scope)): return .send([ask(for: try accepted(scope))])
      case (.waitingForRequest(let offered), .request(let request)):
        return try ship(request, within: offered)
      case (.receiving(let receiving), .chunk(let chunk)): return try take(chunk, receiving)
      case (.adopting(let receiving), .chunk(let chunk)) where receiving.next == nil:
        return try takeAhead(chunk, receiving)
      case (.receiving(let receiving), .end(let end)): return try finish(end, receiving)
      case (.waitingForAcknowledgement(let shipping), .acknowledgement(let knowledge)):
        return try acknowledged(knowledge, shipping)
      case (.adopting, _), (.shipping, _), (.waitingToBegin, _):
        throw .unexpectedMessage(message.name, expected: "none")
      case (.over, _): preconditionFailure("the session is over")
      default: throw .unexpectedMessage(message.name, expected: state.expected)
      }
    } catch {
      return fail(error)
    }
  }

  /// Trouble on this side, or bytes that are no message: tells the peer and ends the session.
  package mutating func fail(_ error: ReplicationError) -> Outcome {
    state = .over
    return .failed(error, send: .refusal(error))
  }

  /// The transport is at its end. Nil where that is in order.
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
    // A copy of a directory has the same log, but once it was opened for writing an origin of its own.
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

  /// Begins the next task of the side that opened.
  private mutating func next() -> [SessionMessage] {
    guard !remaining.isEmpty else { return [] }
    switch remaining.removeFirst() {
    case .pull, .sync: return [ask(for: run)]
    case .push:
      state = .waitingForRequest(run)
      return [.offer(run)]
    }
  }

  /// What this node takes of what is offered.
  private func accepted(_ offered: NarrowedScope) throws(ReplicationError) -> NarrowedScope {
    try require(node.writable, for: offered)
    return offered.narrowed(to: node.greeting.scope).narrowed(to: node.writable)
  }

  /// Refuses partitions that are asked for by name and not permitted; what globs leave out is left out.
  func require(_ permitted: Scope, for scope: NarrowedScope) throws(ReplicationError) {
    let named = scope.scopes.flatMap(\.list).filter { !$0.isExclusion }.compactMap(\.partition)
    let denied = Set(named).filter { scope.contains($0) && !permitted.contains($0) }.sorted()
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

  /// Notes what the peer turned out to hold; throws if it holds other events than we do.
  mutating func learn(_ theirs: Knowledge) throws(ReplicationError) {
    if let fork = knowledge.restricted(to: { theirs.partitions[$0] != nil }).fork(
      against: theirs, names: names)
    {
      throw .fork(fork)
    }
    summary.peerKnowledge.formUnion(theirs)
    retire(knowledge.origins(node.greeting.ownOrigins, behind: theirs))
  }

  mutating func retire(_ origins: [Origin]) {
    summary.originsToRetire = Set(summary.originsToRetire).union(origins).sorted()
  }
}

extension Session.State {
  /// What may come from the peer, in words.
  var expected: String {
    switch self {
    case .waitingForGreeting: "greeting"
    case .idle: "request or offer"
    case .waitingForRequest: "request"
    case .receiving: "chunk or end"
    case .adopting(let receiving) where receiving.next == nil: "chunk"
    case .waitingForAcknowledgement: "acknowledgement"
    case .waitingToBegin, .adopting, .shipping, .over: "none"
    }
  }
}
