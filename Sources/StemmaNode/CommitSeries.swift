import Dispatch
import StemmaEvents
import StemmaLog
import StemmaTables
import Synchronization

/// Commits after one another, each durable by itself, that share one transaction of the tables and one hold of the
/// writer lock: what imports are made of.
///
/// The log is written and synced on a thread of its own while the next commit is being made, and on another one the segment
/// of a journal that is large enough. The tables follow when the series ends. If it ends with an error, or the
/// process dies, they are behind the log, which is what they catch up from. Readers see nothing of a series before
/// it has ended; a record that it changes often is written once.
package final class CommitSeries {
  /// Events after which a series is complete.
  private static let limit = 16_384
  /// How long a series should keep others out, in milliseconds; and for how long they are let in then, which is longer
  /// than a waiting writer sleeps between two looks at the lock.
  fileprivate static let (longestHold, pause): (UInt64, UInt32) = (1000, 25)

  private let node: Node
  private let transaction: TablesTransaction
  private let appender: LogAppender
  /// The journal that is being sealed, if one is.
  private let sealing: Sealing?
  private let sealed: MadeAhead<Result<SealedSegment, LogError>>?
  /// What is to be called when a commit is durable, the oldest first.
  private var waiting: [() throws -> Void] = []
  private var reported = 0
  /// What it holds, with the series before that it continues.
  fileprivate private(set) var size: Size

  /// Of a series that ended before it was complete, to let others in, so that the next one continues it.
  struct Size {
    var events = 0
    /// About as many bytes as the events take before they are deflated.
    var bytes = 0
  }

  fileprivate init(_ node: Node, _ transaction: TablesTransaction) throws(LogError) {
    self.node = node
    self.transaction = transaction
    size = node.openSeries ?? Size()
    let mayBegin = node.openSeries == nil && node.log.wantsSealing
    let sealing = mayBegin ? try node.log.beginSealing() : nil
    appender = try LogAppender(node.log)
    self.sealing = sealing
    // Behind what may throw: what was begun is waited for in `end`.
    sealed = sealing.map { sealing in
      MadeAhead { Result { () throws(LogError) in try sealing.write() } }
    }
  }

  /// Whether the journal may have grown enough to be sealed. It depends on the events alone and not on how fast a disk
  /// is, and so do the files of the log.
  fileprivate var isComplete: Bool { size.events >= Self.limit || size.bytes >= node.log.segmentSize }

  /// Whether it is time to begin another one: because this one is complete, or to let others in.
  package var isFull: Bool { isComplete || node.holdsLong }

  /// Makes one commit, and has it written. After an error of `body` the series is over.
  ///
  /// - Parameter durable: called on this thread when the commit is durable, in this call, in a later one, or before
  ///   the series ends; also if that ends with an error.
  package func commit(
    _ note: CommitNote, durable: @escaping () throws -> Void,
    _ body: (WriteTransaction) throws(NodeError) -> Void
  ) throws {
    let write = try node.begin(note, transaction, beforeReadingLog: { [appender] in appender.drain() })
    try body(write)
    assert(holds(write.checkInvariants))
    node.take(write)
    if !write.events.isEmpty { try node.beginDueOrigin() }
    size.events += write.events.count
    size.bytes += write.events.reduce(0) { $0 + Self.size(of: $1) }
    waiting.append(durable)
    appender.append(write.events.isEmpty ? nil : Commit(write.events, note: write.note))
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

  /// Traps if what was counted contradicts itself. In debug builds at every commit.
  package func checkInvariants() {
    precondition(reported >= 0 && waiting.count == appender.asked - reported, "each commit is reported once")
    precondition(size.events >= 0 && size.bytes >= 0, "a series grows")
    appender.checkInvariants()
  }

  /// Waits until all is written, and reports it.
  fileprivate func end() throws {
    appender.end()
    let segment = sealed?.take()
    try report()
    if let sealing, let segment { try node.log.finish(sealing, segment.get()) }
  }
}

extension Node {
  /// Whether series have kept others out for long, one after the other.
  fileprivate var holdsLong: Bool {
    seriesSince.map { ports.clock.milliseconds() >= $0 + CommitSeries.longestHold } ?? false
  }

  /// Lets `body` make a series of commits. Those that were made before an error are in the log, and stay.
  package func series(_ body: (CommitSeries) throws -> Void) throws {
    var failure: (any Error)?
    if seriesSince == nil { seriesSince = ports.clock.milliseconds() }
    defer {
      if holdsLong {
        System.sleep(milliseconds: CommitSeries.pause)
        seriesSince = nil
      }
    }
    try lockedForEvents { () throws(NodeError) in
      var isDurable = false
      do {
        try tables.write({ $0 as any Error }) { (transaction) throws(any Error) in
          let series = try CommitSeries(self, transaction)
          let outcome = Result { try body(series) }
          try series.end()
          openSeries = series.isComplete ? nil : series.size
          try outcome.get()
          isDurable = true
          try transaction.keep(clock: clock.highest)
          transaction.advance(to: log.token)
        }
        applied = log.token
      } catch let error as NodeError { failure = error } catch let error as TablesError {
        failure = NodeError.tables(error)
      } catch { failure = error }
      guard let error = failure as? NodeError else { return }
      failure = mended(error)
      // The series is in the log, and so in the tables that were made from it.
      if isDurable, case NodeError.tables(.rebuilt)? = failure { failure = nil }
    }
    switch failure {
    case nil: return
    case let error as LogError: throw NodeError.log(error)
    case .some(let error): throw error
    }
  }
}

/// Writes commits to a log and syncs them, on a thread of its own; those that came while it synced go together.
private final class LogAppender: Sendable {
  private struct Progress {
    var asked = 0
    var done = 0
    var failure: LogError?
  }

  private enum Order: Sendable {
    /// nil: a commit without events, which is durable when those before it are.
    case append(Commit?)
    case end
  }

  private let orders = Handoff<Order>(ahead: 4)
  private let progress = Mutex(Progress())
  private let advanced = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  /// Until `end` or `drain` has returned, nobody else may touch the log: that is why it can be used here, which the
  /// compiler cannot see.
  init(_ log: Log) throws(LogError) {
    nonisolated(unsafe) let log = log
    try System.beginThread(for: log.directory) { [self] in run(log) }
  }

  private func run(_ log: Log) {
    while true {
      let taken = orders.takeAll()
      var commits: [Commit] = []
      var count = 0
      var isEnd = false
      for order in taken {
        switch order {
        case .append(let commit):
          count += 1
          if let commit { commits.append(commit) }
        case .end: isEnd = true
        }
      }
      var failure = progress.withLock { $0.failure }
      if failure == nil, !commits.isEmpty {
        do throws(LogError) {
          _ = try log.append(commits)
          try log.sync()
        } catch { failure = error }
      }
      progress.withLock { progress in
        progress.failure = failure
        if failure == nil { progress.done += count }
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

  /// How many commits it was given.
  var asked: Int { progress.withLock { $0.asked } }

  func checkInvariants() {
    progress.withLock { precondition($0.done <= $0.asked, "no commit is durable that nobody made") }
    orders.checkInvariants()
  }

  /// How many commits are durable, and why the next one could not be made so.
  var durable: (count: Int, failure: LogError?) { progress.withLock { ($0.done, $0.failure) } }

  /// Waits until nothing is under way.
  func drain() {
    while progress.withLock({ $0.failure == nil && $0.done < $0.asked }) { advanced.wait() }
  }

  func end() {
    _ = orders.put(.end)
    ended.wait()
  }
}
