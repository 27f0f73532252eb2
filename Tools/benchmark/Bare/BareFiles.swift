import CZlib
import Foundation
import Measuring

/// Files and zlib by their bare calls.
enum BareFiles {
  static func contents(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  /// The files of a folder with the given suffix, sorted by name.
  static func list(_ folder: String, suffix: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(suffix) }.sorted()
      .map { folder + "/" + $0 }
  }

  static func size(_ path: String) throws -> Int {
    let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
    guard let size else { throw BenchError("\(path) has no size") }
    return size.intValue
  }

  /// Copies a file in chunks of 1 MiB and syncs the copy.
  static func copy(_ source: String, to target: String) throws {
    let input = open(source, O_RDONLY)
    let output = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    guard input >= 0, output >= 0 else { throw BenchError("cannot copy \(source)") }
    defer {
      close(input)
      close(output)
    }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(input, &buffer, buffer.count)
      if count == 0 { break }
      guard count > 0, write(output, buffer, count) == count else {
        throw BenchError("cannot copy \(source)")
      }
    }
    guard fdatasync(output) == 0 else { throw BenchError("cannot sync \(target)") }
  }

  static func sync(_ path: String) throws {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0, fsync(descriptor) == 0 else { throw BenchError("cannot sync \(path)") }
    close(descriptor)
  }

  /// The size of these bytes after `gzip -9`, with header and trailer but without a file name.
  static func gzipSize(_ bytes: [UInt8]) -> Int {
    var size = compressBound(UInt(bytes.count))
    var target = [UInt8](repeating: 0, count: Int(size))
    compress2(&target, &size, bytes, UInt(bytes.count), 9)
    // zlib adds 6 bytes to the stream, gzip 18.
    return Int(size) + 12
  }

  /// The inflated contents of a gzip file.
  static func gunzip(_ path: String) throws -> [UInt8] {
    let input = try contents(path)
    var output: [UInt8] = []
    var batch = [UInt8](repeating: 0, count: 1 << 20)
    var stream = z_stream()
    guard inflateInit2_(&stream, 31, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw BenchError("zlib does not start")
    }
    defer { inflateEnd(&stream) }
    var source = input
    let count = source.count
    try source.withUnsafeMutableBufferPointer { source in
      stream.next_in = source.baseAddress
      stream.avail_in = UInt32(count)
      var status = Z_OK
      while status == Z_OK {
        status = batch.withUnsafeMutableBufferPointer { target in
          stream.next_out = target.baseAddress
          stream.avail_out = UInt32(target.count)
          return inflate(&stream, Z_NO_FLUSH)
        }
        output.append(contentsOf: batch[..<(batch.count - Int(stream.avail_out))])
      }
      guard status == Z_STREAM_END else { throw BenchError("\(path) is not gzip") }
    }
    return output
  }
}
