import Foundation
import Synchronization

/// The directory of a benchmark's files. It is removed when the benchmark ends, also by a signal.
/// The next benchmark removes a directory that was left behind.
final class WorkFolder: Sendable {
  private static let prefix = "stemma-bench-"

  let path: String
  /// The directory, locked while this process lives. An unlocked directory has no owner.
  private let descriptor: Int32
  private let isEnding = Atomic(false)

  init(in parent: String) throws {
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    try Self.removeLeftovers(in: parent)
    path = parent + "/\(Self.prefix)\(getpid())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      throw BenchError("cannot lock \(path)")
    }
    try removeOnSignals()
  }

  deinit { close(descriptor) }

  func remove() throws { try FileManager.default.removeItem(atPath: path) }

  /// Skips empty directories: another process may have just created one and not locked it yet.
  private static func removeLeftovers(in parent: String) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: parent) where name.hasPrefix(prefix) {
      let path = parent + "/" + name
      let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      defer { close(descriptor) }
      var status = stat()
      guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_uid == geteuid(),
        flock(descriptor, LOCK_EX | LOCK_NB) == 0,
        try !FileManager.default.contentsOfDirectory(atPath: path).isEmpty
      else { continue }
      try FileManager.default.removeItem(atPath: path)
    }
  }

  // MARK: Signals

  /// A signal handler may do very little. It wakes a thread that removes the directory and then
  /// raises the signal again with its default action.
  private func removeOnSignals() throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw BenchError("cannot make a pipe") }
    let source = ends[0]
    signalPipe = ends[1]
    for number in [SIGHUP, SIGINT, SIGPIPE, SIGTERM] {
      let before = signal(number) { number in
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(signalPipe, &byte, 1)
      }
      // Ignored signals, for example by `nohup`, remain ignored.
      if unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
        signal(number, SIG_IGN)
      }
    }
    let thread = Thread { [self] in
      var number: UInt8 = 0
      while Foundation.read(source, &number, 1) != 1 {}
      isEnding.store(true, ordering: .sequentiallyConsistent)
      // A removal fails while another thread writes into the directory.
      for _ in 0..<100 where FileManager.default.fileExists(atPath: path) {
        do { try remove() } catch { continue }
      }
      signal(Int32(number), SIG_DFL)
      kill(getpid(), Int32(number))
    }
    thread.start()
  }

  /// Never returns if a signal is about to end the process: the caller's error then comes from
  /// removed files.
  func waitForSignal() {
    while isEnding.load(ordering: .sequentiallyConsistent) { pause() }
  }
}

/// The pipe that the signal handler writes to. The handler is a C function and captures nothing.
nonisolated(unsafe) private var signalPipe: Int32 = -1
