import Synchronization

/// Collects the damage that readers met and read around. A reader without one throws at the first damage.
package final class Omissions: Sendable {
  private let found = Mutex<Set<Damage>>([])

  package init() {}

  /// By path and offset.
  package var damage: [Damage] { found.withLock { $0.sorted() } }

  package var isEmpty: Bool { found.withLock { $0.isEmpty } }

  func note(_ damage: Damage) { found.withLock { _ = $0.insert(damage) } }
}

extension Omissions? {
  /// Runs `body`. Damage that it meets is noted, and nil returned; or thrown, if nobody collects it.
  package func reading<Result>(_ body: () throws(LogError) -> Result) throws(LogError) -> Result? {
    do throws(LogError) { return try body() } catch {
      guard let self, let damage = error.damage else { throw error }
      self.note(damage)
      return nil
    }
  }
}
