import CStemma
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// This file has the system calls of the log. Interrupted calls are repeated, short reads and writes
// are continued, and every other failure becomes a `LogError.system`.

package struct POSIXFileSystem: FileSystem {
  package init() {}

  package func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    let flags =
      switch access {
      case .read: O_RDONLY
      case .write: O_RDWR
      case .create: O_RDWR | O_CREAT | O_EXCL
      case .openOrCreate: O_RDWR | O_CREAT
      }
    let descriptor: Int32
    // Without O_NONBLOCK, opening a pipe blocks. Regular files ignore the flag (open(2)).
    let always = O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    do throws(LogError) {
      descriptor = try System.retrying(path, "open") { System.open(path, flags | always, 0o666) }
    } catch {
      if case .system(_, _, ELOOP) = error { throw .notAFile(path: path, .linkLoop) }
      var status = stat()
      if error.isNotFound, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
        throw .notAFile(path: path, .deadLink)
      }
      if stat(path, &status) == 0, let kind = NotAFile(status) { throw .notAFile(path: path, kind) }
      throw error
    }
    let file = POSIXFile(descriptor: descriptor, path: path)
    if let kind = NotAFile(try file.status()) { throw .notAFile(path: path, kind) }
    return file
  }

  package func list(_ directory: String) throws(LogError) -> [String] {
    guard let stream = opendir(directory) else {
      throw .system(path: directory, operation: "opendir", errno: errno)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw .system(path: directory, operation: "readdir", errno: errno) }
        break
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          String(cString: $0)
        }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  package func createDirectory(_ path: String) throws(LogError) { try createDirectory(path, mode: 0o777) }

  /// `mode`: the permissions, less the umask of the process (mkdir(2)).
  package func createDirectory(_ path: String, mode: mode_t) throws(LogError) {
    _ = try System.retrying(path, "mkdir") { mkdir(path, mode) }
  }

  package func rename(_ path: String, to target: String) throws(LogError) {
    _ = try System.retrying(path, "rename") { System.rename(path, target) }
  }

  package func remove(_ path: String) throws(LogError) {
    _ = try System.retrying(path, "unlink") { unlink(path) }
  }

  package func syncDirectory(_ path: String) throws(LogError) {
    let descriptor = try System.retrying(path, "open") {
      System.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    }
    defer { System.close(descriptor) }
    try System.synchronize(descriptor, path, metadata: true)
  }

  package func isOwn(_ directory: String) throws(LogError) -> Bool {
    var status = stat()
    _ = try System.retrying(directory, "stat") { stat(directory, &status) }
    return status.st_uid == geteuid()
  }
}

/// An open descriptor; -1 once closed, so a late call gets EBADF, not another file's descriptor.
private final class POSIXFile: File {
  /// Limit of reads that return nothing below the end of the file. Concurrent writers cause fewer.
  private static let mostRefusals = 4

  private let descriptor: Atomic<Int32>
  private let path: String
  /// Place in the queue for the lock; 0: none.
  private let place = Atomic<UInt64>(0)
  /// Whether `tryLock` ever succeeded.
  private let isLocked = Atomic(false)

  init(descriptor: Int32, path: String) {
    self.descriptor = Atomic(descriptor)
    self.path = path
  }

  deinit { close() }

  private var number: Int32 { descriptor.load(ordering: .acquiring) }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    var failure: LogError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = 0
      do throws(LogError) {
        var refusals = 0
        while initialized < count {
          let got = try System.retrying(path, "pread") {
            pread(
              number, buffer.baseAddress.map { $0 + initialized }, count - initialized,
              off_t(offset) + off_t(initialized))
          }
          initialized += got
          if got > 0 { continue }
          // A read of 0 bytes below the end of the file must not pass as the end. Another process
          // may have appended since, so the read is repeated.
          if try size() <= offset + UInt64(initialized) { break }
          refusals += 1
          guard refusals < Self.mostRefusals else {
            throw .system(path: path, operation: "pread", errno: EIO)
          }
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
    return bytes
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) {
    var failure: LogError?
    bytes.withUnsafeBytes { buffer in
      var done = 0
      do throws(LogError) {
        while done < buffer.count {
          let put = try System.retrying(path, "pwrite") {
            pwrite(
              number, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset) + off_t(done))
          }
          // A write of nothing without an error would otherwise be repeated for ever.
          guard put > 0 else { throw .system(path: path, operation: "pwrite", errno: EIO) }
          done += put
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
  }

  func sync() throws(LogError) { try System.synchronize(number, path, metadata: false) }

  func truncate(to size: UInt64) throws(LogError) {
    _ = try System.retrying(path, "ftruncate") { ftruncate(number, off_t(size)) }
  }

  func size() throws(LogError) -> UInt64 { UInt64(try status().st_size) }

  func status() throws(LogError) -> stat {
    var status = stat()
    _ = try System.retrying(path, "fstat") { fstat(number, &status) }
    return status
  }

  func identity() throws(LogError) -> FileIdentity {
    var identity = stemma_file_identity()
    let code = stemma_identity(number, &identity)
    guard code == 0 else { throw .system(path: path, operation: "statx", errno: code) }
    return FileIdentity(
      inode: identity.inode, birthSeconds: identity.birth_seconds,
      birthNanoseconds: identity.birth_nanoseconds)
  }

  // flock, never fcntl: a process that closes any descriptor of the file would lose an fcntl lock.
  func tryLock() throws(LogError) -> Bool {
    do throws(LogError) {
      _ = try System.retrying(path, "flock") { flock(number, LOCK_EX | LOCK_NB) }
      isLocked.store(true, ordering: .releasing)
      return true
    } catch {
      if case .system(_, _, EWOULDBLOCK) = error { return false }
      throw error
    }
  }

  func enqueue() throws(LogError) {
    var found: UInt64 = 0
    let code = stemma_queue(number, &found)
    guard code == 0 else { throw .system(path: path, operation: "fcntl", errno: code) }
    place.store(found, ordering: .releasing)
  }

  func isBehindOthers() throws(LogError) -> Bool {
    try System.retrying(path, "fcntl") { stemma_is_queued(number, place.load(ordering: .acquiring)) } > 0
  }

  func close() {
    let last = descriptor.exchange(-1, ordering: .acquiringAndReleasing)
    guard last >= 0 else { return }
    // A program that is being started has the descriptor, and with it the lock, until its exec.
    if isLocked.load(ordering: .acquiring) { _ = flock(last, LOCK_UN) }
    System.close(last)
  }
}

extension NotAFile {
  /// nil: a regular file.
  fileprivate init?(_ status: stat) {
    switch status.st_mode & S_IFMT {
    case S_IFREG: return nil
    case S_IFDIR: self = .directory
    case S_IFIFO: self = .pipe
    case S_IFSOCK: self = .socket
    default: self = .device
    }
  }
}

/// The system calls, and other services of the operating system.
package enum System {
  /// How often an interrupted call is repeated. No plausible burst of signals reaches this limit.
  private static let mostInterruptions = 1000

  /// The result of a call and its `errno`. Repeats interrupted calls; `EINTR` if only those occur.
  package static func uninterrupted<Result: FixedWidthInteger & SignedInteger>(
    _ call: () -> Result
  ) -> Result {
    for _ in 0..<mostInterruptions {
      let result = call()
      if result >= 0 || errno != EINTR { return result }
    }
    return call()
  }

  /// Repeats an interrupted call. Throws `.system` for -1, also if only interruptions occur.
  fileprivate static func retrying<Result: FixedWidthInteger & SignedInteger>(
    _ path: String, _ operation: String, _ call: () -> Result
  ) throws(LogError) -> Result {
    let result = uninterrupted(call)
    if result < 0 { throw .system(path: path, operation: operation, errno: errno) }
    return result
  }

  fileprivate static func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    #if canImport(Glibc)
      Glibc.open(path, flags, mode)
    #elseif canImport(Musl)
      Musl.open(path, flags, mode)
    #else
      Darwin.open(path, flags, mode)
    #endif
  }

  fileprivate static func rename(_ path: String, _ target: String) -> Int32 {
    #if canImport(Glibc)
      Glibc.rename(path, target)
    #elseif canImport(Musl)
      Musl.rename(path, target)
    #else
      Darwin.rename(path, target)
    #endif
  }

  /// Ignores errors of close(2): they add nothing to a successful sync.
  fileprivate static func close(_ descriptor: Int32) {
    #if canImport(Glibc)
      _ = Glibc.close(descriptor)
    #elseif canImport(Musl)
      _ = Musl.close(descriptor)
    #else
      _ = Darwin.close(descriptor)
    #endif
  }

  /// Syncs once: after an interrupted or failed sync, another one proves nothing. After a failure
  /// on Linux, reads return the bytes on disk.
  ///
  /// The kernel marks pages as clean that it failed to write. Readers see them until the kernel
  /// reclaims the memory. If a writer repeats the write and syncs, ext4 reports success while the
  /// blocks stay old (Rebello et al., "Can Applications Recover from fsync Failures?", 2020).
  /// Therefore such pages are evicted. Dirty pages stay, and so do pages that another process has
  /// mapped or locked: mapping or locking log files can lose events.
  fileprivate static func synchronize(_ descriptor: Int32, _ path: String, metadata: Bool) throws(LogError) {
    #if canImport(Darwin)
      // fsync(2) on Darwin leaves the data in the drive's cache.
      guard fcntl(descriptor, F_FULLFSYNC) < 0 else { return }
      throw .system(path: path, operation: "fcntl(F_FULLFSYNC)", errno: errno)
    #else
      guard (metadata ? fsync(descriptor) : fdatasync(descriptor)) < 0 else { return }
      let code = errno
      posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
      throw .system(path: path, operation: metadata ? "fsync" : "fdatasync", errno: code)
    #endif
  }

  package static var processID: Int32 { getpid() }

  /// Blocks this thread.
  package static func sleep(milliseconds: UInt32) { usleep(milliseconds * 1000) }

  package static func text(of code: Int32) -> String { String(cString: strerror(code)) }

  package static let notFound = ENOENT
  package static let alreadyExists = EEXIST
  package static let inputOutput = EIO
  package static let noSpace = ENOSPC
  package static let badDescriptor = EBADF
  package static let interrupted = EINTR
  package static let tooManyFiles = EMFILE
  package static let noAccess = EACCES
}
