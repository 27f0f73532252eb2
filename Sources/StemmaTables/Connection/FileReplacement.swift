import Foundation

/// The file that a path names at one point in time.
struct FileIdentity: Equatable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// Nil if the file does not exist or cannot be examined.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }

  static func exists(_ path: String) -> Bool { FileIdentity(of: path) != nil }

  /// Whether the name is taken. A dangling symbolic link counts.
  static func isTaken(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Whether the name is taken by something other than a file or a link to a file.
  static func isNoFile(_ path: String) -> Bool {
    guard isTaken(path) else { return false }
    var status = stat()
    return stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFREG
  }

  /// Whether this process may write the file, by the file's and the file system's permissions.
  static func isWritable(_ path: String) -> Bool { access(path, W_OK) == 0 }

  /// Whether the file exists and this process may not read or may not write it.
  static func isForbidden(_ path: String) -> Bool {
    access(path, R_OK | W_OK) != 0 && [EACCES, EPERM, EROFS].contains(errno)
  }
}

/// Replaces a SQLite file that may be in use with a finished one.
///
/// SQLite finds a file's write-ahead log (`-wal`) and index (`-shm`) by name, and would replay an
/// old log into the new file. So `replace` removes the old name, then its sidecars, then renames
/// the new file. A crash in between leaves no file, which opening reports as missing. Connections
/// to the old file keep it and its sidecars open. On closing, SQLite notices that the file has
/// moved and deletes nothing by name.
enum FileReplacement {
  static let sidecars = ["-wal", "-shm", "-journal"]

  /// Whether the file exists.
  ///
  /// - Throws: `needsRebuild` if the name, or that of a sidecar, belongs to something other than a
  ///   file. SQLite would block on a pipe and always fail on a directory.
  static func isThere(_ path: String) throws(TablesError) -> Bool {
    for suffix in [""] + sidecars where FileIdentity.isNoFile(path + suffix) {
      let what = suffix.isEmpty ? "it" : "its \(suffix)"
      throw .needsRebuild(path: path, .corrupt("\(what) is not a file"))
    }
    return FileIdentity.exists(path)
  }

  static func removeSidecars(of path: String) {
    // Opening the file reports a sidecar that cannot be removed.
    for sidecar in sidecars { unlink(path + sidecar) }
  }

  /// Removes a file and its sidecars, if they exist. Moves directories, pipes and the like aside.
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

  /// Makes the file durable and renames it to `target`. The caller holds the node's writer lock and
  /// has closed all connections to `staged`.
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

/// A file or directory that is kept open for syncing. All syncs use one descriptor: the kernel does
/// not report a write error again to descriptors that are opened later (fsync(2)).
///
/// Must outlive this process's connections to a SQLite file: closing any descriptor of a file drops
/// all locks that the process has on it (fcntl(2)).
final class SyncedFile: Sendable {
  let path: String
  private let descriptor: Int32

  init(_ path: String) throws(TablesError) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileReplacement.failure("open", path) }
  }

  deinit { close(descriptor) }

  /// Makes all completed writes durable, including those of other processes.
  func sync() throws(TablesError) {
    if fsync(descriptor) != 0 { throw FileReplacement.failure("fsync", path) }
  }
}
