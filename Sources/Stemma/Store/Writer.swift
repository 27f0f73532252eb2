import StemmaEvents
import StemmaNode
import StemmaSchema
import Synchronization

/// The node of a store, and the thread that it is used on.
///
/// Commits that are asked for while another is being made wait in a list; whoever comes next makes all of them as
/// one group that shares one sync, with those that are asked for while the group is being made.
actor Writer {
  private let executor = QueueExecutor("stemma.writer")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let rows: RowFeed
  private var node: Node?
  private nonisolated let closed = Atomic<Bool>(false)
  private nonisolated let waiting = Mutex<[PendingCommit]>([])

  init(_ rows: RowFeed) { self.rows = rows }

  /// A commit that is asked for, and what came of it.
  private final class PendingCommit: Sendable {
    typealias Body =
      @Sendable (WriteTransaction, RecordedSettings, _ schemaChanges: Int) throws(NodeError) -> Void

    let note: CommitNote
    private let body: Body
    /// What the body has recorded from values when it was called last.
    private let recorded = Mutex(RecordedSettings())
    private let result = Mutex<Result<Void, NodeError>?>(nil)

    init(_ note: CommitNote, _ body: @escaping Body) {
      self.note = note
      self.body = body
    }

    var outcome: Result<Void, NodeError>? { result.withLock { $0 } }

    /// Traps if a commit that is decided is still to be. For tests; in debug builds when it is.
    func checkInvariants() {
      let recorded = recorded.withLock { $0 }
      recorded.checkInvariants()
      if case .failure = outcome { precondition(recorded.isTakenBack, "what is not made is taken back") }
    }

    func make(_ write: WriteTransaction, _ schemaChanges: Int) throws(NodeError) {
      try body(write, recorded.withLock { $0 }, schemaChanges)
    }

    /// Before the body is called once more; as `end`.
    func takeBack() {
      recorded.withLock { recorded in
        recorded.takeBack()
        recorded = RecordedSettings()
      }
    }

    /// On the thread that writes, before the body of any later commit runs there: that must not take for recorded what
    /// this one has failed to record. Of a group the last one first, as each gives back what it found.
    func end(_ outcome: Result<Void, NodeError>) {
      recorded.withLock { recorded in
        if case .success = outcome { recorded.confirm() } else { recorded.takeBack() }
      }
      result.withLock { $0 = outcome }
      assert(holds(checkInvariants))
    }
  }

  /// Whether the task that asked for a commit was cancelled.
  private final class Cancellation: Sendable {
    let flag = Atomic<Bool>(false)
  }

  /// What the body of a commit returned or threw.
  private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)

    func set(_ new: Result<Value, any Error>) { result.withLock { $0 = new } }

    func get() throws -> Value {
      guard let result = result.withLock({ $0 }) else { throw StoreError.closed }
      return try result.get()
    }
  }

  /// Opens the node in a directory, or makes one, and gives it the models that a program declares.
  func open(_ directory: String, _ declared: DeclaredModels, _ settings: Store.Options) throws -> Schema {
    var options = Node.OpeningOptions(mode: settings.isReadOnly ? .read : .write)
    options.wait = settings.wait
    options.ports = settings.ports
    let node: Node
    do throws(NodeError) { node = try Node.open(at: directory, options) } catch {
      switch error {
      // What a creation that was interrupted leaves looks like the second.
      case .noNode, .lostMark: if settings.isReadOnly { throw error }
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
      // Somebody else was faster.
      return try Node.open(at: directory, options)
    }
  }

  /// Runs `body` with the node.
  func access<Result: Sendable>(_ body: @Sendable (Node) throws -> Result) throws -> Result {
    guard let node else { throw StoreError.closed }
    return try body(node)
  }

  /// Has observers see what others than this thread have written.
  func look() { rows.lookIfDue() }

  private func finishSealing() { node?.sealOrNote() }

  /// What the node has begun to seal is finished before.
  func close() {
    node?.sealOrNote()
    node = nil
    closed.store(true, ordering: .releasing)
  }

  /// Traps if what is kept contradicts itself, and throws if the node does. For tests; reads everything.
  func checkInvariants() throws(NodeError) {
    precondition(node == nil || !isClosed, "a closed store lets go of its node")
    waiting.withLock { waiting in
      precondition(waiting.allSatisfy { $0.outcome == nil }, "a commit that waits is not decided")
      for pending in waiting { pending.checkInvariants() }
    }
    try node?.checkInvariants()
  }

  /// How many commits wait for the one that is being made.
  nonisolated var waitingCount: Int { waiting.withLock { $0.count } }

  nonisolated var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Makes one commit; it is durable when this returns. One whose task is cancelled before its body begins is not made.
  ///
  /// - Parameter body: called once more if the tables turn out to be damaged. Its notes in `recorded` are taken back if
  ///   the commit is not made.
  nonisolated func commit<Result: Sendable>(
    _ note: CommitNote,
    _ body:
      @escaping @Sendable (
        _ write: WriteTransaction, _ recorded: RecordedSettings, _ schemaChanges: Int
      ) throws -> Result
  ) async throws -> Result {
    let result = Outcome<Result>()
    try Task.checkCancellation()
    let isCancelled = Cancellation()
    let pending = PendingCommit(note) { transaction, recorded, schemaChanges throws(NodeError) in
      do {
        // Not `Task.isCancelled`: the task that runs this may be that of another commit of the group.
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
          Node.CommitRequest(pending.note) { write throws(NodeError) in
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
    } catch {
      rows.settle(isDurable: false)
      for pending in group.reversed() { pending.end(.failure(error)) }
    }
  }
}
