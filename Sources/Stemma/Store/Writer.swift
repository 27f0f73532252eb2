import StemmaEvents
import StemmaNode
import StemmaSchema
import struct Synchronization.Atomic

/// The node of a store, and the thread on which it is used.
///
/// Commits requested during another one wait in a list. The next caller makes all of them as one
/// group with one sync, including those that are requested while the group is being made.
actor Writer {
  private let executor = QueueExecutor("stemma.writer")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let rows: RowFeed
  private var node: Node?
  private var isSyncDue = false
  private nonisolated let closed = Atomic<Bool>(false)
  private nonisolated let waiting = Mutex<[PendingCommit]>([])

  init(_ rows: RowFeed) { self.rows = rows }

  /// A requested commit and its outcome.
  private final class PendingCommit: Sendable {
    typealias Body =
      @Sendable (WriteTransaction, RecordedSettings, _ schemaChanges: Int) throws(NodeError) -> Void

    let message: CommitMessage
    let isRelaxed: Bool
    private let body: Body
    /// The settings that the last call of the body has recorded.
    private let recorded = Mutex(RecordedSettings())
    private let result = Mutex<Result<Void, NodeError>?>(nil)

    init(_ message: CommitMessage, isRelaxed: Bool, _ body: @escaping Body) {
      self.message = message
      self.isRelaxed = isRelaxed
      self.body = body
    }

    var outcome: Result<Void, NodeError>? { result.withLock { $0 } }

    /// Traps if a failed commit is not reverted. For tests; in debug builds when it ends.
    func checkInvariants() {
      let recorded = recorded.withLock { $0 }
      recorded.checkInvariants()
      if case .failure = outcome { precondition(recorded.isTakenBack, "what is not made is taken back") }
    }

    func make(_ write: WriteTransaction, _ schemaChanges: Int) throws(NodeError) {
      try body(write, recorded.withLock { $0 }, schemaChanges)
    }

    /// Before the body is called again; in the order of `end`.
    func takeBack() {
      recorded.withLock { recorded in
        recorded.takeBack()
        recorded = RecordedSettings()
      }
    }

    /// Called on the writer's thread before any later body runs there, which must not rely on
    /// settings that this one failed to record. In a group the last one ends first, as each
    /// restores what it found.
    func end(_ outcome: Result<Void, NodeError>) {
      recorded.withLock { recorded in
        if case .success = outcome { recorded.confirm() } else { recorded.takeBack() }
      }
      result.withLock { $0 = outcome }
      assert(holds(checkInvariants))
    }
  }

  private final class Cancellation: Sendable {
    let flag = Atomic<Bool>(false)
  }

  /// The result or error of a commit's body.
  private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)

    func set(_ new: Result<Value, any Error>) { result.withLock { $0 = new } }

    func get() throws -> Value {
      guard let result = result.withLock({ $0 }) else { throw StoreError.closed }
      return try result.get()
    }
  }

  /// Opens or creates the node in a directory, and applies the models that a program declares.
  func open(_ directory: String, _ declared: DeclaredModels, _ settings: Store.Options) throws -> Schema {
    var options = Node.OpeningOptions(mode: settings.isReadOnly ? .read : .write)
    options.wait = settings.wait
    options.ports = settings.ports
    let node: Node
    do throws(NodeError) { node = try Node.open(at: directory, options) } catch {
      switch error {
      // An interrupted creation looks like a node that has lost its metadata.
      case .noNode, .lostMetadata: if settings.isReadOnly { throw error }
      default: throw error
      }
      node = try Self.create(directory, declared, settings, options)
    }
    if settings.isReadOnly {
      try declared.check(node.schema)
    } else {
      var refusal: StoreError?
      do throws(NodeError) {
        try node.apply { (known) throws(NodeError) in
          do throws(StoreError) { return SDL.print(try declared.extending(known)) } catch {
            refusal = error
            throw .abandoned
          }
        }
      } catch { throw refusal ?? error }
    }
    node.segmentIsMade = { [weak self] in Task { await self?.finishSealing() } }
    self.node = node
    return node.schema
  }

  private static func create(
    _ directory: String, _ declared: DeclaredModels, _ settings: Store.Options, _ options: Node.OpeningOptions
  ) throws -> Node {
    let models = try declared.schema()
    let patterns = try settings.partitions.map { try $0.checkedText(in: models) }
    let schema = SDL.print(models)
    do throws(NodeError) {
      let scope = patterns.isEmpty ? .everything : try Node.scope(patterns)
      return try Node.create(
        at: directory, schema: schema, name: settings.name, scope: scope, options: options)
    } catch .alreadyANode {
      // Another process has created the node at the same time.
      return try Node.open(at: directory, options)
    }
  }

  /// Runs `body` with the node.
  func access<Result: Sendable>(_ body: @Sendable (Node) throws -> Result) throws -> Result {
    guard let node else { throw StoreError.closed }
    return try body(node)
  }

  /// Passes changes by other writers to observers.
  func look() { rows.lookIfDue() }

  private func finishSealing() { node?.sealOrNote() }

  /// How long a relaxed commit waits for others to share its sync.
  private static let syncDelay = Duration.milliseconds(50)

  /// Schedules a sync if relaxed commits have left unsynced data.
  private func syncLater() {
    guard let node, !node.isSynced, !isSyncDue else { return }
    isSyncDue = true
    // Holds the writer: the commits of a released store are synced, too.
    Task {
      do { try await Task.sleep(for: Self.syncDelay) } catch {
        // This task is never cancelled; if it were, it would sync at once.
      }
      isSyncDue = false
      self.node?.syncOrNote()
    }
  }

  /// Finishes a seal that has begun, makes all commits durable, and closes the node.
  func close() {
    node?.syncOrNote()
    node?.sealOrNote()
    node = nil
    closed.store(true, ordering: .releasing)
  }

  /// Traps if the state is inconsistent, and throws if the node's is. For tests; reads everything.
  func checkInvariants() throws(NodeError) {
    precondition(node == nil || !isClosed, "a closed store has released its node")
    waiting.withLock { waiting in
      precondition(waiting.allSatisfy { $0.outcome == nil }, "a commit that waits is not decided")
      for pending in waiting { pending.checkInvariants() }
    }
    try node?.checkInvariants()
  }

  nonisolated var waitingCount: Int { waiting.withLock { $0.count } }

  nonisolated var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Makes one commit, which is durable on return, unless it is relaxed. A task that is cancelled
  /// before its body begins makes none.
  ///
  /// - Parameter body: called again if the tables are corrupt. If the commit fails, its notes in
  ///   `recorded` are reverted.
  nonisolated func commit<Result: Sendable>(
    _ message: CommitMessage, isRelaxed: Bool,
    _ body:
      @escaping @Sendable (
        _ write: WriteTransaction, _ recorded: RecordedSettings, _ schemaChanges: Int
      ) throws -> Result
  ) async throws -> Result {
    let result = Outcome<Result>()
    try Task.checkCancellation()
    let isCancelled = Cancellation()
    let pending = PendingCommit(message, isRelaxed: isRelaxed) {
      transaction, recorded, schemaChanges throws(NodeError) in
      do {
        // Not `Task.isCancelled`: this may run on the task of another commit of the group.
        if isCancelled.flag.load(ordering: .acquiring) { throw CancellationError() }
        result.set(.success(try body(transaction, recorded, schemaChanges)))
      } catch {
        recorded.takeBack()
        result.set(.failure(error))
        throw .abandoned
      }
    }
    waiting.withLock { $0.append(pending) }
    try await withTaskCancellationHandler {
      try await makeWaitingCommits()
    } onCancel: {
      isCancelled.flag.store(true, ordering: .releasing)
    }
    switch pending.outcome {
    case .success, .failure(.abandoned): return try result.get()
    case .failure(let error): throw error
    case nil: throw StoreError.closed
    }
  }

  private nonisolated func takeWaiting() -> [PendingCommit] {
    waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
  }

  private func makeWaitingCommits() throws {
    guard waitingCount > 0 else { return }
    guard let node else { throw StoreError.closed }
    rows.lookIfDue()
    var group: [PendingCommit] = []
    do throws(NodeError) {
      func join() -> [Node.CommitRequest] {
        let joined = takeWaiting()
        group += joined
        return joined.map { [rows] pending in
          Node.CommitRequest(pending.message, isRelaxed: pending.isRelaxed) { write throws(NodeError) in
            try pending.make(write, node.schemaChanges)
            rows.read(write)
          }
        }
      }
      let outcomes = try node.write(join(), joining: join) {
        rows.settle(isDurable: false)
        for pending in group.reversed() { pending.takeBack() }
      }
      for (pending, outcome) in zip(group, outcomes).reversed() { pending.end(outcome) }
      rows.settle(isDurable: true)
      syncLater()
    } catch {
      rows.settle(isDurable: false)
      for pending in group.reversed() { pending.end(.failure(error)) }
    }
  }
}
