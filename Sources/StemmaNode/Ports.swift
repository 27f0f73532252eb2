import Foundation
import StemmaEvents
import StemmaLog

/// External dependencies of a node: files, time and randomness.
package struct Ports: Sendable {
  package var fileSystem: any FileSystem
  package var clock: any Clock
  package var random: any RandomSource

  package init(
    fileSystem: any FileSystem = POSIXFileSystem(), clock: any Clock = SystemClock(),
    random: any RandomSource = SystemRandomSource()
  ) {
    self.fileSystem = fileSystem
    self.clock = clock
    self.random = random
  }

  /// An id that is not 0.
  package func newID() -> UInt64 {
    while true {
      let id = random.next()
      if id != 0 { return id }
    }
  }

  /// Replaces a small file atomically and durably: writes and syncs a temporary file, renames it,
  /// and syncs the directory. Moves a directory of that name aside.
  package func replace(_ path: String, with bytes: [UInt8], in directory: String) throws(LogError) {
    let aside = path + ".partial"
    let file = try fileSystem.open(aside, .openOrCreate)
    defer { file.close() }
    try file.truncate(to: 0)
    try file.write(bytes, at: 0)
    try file.sync()
    do throws(LogError) { try fileSystem.rename(aside, to: path) } catch {
      guard case .system(_, _, EISDIR) = error else { throw error }
      let names = Set(try fileSystem.list(directory))
      var count = 0
      while names.contains("\(path.fileName).aside\(count)") { count += 1 }
      try fileSystem.rename(path, to: "\(path).aside\(count)")
      try fileSystem.rename(aside, to: path)
    }
    try fileSystem.syncDirectory(directory)
  }

  /// All bytes of a small file.
  ///
  /// - Throws: `.overLimit` before reading, if the file has more than `limit` bytes.
  package func contents(of path: String, limit: Int) throws(LogError) -> [UInt8] {
    let file = try fileSystem.open(path, .read)
    defer { file.close() }
    let size = try file.size()
    guard size <= UInt64(limit) else {
      throw .overLimit(subject: path, found: size, limit: UInt64(limit))
    }
    return try file.read(at: 0, count: Int(size))
  }

  func exists(_ name: String, in directory: String) throws(LogError) -> Bool {
    do throws(LogError) { return try fileSystem.list(directory).contains(name) } catch {
      if error.isNotFound { return false }
      throw error
    }
  }

  /// Whether a readable file exists. Does not list the directory, which may be large.
  func isReadable(_ name: String, in directory: String) throws(LogError) -> Bool {
    do throws(LogError) {
      try fileSystem.open(directory + "/" + name, .read).close()
      return true
    } catch {
      if case .system(_, _, EACCES) = error { return false }
      if error.isNotFound { return false }
      throw error
    }
  }
}
