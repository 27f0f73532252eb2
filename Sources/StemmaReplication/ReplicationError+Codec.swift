import StemmaEvents
import StemmaLog

extension ReplicationError {
  /// The bytes of a refusal: a code, then the fields of the case in their order.
  ///
  ///      1 malformed          subject, found
  ///      2 over limit         subject, found, limit
  ///      3 newer format       subject, found, supported
  ///      4 damaged            subject, found
  ///      5 same log           log id (8 bytes)
  ///      6 schema conflict    count, texts
  ///      7 schema unreadable  text
  ///      8 not permitted      count, partitions
  ///      9 unexpected message found, expected
  ///     10 fork               partition, origin, sequence, twice (node, hash)
  ///     11 gap                partition, origin, expected, found
  ///     12 foreign partition  partition
  ///     13 hostile event      partition, origin, sequence, text
  ///     14 incomplete         text
  ///     15 failed             text
  ///
  /// Texts are cut at `ReplicationLimits.refusalText` bytes and lists at `refusalItems`.
  func encode(into writer: inout WireWriter) {
    switch self {
    case .malformed(let subject, let found): writer.append(code: 1, subject, found)
    case .overLimit(let subject, let found, let limit):
      writer.append(code: 2, subject)
      writer.append(found)
      writer.append(limit)
    case .newerFormat(let subject, let found, let supported):
      writer.append(code: 3, subject)
      writer.append(found)
      writer.append(supported)
    case .damaged(let subject, let found): writer.append(code: 4, subject, found)
    case .sameLog(let id):
      writer.append(byte: 5)
      writer.append(fixed: id.rawValue)
    case .schemaConflict(let conflicts):
      let texts = conflicts.prefix(ReplicationLimits.refusalItems)
      writer.append(byte: 6)
      writer.append(texts.count)
      for text in texts { writer.append(cut: text) }
    case .schemaUnreadable(let why): writer.append(code: 7, why)
    case .notPermitted(let partitions):
      let named = partitions.prefix(ReplicationLimits.refusalItems)
      writer.append(byte: 8)
      writer.append(named.count)
      for partition in named { writer.append(partition.bytes) }
    case .unexpectedMessage(let found, let expected): writer.append(code: 9, found, expected)
    case .fork(let fork):
      writer.append(byte: 10)
      writer.append(fork.partition.bytes)
      writer.append(fork.origin)
      writer.append(fork.sequence.rawValue)
      for side in [fork.finder, fork.peer] {
        writer.append(cut: side.node)
        writer.append(side.hash)
      }
    case .gap(let partition, let origin, let expected, let found):
      writer.append(byte: 11)
      writer.append(partition.bytes)
      writer.append(origin)
      writer.append(expected.rawValue)
      writer.append(found.rawValue)
    case .foreignPartition(let partition):
      writer.append(byte: 12)
      writer.append(partition.bytes)
    case .hostileEvent(let name, let why):
      writer.append(byte: 13)
      writer.append(name.partition.bytes)
      writer.append(name.dot.origin)
      writer.append(name.dot.sequence.rawValue)
      writer.append(cut: why)
    case .incomplete(let what): writer.append(code: 14, what)
    case .failed(let what): writer.append(code: 15, what)
    case .damagedLog: writer.append(code: 15, description)
    case .scope(let error): writer.append(code: 1, "scope", error.description)
    case .refusedByPeer(let error): error.encode(into: &writer)
    }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    switch try reader.byte() {
    case 1: self = .malformed(try reader.refusalText(), try reader.refusalText())
    case 2:
      self = .overLimit(try reader.refusalText(), found: try reader.number(), limit: try reader.number())
    case 3:
      self = .newerFormat(
        try reader.refusalText(), found: try reader.number(), supported: try reader.number())
    case 4: self = .damaged(try reader.refusalText(), try reader.refusalText())
    case 5: self = .sameLog(LogID(try reader.fixed()))
    case 6:
      let count = try reader.count("texts", limit: ReplicationLimits.refusalItems, itemSize: 1)
      var texts: [String] = []
      for _ in 0..<count { texts.append(try reader.refusalText()) }
      self = .schemaConflict(texts)
    case 7: self = .schemaUnreadable(try reader.refusalText())
    case 8:
      let count = try reader.count("partitions", limit: ReplicationLimits.refusalItems, itemSize: 2)
      var partitions: [Partition] = []
      for _ in 0..<count { partitions.append(try reader.partition()) }
      self = .notPermitted(partitions)
    case 9: self = .unexpectedMessage(try reader.refusalText(), expected: try reader.refusalText())
    case 10:
      let partition = try reader.partition()
      let origin = try reader.origin()
      let sequence = try reader.sequence()
      let finder = Fork.Side(node: try reader.refusalText(), hash: try reader.hash())
      let peer = Fork.Side(node: try reader.refusalText(), hash: try reader.hash())
      self = .fork(
        Fork(partition: partition, origin: origin, sequence: sequence, finder: finder, peer: peer))
    case 11:
      let partition = try reader.partition()
      let origin = try reader.origin()
      self = .gap(partition, origin, expected: try reader.sequence(), found: try reader.sequence())
    case 12: self = .foreignPartition(try reader.partition())
    case 13:
      let partition = try reader.partition()
      let origin = try reader.origin()
      let name = EventName(partition: partition, dot: Dot(origin, try reader.sequence()))
      self = .hostileEvent(name, try reader.refusalText())
    case 14: self = .incomplete(try reader.refusalText())
    case 15: self = .failed(try reader.refusalText())
    case let code: throw reader.malformed("refusal code \(code)")
    }
  }
}

extension WireWriter {
  /// A text for people, cut at the limit of refusals and between characters.
  mutating func append(cut text: String) {
    var length = min(text.utf8.count, ReplicationLimits.refusalText)
    let bytes = Array(text.utf8)
    while length < bytes.count, length > 0, bytes[length] & 0xC0 == 0x80 { length -= 1 }
    append(Array(bytes[..<length]))
  }

  fileprivate mutating func append(code: UInt8, _ texts: String...) {
    append(byte: code)
    for text in texts { append(cut: text) }
  }
}

extension WireReader {
  fileprivate mutating func refusalText() throws(ReplicationError) -> String {
    try text("text", limit: ReplicationLimits.refusalText)
  }
}
