import StemmaEvents

/// Appends the primitives of this module's formats: LEB128 varints, big-endian fixed integers, and bytes and
/// text behind their length.
struct WireWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(byte: UInt8) { bytes.append(byte) }

  mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func append(_ count: Int) { append(UInt64(count)) }

  mutating func append(fixed number: UInt64) {
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
    }
  }

  mutating func append(raw more: ArraySlice<UInt8>) { bytes.append(contentsOf: more) }

  mutating func append(_ more: [UInt8]) {
    append(more.count)
    bytes.append(contentsOf: more)
  }

  mutating func append(_ text: String) { append(Array(text.utf8)) }

  mutating func append(_ origin: Origin) { append(fixed: origin.rawValue) }

  mutating func append(_ hash: StreamHash) {
    append(fixed: hash.high)
    append(fixed: hash.low)
  }

  mutating func append(_ head: StreamHead) {
    append(head.sequence.rawValue)
    append(head.hash)
  }
}

/// Reads what `WireWriter` wrote, from bytes that anybody may have sent. Every length is checked against what
/// is left before anything is allocated for it.
struct WireReader {
  private let bytes: ArraySlice<UInt8>
  private var index: Int
  /// What is being read, for errors.
  let subject: String

  init(_ bytes: ArraySlice<UInt8>, subject: String) {
    self.bytes = bytes
    index = bytes.startIndex
    self.subject = subject
  }

  init(_ bytes: [UInt8], subject: String) { self.init(bytes[...], subject: subject) }

  var left: Int { bytes.endIndex - index }

  func malformed(_ found: String) -> ReplicationError { .malformed(subject, found) }

  mutating func byte() throws(ReplicationError) -> UInt8 {
    guard index < bytes.endIndex else { throw malformed("the bytes end too early") }
    index += 1
    return bytes[index - 1]
  }

  /// A varint in its shortest form.
  mutating func number() throws(ReplicationError) -> UInt64 {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte = try byte()
      guard shift < 63 || byte <= 1 else { throw malformed("a number above 64 bits") }
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else { throw malformed("a number that is not in its shortest form") }
        return number
      }
      shift += 7
    }
  }

  /// A number of at most `limit`.
  mutating func number(_ what: String, limit: UInt64) throws(ReplicationError) -> UInt64 {
    let number = try number()
    guard number <= limit else { throw .overLimit(what, found: number, limit: limit) }
    return number
  }

  /// How many items follow, each of at least `itemSize` bytes.
  mutating func count(_ what: String, limit: Int, itemSize: Int) throws(ReplicationError) -> Int {
    let count = Int(try number(what, limit: UInt64(limit)))
    guard count <= left / itemSize else { throw malformed("\(count) \(what) in \(left) bytes") }
    return count
  }

  mutating func fixed() throws(ReplicationError) -> UInt64 {
    guard left >= 8 else { throw malformed("the bytes end too early") }
    var number: UInt64 = 0
    for _ in 0..<8 {
      number = number << 8 | UInt64(bytes[index])
      index += 1
    }
    return number
  }

  mutating func slice(_ count: Int) throws(ReplicationError) -> ArraySlice<UInt8> {
    guard count >= 0, count <= left else { throw malformed("the bytes end too early") }
    index += count
    return bytes[index - count..<index]
  }

  mutating func blob(_ what: String, limit: Int) throws(ReplicationError) -> ArraySlice<UInt8> {
    let length = try number(what, limit: UInt64(limit))
    guard length <= UInt64(left) else { throw malformed("\(what) of \(length) bytes where \(left) are left") }
    return try slice(Int(length))
  }

  mutating func text(_ what: String, limit: Int) throws(ReplicationError) -> String {
    let blob = try blob(what, limit: limit)
    guard let text = String(validating: blob, as: UTF8.self) else { throw malformed("\(what) is not UTF-8") }
    return text
  }

  mutating func origin() throws(ReplicationError) -> Origin { Origin(try fixed()) }

  mutating func sequence() throws(ReplicationError) -> Sequence {
    Sequence(try number("sequence", limit: Limits.highestNumber))
  }

  mutating func hash() throws(ReplicationError) -> StreamHash {
    let high = try fixed()
    return StreamHash(high: high, low: try fixed())
  }

  mutating func partition() throws(ReplicationError) -> Partition {
    let name = Array(try blob("partition", limit: Limits.partition))
    do { return try Partition(validating: name) } catch { throw malformed("partition: \(error)") }
  }

  /// Throws if anything is left.
  func end() throws(ReplicationError) {
    assert(holds(checkInvariants))
    guard left == 0 else { throw malformed("\(left) bytes too many") }
  }

  /// Traps if it has left what it reads.
  func checkInvariants() {
    precondition((bytes.startIndex...bytes.endIndex).contains(index), "a reader stands in what it reads")
  }
}

extension [UInt8] {
  /// Four bytes, big-endian.
  mutating func appendFixed(_ number: UInt32) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }
}

extension WireReader {
  /// Four bytes, big-endian.
  mutating func fixed32() throws(ReplicationError) -> UInt32 {
    try slice(4).reduce(0) { $0 << 8 | UInt32($1) }
  }
}
