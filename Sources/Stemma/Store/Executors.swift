import Dispatch
import StemmaTables

/// Runs an actor on a queue of its own, so that waiting for a disk blocks none of the few threads that all tasks
/// share.
final class QueueExecutor: SerialExecutor {
  private let queue: DispatchQueue

  init(_ name: String) { queue = DispatchQueue(label: name) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

/// One connection that reads, and the thread that it is used on.
actor Reader {
  private let executor = QueueExecutor("stemma.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String
  private var connection: ReadConnection?

  init(_ path: String) { self.path = path }

  /// Runs `body` with a connection to the tables that are there now.
  func read<Result: Sendable>(
    _ body: @Sendable (ReadConnection) throws -> Result
  ) throws -> Result {
    if connection?.isReplaced != false { connection = try ReadConnection(path) }
    guard let connection else { throw StoreError.closed }
    return try body(connection)
  }
}
