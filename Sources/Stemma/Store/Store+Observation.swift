extension Store {
  /// The rows of a statement now, and again after each commit of this store.
  public func observe<Statement: ReadStatement>(
    _ rows: Statement
  ) -> AsyncThrowingStream<[Statement.Output], any Error> {
    AsyncThrowingStream { continuation in
      let task = Task {
        do {
          for await _ in changes.stream() { continuation.yield(try await rows.fetchAll(self)) }
          continuation.finish()
        } catch { continuation.finish(throwing: error) }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}
