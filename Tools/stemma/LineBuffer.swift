/// Bytes that are appended one behind another, in memory that is kept.
///
/// An array asks at every byte whether it is alone and has room, and counts references; what writes hundreds of
/// megabytes feels that.
struct LineBuffer: ~Copyable {
  // Allocated here, freed in deinit, and never handed out beyond a call.
  private var base: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private(set) var count = 0

  init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(capacity: capacity)
  }

  deinit { base.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  mutating func removeAll() { count = 0 }

  /// Takes back what was appended since there were `count` bytes.
  mutating func cut(to count: Int) { self.count = count }

  private mutating func reserve(_ added: Int) {
    guard count + added > capacity else { return }
    capacity = max(capacity * 2, count + added)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    grown.update(from: base, count: count)
    base.deallocate()
    base = grown
  }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    reserve(1)
    base[count] = byte
    count += 1
  }

  @inline(__always)
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    reserve(bytes.count)
    UnsafeMutableRawPointer(base + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

  mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  mutating func append(_ number: UInt64) {
    // A number of 64 bits has at most twenty digits.
    reserve(20)
    var size = 1
    var bound: UInt64 = 10
    while size < 20, number >= bound {
      size += 1
      if size < 20 { bound *= 10 }
    }
    var left = number
    for place in stride(from: count + size - 1, through: count, by: -1) {
      base[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: left % 10)
      left /= 10
    }
    count += size
  }

  /// Two digits.
  mutating func appendPair(_ number: UInt64) {
    append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
    append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
  }
}
