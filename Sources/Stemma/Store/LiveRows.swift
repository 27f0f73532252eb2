import Observation

/// The newest rows of a statement for a view, updated after commits, on the main actor.
///
///     @State private var reminders = store.live(Reminder.order { $0.title })
///     …
///     List(reminders.rows) { … }
@MainActor
@Observable
public final class LiveRows<Output: Sendable> {
  /// Empty until the first read has ended.
  public private(set) var rows: [Output] = []
  /// Whether rows have been read: only then does an empty `rows` mean that there are none.
  public private(set) var isLoaded = false
  /// The error of the last read, if it failed: `rows` show an earlier state until the next
  /// successful read, which a commit triggers.
  public private(set) var error: (any Error)?
  @ObservationIgnored private var task: Task<Void, Never>?

  fileprivate init(_ observation: RowObservation<Output>) {
    task = Task { [weak self] in
      var newest = NewestRows(observation)
      while !Task.isCancelled {
        do {
          guard let rows = try await newest.next(isolation: MainActor.shared) else { return }
          self?.take(rows)
        } catch { self?.error = error }
      }
    }
  }

  deinit { task?.cancel() }

  /// Traps if there are rows before the first read. For tests.
  func checkInvariants() { precondition(isLoaded || rows.isEmpty, "rows are there once they were read") }

  private func take(_ rows: [Output]) {
    self.rows = rows
    isLoaded = true
    error = nil
  }
}

extension Store {
  /// A live view of a statement's rows, updated as long as it is referenced.
  @MainActor
  public func live<Statement: ReadStatement>(_ rows: Statement) -> LiveRows<Statement.Output> {
    LiveRows(observe(rows))
  }
}
