import StemmaLog
import Synchronization

/// Real files of a process that dies: no operation is performed after a chosen one. Also counts the
/// bytes read.
final class FailingFileSystem: FileSystem {
  private struct State {
    var operations = 0
    var last = Int.max
    var bytesRead = 0
  }

  private let base = POSIXFileSystem()
  private let state = Mutex(State())

  /// The operation with this number, counted from 1 from this call, and all later ones fail.
  func fail(from operation: Int) { state.withLock { $0 = State(operations: 0, last: operation - 1) } }

  var bytesRead: Int { state.withLock { $0.bytesRead } }
  fileprivate func count(_ bytes: [UInt8]) { state.withLock { $0.bytesRead += bytes.count } }

  fileprivate func perform<Result>(
    _ path: String, _ body: () throws(LogError) -> Result
  ) throws(LogError) -> Result {
    let isDead = state.withLock { state in
      state.operations += 1
      return state.operations > state.last
    }
    // EIO.
    if isDead { throw .system(path: path, operation: "any", errno: 5) }
    return try body()
  }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    try perform(path) { () throws(LogError) in FailingFile(try base.open(path, access), path, self) }
  }
  func list(_ directory: String) throws(LogError) -> [String] {
    try perform(directory) { () throws(LogError) in try base.list(directory) }
  }
  func createDirectory(_ path: String) throws(LogError) {
    try perform(path) { () throws(LogError) in try base.createDirectory(path) }
  }
  func rename(_ path: String, to target: String) throws(LogError) {
    try perform(path) { () throws(LogError) in try base.rename(path, to: target) }
  }
  func remove(_ path: String) throws(LogError) {
    try perform(path) { () throws(LogError) in try base.remove(path) }
  }
  func syncDirectory(_ path: String) throws(LogError) {
    try perform(path) { () throws(LogError) in try base.syncDirectory(path) }
  }
  func isOwn(_ directory: String) throws(LogError) -> Bool { try base.isOwn(directory) }
}

private final class FailingFile: File {
  private let base: any File
  private let path: String
  private let system: FailingFileSystem

  init(_ base: any File, _ path: String, _ system: FailingFileSystem) {
    self.base = base
    self.path = path
    self.system = system
  }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    let bytes = try system.perform(path) { () throws(LogError) in try base.read(at: offset, count: count) }
    system.count(bytes)
    return bytes
  }
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) {
    try system.perform(path) { () throws(LogError) in try base.write(bytes, at: offset) }
  }
  func sync() throws(LogError) { try system.perform(path) { () throws(LogError) in try base.sync() } }
  func truncate(to size: UInt64) throws(LogError) {
    try system.perform(path) { () throws(LogError) in try base.truncate(to: size) }
  }
  func size() throws(LogError) -> UInt64 {
    try system.perform(path) { () throws(LogError) in try base.size() }
  }
  func identity() throws(LogError) -> FileIdentity {
    try system.perform(path) { () throws(LogError) in try base.identity() }
  }
  func tryLock() throws(LogError) -> Bool {
    try system.perform(path) { () throws(LogError) in try base.tryLock() }
  }
  func enqueue() throws(LogError) {
    try system.perform(path) { () throws(LogError) in try base.enqueue() }
  }
  func isBehindOthers() throws(LogError) -> Bool {
    try system.perform(path) { () throws(LogError) in try base.isBehindOthers() }
  }
  func close() { base.close() }
}
