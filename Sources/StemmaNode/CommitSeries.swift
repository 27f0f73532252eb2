import Dispatch
import StemmaEvents
import StemmaLog
import StemmaTables

/// Consecutive commits of an import. Each is durable by itself; they share one transaction of the
/// tables and one hold of the writer lock.
///
/// A background thread writes and syncs the log while the next commit is prepared. Another thread
/// builds a segment if the journal is large enough. The tables are refreshed when the series ends,
/// or later with `holdsBack`; readers see nothing before. After an error or crash, the tables catch
/// up from the log. A record that changes often is written once.
package final class CommitSeries {
  /// The number of events that completes a series.
  private static let limit = 16_384
  /// The time in milliseconds after which a series should release the lock, and the pause for other
  /// writers. The pause is longer than a waiting writer's polling interval.
  static let (longestHold, pause): (UInt64, UInt32) = (1000, 25)

  private let node: Node
  private let transaction: TablesTransaction
  private let appender: LogAppender
  /// The journal being sealed, if any.
  private let sealing: Sealing?
  private let sealed: MadeAhead<Result<SealedSegment, LogError>>?
  /// Callbacks for commits that become durable, the oldest first.
  private var waiting: [() throws -> Void] = []
  private var reported = 0
  /// The size of this series and of the earlier ones that it continues.
  private(set) var size: Size
  /// Whether another series follows, so that the tables can wait. Rows are written in key order,
  /// and larger groups cost less per row.
  package var holdsBack = false

  /// The size of an incomplete series that released the lock, for the next one to continue.
  struct Size {
    var events = 0
    /// The approximate size of the events in bytes before compression.
    var bytes = 0
  }

  init(_ node: Node, _ transaction: TablesTransaction, isRelaxed: Bool) throws(LogError) {
    self.node = node
    self.transaction = transaction
    size = node.seriesState.open ?? Size()
    let mayBegin = node.seriesState.open == nil && node.log.wantsSealing
    let sealing = mayBegin ? try node.log.beginSealing() : nil
    appender = LogAppender(node.log, isRelaxed: isRelaxed)
    self.sealing = sealing
    sealed = sealing.map { sealing in
      MadeAhead { Result { () throws(LogError) in try sealing.write() } }
    }
  }

  /// Whether the journal may be large enough to seal. Depends on the events alone and not on the
  /// speed of the disk, so that the files of the log do not either.
  var isComplete: Bool { size.events >= Self.limit || size.bytes >= node.log.segmentSize }

  /// Whether the series should end, because it is complete or to release the lock.
  package var isFull: Bool { isComplete || node.holdsLong }

  /// Prepares one commit and queues it for the log. An error of `body` ends the series.
  ///
  /// - Parameter durable: called on this thread after the commit is durable, at the latest when the
  ///   series ends, even with an error.
  package func commit(
    _ message: CommitMessage, durable: @escaping () throws -> Void,
    _ body: (WriteTransaction) throws(NodeError) -> Void
  ) throws {
    let write = try node.begin(message, transaction, beforeReadingLog: { [appender] in appender.drain() })
    try body(write)
    assert(holds(write.checkInvariants))
    node.take(write)
    if !write.events.isEmpty { try node.beginDueOrigin() }
    size.events += write.events.count
    size.bytes += write.events.reduce(0) { $0 + Self.size(of: $1) }
    waiting.append(durable)
    appender.append(
      write.events.isEmpty ? nil : Commit(write.events, message: write.message, digests: write.digests))
    try report()
    assert(holds(checkInvariants))
  }

  private static func size(of event: Event) -> Int {
    event.assignments.reduce(16) { sum, assignment in
      switch assignment.value {
      case .string(let text), .json(let text): sum + text.utf8.count
      default: sum + 4
      }
    }
  }

  private func report() throws {
    let (durable, failure) = appender.durable
    while reported < durable {
      reported += 1
      try waiting.removeFirst()()
    }
    if let failure { throw failure }
  }

  /// Waits until all commits are durable, and reports them.
  package func waitUntilDurable() throws {
    appender.drain()
    try report()
  }

  /// Traps if the counts are inconsistent. Runs in debug builds at each commit.
  package func checkInvariants() {
    precondition(reported >= 0 && waiting.count == appender.asked - reported, "each commit is reported once")
    precondition(size.events >= 0 && size.bytes >= 0, "a series grows")
    appender.checkInvariants()
  }

  /// Waits until everything is written, and reports it.
  func end() throws {
    appender.end()
    let segment = sealed?.take()
    try report()
    if let sealing, let segment { try node.log.finish(sealing, segment.get()) }
  }
}

/// Marks the tables as behind the log while this process holds changes back, by a locked file in
/// the node's directory. Readers that find it use the tables as they are.
final class HeldBack {
  private let path: String
  private let fileSystem: any FileSystem
  private let file: any File

  init(_ path: String, _ fileSystem: any FileSystem) throws(LogError) {
    self.path = path
    self.fileSystem = fileSystem
    file = try fileSystem.open(path, .openOrCreate)
  }

  /// Called for each series, because a reader may probe the lock during the first attempt.
  func lock() throws(LogError) { _ = try file.tryLock() }

  deinit {
    do throws(LogError) { try fileSystem.remove(path) } catch {
      // An unlocked file has no meaning.
    }
    file.close()
  }
}

/// Appends commits to a log and syncs them on its own thread, with one sync for all that wait.
private final class LogAppender: Sendable {
  private struct Progress {
    var asked = 0
    var done = 0
    var failure: LogError?
  }

  private enum Order: Sendable {
    /// Nil: a commit without events, which is durable with those before it.
    case append(Commit?)
    case sync
    case end
  }

  private let orders = Handoff<Order>(ahead: 4)
  private let progress = Mutex(Progress())
  private let advanced = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  /// Whether only `sync` and `end` sync the commits before them.
  private let isRelaxed: Bool

  /// No other code may access the log until `end` or `drain` returns, which makes the unsafe
  /// transfer valid.
  init(_ log: Log, isRelaxed: Bool) {
    self.isRelaxed = isRelaxed
    nonisolated(unsafe) let log = log
    DispatchQueue(label: "stemma.append").async { [self] in run(log) }
  }

  private func run(_ log: Log) {
    // Commits since the last sync.
    var count = 0
    while true {
      let taken = orders.takeAll()
      var commits: [Commit] = []
      var isEnd = false
      var syncs = !isRelaxed
      for order in taken {
        switch order {
        case .append(let commit):
          count += 1
          if let commit { commits.append(commit) }
        case .sync: syncs = true
        case .end:
          isEnd = true
          syncs = true
        }
      }
      var failure = progress.withLock { $0.failure }
      if failure == nil {
        do throws(LogError) {
          if !commits.isEmpty { _ = try log.append(commits) }
          if syncs { try log.sync() }
        } catch { failure = error }
      }
      progress.withLock { progress in
        progress.failure = failure
        if failure == nil, syncs {
          progress.done += count
          count = 0
        }
      }
      advanced.signal()
      if isEnd {
        ended.signal()
        return
      }
    }
  }

  func append(_ commit: Commit?) {
    progress.withLock { $0.asked += 1 }
    _ = orders.put(.append(commit))
  }

  /// The number of submitted commits.
  var asked: Int { progress.withLock { $0.asked } }

  func checkInvariants() {
    progress.withLock { precondition($0.done <= $0.asked, "only requested commits are durable") }
    orders.checkInvariants()
  }

  /// The number of durable commits, and the error that stopped the next one.
  var durable: (count: Int, failure: LogError?) { progress.withLock { ($0.done, $0.failure) } }

  /// Waits until all submitted commits are durable.
  func drain() {
    if isRelaxed { _ = orders.put(.sync) }
    while progress.withLock({ $0.failure == nil && $0.done < $0.asked }) { advanced.wait() }
  }

  func end() {
    _ = orders.put(.end)
    ended.wait()
  }
}
