import StemmaEvents

/// The right to write to a node: `flock` on its file `lock`, which has the holder's pid. Held for a
/// group of commits, never by readers. The operating system releases it when the holder dies.
///
/// A writer that finds the lock taken enters the file's queue, and the lock goes to the first one
/// in it. A stopped writer keeps its place, so others try out of turn after half of their wait.
///
/// A second line names the holder that writes more than once. Each holder first writes its own
/// lines. A holder that finds its lines unchanged knows that no other one has written since.
package final class WriterLock {
  /// A component that writes to a node repeatedly. Its number is random, because pids repeat over
  /// time and in containers that share a directory.
  package struct Holder: Sendable {
    fileprivate let number: UInt64

    package init(random: some RandomSource) { number = random.next() }
  }

  private let file: any File
  /// The content of the file while the lock is held.
  private let text: [UInt8]
  /// Whether this holder was also the last one.
  package let isReturning: Bool

  /// Waits up to `wait` milliseconds, then throws `.inUse`. Makes the file if there is none.
  package init(
    _ path: String, fileSystem: any FileSystem, wait milliseconds: UInt32, pid: Int32 = System.processID,
    holder: Holder? = nil
  ) throws(LogError) {
    let file = try fileSystem.open(path, .openOrCreate)
    let limit = Duration.milliseconds(milliseconds)
    // Measured, because pauses take longer on a busy machine.
    var begin: SuspendingClock.Instant?
    var waited = Duration.zero
    var pause: UInt32 = 1
    while true {
      let letsOthersFirst = waited < limit / 2
      let isNext = letsOthersFirst ? try !file.isBehindOthers() : true
      if isNext, try file.tryLock() { break }
      guard waited < limit else {
        let holder = String(decoding: try file.read(at: 0, count: Self.limit), as: UTF8.self)
        throw .inUse(path: path, pid: Int32(holder.prefix { $0 != "\n" }))
      }
      if begin == nil { try file.enqueue() }
      let start = begin ?? SuspendingClock.now
      begin = start
      System.sleep(milliseconds: min(pause, milliseconds))
      waited = SuspendingClock.now - start
      pause = min(pause * 2, Self.longestPause)
    }
    self.file = file
    let lines = "\(pid)\n" + (holder.map { "\($0.number)\n" } ?? "")
    text = Array(lines.utf8)
    // A holder writes two lines at most, so these bytes are the whole content if they match.
    let found = holder == nil ? [] : try file.read(at: 0, count: text.count)
    isReturning = found == text
    if isReturning { return }
    try file.write(text, at: 0)
    try file.truncate(to: UInt64(text.count))
  }

  /// Traps unless the lock is held, and its file names the holder. For tests.
  package func checkInvariants() throws(LogError) {
    let isHeld = try file.tryLock()
    precondition(isHeld, "the holder can acquire the lock again")
    let found = try file.read(at: 0, count: Self.limit)
    precondition(found == text, "only the holder of the lock writes the file")
  }

  /// How long the first in the queue may leave a free lock, in milliseconds.
  private static let longestPause: UInt32 = 8
  /// More than a pid and a holder take.
  private static let limit = 64

  deinit { release() }

  /// Releases the lock. Harmless when repeated.
  package func release() { file.close() }
}
