import StemmaEvents

/// Collects the damage that readers skipped. A reader without a collector throws the first damage.
package final class Omissions: Sendable {
  private let found = Mutex<Set<Damage>>([])

  package init() {}

  /// By path and offset.
  package var damage: [Damage] { found.withLock { $0.sorted() } }

  package var isEmpty: Bool { found.withLock { $0.isEmpty } }

  func note(_ damage: Damage) { found.withLock { _ = $0.insert(damage) } }
}

extension Omissions? {
  /// Runs `body`. Notes damage and returns nil, or throws it without a collector.
  package func reading<Result>(_ body: () throws(LogError) -> Result) throws(LogError) -> Result? {
    do throws(LogError) { return try body() } catch {
      guard let self, let damage = error.damage else { throw error }
      self.note(damage)
      return nil
    }
  }
}
