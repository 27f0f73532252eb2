import NIOCore
import StemmaNode
import StemmaReplication
import StemmaSync

/// The answering side of a session that consists of one request.
///
/// Sendable unchecked: its calls run one after another, on threads of the pool.
final class ServedSession: @unchecked Sendable {
  private let answering: Answering
  private var decoder = MessageDecoder()
  /// Answers that were not sent yet.
  private var answers: [SessionMessage] = []
  private var isEnded = false
  private let record: RequestRecord
  /// Whether the body ends with a shipment. The node's request for it is not answered, because the
  /// caller has it from `have`.
  private let isShipment: Bool

  init(
    _ lease: NodePool.Lease, _ grant: Grant, _ record: RequestRecord, isShipment: Bool = false
  ) throws(NodeError) {
    self.isShipment = isShipment
    answering = try Answering(lease.node, for: grant.rights)
    self.record = record
  }

  var greeting: SessionMessage { .greeting(answering.greeting) }

  /// Processes a part of the request body. The greeting is not answered: the caller has it.
  func receive(_ bytes: ByteBuffer) throws(NodeError) {
    decoder.append(bytes.readableBytesView)
    while true {
      let message: SessionMessage?
      do throws(ReplicationError) { message = try decoder.next() } catch { throw .replication(error) }
      guard let message else { return }
      try answering.receive(message)
      // Only the first message of a shipment is prepared, so that an error of the request is known
      // before the response begins.
      while answers.isEmpty, let answer = try answering.next() {
        if case .greeting = answer { continue }
        if case .request = answer, isShipment { continue }
        answers.append(answer)
      }
    }
  }

  /// The request is complete. Returns the answers that do not need the log.
  func answered() throws(NodeError) -> [SessionMessage] {
    guard decoder.isBetweenMessages else {
      throw .replication(.incomplete("the body ends within a message"))
    }
    return answers
  }

  /// The next block of a shipment; nil after its end.
  func nextBlock() -> ByteBuffer? {
    if isEnded { return nil }
    var bytes: [UInt8] = []
    do throws(NodeError) {
      while bytes.count < HTTPLimits.block, !isEnded {
        let message = answers.isEmpty ? try answering.next() : answers.removeFirst()
        guard let message else { break }
        if case .end = message { isEnded = true }
        bytes += MessageFraming.frame(message)
      }
    } catch {
      isEnded = true
      bytes += MessageFraming.frame(.refusal(error.refusal(isLimited: true)))
    }
    note()
    return bytes.isEmpty ? nil : ByteBuffer(bytes: bytes)
  }

  /// As `answered`, after a shipment.
  func acknowledged() throws(NodeError) -> [SessionMessage] {
    let answers = try answered()
    if let error = answering.closed() { throw .replication(error) }
    guard answers.contains(where: { if case .acknowledgement = $0 { true } else { false } }) else {
      throw .replication(.incomplete("the body has no shipment"))
    }
    return answers
  }

  /// As `answered`, without a shipment.
  func stated() throws(NodeError) -> [SessionMessage] {
    let answers = try answered()
    guard answering.isGreeted else { throw .replication(.incomplete("the body has no greeting")) }
    guard answers.allSatisfy({ if case .request = $0 { true } else { false } }) else {
      throw .replication(.unexpectedMessage("request", expected: "offer or holding"))
    }
    return answers
  }

  func finish(after error: NodeError? = nil) throws(NodeError) {
    try answering.finish(after: error)
    note()
  }

  private func note() {
    let (events, read, partitions) = (answering.eventCount, answering.bytesRead, answering.partitionCount)
    record.update { ($0.events, $0.bytesRead, $0.partitions) = (events, read, partitions) }
  }
}
