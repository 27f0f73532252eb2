import Dispatch
import StemmaTables
import Synchronization

/// The connections that read, and the threads that they are used on.
///
/// A look-up by key costs a fraction of what handing it to another thread does, so it runs where it is asked for.
/// All other reads go to a queue and block none of the few threads that all tasks share.
///
/// A connection that is given back holds the state that it has read, for the next read to take if nothing was committed
/// meanwhile; a few milliseconds after the first one, all let go.
final class Readers: Sendable {
  private let path: String
  private let queues: [Reader]
  private let nextQueue = Atomic<Int>(0)
  private let idle = Mutex<[Idle]>([])
  private let closed = Atomic<Bool>(false)
  /// Rises with each commit of this store: what was known of the tables' file may be wrong then.
  private let commits = Atomic<Int>(0)
  /// Whether connections will let go of the states that they hold.
  private let willLetGo = Atomic<Bool>(false)

  /// How many reads run on queues at the same time.
  private static let queueCount = 3
  /// How many connections are kept open.
  private static let idleLimit = 8
  /// How long a connection is used without looking whether another file stands in the place of its own: less than it takes
  /// to open that and to commit to it, so that nobody can have done so meanwhile.
  private static let checkInterval = Duration.microseconds(100)
  /// How long a state is held without need. SQLite's log can be cut short only while nobody holds a state of it.
  private static let holdingInterval = DispatchTimeInterval.milliseconds(2)

  /// A connection that nobody uses.
  ///
  /// Unchecked, because a connection is no value; it is in this list or in the hands of one read, never in both.
  private struct Idle: @unchecked Sendable {
    let connection: ReadConnection
    /// When its file was looked at, and after how many commits.
    let checked: ContinuousClock.Instant
    let commits: Int
  }

  /// Whether new reads are refused.
  var isClosed: Bool { closed.load(ordering: .acquiring) }

  init(_ path: String) {
    self.path = path
    queues = (0..<Self.queueCount).map { _ in Reader() }
  }

  /// Says that a commit was made, so that every read that begins later shows it.
  func noteCommit() { commits.wrappingAdd(1, ordering: .releasing) }

  /// Lets reads that are under way end, and refuses others.
  func close() {
    idle.withLock { idle in
      closed.store(true, ordering: .releasing)
      idle = []
    }
  }

  /// Runs `body` on this thread with a connection to the tables that are there now.
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
      // One that is replaced is closed.
      if !reader.connection.isReplaced {
        return Idle(connection: reader.connection, checked: now, commits: commits)
      }
    }
    return Idle(connection: try ReadConnection(path), checked: now, commits: commits)
  }

  private func giveBack(_ reader: Idle) {
    let isKept = idle.withLock { idle in
      // Looked at here, as else one that is given back while the store is being closed would stay open.
      guard !isClosed, idle.count < Self.idleLimit else { return false }
      idle.append(reader)
      return true
    }
    if isKept { letGoSoon() }
  }

  /// Traps if what is kept contradicts itself. For tests, on any thread, also while others read.
  ///
  /// - A connection is kept once, as long as the store is open, and only so many are.
  /// - Nobody has left anything open on it.
  func checkInvariants() {
    idle.withLock { idle in
      precondition(idle.count <= Self.idleLimit, "few connections are kept")
      precondition(Set(idle.map { ObjectIdentifier($0.connection) }).count == idle.count, "each is kept once")
      precondition(idle.isEmpty || !isClosed, "a closed store keeps none")
      for reader in idle { reader.connection.checkInvariants() }
    }
  }

  /// One that is lent at that time is let go of after it was given back.
  private func letGoSoon() {
    guard !willLetGo.load(ordering: .relaxed), !willLetGo.exchange(true, ordering: .acquiringAndReleasing)
    else { return }
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.holdingInterval) { [weak self] in
      self?.letGo()
    }
  }

  private func letGo() {
    willLetGo.store(false, ordering: .releasing)
    idle.withLock { for reader in $0 { reader.connection.letGoOfState() } }
  }
}

/// Runs reads on a queue of its own.
private actor Reader {
  private let executor = QueueExecutor("stemma.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func run<Result: Sendable>(_ body: @Sendable () throws -> Result) throws -> Result { try body() }
}
