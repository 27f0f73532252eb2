/// Reads numbers and bytes from front to back out of memory that somebody else keeps alive, and throws where
/// it ends too early. Nothing is allocated for a count before the count has been compared with what is there.
///
/// It holds a bare pointer, because one buffer is read by a dozen columns at once and every read is checked
/// here; whoever makes it keeps the buffer alive as long as it is used.
package struct ByteReader {
  private let source: UnsafeRawBufferPointer
  private var next = 0

  package init(_ bytes: UnsafeRawBufferPointer) { source = bytes }

  /// How many bytes are left.
  package var remaining: Int { source.count - next }
  package var isAtEnd: Bool { next == source.count }

  @inline(__always)
  package mutating func byte(_ subject: String) throws(EventsError) -> UInt8 {
    guard next < source.count else { throw .malformed(subject, "cut short") }
    let byte = source[next]
    next += 1
    return byte
  }

  /// Throws on numbers beyond 64 bits and on any but the shortest form.
  @inline(__always)
  package mutating func varint(_ subject: String) throws(EventsError) -> UInt64 {
    let start = next
    if start < source.count {
      let first = source[start]
      if first < 0x80 {
        next = start + 1
        return UInt64(first)
      }
      if start + 1 < source.count {
        let second = source[start + 1]
        if second &- 1 < 0x7F {
          next = start + 2
          return UInt64(first & 0x7F) | UInt64(second) << 7
        }
      }
    }
    let (number, end) = try Self.longVarint(source, from: start, subject)
    next = end
    return number
  }

  /// Apart, and without `self`, so that a loop over a column can keep its place in a register.
  @inline(never)
  private static func longVarint(
    _ source: UnsafeRawBufferPointer, from start: Int, _ subject: String
  ) throws(EventsError) -> (number: UInt64, end: Int) {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    var next = start
    while next < source.count {
      let byte = source[next]
      next += 1
      if shift == 63 && byte > 1 { throw .malformed(subject, "number beyond 64 bits") }
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        if byte == 0 && shift > 0 { throw .malformed(subject, "number not in its shortest form") }
        return (number, next)
      }
      shift += 7
    }
    throw .malformed(subject, "cut short")
  }

  @inline(__always)
  package mutating func zigzag(_ subject: String) throws(EventsError) -> Int64 {
    Int64(zigzag: try varint(subject))
  }

  /// A varint of at most `limit`.
  @inline(__always)
  package mutating func number(_ subject: String, limit: UInt64) throws(EventsError) -> UInt64 {
    let number = try varint(subject)
    guard number <= limit else { throw .overLimit(subject, found: number, limit: limit) }
    return number
  }

  /// A varint of at most `limit`, as the count of something.
  @inline(__always)
  package mutating func count(_ subject: String, limit: Int) throws(EventsError) -> Int {
    Int(try number(subject, limit: UInt64(limit)))
  }

  /// A count of items that take at least `each` bytes in what is left.
  package mutating func count(_ subject: String, each: Int) throws(EventsError) -> Int {
    let count = try varint(subject)
    guard count <= UInt64(remaining / each) else {
      throw .malformed(subject, "\(count) in \(remaining) bytes")
    }
    return Int(count)
  }

  /// An index into something of `count` items.
  @inline(__always)
  package mutating func index(_ subject: String, below count: Int) throws(EventsError) -> Int {
    let index = try varint(subject)
    guard index < UInt64(count) else { throw .malformed(subject, "index \(index) of \(count)") }
    return Int(index)
  }

  package mutating func fixed(_ subject: String) throws(EventsError) -> UInt64 {
    guard remaining >= 8 else { throw .malformed(subject, "cut short") }
    let number = source.loadUnaligned(fromByteOffset: next, as: UInt64.self)
    next += 8
    return UInt64(bigEndian: number)
  }

  /// The next `count` bytes, in place.
  package mutating func bytes(_ count: Int, _ subject: String) throws(EventsError) -> UnsafeRawBufferPointer {
    guard count >= 0, count <= remaining else { throw .malformed(subject, "cut short") }
    let bytes = UnsafeRawBufferPointer(rebasing: source[next..<next + count])
    next += count
    return bytes
  }

  /// A count of at most `limit`, and that many bytes, in place.
  package mutating func counted(
    _ subject: String, limit: Int
  ) throws(EventsError) -> UnsafeRawBufferPointer {
    try bytes(try count(subject, limit: limit), subject)
  }

  /// A count of at most `limit`, and that many bytes of UTF-8.
  package mutating func text(_ subject: String, limit: Int) throws(EventsError) -> String {
    let bytes = try counted(subject, limit: limit)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .malformed(subject, "not UTF-8")
    }
    return text
  }

  /// Throws unless everything was read.
  package func finish(_ subject: String) throws(EventsError) {
    assert(holds(checkInvariants))
    guard isAtEnd else { throw .malformed(subject, "\(remaining) bytes too many") }
  }

  /// Traps if it has left what it reads.
  package func checkInvariants() {
    precondition((0...source.count).contains(next), "a reader stands in what it reads")
  }
}
