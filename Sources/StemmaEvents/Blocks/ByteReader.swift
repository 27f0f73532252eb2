/// The error of a module that decodes untrusted bytes.
package protocol ByteReaderError: Error {
  /// Bytes violate the format: in which subject, and what was found instead.
  static func malformed(_ subject: String, _ found: String) -> Self
  /// A length or count is above its limit.
  static func overLimit(_ subject: String, found: UInt64, limit: UInt64) -> Self
}

extension EventsError: ByteReaderError {}

/// Reads the numbers and bytes of all formats from front to back, and throws if they end too early.
/// Compares each count with the remaining bytes before it allocates for it.
///
/// It has a bare pointer, because a dozen columns share one buffer and this checks every read. The
/// caller keeps the buffer alive during its use (`[UInt8].read`).
///
/// Inlinable, because another module reads the states of records, several for each row.
package struct ByteReader<Failure: ByteReaderError> {
  @usableFromInline let source: UnsafeRawBufferPointer
  @usableFromInline var next = 0

  @inlinable
  package init(_ bytes: UnsafeRawBufferPointer) { source = bytes }

  /// How many bytes were read.
  @inlinable package var offset: Int { next }
  /// How many bytes are left.
  @inlinable package var remaining: Int { source.count - next }
  @inlinable package var isAtEnd: Bool { next == source.count }

  @inlinable @inline(__always)
  package mutating func byte(_ subject: String) throws(Failure) -> UInt8 {
    guard next < source.count else { throw .malformed(subject, "cut short") }
    let byte = source[next]
    next += 1
    return byte
  }

  /// Throws on numbers beyond 64 bits and on any but the shortest form.
  @inlinable @inline(__always)
  package mutating func varint(_ subject: String) throws(Failure) -> UInt64 {
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

  /// Apart and without `self`, so that a loop over a column keeps its offset in a register.
  @inlinable @inline(never)
  static func longVarint(
    _ source: UnsafeRawBufferPointer, from start: Int, _ subject: String
  ) throws(Failure) -> (number: UInt64, end: Int) {
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

  @inlinable @inline(__always)
  package mutating func zigzag(_ subject: String) throws(Failure) -> Int64 {
    Int64(zigzag: try varint(subject))
  }

  /// A varint of at most `limit`.
  @inlinable @inline(__always)
  package mutating func number(_ subject: String, limit: UInt64) throws(Failure) -> UInt64 {
    let number = try varint(subject)
    guard number <= limit else { throw .overLimit(subject, found: number, limit: limit) }
    return number
  }

  /// A varint of at most `limit`, as a count.
  @inlinable @inline(__always)
  package mutating func count(_ subject: String, limit: Int) throws(Failure) -> Int {
    Int(try number(subject, limit: UInt64(limit)))
  }

  /// A count of items that take at least `each` of the remaining bytes.
  @inlinable @inline(__always)
  package mutating func count(_ subject: String, each: Int) throws(Failure) -> Int {
    let count = try varint(subject)
    let rest = remaining
    // Without a division: `count` does not exceed the remaining bytes.
    guard count <= UInt64(rest), Int(count) * each <= rest else {
      throw .malformed(subject, "\(count) in \(rest) bytes")
    }
    return Int(count)
  }

  /// A count of at most `limit`, of items that take at least `each` of the remaining bytes.
  @inlinable
  package mutating func count(_ subject: String, limit: Int, each: Int) throws(Failure) -> Int {
    let count = try count(subject, limit: limit)
    guard count <= remaining / each else { throw .malformed(subject, "\(count) in \(remaining) bytes") }
    return count
  }

  /// An index into something of `count` items.
  @inlinable @inline(__always)
  package mutating func index(_ subject: String, below count: Int) throws(Failure) -> Int {
    let index = try varint(subject)
    guard index < UInt64(count) else { throw .malformed(subject, "index \(index) of \(count)") }
    return Int(index)
  }

  @inlinable @inline(__always)
  package mutating func fixed(_ subject: String) throws(Failure) -> UInt64 {
    guard remaining >= 8 else { throw .malformed(subject, "cut short") }
    let number = source.loadUnaligned(fromByteOffset: next, as: UInt64.self)
    next += 8
    return UInt64(bigEndian: number)
  }

  @inlinable
  package mutating func fixed32(_ subject: String) throws(Failure) -> UInt32 {
    guard remaining >= 4 else { throw .malformed(subject, "cut short") }
    let number = source.loadUnaligned(fromByteOffset: next, as: UInt32.self)
    next += 4
    return UInt32(bigEndian: number)
  }

  /// The next `count` bytes, in place.
  @inlinable
  package mutating func bytes(_ count: Int, _ subject: String) throws(Failure) -> UnsafeRawBufferPointer {
    guard count >= 0, count <= remaining else { throw .malformed(subject, "cut short") }
    let bytes = UnsafeRawBufferPointer(rebasing: source[next..<next + count])
    next += count
    return bytes
  }

  /// A count of at most `limit`, and that many bytes, in place.
  @inlinable
  package mutating func counted(
    _ subject: String, limit: Int
  ) throws(Failure) -> UnsafeRawBufferPointer {
    try bytes(try count(subject, limit: limit), subject)
  }

  /// A count of at most `limit`, and that many bytes of UTF-8.
  @inlinable
  package mutating func text(_ subject: String, limit: Int) throws(Failure) -> String {
    let bytes = try counted(subject, limit: limit)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .malformed(subject, "not UTF-8")
    }
    return text
  }

  /// Throws unless everything was read.
  package func finish(_ subject: String) throws(Failure) {
    assert(holds(checkInvariants))
    guard isAtEnd else { throw .malformed(subject, "\(remaining) bytes too many") }
  }

  /// Traps if it is outside of its bytes.
  package func checkInvariants() {
    precondition((0...source.count).contains(next), "the next byte is within the source")
  }
}

extension [UInt8] {
  /// The result of `body`, which reads these bytes from offset `start` on.
  package func read<Result, Failure: ByteReaderError>(
    from start: Int = 0, _ body: (inout ByteReader<Failure>) throws(Failure) -> Result
  ) throws(Failure) -> Result { try self[...].read(from: start, body) }
}

extension ArraySlice<UInt8> {
  /// The result of `body`, which reads these bytes from offset `start` on.
  package func read<Result, Failure: ByteReaderError>(
    from start: Int = 0, _ body: (inout ByteReader<Failure>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeBufferPointer { (buffer) throws(Failure) in
      var reader = ByteReader<Failure>(UnsafeRawBufferPointer(buffer))
      _ = try reader.bytes(start, "beginning")
      return try body(&reader)
    }
  }
}
