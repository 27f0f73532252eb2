import StemmaEvents
import StemmaSimulation

@testable import StemmaReplication

/// Faults of a message in transit.
enum Delivery { case whole, lost, twice, corrupt(at: Int), swapped }

/// Runs a session between two nodes over encoded messages, as a transport would.
struct Conversation {
  var opening: MemoryNode
  var answering: MemoryNode
  var batchTarget = ReplicationLimits.batchTarget
  /// Called before each message.
  var deliver: (_ number: Int, _ message: SessionMessage) -> Delivery = { _, _ in .whole }

  /// The result of the session.
  var summary: SessionSummary?
  var answeredSummary: SessionSummary?
  var openingError: ReplicationError?
  var answeringError: ReplicationError?
  private(set) var messages: [SessionMessage] = []

  init(_ opening: MemoryNode, _ answering: MemoryNode) {
    self.opening = opening
    self.answering = answering
  }

  /// Ends when neither side has more messages.
  mutating func run(_ task: Session.Task, narrowedTo patterns: Scope = .everything) throws {
    var (near, hello) = Session.opening(opening.asSessionNode)
    var far = Session.answering(answering.asSessionNode, versionVector: answering.versionVector)
    var toFar = [hello]
    var toNear: [SessionMessage] = []
    // Batches that were not adopted at the end of a session are sent again.
    (opening.accepted, answering.accepted) = (nil, nil)
    var nearIsOpen = true
    var farIsOpen = true
    while true {
      if farIsOpen, !toFar.isEmpty {
        for message in positions(&toFar) {
          let (replies, isOpen) = try Self.step(
            &far, &answering, message, task: nil, patterns, batchTarget, &answeredSummary, &answeringError)
          toNear += replies
          farIsOpen = isOpen
        }
      } else if nearIsOpen, !toNear.isEmpty {
        for message in positions(&toNear) {
          let (replies, isOpen) = try Self.step(
            &near, &opening, message, task: task, patterns, batchTarget, &summary, &openingError)
          toFar += replies
          nearIsOpen = isOpen
        }
      } else {
        break
      }
    }
    if nearIsOpen { openingError = near.closed() }
    if farIsOpen { answeringError = far.closed() }
  }

  /// Removes the first message of `queue` and returns the received messages.
  private mutating func positions(
    _ queue: inout [SessionMessage]
  ) -> [Result<SessionMessage, ReplicationError>] {
    let message = queue.removeFirst()
    messages.append(message)
    var bytes = message.encoded
    switch deliver(messages.count, message) {
    case .whole: return [Self.decoded(bytes)]
    case .twice: return [Self.decoded(bytes), Self.decoded(bytes)]
    case .corrupt(let place):
      bytes[place % bytes.count] ^= UInt8(1 << (place % 8))
      return [Self.decoded(bytes)]
    case .lost:
      queue = []
      return []
    case .swapped:
      guard !queue.isEmpty else { return [Self.decoded(bytes)] }
      queue.insert(message, at: 1)
      return []
    }
  }

  private static func decoded(_ bytes: [UInt8]) -> Result<SessionMessage, ReplicationError> {
    Result { () throws(ReplicationError) in try SessionMessage(decoding: bytes) }
  }

  /// Delivers one message to one side. Returns the replies, and whether the session is still open.
  private static func step(
    _ session: inout Session, _ node: inout MemoryNode, _ message: Result<SessionMessage, ReplicationError>,
    task: Session.Task?, _ patterns: Scope, _ batchTarget: Int, _ summary: inout SessionSummary?,
    _ failure: inout ReplicationError?
  ) throws -> ([SessionMessage], Bool) {
    // A message after the session's end meets a closed connection.
    if case .over = session.state { return ([], false) }
    session.checkInvariants()
    defer { session.checkInvariants() }
    if let failed = try settle(&session, &node, before: message) {
      failure = failed.error
      return (failed.refusal.map { [$0] } ?? [], false)
    }
    var outcome: Session.Outcome
    switch message {
    case .success(let message): outcome = session.receive(message)
    case .failure(let error): outcome = session.fail(error)
    }
    session.checkInvariants()
    if case .greeted = outcome, let task {
      outcome = session.begin(
        task, node: node.asSessionNode, scope: node.scope, narrowedTo: patterns,
        versionVector: node.versionVector)
    }
    switch outcome {
    case .wait, .greeted, .compare: return ([], true)
    case .send(let messages): return (messages, true)
    case .adopt(let batch):
      if node.adoptsLate {
        node.accepted = batch
        return ([], true)
      }
      try node.adopt(batch)
      outcome = session.adopted(versionVector: node.versionVector)
      return ([], true)
    case .ship(let order):
      do throws(ReplicationError) { return (try ship(order, &session, node, batchTarget), true) } catch {
        failure = error
        return ([.refusal(error)], false)
      }
    case .transferred(let result, let messages):
      summary = result
      return (messages, true)
    case .finished(let result, let messages):
      summary = result
      return (messages, false)
    case .failed(let error, let refusal):
      failure = error
      return (refusal.map { [$0] } ?? [], false)
    }
  }

  /// Adopts the pending batch when it is due. Returns the error if the next batch is refused.
  private static func settle(
    _ session: inout Session, _ node: inout MemoryNode,
    before message: Result<SessionMessage, ReplicationError>
  ) throws -> (error: ReplicationError, refusal: SessionMessage?)? {
    var isChunk = false
    if case .success(.chunk) = message { isChunk = true }
    while let batch = node.accepted, !isChunk || session.isBatchWaiting {
      node.accepted = nil
      try node.adopt(batch)
      let outcome = session.adopted(versionVector: node.versionVector)
      session.checkInvariants()
      switch outcome {
      case .adopt(let next): node.accepted = next
      case .failed(let error, let refusal): return (error, refusal)
      default: break
      }
    }
    return nil
  }

  private static func ship(
    _ order: ShipmentOrder, _ session: inout Session, _ node: MemoryNode, _ batchTarget: Int
  ) throws(ReplicationError) -> [SessionMessage] {
    let source = node.source
    let plan = try ShipmentPlan(source: source, scope: order.scope, above: order.receiver, names: order.names)
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: node.logID, bytesReadBefore: 0, batchTarget: batchTarget)
    var messages = [session.holding(plan.versionVector)]
    while let batch = try writer.next() {
      messages += session.batch(batch)
      session.checkInvariants()
    }
    return messages + [session.shipped(writer.end, partitions: plan.partitions, held: plan.versionVector)]
  }
}
