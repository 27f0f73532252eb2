/// A byte buffer with reusable memory.
///
/// An array checks uniqueness and capacity at every byte and counts references. Output of hundreds
/// of megabytes is noticeably slower with it.
struct LineBuffer: ~Copyable {
  // Allocated here, freed in deinit, and never exposed beyond a call.
  private var base: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private(set) var count = 0

  /// A text within the bytes.
  struct Batch {
    fileprivate var start: UInt32
    fileprivate var count: UInt32
  }

  /// The number of bytes that are copied at once. The buffer has that much spare room after its
  /// capacity.
  private static let stride = 16

  init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(capacity: capacity + Self.stride)
    base.initialize(repeating: 0, count: capacity + Self.stride)
  }

  deinit { base.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  mutating func removeAll() { count = 0 }

  /// Removes everything after the first `count` bytes.
  mutating func cut(to count: Int) { self.count = count }

  @inline(__always)
  private mutating func reserve(_ added: Int) {
    if count + added > capacity { grow(added) }
  }

  private mutating func grow(_ added: Int) {
    capacity = max(capacity * 2, count + added)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity + Self.stride)
    grown.initialize(repeating: 0, count: capacity + Self.stride)
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

  /// Appends a text and returns its place.
  mutating func add(_ text: String) -> Batch {
    let start = count
    append(text)
    return Batch(start: UInt32(start), count: UInt32(count - start))
  }

  /// Appends a piece of another buffer. Words are short, so bytes are copied sixteen at a time. The
  /// next append overwrites the surplus.
  @inline(__always)
  mutating func append(_ batch: Batch, of pool: borrowing LineBuffer) {
    let size = Int(batch.count)
    reserve(size)
    let source = UnsafeRawPointer(pool.base + Int(batch.start))
    let target = UnsafeMutableRawPointer(base + count)
    for offset in Swift.stride(from: 0, to: size, by: Self.stride) {
      let bytes = source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
      target.storeBytes(of: bytes, toByteOffset: offset, as: SIMD16<UInt8>.self)
    }
    count += size
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
    for place in Swift.stride(from: count + size - 1, through: count, by: -1) {
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
