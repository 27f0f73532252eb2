import Crypto

// The canonical form of an event: one sequence of bytes for each event, and another for each other. It is never
// stored. Its digest names the event's content: stream hashes are sums of digests, and two nodes that hold the
// same dots with other content notice. The arrival is local and no part of it.
//
//     event       01 · partition · model · key · operation u8 · relationship · dot · version ·
//                 timestamp 8 bytes · commit: origin, number · context: count, entries · cause · assignments:
//                 count, each field · type u8 · value
//     partition, model, key, field    length · bytes
//     relationship                    0, or 1 · length · bytes
//     dot, entry                      origin 8 bytes · sequence
//     cause                           0, or 1 · partition · dot
//     value                           null nothing; Boolean 0 or 1; integer zz; double 8 bytes;
//                                     string and JSON length · bytes
//
// Numbers are varints, zz zigzag, fixed widths big-endian, types as in blocks. Each part tells where it ends, so no
// two events have the same bytes.
//
//     digest      the first 16 bytes of the SHA-256 of that; as a number, big-endian

/// What an event's content hashes to: 16 bytes.
package struct EventDigest: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let hash: StreamHash

  package init(_ hash: StreamHash) { self.hash = hash }

  package static func < (a: EventDigest, b: EventDigest) -> Bool {
    (a.hash.high, a.hash.low) < (b.hash.high, b.hash.low)
  }

  /// The 16 bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendFixed(hash.high)
    bytes.appendFixed(hash.low)
    return bytes
  }

  /// Thirty-two lowercase hexadecimal digits.
  package var description: String { hash.description }
}

/// Takes the digests of many events with one buffer.
package struct EventDigester {
  private var buffer: [UInt8] = []

  package init() {}

  package mutating func digest(of event: Event) -> EventDigest {
    let bound = event.canonicalBound
    if buffer.count < bound { buffer = [UInt8](repeating: 0, count: bound * 2) }
    let hash = buffer.withUnsafeMutableBytes { bytes in
      var writer = CanonicalWriter(bytes)
      writer.write(event)
      var hasher = SHA256()
      hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[..<writer.count]))
      return hasher.finalize()
    }
    return EventDigest(
      hash.withUnsafeBytes { bytes in
        StreamHash(
          high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
          low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
      })
  }
}

extension Event {
  /// Allocates; for many events keep an `EventDigester`.
  package var digest: EventDigest {
    var digester = EventDigester()
    return digester.digest(of: self)
  }

  /// The bytes of the table above.
  package var canonicalBytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: canonicalBound) { buffer, count in
      var writer = CanonicalWriter(UnsafeMutableRawBufferPointer(buffer))
      writer.write(self)
      count = writer.count
    }
  }

  /// At least as many bytes as the canonical form has: every varint at its longest.
  fileprivate var canonicalBound: Int {
    let dot = 18
    var bound = 4 + 9 * 10 + dot + 16 + context.entries.count * dot
    bound += partition.bytes.count + model.utf8.count + key.bytes.count + (relationship?.utf8.count ?? 0)
    if let cause { bound += cause.partition.bytes.count + dot }
    for assignment in assignments {
      bound += assignment.field.utf8.count + 21
      switch assignment.value {
      case .string(let text), .json(let text): bound += text.utf8.count
      case .null, .bool, .int, .double: break
      }
    }
    return bound
  }
}

/// Writes into memory that is large enough for the event (`canonicalBound`): appending to an array asks at each
/// byte whether there is room, which costs more than the digest.
private struct CanonicalWriter {
  private let target: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init(_ target: UnsafeMutableRawBufferPointer) { self.target = target }

  mutating func write(_ event: Event) {
    byte(1)
    counted(event.partition.bytes)
    counted(event.model)
    counted(event.key.bytes)
    byte(event.operation.rawValue)
    byte(event.relationship == nil ? 0 : 1)
    if let relationship = event.relationship { counted(relationship) }
    dot(event.dot.origin, event.dot.sequence)
    varint(event.version.rawValue)
    fixed(event.timestamp.rawValue)
    fixed(event.commit.origin.rawValue)
    varint(event.commit.number)
    varint(UInt64(event.context.entries.count))
    for entry in event.context.entries { dot(entry.origin, entry.sequence) }
    byte(event.cause == nil ? 0 : 1)
    if let cause = event.cause {
      counted(cause.partition.bytes)
      dot(cause.dot.origin, cause.dot.sequence)
    }
    varint(UInt64(event.assignments.count))
    for assignment in event.assignments {
      counted(assignment.field)
      value(assignment.value)
    }
  }

  private mutating func value(_ value: Value) {
    byte(value.tag.rawValue)
    switch value {
    case .null: break
    case .bool(let flag): byte(flag ? 1 : 0)
    case .int(let number): varint(number.zigzag)
    case .double(let number): fixed(number.bitPattern)
    case .string(let text), .json(let text): counted(text)
    }
  }

  private mutating func byte(_ byte: UInt8) {
    target[count] = byte
    count += 1
  }

  private mutating func varint(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      byte(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    byte(UInt8(truncatingIfNeeded: rest))
  }

  private mutating func fixed(_ number: UInt64) {
    target.storeBytes(of: number.bigEndian, toByteOffset: count, as: UInt64.self)
    count += 8
  }

  private mutating func dot(_ origin: Origin, _ sequence: Sequence) {
    fixed(origin.rawValue)
    varint(sequence.rawValue)
  }

  private mutating func counted(_ bytes: [UInt8]) {
    varint(UInt64(bytes.count))
    bytes.withUnsafeBytes { copy($0) }
  }

  private mutating func counted(_ text: String) {
    var text = text
    text.withUTF8 { utf8 in
      varint(UInt64(utf8.count))
      copy(UnsafeRawBufferPointer(utf8))
    }
  }

  private mutating func copy(_ bytes: UnsafeRawBufferPointer) {
    UnsafeMutableRawBufferPointer(rebasing: target[count..<count + bytes.count]).copyMemory(from: bytes)
    count += bytes.count
  }
}
