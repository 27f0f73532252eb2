/// How a file is opened.
package enum FileAccess: Sendable {
  /// An existing file, for reading only.
  case read
  /// An existing file, for reading and writing.
  case write
  /// A file that must not exist yet.
  case create
  /// A file that is created if it does not exist.
  case openOrCreate
}

/// Distinguishes a file from its copy. Device numbers are left out: they change on NFS or reboot.
package struct FileIdentity: Hashable, Sendable {
  package var inode: UInt64
  /// 0 where the file system keeps no time of birth.
  package var birthSeconds: Int64
  package var birthNanoseconds: UInt32

  package static let none = FileIdentity(inode: 0, birthSeconds: 0, birthNanoseconds: 0)

  package init(inode: UInt64, birthSeconds: Int64, birthNanoseconds: UInt32) {
    self.inode = inode
    self.birthSeconds = birthSeconds
    self.birthNanoseconds = birthNanoseconds
  }
}

/// The files below a node's directory. Every error is `.system`, with the path, the operation and
/// errno, or `.notAFile`. Opening never waits, and throws `.notAFile` except for a regular file.
///
/// A new name, a rename or a removal survives a crash only after `syncDirectory` of its directory.
package protocol FileSystem: Sendable {
  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File
  /// The names in a directory, sorted by their bytes, without `.` and `..`.
  func list(_ directory: String) throws(LogError) -> [String]
  func createDirectory(_ path: String) throws(LogError)
  /// Replaces `target` at once if it exists.
  func rename(_ path: String, to target: String) throws(LogError)
  func remove(_ path: String) throws(LogError)
  func syncDirectory(_ path: String) throws(LogError)
  /// Whether a directory belongs to the user who runs this process.
  func isOwn(_ directory: String) throws(LogError) -> Bool
}

/// An open file. `close` or the release of the last reference closes it. Reads and writes name
/// their offset, so any number of readers can share one open file.
package protocol File: AnyObject, Sendable {
  /// `count` bytes from `offset`, fewer at the end of the file. Callers check `count` against a
  /// limit.
  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8]
  /// All of `bytes`. After an error any part of them may have been written.
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError)
  /// Makes content and size durable. After an error, no write since the last success is reliable,
  /// and calling again proves nothing (fsync(2); Rebello et al., "Can Applications Recover from
  /// fsync Failures?", 2020). Reads return the written bytes or those on disk, so callers must read
  /// again. Bytes written afterwards, even the same ones, are durable after the next success.
  func sync() throws(LogError)
  func truncate(to size: UInt64) throws(LogError)
  func size() throws(LogError) -> UInt64
  func identity() throws(LogError) -> FileIdentity
  /// Takes the advisory lock of the whole file without waiting. Returns false if another open file
  /// has it. `close` and the end of the process release it.
  func tryLock() throws(LogError) -> Bool
  /// Joins the end of the queue for that lock, once. `close` and the end of the process leave the
  /// queue. Does nothing in a file system without queues.
  func enqueue() throws(LogError)
  /// Whether other open files are in the queue, before this one if it is in it.
  func isBehindOthers() throws(LogError) -> Bool
  func close()
}

extension String {
  /// The last name of a path; empty if there is none.
  package var fileName: String { split(separator: "/").last.map(String.init) ?? "" }
}
