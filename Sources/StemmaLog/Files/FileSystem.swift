/// How a file is opened.
package enum FileAccess: Sendable {
  /// An existing file, for reading only.
  case read
  /// An existing file, for reading and writing.
  case write
  /// A file that must not exist yet.
  case create
  /// A file that is made when it does not exist.
  case openOrCreate
}

/// What tells a file from its copy. Never the device number: it changes on reboot, NFS and overlays.
package struct FileIdentity: Hashable, Sendable {
  package var inode: UInt64
  /// 0 where the file system keeps no time of birth.
  package var birthSeconds: Int64
  package var birthNanoseconds: UInt32

  /// Of no file.
  package static let none = FileIdentity(inode: 0, birthSeconds: 0, birthNanoseconds: 0)

  package init(inode: UInt64, birthSeconds: Int64, birthNanoseconds: UInt32) {
    self.inode = inode
    self.birthSeconds = birthSeconds
    self.birthNanoseconds = birthNanoseconds
  }
}

/// The files below a node's directory. Every error is `.system`, with the path, the operation and errno; or `.notAFile`,
/// from opening what is no regular file, which never waits.
///
/// A new name, a rename and a removal last through a crash only after `syncDirectory` of the directory that
/// holds the name.
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

/// An open file. Closed by `close` or when the last reference goes. Reading and writing name their offset, so
/// one open file may be shared by any number of readers.
package protocol File: AnyObject, Sendable {
  /// `count` bytes from `offset`, fewer only where the file ends. Callers check `count` against a limit.
  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8]
  /// All of `bytes`. After an error any part of them may have been written.
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError)
  /// Makes content and size durable. After an error nothing that was written since the last success may be
  /// relied upon, and calling again proves nothing (fsync(2); Rebello et al., "Can Applications Recover from
  /// fsync Failures?", 2020). Readers see the written bytes, or those of the disk: a caller that has read
  /// them before must read them again. Bytes that are written from then on, the same ones included, last with the next
  /// success.
  func sync() throws(LogError)
  func truncate(to size: UInt64) throws(LogError)
  func size() throws(LogError) -> UInt64
  func identity() throws(LogError) -> FileIdentity
  /// Takes the advisory lock of the whole file without waiting; false if another open file has it. It goes
  /// with `close` and with the process.
  func tryLock() throws(LogError) -> Bool
  /// Takes the last place in the queue for that lock, once. Like the lock, it goes with `close` and with the process.
  /// Does nothing in a file system that has no queues.
  func enqueue() throws(LogError)
  /// Whether other open files are in the queue, before this one if it is in it.
  func isBehindOthers() throws(LogError) -> Bool
  func close()
}

extension String {
  /// The last name of a path; empty if there is none.
  package var fileName: String { split(separator: "/").last.map(String.init) ?? "" }
}
