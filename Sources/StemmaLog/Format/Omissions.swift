import StemmaEvents

/// Collects the corruption that readers skipped. A reader without a collector throws the first
/// corruption.
package final class Omissions: Sendable {
  private let found = Mutex<Set<Corruption>>([])

  package init() {}

  /// By path and offset.
  package var corruption: [Corruption] { found.withLock { $0.sorted() } }

  package var isEmpty: Bool { found.withLock { $0.isEmpty } }

  func note(_ corruption: Corruption) { found.withLock { _ = $0.insert(corruption) } }
}

extension Omissions? {
  /// Runs `body`. Notes corruption and returns nil, or throws it without a collector.
  package func reading<Result>(_ body: () throws(LogError) -> Result) throws(LogError) -> Result? {
    do throws(LogError) { return try body() } catch {
      guard let self, let corruption = error.corruption else { throw error }
      self.note(corruption)
      return nil
    }
  }
}
