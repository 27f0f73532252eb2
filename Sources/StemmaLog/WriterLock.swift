import StemmaEvents

/// The right to write to a node: `flock` on the file `lock` in the node's directory, with the holder's pid in
/// it. Held per group of commits, not per process; readers never take it. The operating system releases it
/// when the holder dies.
///
/// A writer that finds the lock taken enters the file's queue, and the lock goes to the first in it. A writer that is
/// stopped (SIGSTOP) keeps its place, so a writer that has waited for half of its time asks for the lock out of turn.
///
/// A second line names the holder that writes more than once. Whoever gets the lock writes its own lines before it
/// does anything else, so a holder that finds its lines still there knows that nobody else has written meanwhile.
package final class WriterLock {
  /// One of those who write to a node again and again. Drawn at random, because pids are the same in several
  /// containers that share a directory, and come again.
  package struct Holder: Sendable {
    fileprivate let number: UInt64

    package init(random: some RandomSource) { number = random.next() }
  }

  private let file: any File
  /// The content of the file while the lock is held.
  private let text: [UInt8]
  /// Whether this holder was the last one who held the lock.
  package let isReturning: Bool

  /// Waits up to `wait` milliseconds, then throws `.inUse`. Makes the file if there is none.
  package init(
    _ path: String, fileSystem: any FileSystem, wait milliseconds: UInt32, pid: Int32 = System.processID,
    holder: Holder? = nil
  ) throws(LogError) {
    let file = try fileSystem.open(path, .openOrCreate)
    let limit = Duration.milliseconds(milliseconds)
    // Not the sum of the pauses, which take longer while the machine is busy.
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
    // Where these bytes are two whole lines, there are no others: whoever holds the lock writes two at most.
    let found = holder == nil ? [] : try file.read(at: 0, count: text.count)
    isReturning = found == text
    if isReturning { return }
    try file.write(text, at: 0)
    try file.truncate(to: UInt64(text.count))
  }

  /// Traps unless the lock is held, and its file names the holder. For tests.
  package func checkInvariants() throws(LogError) {
    let isHeld = try file.tryLock()
    precondition(isHeld, "whoever holds the lock may ask for it again")
    let found = try file.read(at: 0, count: Self.limit)
    precondition(found == text, "nobody writes the file but the holder of the lock")
  }

  /// How long the first in the queue may leave a free lock, in milliseconds.
  private static let longestPause: UInt32 = 8
  /// More than a pid and a holder take.
  private static let limit = 64

  deinit { release() }

  /// Lets the next one write. Harmless when repeated.
  package func release() { file.close() }
}
