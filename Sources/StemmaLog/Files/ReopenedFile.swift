/// A read-only file that is opened for every read.
final class ReopenedFile: File {
  private let path: String
  private let fileSystem: any FileSystem

  init(path: String, fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  private func opened<Result>(_ body: (any File) throws(LogError) -> Result) throws(LogError) -> Result {
    let file = try fileSystem.open(path, .read)
    defer { file.close() }
    return try body(file)
  }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    try opened { (file) throws(LogError) in try file.read(at: offset, count: count) }
  }
  func size() throws(LogError) -> UInt64 { try opened { (file) throws(LogError) in try file.size() } }
  func identity() throws(LogError) -> FileIdentity {
    try opened { (file) throws(LogError) in try file.identity() }
  }
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) { throw refusal("pwrite") }
  func sync() throws(LogError) { throw refusal("fdatasync") }
  func truncate(to size: UInt64) throws(LogError) { throw refusal("ftruncate") }
  func tryLock() throws(LogError) -> Bool { throw refusal("flock") }
  func enqueue() throws(LogError) { throw refusal("fcntl") }
  func isBehindOthers() throws(LogError) -> Bool { throw refusal("fcntl") }
  func close() {}

  private func refusal(_ operation: String) -> LogError {
    .system(path: path, operation: operation, errno: System.badDescriptor)
  }
}
