import CStemma
import CZlib

/// Memory at a fixed address, so that values inside can be handed to C in place. Filled once, by whoever makes
/// it, and never written afterwards: that is why it may be shared between threads without a lock, which the
/// compiler cannot see.
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

/// Raw deflate (RFC 1951) of one piece after another; zlib's tables are allocated once.
///
/// zlib clears a table of hashes before each piece: 128 KB, more than what a processor's first cache holds, even if the
/// piece is the rows of sixteen commits, of one KB. Small pieces have tables of their own, of 16 KB.
final class Deflater {
  /// Up to this size a piece is small. Its longest distance is less than a window of twice this.
  static let smallPiece = 4096

  private let small: DeflateTables
  private let large: DeflateTables

  /// `level`: 0 (nothing gets shorter), 1 (fast) to 9 (small). Traps if zlib has no memory for its tables, as any allocation does.
  init(level: Int32) {
    small = DeflateTables(level: level, window: 13, memory: 6)
    large = DeflateTables(level: level, window: 15, memory: 9)
  }

  /// Appends the deflated form of `input` to `output` if it is shorter than `input`, and tells whether it did.
  func appendShorter(_ input: [UInt8], to output: inout [UInt8]) -> Bool {
    (input.count <= Self.smallPiece ? small : large).appendShorter(input, to: &output)
  }

  func checkInvariants() {
    small.checkInvariants()
    large.checkInvariants()
  }
}

/// zlib's tables, for pieces of which each is forgotten before the next one.
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
    letGo()
    output.removeLast(room - (written ?? 0))
    assert(holds(checkInvariants))
    return written != nil
  }

  /// Neither piece is there any more when the next one comes.
  private func letGo() {
    (stream.pointee.next_in, stream.pointee.avail_in) = (nil, 0)
    (stream.pointee.next_out, stream.pointee.avail_out) = (nil, 0)
  }

  /// Traps if zlib knows of memory that is not there any more, or has lost its tables. In debug builds behind each piece.
  func checkInvariants() {
    precondition(stream.pointee.state != nil, "zlib has its tables")
    precondition(stream.pointee.next_in == nil && stream.pointee.avail_in == 0, "a piece is read once")
    precondition(stream.pointee.next_out == nil && stream.pointee.avail_out == 0, "a piece is written once")
  }
}

/// Inflates raw deflate that must give exactly `count` bytes and end with its input; nil if not. Never
/// writes beyond `count`, whatever the input says.
///
/// - Parameter strictly: what zlib refuses is refused. Otherwise libdeflate reads, where the machine has it: it takes
///   some streams that no compressor writes, so what is passed on byte for byte must have been read strictly once, or
///   another node could not read it.
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

/// With zlib. Tells whether the stream gave exactly as many bytes as `target` has and ended with its input.
private func inflate(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> Bool {
  // zlib remembers the address of its stream, so it must not move between the calls.
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
