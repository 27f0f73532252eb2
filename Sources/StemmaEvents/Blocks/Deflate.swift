import CStemma
import CZlib
import Synchronization

/// Memory at a fixed address, so that values in it can be passed to C in place. It is filled once
/// and then immutable. So threads can share it without a lock, which the compiler cannot verify.
package final class Memory: @unchecked Sendable {
  package let bytes: UnsafeRawBufferPointer

  /// `fill` must write all of the `count` bytes, or the memory must not be read.
  init(count: Int, fill: (UnsafeMutableRawBufferPointer) -> Void) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    fill(buffer)
    bytes = UnsafeRawBufferPointer(buffer)
  }

  deinit { bytes.deallocate() }

  convenience init(_ source: UnsafeRawBufferPointer) {
    self.init(count: source.count) { $0.copyMemory(from: source) }
  }

  convenience init(_ source: [UInt8]) {
    self.init(count: source.count) { target in source.withUnsafeBytes { target.copyMemory(from: $0) } }
  }
}

/// Raw deflate (RFC 1951) of one input after another. Tables are allocated once, on first use.
///
/// Large inputs use libdeflate if the machine has it, in less than half of zlib's time. Equal
/// inputs can thus give different bytes on two machines.
///
/// Both libraries clear a hash table of 128 KB, more than an L1 cache, before each input. Small
/// inputs, such as the rows of sixteen commits (1 KB), use zlib with tables of 16 KB.
package final class Deflater {
  /// Up to this size an input is small. Its longest distance is less than a window of twice this.
  static let smallPiece = 4096

  private let level: Int32
  private lazy var small = DeflateTables(level: level, window: 13, memory: 6)
  private lazy var large = DeflateTables(level: level, window: 15, memory: 9)
  private lazy var quick = QuickTables(level: level)

  /// `level`: 0 (no compression), 1 (fast) to 9 (small). Traps if zlib lacks memory.
  package init(level: Int32) { self.level = level }

  /// Appends `input` to `output`: deflated if that makes it shorter.
  package func append(_ input: [UInt8], to output: inout [UInt8]) -> StoredSize {
    let before = output.count
    if input.count >= StoredSize.leastDeflated, appendShorter(input, to: &output) {
      return StoredSize(raw: input.count, stored: output.count - before, isDeflated: true)
    }
    output.append(contentsOf: input)
    return StoredSize(raw: input.count, stored: input.count, isDeflated: false)
  }

  private func appendShorter(_ input: [UInt8], to output: inout [UInt8]) -> Bool {
    if input.count <= Self.smallPiece { return small.appendShorter(input, to: &output) }
    return quick?.appendShorter(input, to: &output) ?? large.appendShorter(input, to: &output)
  }
}

/// Whether only zlib deflates, so that equal inputs have equal bytes everywhere. For tests.
package enum PortableDeflate {
  private static let flag = Atomic(false)

  package static var isOn: Bool {
    get { flag.load(ordering: .relaxed) }
    set { flag.store(newValue, ordering: .relaxed) }
  }
}

/// The tables of libdeflate.
private final class QuickTables {
  private let compressor: UnsafeMutableRawPointer

  /// Nil without the library, for level 0, and if `PortableDeflate` is on.
  init?(level: Int32) {
    guard level > 0, !PortableDeflate.isOn, let compressor = stemma_make_compressor(level) else { return nil }
    self.compressor = compressor
  }

  deinit { stemma_free_compressor(compressor) }

  func appendShorter(_ input: [UInt8], to output: inout [UInt8]) -> Bool {
    let (before, room) = (output.count, input.count - 1)
    output.append(contentsOf: repeatElement(0, count: room))
    let written = input.withUnsafeBytes { source in
      output.withUnsafeMutableBytes { target in
        stemma_deflate_quickly(
          compressor, source.baseAddress, source.count, target.baseAddress.map { $0 + before }, room)
      }
    }
    output.removeLast(room - written)
    return written > 0
  }
}

/// The size of a stream of bytes, raw and as it is stored: plain, or as raw deflate.
package struct StoredSize: Hashable, Sendable {
  /// Shorter streams are stored plain: deflate gains little, and costs ten times the rest.
  package static let leastDeflated = 256

  package let raw: Int
  package let stored: Int
  package let isDeflated: Bool

  fileprivate init(raw: Int, stored: Int, isDeflated: Bool) {
    self.raw = raw
    self.stored = stored
    self.isDeflated = isDeflated
  }

  /// `limit`: maximum raw bytes.
  package init<Failure: ByteReaderError>(
    _ reader: inout ByteReader<Failure>, _ subject: String, limit: Int
  ) throws(Failure) {
    let number = try reader.number(subject, limit: UInt64(limit) << 1 | 1)
    raw = Int(number >> 1)
    isDeflated = number & 1 == 1
    stored = isDeflated ? try reader.count(subject, limit: raw) : raw
    guard raw <= stored * Limits.inflationRatio else {
      throw .overLimit(subject, found: UInt64(raw), limit: UInt64(stored * Limits.inflationRatio))
    }
  }

  package func append(to bytes: inout [UInt8]) {
    bytes.appendVarint(raw << 1 | (isDeflated ? 1 : 0))
    if isDeflated { bytes.appendVarint(stored) }
  }

  /// The raw bytes of a stream of this size; nil if it is not valid. `strictly`: see `inflated`.
  package func inflate(_ stream: UnsafeRawBufferPointer, strictly: Bool) -> Memory? {
    isDeflated ? inflated(stream, count: raw, strictly: strictly) : Memory(stream)
  }
}

/// zlib's tables, for independent inputs.
private final class DeflateTables {
  private let stream: UnsafeMutablePointer<z_stream>

  /// `window` and `memory`: logarithms, as zlib has them.
  init(level: Int32, window: Int32, memory: Int32) {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    let status = deflateInit2_(
      stream, level, Z_DEFLATED, -window, memory, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib cannot begin at level \(level): levels are 0 to 9")
  }

  deinit {
    deflateEnd(stream)
    stream.deallocate()
  }

  func appendShorter(_ input: [UInt8], to output: inout [UInt8]) -> Bool {
    let before = output.count
    let room = input.count - 1
    output.append(contentsOf: repeatElement(0, count: room))
    deflateReset(stream)
    let written: Int? = input.withUnsafeBytes { source in
      output.withUnsafeMutableBytes { target in
        // zlib takes the input by a mutable pointer and does not write through it.
        stream.pointee.next_in = UnsafeMutablePointer(
          mutating: source.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(source.count)
        stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress.map { $0 + before }
        stream.pointee.avail_out = UInt32(room)
        guard deflate(stream, Z_FINISH) == Z_STREAM_END else { return nil }
        return room - Int(stream.pointee.avail_out)
      }
    }
    release()
    output.removeLast(room - (written ?? 0))
    assert(holds(checkInvariants))
    return written != nil
  }

  /// Input and output are gone before the next call.
  private func release() {
    (stream.pointee.next_in, stream.pointee.avail_in) = (nil, 0)
    (stream.pointee.next_out, stream.pointee.avail_out) = (nil, 0)
  }

  /// Traps if zlib refers to released memory, or lost its tables. In debug builds after each input.
  func checkInvariants() {
    precondition(stream.pointee.state != nil, "zlib has its tables")
    precondition(stream.pointee.next_in == nil && stream.pointee.avail_in == 0, "a piece is read once")
    precondition(stream.pointee.next_out == nil && stream.pointee.avail_out == 0, "a piece is written once")
  }
}

/// Inflates raw deflate that must give exactly `count` bytes and end with its input; nil if not.
/// Never writes beyond `count`.
///
/// - Parameter strictly: rejects every stream that zlib rejects. Otherwise libdeflate reads, if the
///   machine has it, and accepts some streams that no compressor writes. Bytes that are passed on
///   unchanged must be read strictly once, or another node could reject them.
func inflated(_ source: UnsafeRawBufferPointer, count: Int, strictly: Bool) -> Memory? {
  var isWhole = false
  let memory = Memory(count: count) { target in
    isWhole =
      !strictly
      && stemma_inflate_quickly(source.baseAddress, source.count, target.baseAddress, target.count) == 1
      || inflate(source, into: target)
  }
  return isWhole ? memory : nil
}

/// With zlib. Returns whether the stream filled `target` exactly and ended with its input.
private func inflate(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> Bool {
  // zlib stores the address of its stream, which must not move between the calls.
  let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  stream.initialize(to: z_stream())
  defer { stream.deallocate() }
  guard inflateInit2_(stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
    return false
  }
  defer { inflateEnd(stream) }
  stream.pointee.next_in = UnsafeMutablePointer(mutating: source.bindMemory(to: UInt8.self).baseAddress)
  stream.pointee.avail_in = UInt32(source.count)
  stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress
  stream.pointee.avail_out = UInt32(target.count)
  return CZlib.inflate(stream, Z_FINISH) == Z_STREAM_END
    && stream.pointee.avail_in == 0 && stream.pointee.avail_out == 0
}
