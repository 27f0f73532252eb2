import Observation

/// The rows of a statement for a view: the newest ones after commits that change them, on the main actor.
///
///     @State private var reminders = store.live(Reminder.order { $0.title })
///     …
///     List(reminders.rows) { … }
@MainActor
@Observable
public final class LiveRows<Output: Sendable> {
  /// Empty until the first read has ended.
  public private(set) var rows: [Output] = []
  /// Whether rows have been read: with it, no rows means that there are none.
  public private(set) var isLoaded = false
  /// Why the rows are those of an earlier state, if the last reading of them has failed. They are read again after the next
  /// commit.
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

  /// Traps if rows are there that nobody has read. For tests.
  func checkInvariants() { precondition(isLoaded || rows.isEmpty, "rows are there once they were read") }

  private func take(_ rows: [Output]) {
    self.rows = rows
    isLoaded = true
    error = nil
  }
}

extension Store {
  /// A holder of the rows of a statement, kept up to date as long as somebody holds it.
  @MainActor
  public func live<Statement: ReadStatement>(_ rows: Statement) -> LiveRows<Statement.Output> {
    LiveRows(observe(rows))
  }
}
