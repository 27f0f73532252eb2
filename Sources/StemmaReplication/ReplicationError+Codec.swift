import StemmaEvents
import StemmaLog

extension ReplicationError {
  /// The encoding of a refusal: a code, then the fields of the case in order.
  ///
  ///      1 malformed          subject, found
  ///      2 over limit         subject, found, limit
  ///      3 newer format       subject, found, supported
  ///      4 corrupt            subject, found
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
  /// Texts are truncated to `ReplicationLimits.refusalText` bytes and lists to `refusalItems`.
  func encode(into writer: inout [UInt8]) {
    switch self {
    case .malformed(let subject, let found): writer.append(code: 1, subject, found)
    case .overLimit(let subject, let found, let limit):
      writer.append(code: 2, subject)
      writer.appendVarint(found)
      writer.appendVarint(limit)
    case .newerFormat(let subject, let found, let supported):
      writer.append(code: 3, subject)
      writer.appendVarint(found)
      writer.appendVarint(supported)
    case .corrupt(let subject, let found): writer.append(code: 4, subject, found)
    case .sameLog(let id):
      writer.append(5)
      writer.appendFixed(id.rawValue)
    case .schemaConflict(let conflicts):
      let texts = conflicts.prefix(ReplicationLimits.refusalItems)
      writer.append(6)
      writer.appendVarint(texts.count)
      for text in texts { writer.append(cut: text) }
    case .schemaUnreadable(let why): writer.append(code: 7, why)
    case .notPermitted(let partitions):
      let named = partitions.prefix(ReplicationLimits.refusalItems)
      writer.append(8)
      writer.appendVarint(named.count)
      for partition in named { writer.appendCounted(partition.bytes) }
    case .unexpectedMessage(let found, let expected): writer.append(code: 9, found, expected)
    case .fork(let fork):
      writer.append(10)
      writer.appendCounted(fork.partition.bytes)
      writer.append(fork.origin)
      writer.appendVarint(fork.sequence.rawValue)
      for side in [fork.finder, fork.peer] {
        writer.append(cut: side.node)
        writer.append(side.hash)
      }
    case .gap(let partition, let origin, let expected, let found):
      writer.append(11)
      writer.appendCounted(partition.bytes)
      writer.append(origin)
      writer.appendVarint(expected.rawValue)
      writer.appendVarint(found.rawValue)
    case .foreignPartition(let partition):
      writer.append(12)
      writer.appendCounted(partition.bytes)
    case .hostileEvent(let name, let why):
      writer.append(13)
      writer.appendCounted(name.partition.bytes)
      writer.append(name.id.origin)
      writer.appendVarint(name.id.sequence.rawValue)
      writer.append(cut: why)
    case .incomplete(let what): writer.append(code: 14, what)
    case .failed(let what): writer.append(code: 15, what)
    case .corruptLog, .inconsistentLog: writer.append(code: 15, description)
    case .scope(let error): writer.append(code: 1, "scope", error.description)
    case .refusedByPeer(let error): error.encode(into: &writer)
    }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    switch try reader.byte("refusal") {
    case 1: self = .malformed(try reader.refusalText(), try reader.refusalText())
    case 2:
      self = .overLimit(
        try reader.refusalText(), found: try reader.varint("refusal"), limit: try reader.varint("refusal"))
    case 3:
      self = .newerFormat(
        try reader.refusalText(), found: try reader.varint("refusal"), supported: try reader.varint("refusal")
      )
    case 4: self = .corrupt(try reader.refusalText(), try reader.refusalText())
    case 5: self = .sameLog(LogID(try reader.fixed("refusal")))
    case 6:
      let count = try reader.count("texts", limit: ReplicationLimits.refusalItems, each: 1)
      var texts: [String] = []
      for _ in 0..<count { texts.append(try reader.refusalText()) }
      self = .schemaConflict(texts)
    case 7: self = .schemaUnreadable(try reader.refusalText())
    case 8:
      let count = try reader.count("partitions", limit: ReplicationLimits.refusalItems, each: 2)
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
      let name = QualifiedEventID(partition: partition, id: EventID(origin, try reader.sequence()))
      self = .hostileEvent(name, try reader.refusalText())
    case 14: self = .incomplete(try reader.refusalText())
    case 15: self = .failed(try reader.refusalText())
    case let code: throw .malformed("refusal", "refusal code \(code)")
    }
  }
}

extension [UInt8] {
  /// Appends a text for people, truncated to the limit of refusals, between characters.
  mutating func append(cut text: String) {
    var length = Swift.min(text.utf8.count, ReplicationLimits.refusalText)
    let bytes = Array(text.utf8)
    while length < bytes.count, length > 0, bytes[length] & 0xC0 == 0x80 { length -= 1 }
    appendCounted(Array(bytes[..<length]))
  }

  fileprivate mutating func append(code: UInt8, _ texts: String...) {
    append(code)
    for text in texts { append(cut: text) }
  }
}

extension WireReader {
  fileprivate mutating func refusalText() throws(ReplicationError) -> String {
    try text("text", limit: ReplicationLimits.refusalText)
  }
}
