import Foundation

/// Which file a path names now.
struct FileIdentity: Equatable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// Nil if there is no such file, or it cannot be looked at.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }

  static func exists(_ path: String) -> Bool { FileIdentity(of: path) != nil }

  /// Whether anything has the name, a symbolic link that leads nowhere included.
  static func isTaken(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Whether there is something that is no file, and does not lead to one.
  static func isNoFile(_ path: String) -> Bool {
    guard isTaken(path) else { return false }
    var status = stat()
    return stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFREG
  }

  /// Whether this process may write the file, by its permissions and those of the file system.
  static func isWritable(_ path: String) -> Bool { access(path, W_OK) == 0 }

  /// Whether it is there, and this process may not read or not write it.
  static func isForbidden(_ path: String) -> Bool {
    access(path, R_OK | W_OK) != 0 && [EACCES, EPERM, EROFS].contains(errno)
  }
}

/// Puts a finished SQLite file in the place of another that may be in use.
///
/// SQLite finds a file's log of transactions (`-wal`) and its index (`-shm`) by name. Were they left, SQLite
/// would replay the old file's log into the new file. So: the old name goes first, then its sidecars, then
/// the new file gets the name. A crash in between leaves no file, which opening reports as missing; a new
/// file never stands beside an old log. Connections to the old file keep it and its sidecars (they hold them
/// open), and on closing SQLite notices that the file has moved and deletes nothing by name.
enum FileReplacement {
  static let sidecars = ["-wal", "-shm", "-journal"]

  /// Whether there is a file to open.
  ///
  /// - Throws: `needsRebuild` if what has its name, or that of a sidecar, is no file: SQLite would wait for the other end
  ///   of a pipe, and never get over a directory.
  static func isThere(_ path: String) throws(TablesError) -> Bool {
    for suffix in [""] + sidecars where FileIdentity.isNoFile(path + suffix) {
      let what = suffix.isEmpty ? "it" : "its \(suffix)"
      throw .needsRebuild(path: path, .damaged("\(what) is not a file"))
    }
    return FileIdentity.exists(path)
  }

  static func removeSidecars(of path: String) {
    // A sidecar that cannot be removed shows when the file is opened.
    for sidecar in sidecars { unlink(path + sidecar) }
  }

  /// Removes a file and its sidecars, if they are there. What is no file is moved aside.
  static func remove(_ path: String) throws(TablesError) {
    for name in [path] + sidecars.map({ path + $0 }) {
      if FileIdentity.isNoFile(name) {
        try moveAside(name)
      } else if unlink(name) != 0, errno != ENOENT {
        throw failure("unlink", name)
      }
    }
  }

  private static func moveAside(_ path: String) throws(TablesError) {
    var number = 0
    while FileIdentity.isTaken("\(path).aside\(number)") { number += 1 }
    if rename(path, "\(path).aside\(number)") != 0 { throw failure("rename", path) }
  }

  /// Makes the file durable and gives it the name `target`. The caller holds the node's writer lock, and has
  /// closed all connections to `staged`.
  static func replace(_ target: String, with staged: SyncedFile) throws(TablesError) {
    try staged.sync()
    try remove(target)
    if rename(staged.path, target) != 0 { throw failure("rename", target) }
    try SyncedFile(directory(of: target)).sync()
  }

  static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  fileprivate static func failure(_ operation: String, _ path: String) -> TablesError {
    .io(path: path, operation: operation, errno: errno)
  }
}

/// A file or directory that is open so that it can be synced. One descriptor for all syncs: an error of writing that
/// the kernel has told to one is not told to those that are opened later (fsync(2)).
///
/// Must outlive the connections that this process has to a SQLite file: closing any descriptor of a file takes away all
/// locks that the process has on it (fcntl(2)).
final class SyncedFile: Sendable {
  let path: String
  private let descriptor: Int32

  init(_ path: String) throws(TablesError) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileReplacement.failure("open", path) }
  }

  deinit { close(descriptor) }

  /// Makes durable what was written until now, by whoever.
  func sync() throws(TablesError) {
    if fsync(descriptor) != 0 { throw FileReplacement.failure("fsync", path) }
  }
}
