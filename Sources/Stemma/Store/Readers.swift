import StemmaEvents
import Dispatch
import StemmaTables
import struct Synchronization.Atomic

/// The connections and threads of reads.
///
/// A lookup by key costs a fraction of a thread switch, so it runs on the caller's thread. All
/// other reads run on a queue and do not block the threads of Swift's shared pool.
///
/// A returned connection keeps its snapshot, which the next read uses if there was no commit since.
/// A few milliseconds after the first return, all idle connections release their snapshots.
final class Readers: Sendable {
  private let path: String
  private let queues: [Reader]
  private let nextQueue = Atomic<Int>(0)
  private let idle = Mutex<[Idle]>([])
  private let closed = Atomic<Bool>(false)
  /// The number of this store's commits. Each voids earlier checks of the tables' file.
  private let commits = Atomic<Int>(0)
  /// Whether a release of the snapshots is scheduled.
  private let willRelease = Atomic<Bool>(false)

  /// How many reads run on queues at the same time.
  private static let queueCount = 3
  /// How many connections are kept open.
  private static let idleLimit = 8
  /// How long a connection is used without checking whether its file was replaced. A replacement
  /// takes longer to open and to commit to, so no commit is missed.
  private static let checkInterval = Duration.microseconds(100)
  /// How long a snapshot is held idle. SQLite truncates its log only while no snapshot is held.
  private static let holdingInterval = DispatchTimeInterval.milliseconds(2)

  /// An idle connection.
  ///
  /// Unchecked: a connection is not Sendable, but is either in this list or used by one read.
  private struct Idle: @unchecked Sendable {
    let connection: ReadConnection
    /// When its file was checked, and after how many commits.
    let checked: ContinuousClock.Instant
    let commits: Int
  }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  init(_ path: String) {
    self.path = path
    queues = (0..<Self.queueCount).map { _ in Reader() }
  }

  /// Counts a commit, so that every later read shows it.
  func noteCommit() { commits.wrappingAdd(1, ordering: .releasing) }

  /// Refuses new reads; running ones finish.
  func close() {
    idle.withLock { idle in
      closed.store(true, ordering: .releasing)
      idle = []
    }
  }

  /// Runs `body` on this thread with a connection to the current tables.
  func readHere<Result>(_ body: (ReadConnection) throws -> Result) throws -> Result {
    let reader = try borrow()
    defer { giveBack(reader) }
    try reader.connection.holdState()
    return try body(reader.connection)
  }

  /// Runs `body` on a thread that may wait for the disk.
  ///
  /// - Throws: `CancellationError` soon after the task is cancelled.
  func read<Result: Sendable>(_ body: @Sendable (ReadConnection) throws -> Result) async throws -> Result {
    let turn = nextQueue.wrappingAdd(1, ordering: .relaxed).oldValue
    return try await queues[abs(turn % Self.queueCount)].run {
      try Task.checkCancellation()
      return try self.readHere { connection in
        try connection.endingWhenCancelled { try body(connection) }
      }
    }
  }

  /// A new connection.
  func connection() throws -> ReadConnection {
    if isClosed { throw StoreError.closed }
    return try ReadConnection(path)
  }

  private func borrow() throws -> Idle {
    if isClosed { throw StoreError.closed }
    let (commits, now) = (commits.load(ordering: .acquiring), ContinuousClock.now)
    while let reader = idle.withLock({ $0.popLast() }) {
      if reader.commits == commits, now - reader.checked < Self.checkInterval { return reader }
      // A connection to a replaced file is closed.
      if !reader.connection.isReplaced {
        return Idle(connection: reader.connection, checked: now, commits: commits)
      }
    }
    return Idle(connection: try ReadConnection(path), checked: now, commits: commits)
  }

  private func giveBack(_ reader: Idle) {
    let isKept = idle.withLock { idle in
      // Checked under the lock: otherwise, a connection returned during `close` would stay open.
      guard !isClosed, idle.count < Self.idleLimit else { return false }
      idle.append(reader)
      return true
    }
    if isKept { releaseSoon() }
  }

  /// Traps if the state is inconsistent. For tests, on any thread, also during reads.
  ///
  /// - A connection is kept once, as long as the store is open, within the limit.
  /// - An idle connection has no open statement.
  func checkInvariants() {
    idle.withLock { idle in
      precondition(idle.count <= Self.idleLimit, "few connections are kept")
      precondition(Set(idle.map { ObjectIdentifier($0.connection) }).count == idle.count, "each is kept once")
      precondition(idle.isEmpty || !isClosed, "a closed store keeps none")
      for reader in idle { reader.connection.checkInvariants() }
    }
  }

  /// A connection in use at that time schedules its own release when it is returned.
  private func releaseSoon() {
    guard !willRelease.load(ordering: .relaxed), !willRelease.exchange(true, ordering: .acquiringAndReleasing)
    else { return }
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.holdingInterval) { [weak self] in
      self?.release()
    }
  }

  private func release() {
    willRelease.store(false, ordering: .releasing)
    idle.withLock { for reader in $0 { reader.connection.releaseState() } }
  }
}

private actor Reader {
  private let executor = QueueExecutor("stemma.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func run<Result: Sendable>(_ body: @Sendable () throws -> Result) throws -> Result { try body() }
}
