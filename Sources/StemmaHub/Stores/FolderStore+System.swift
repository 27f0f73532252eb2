import StemmaEvents
import StemmaLog
import StemmaReplication

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// This file has the system calls of `FolderStore`. Interrupted calls are repeated, except fsync(2),
// and short reads and writes are continued.

/// A failed system call.
struct FolderError: Error {
  var path: String
  var operation: String
  var code: Int32
  /// Whether the name of the object was changed before.
  var isAfterTheFact = false

  static let isFolder = EISDIR

  init(path: String, operation: String, code: Int32 = errno) {
    self.path = path
    self.operation = operation
    self.code = code
  }

  /// No such file, or a component of the path is a file.
  var isAbsence: Bool { code == ENOENT || code == ENOTDIR }
  var isExistence: Bool { code == EEXIST }
  /// The file system has no hard links, or no hard links for this user.
  var isUnsupported: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK, EXDEV].contains(code) }

  var afterTheFact: FolderError {
    var error = self
    error.isAfterTheFact = true
    return error
  }

  /// These errors come back however often the call is repeated.
  private static let permanent = [
    ENOSPC, EDQUOT, EACCES, EPERM, EROFS, ENAMETOOLONG, ENOENT, ENOTDIR, EISDIR, ELOOP, EFBIG, EINVAL,
    ENOTSUP, EOPNOTSUPP, ENOSYS, ENOTEMPTY, EXDEV, EMLINK,
  ]

  var objectError: ObjectError {
    let reason = "\(operation) \(path): \(System.text(of: code))"
    return Self.permanent.contains(code) && !isAfterTheFact ? .refused(reason) : .unknown(reason)
  }
}

/// Calls the function until no signal interrupts it.
private func retrying<Result: FixedWidthInteger & SignedInteger>(
  _ path: String, _ operation: String, _ call: () -> Result
) throws(FolderError) -> Result {
  let result = System.uninterrupted(call)
  if result < 0 { throw FolderError(path: path, operation: operation) }
  return result
}

enum FileKind {
  case file, folder, other

  init(_ status: stat) {
    switch status.st_mode & S_IFMT {
    case S_IFREG: self = .file
    case S_IFDIR: self = .folder
    default: self = .other
    }
  }
}

/// A name in a folder.
struct FolderEntry {
  var name: String
  var kind: FileKind
  /// From the inode number, the time of the last change in nanoseconds, and the size.
  var tag: String

  static func kind(_ path: String) throws(FolderError) -> FileKind {
    var status = stat()
    _ = try retrying(path, "lstat") { lstat(path, &status) }
    return FileKind(status)
  }

  /// The names in a folder, in no order. Files that vanish meanwhile are left out.
  static func all(in folder: String) throws(FolderError) -> [FolderEntry] {
    guard let stream = opendir(folder) else { throw FolderError(path: folder, operation: "opendir") }
    defer { closedir(stream) }
    var entries: [FolderEntry] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw FolderError(path: folder, operation: "readdir") }
        return entries
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          String(cString: $0)
        }
      }
      if name == "." || name == ".." { continue }
      var status = stat()
      let path = folder + "/" + name
      guard System.uninterrupted({ lstat(path, &status) }) == 0 else {
        if errno == ENOENT { continue }
        throw FolderError(path: path, operation: "lstat")
      }
      entries.append(FolderEntry(name: name, kind: FileKind(status), tag: tag(status)))
    }
  }

  private static func tag(_ status: stat) -> String {
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    let nanoseconds = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    return [Int64(truncatingIfNeeded: status.st_ino), nanoseconds, Int64(status.st_size)]
      .map { String(UInt64(bitPattern: $0), radix: 16) }.joined(separator: "-")
  }
}

/// An open file.
final class FolderFile {
  private let path: String
  private let descriptor: Int32
  private var hasName: Bool
  let kind: FileKind
  let size: UInt64

  /// Opens a file to read it. Opening a pipe does not block.
  init(reading path: String) throws(FolderError) {
    self.path = path
    hasName = false
    let opened = try retrying(path, "open") { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    descriptor = opened
    var status = stat()
    let result = System.uninterrupted { fstat(opened, &status) }
    kind = FileKind(status)
    size = UInt64(max(0, status.st_size))
    if result < 0 { throw FolderError(path: path, operation: "fstat") }
  }

  /// Creates a file, writes and syncs it. Its name is removed unless it is renamed.
  init(unfinishedIn folder: String, _ bytes: [UInt8]) throws(FolderError) {
    let random = UInt64.random(in: .min ... .max)
    let path = "\(folder)/\(ObjectKey.temporaryPrefix)\(System.processID)-\(String(random, radix: 36))"
    self.path = path
    descriptor = try retrying(path, "open") { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666) }
    hasName = true
    kind = .file
    size = UInt64(bytes.count)
    do throws(FolderError) {
      try write(bytes)
      try Self.sync(descriptor, path)
    } catch {
      remove()
      throw error
    }
  }

  deinit { _ = close(descriptor) }

  func read(_ range: Range<UInt64>) throws(FolderError) -> [UInt8] {
    let count = Int(range.upperBound - range.lowerBound)
    var failure: FolderError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = 0
      do throws(FolderError) {
        while initialized < count {
          let got = try retrying(path, "pread") {
            pread(
              descriptor, buffer.baseAddress.map { $0 + initialized }, count - initialized,
              off_t(range.lowerBound) + off_t(initialized))
          }
          // Objects are replaced, never shortened.
          if got == 0 { throw FolderError(path: path, operation: "pread", code: EIO) }
          initialized += got
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
    return bytes
  }

  private func write(_ bytes: [UInt8]) throws(FolderError) {
    var written = 0
    while written < bytes.count {
      let result = bytes.withUnsafeBytes { buffer in
        let rest = UnsafeRawBufferPointer(rebasing: buffer[written...])
        return System.uninterrupted {
          #if canImport(Glibc)
            Glibc.write(descriptor, rest.baseAddress, rest.count)
          #elseif canImport(Musl)
            Musl.write(descriptor, rest.baseAddress, rest.count)
          #else
            Darwin.write(descriptor, rest.baseAddress, rest.count)
          #endif
        }
      }
      if result < 0 { throw FolderError(path: path, operation: "write") }
      written += result
    }
  }

  /// The number of names; 0: unknown.
  var links: UInt64 {
    var status = stat()
    return System.uninterrupted { fstat(descriptor, &status) } == 0 ? UInt64(status.st_nlink) : 0
  }

  /// Another name for the file, if there is no file of that name.
  func link(to target: String) throws(FolderError) {
    _ = try retrying(target, "link") {
      #if canImport(Glibc)
        Glibc.link(path, target)
      #elseif canImport(Musl)
        Musl.link(path, target)
      #else
        Darwin.link(path, target)
      #endif
    }
  }

  func rename(to target: String) throws(FolderError) {
    _ = try retrying(target, "rename") {
      #if canImport(Glibc)
        Glibc.rename(path, target)
      #elseif canImport(Musl)
        Musl.rename(path, target)
      #else
        Darwin.rename(path, target)
      #endif
    }
    hasName = false
  }

  /// Renames the file if there is none of that name. Throws ENOTSUP if the system cannot do that.
  func rename(toAbsent target: String) throws(FolderError) {
    #if canImport(Darwin)
      _ = try retrying(target, "renamex_np") { renamex_np(path, target, UInt32(RENAME_EXCL)) }
    #else
      // Swift does not import the function, and static programs may lack it.
      typealias Rename =
        @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32
      guard let symbol = dlsym(nil, "renameat2") else {
        throw FolderError(path: target, operation: "link", code: ENOTSUP)
      }
      // The C library declares the function with exactly these types (renameat2(2)).
      let rename = unsafeBitCast(symbol, to: Rename.self)
      let isExclusive: UInt32 = 1
      _ = try retrying(target, "renameat2") { rename(AT_FDCWD, path, AT_FDCWD, target, isExclusive) }
    #endif
    hasName = false
  }

  /// Removes the temporary name. A file that stays is one that no list shows.
  func remove() {
    if hasName { unlink(path) }
    hasName = false
  }

  static func remove(_ path: String) throws(FolderError) {
    _ = try retrying(path, "unlink") { unlink(path) }
  }

  /// Whether the folder was created. It may exist.
  static func make(folder: String) throws(FolderError) -> Bool {
    do throws(FolderError) {
      _ = try retrying(folder, "mkdir") { mkdir(folder, 0o777) }
      return true
    } catch {
      guard error.isExistence else { throw error }
      return false
    }
  }

  static func sync(folder: String) throws(FolderError) {
    let descriptor = try retrying(folder, "open") { open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    defer { _ = close(descriptor) }
    try sync(descriptor, folder)
  }

  /// Syncs once: after a failed sync, another one proves nothing.
  private static func sync(_ descriptor: Int32, _ path: String) throws(FolderError) {
    #if canImport(Darwin)
      // fsync(2) on Darwin leaves the data in the drive's cache.
      if fcntl(descriptor, F_FULLFSYNC) < 0 { throw FolderError(path: path, operation: "fcntl(F_FULLFSYNC)") }
    #else
      // EINVAL: the file system cannot sync a folder (fsync(2)).
      if fsync(descriptor) < 0, errno != EINVAL { throw FolderError(path: path, operation: "fsync") }
    #endif
  }
}
