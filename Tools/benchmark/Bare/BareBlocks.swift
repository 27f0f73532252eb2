import CZlib
import Foundation
import Measuring

/// The deflated streams of a log's blocks, found without reading anything else of them.
///
/// A segment's blocks stand one behind the other between header and footer, and each begins with its sizes
/// (docs/FORMAT.md), so they can be walked without a checksum or a table.
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
      var place = base + 76 + 40 * fixed(base + 72, 4) + 4
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

  /// Inflates every stream with one inflater into one buffer; gives a sum over what came out, so that nothing is
  /// left out.
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
}
