import Foundation
import Synchronization

/// Where a benchmark makes its files. The folder goes when the benchmark ends, also by a signal; that of one which
/// could not see to it goes when the next one begins.
final class WorkFolder: Sendable {
  private static let prefix = "stemma-bench-"

  let path: String
  /// The folder, locked for as long as this process lives: what is not locked is nobody's.
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

  /// Folders in which something is: one that is empty may have been made just now, and not be locked yet.
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

  /// A signal's handler may do next to nothing: it wakes a thread, which removes the folder and then lets the signal
  /// do what it does.
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
      // What was ignored, by `nohup` for example, stays so.
      if unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
        signal(number, SIG_IGN)
      }
    }
    let thread = Thread { [self] in
      var number: UInt8 = 0
      while Foundation.read(source, &number, 1) != 1 {}
      isEnding.store(true, ordering: .sequentiallyConsistent)
      // Whoever still writes into it makes a removal fail.
      for _ in 0..<100 where FileManager.default.fileExists(atPath: path) {
        do { try remove() } catch { continue }
      }
      signal(Int32(number), SIG_DFL)
      kill(getpid(), Int32(number))
    }
    thread.start()
  }

  /// Does not return if a signal is about to end the process: an error is then one of files that are gone.
  func waitForSignal() {
    while isEnding.load(ordering: .sequentiallyConsistent) { pause() }
  }
}

/// Written to by the handler of signals, which is no closure of anything.
nonisolated(unsafe) private var signalPipe: Int32 = -1
