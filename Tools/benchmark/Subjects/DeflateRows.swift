import Foundation
import Measuring

/// libdeflate against zlib on the streams of a log. Stemma reads blocks with libdeflate but does
/// not write with it. It is loaded if the machine has it (Debian: libdeflate0).
func measureDeflate(_ bench: Bench) throws {
  guard let library = Deflate() else {
    return bench.say("libdeflate is not installed (Debian: libdeflate0): deflate is left out")
  }
  let blocks = try BareBlocks(log: try bench.node(bench.events) + "/log")
  let raw = try blocks.inflated()
  let megabytes = Double(blocks.rawBytes) / 1e6
  var sizes = (ours: 0, baseline: 0)
  let deflating = try bench.byTurns(
    ours: { try Cost.of { sizes.ours = try library.deflate(raw) } },
    baseline: { try Cost.of { sizes.baseline = try BareBlocks.deflate(raw) } })
  add("libdeflate-6 instead of zlib-6, writing", deflating)
  bench.add(
    "its streams, of the bytes that went in", ours: Double(sizes.ours) / Double(blocks.rawBytes),
    baseline: Double(sizes.baseline) / Double(blocks.rawBytes), "bytes/byte", .none)
  let inflating = try bench.byTurns(
    ours: { try Cost.of { try blocks.forEachStream { try library.inflate($0, raw: $1) } } },
    baseline: { try Cost.of { _ = try blocks.inflateAll() } })
  add("libdeflate instead of zlib, reading", inflating)

  func add(_ name: String, _ costs: Costs) {
    bench.add(
      name, ours: megabytes / costs.ours.cpu, baseline: megabytes / costs.baseline.cpu, "MB/CPU s", .none)
  }
}

/// The measured functions of libdeflate, by dlopen(3).
private final class Deflate {
  private typealias Allocate = @convention(c) (Int32) -> OpaquePointer?
  private typealias AllocateInflater = @convention(c) () -> OpaquePointer?
  private typealias Compress =
    @convention(c) (
      OpaquePointer, UnsafeRawPointer?, Int, UnsafeMutableRawPointer?, Int
    ) -> Int
  private typealias Decompress =
    @convention(c) (
      OpaquePointer, UnsafeRawPointer?, Int, UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<Int>?
    ) -> Int32

  private let compressor: OpaquePointer
  private let decompressor: OpaquePointer
  private let compress: Compress
  private let decompress: Decompress
  private var target: [UInt8] = []

  init?() {
    guard let library = dlopen("libdeflate.so.0", RTLD_NOW) ?? dlopen("libdeflate.dylib", RTLD_NOW),
      let allocate = dlsym(library, "libdeflate_alloc_compressor"),
      let allocateInflater = dlsym(library, "libdeflate_alloc_decompressor"),
      let compress = dlsym(library, "libdeflate_deflate_compress"),
      let decompress = dlsym(library, "libdeflate_deflate_decompress"),
      // The signatures are those of libdeflate.h, version 1.
      let compressor = unsafeBitCast(allocate, to: Allocate.self)(6),
      let decompressor = unsafeBitCast(allocateInflater, to: AllocateInflater.self)()
    else { return nil }
    self.compressor = compressor
    self.decompressor = decompressor
    self.compress = unsafeBitCast(compress, to: Compress.self)
    self.decompress = unsafeBitCast(decompress, to: Decompress.self)
  }

  /// The size of the output.
  func deflate(_ streams: [[UInt8]]) throws -> Int {
    var sum = 0
    for stream in streams {
      if target.count < stream.count * 2 + 64 { target = [UInt8](repeating: 0, count: stream.count * 2 + 64) }
      let count = target.withUnsafeMutableBytes { target in
        stream.withUnsafeBytes {
          compress(compressor, $0.baseAddress, $0.count, target.baseAddress, target.count)
        }
      }
      guard count > 0 else { throw BenchError("libdeflate does not compress a stream") }
      sum += count
    }
    return sum
  }

  func inflate(_ stored: UnsafeRawBufferPointer, raw: Int) throws {
    if target.count < raw { target = [UInt8](repeating: 0, count: raw) }
    var count = 0
    let result = target.withUnsafeMutableBytes {
      decompress(decompressor, stored.baseAddress, stored.count, $0.baseAddress, $0.count, &count)
    }
    guard result == 0, count == raw else { throw BenchError("libdeflate does not read a stream") }
  }
}
