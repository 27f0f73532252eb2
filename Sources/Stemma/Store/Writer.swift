import StemmaEvents
import StemmaNode
import StemmaSchema
import Synchronization

/// The node of a store, and the thread that it is used on.
///
/// Commits that are asked for while another is being made wait in a list; whoever comes next makes all of them as
/// one group that shares one sync.
actor Writer {
  private let executor = QueueExecutor("stemma.writer")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var node: Node?
  private nonisolated let waiting = Mutex<[PendingCommit]>([])

  /// A commit that is asked for, and what came of it.
  private final class PendingCommit: Sendable {
    let note: CommitNote
    let body: @Sendable (WriteTransaction) throws(NodeError) -> Void
    let outcome = Mutex<Result<Void, NodeError>?>(nil)

    init(
      _ note: CommitNote, _ body: @escaping @Sendable (WriteTransaction) throws(NodeError) -> Void
    ) {
      self.note = note
      self.body = body
    }
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
  func open(_ directory: String, _ declared: DeclaredModels) throws -> Schema {
    let options = Node.OpeningOptions(mode: .write)
    let node: Node
    do throws(NodeError) { node = try Node.open(at: directory, options) } catch .noNode {
      node = try Node.create(at: directory, schema: declared.sdl(), options: options)
    }
    _ = try node.apply(schema: declared.sdl(extending: node.schema))
    self.node = node
    return node.schema
  }

  /// Runs `body` with the node.
  func access<Result: Sendable>(_ body: @Sendable (Node) throws -> Result) throws -> Result {
    guard let node else { throw StoreError.closed }
    return try body(node)
  }

  func close() { node = nil }

  /// Makes one commit; it is durable when this returns.
  nonisolated func commit<Result: Sendable>(
    _ note: CommitNote, _ body: @escaping @Sendable (WriteTransaction) throws -> Result
  ) async throws -> Result {
    let result = Outcome<Result>()
    let pending = PendingCommit(note) { transaction throws(NodeError) in
      do { result.set(.success(try body(transaction))) } catch {
        result.set(.failure(error))
        throw .abandoned
      }
    }
    waiting.withLock { $0.append(pending) }
    try await makeWaitingCommits()
    switch pending.outcome.withLock({ $0 }) {
    case .success, .failure(.abandoned): return try result.get()
    case .failure(let error): throw error
    case nil: throw StoreError.closed
    }
  }

  private func makeWaitingCommits() throws {
    let group = waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    guard !group.isEmpty else { return }
    guard let node else { throw StoreError.closed }
    do throws(NodeError) {
      let outcomes = try node.write(group.map { Node.CommitRequest($0.note, $0.body) })
      for (pending, outcome) in zip(group, outcomes) { pending.outcome.withLock { $0 = outcome } }
    } catch {
      for pending in group { pending.outcome.withLock { $0 = .failure(error) } }
    }
  }
}
