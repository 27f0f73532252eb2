import StemmaNode

/// Answers questions about a node's log, past and peers, which may take long. They run on a thread
/// of their own, and delay neither writes nor reads.
private actor Inspector {
  private let executor = QueueExecutor("stemma.inspection")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func run<Result: Sendable>(
    at directory: String, _ options: Node.OpeningOptions, _ body: @Sendable (Node) throws -> Result
  ) throws -> Result {
    try body(try Node.open(at: directory, options))
  }
}

extension Store {
  /// Runs `body` with a second, current instance of the node; not for a cancelled task.
  func inspect<Result: Sendable>(
    _ mode: Node.Mode = .read, _ body: @escaping @Sendable (Node) throws -> Result
  ) async throws -> Result {
    if writer.isClosed { throw StoreError.closed }
    var opening = Node.OpeningOptions(mode: mode)
    opening.wait = options.wait
    opening.ports = options.ports
    try Task.checkCancellation()
    do { return try await Inspector().run(at: directory.path, opening, body) } catch {
      throw translated(error)
    }
  }
}
