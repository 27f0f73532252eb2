import CZlib
import Foundation
import Measuring

/// The deflated streams of a log's blocks, found without parsing the rest of the log.
///
/// The blocks of a segment are adjacent, between header and footer. Each begins with its sizes
/// (docs/FORMAT.md), so the reader needs neither checksums nor the footer.
struct BareBlocks {
  private struct Stream {
    var start: Int
    var stored: Int
    var raw: Int
  }

  private var bytes: [UInt8] = []
  private var streams: [Stream] = []
  private(set) var rawBytes = 0

  /// All segments of a log directory.
  init(log folder: String) throws {
    for path in try BareFiles.list(folder, suffix: ".segment") {
      let file = try BareFiles.contents(path)
      let base = bytes.count
      bytes.append(contentsOf: file)
      let trailer = bytes.count - 108
      var place = base + 44
      let footer = base + fixed(trailer, 8)
      while place < footer { try walk(&place) }
    }
  }

  private func fixed(_ place: Int, _ count: Int) -> Int {
    bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
  }

  private func varint(_ place: inout Int) -> Int {
    var number = 0
    var shift = 0
    while true {
      let byte = bytes[place]
      place += 1
      number |= Int(byte & 0x7f) << shift
      if byte < 0x80 { return number }
      shift += 7
    }
  }

  private mutating func walk(_ place: inout Int) throws {
    guard bytes[place] == 1 else { throw BenchError("a block of codec \(bytes[place])") }
    place += 2
    _ = varint(&place)
    var sizes: [(raw: Int, stored: Int, isDeflated: Bool)] = []
    for _ in 0..<3 {
      let raw = varint(&place)
      let isDeflated = raw & 1 == 1
      sizes.append((raw >> 1, isDeflated ? varint(&place) : raw >> 1, isDeflated))
    }
    for size in sizes {
      if size.isDeflated {
        streams.append(Stream(start: place, stored: size.stored, raw: size.raw))
        rawBytes += size.raw
      }
      place += size.stored
    }
  }

  /// Inflates every stream with one inflater into one buffer. The returned sum over the output
  /// keeps the compiler from removing the work.
  func inflateAll() throws -> Int {
    var target = [UInt8](repeating: 0, count: (streams.map(\.raw).max() ?? 0) + 1)
    var state = z_stream()
    guard inflateInit2_(&state, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw BenchError("zlib does not start")
    }
    defer { inflateEnd(&state) }
    var sum = 0
    var isWhole = true
    bytes.withUnsafeBufferPointer { source in
      target.withUnsafeMutableBufferPointer { target in
        for stream in streams {
          inflateReset(&state)
          state.next_in = UnsafeMutablePointer(mutating: source.baseAddress.map { $0 + stream.start })
          state.avail_in = UInt32(stream.stored)
          state.next_out = target.baseAddress
          state.avail_out = UInt32(target.count)
          if inflate(&state, Z_FINISH) != Z_STREAM_END { isWhole = false }
          sum += target.count - Int(state.avail_out)
        }
      }
    }
    guard isWhole else { throw BenchError("a stream does not end where it should") }
    return sum
  }

  /// Passes the stored bytes of every stream and their inflated size.
  func forEachStream(_ body: (UnsafeRawBufferPointer, Int) throws -> Void) throws {
    try bytes.withUnsafeBytes { bytes in
      for stream in streams {
        try body(
          UnsafeRawBufferPointer(rebasing: bytes[stream.start..<stream.start + stream.stored]), stream.raw)
      }
    }
  }

  /// The inflated bytes of every stream.
  func inflated() throws -> [[UInt8]] {
    var raw: [[UInt8]] = []
    try forEachStream { stored, count in
      raw.append(
        try [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
          var state = z_stream()
          guard inflateInit2_(&state, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw BenchError("zlib does not start")
          }
          defer { inflateEnd(&state) }
          state.next_in = UnsafeMutablePointer(
            mutating: stored.baseAddress?.assumingMemoryBound(to: UInt8.self))
          state.avail_in = UInt32(stored.count)
          state.next_out = target.baseAddress
          state.avail_out = UInt32(count)
          guard inflate(&state, Z_FINISH) == Z_STREAM_END else {
            throw BenchError("a stream does not end where it should")
          }
          initialized = count
        })
    }
    return raw
  }

  /// Deflates every stream by zlib at level 6 with one deflater. Returns the size of the output.
  static func deflate(_ streams: [[UInt8]]) throws -> Int {
    var state = z_stream()
    let size = Int32(MemoryLayout<z_stream>.size)
    guard
      deflateInit2_(&state, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size) == Z_OK
    else { throw BenchError("zlib does not start") }
    defer { deflateEnd(&state) }
    var target = [UInt8](repeating: 0, count: (streams.map(\.count).max() ?? 0) * 2 + 64)
    var sum = 0
    for stream in streams {
      deflateReset(&state)
      let isWhole = target.withUnsafeMutableBufferPointer { target in
        stream.withUnsafeBufferPointer { source in
          state.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
          state.avail_in = UInt32(source.count)
          state.next_out = target.baseAddress
          state.avail_out = UInt32(target.count)
          return zlib_deflate(&state) == Z_STREAM_END
        }
      }
      guard isWhole else { throw BenchError("zlib does not compress a stream") }
      sum += target.count - Int(state.avail_out)
    }
    return sum
  }
}

/// `deflate` of zlib, which a method of the type shadows.
private func zlib_deflate(_ state: inout z_stream) -> Int32 { deflate(&state, Z_FINISH) }
