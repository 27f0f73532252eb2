import Synchronization

/// Forwards every call and counts the bytes read, which a filtered pull promises to keep small.
/// Throws `.corrupt` for a log file that is not a regular file.
final class MeteredFileSystem: FileSystem {
  private let base: any FileSystem
  private let count = Atomic<UInt64>(0)

  init(_ base: any FileSystem) { self.base = base }

  var bytesRead: UInt64 { count.load(ordering: .relaxed) }

  fileprivate func add(_ bytes: Int) { count.add(UInt64(bytes), ordering: .relaxed) }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    do throws(LogError) { return MeteredFile(try base.open(path, access), self) } catch {
      guard case .notAFile(_, let kind) = error else { throw error }
      throw .corrupt(path: path, offset: 0, .notAFile(kind))
    }
  }
  func list(_ directory: String) throws(LogError) -> [String] { try base.list(directory) }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
  func isOwn(_ directory: String) throws(LogError) -> Bool { try base.isOwn(directory) }
}

private final class MeteredFile: File {
  private let base: any File
  private let meter: MeteredFileSystem

  init(_ base: any File, _ meter: MeteredFileSystem) {
    self.base = base
    self.meter = meter
  }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    let bytes = try base.read(at: offset, count: count)
    meter.add(bytes.count)
    return bytes
  }
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) { try base.write(bytes, at: offset) }
  func sync() throws(LogError) { try base.sync() }
  func truncate(to size: UInt64) throws(LogError) { try base.truncate(to: size) }
  func size() throws(LogError) -> UInt64 { try base.size() }
  func identity() throws(LogError) -> FileIdentity { try base.identity() }
  func tryLock() throws(LogError) -> Bool { try base.tryLock() }
  func enqueue() throws(LogError) { try base.enqueue() }
  func isBehindOthers() throws(LogError) -> Bool { try base.isBehindOthers() }
  func close() { base.close() }
}
