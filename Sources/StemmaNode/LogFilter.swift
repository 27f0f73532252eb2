import StemmaEvents
import StemmaReplication

/// Which events of a log are wanted. All conditions have to hold.
package struct LogFilter: Sendable {
  /// Stored names.
  package var model: String?
  package var key: Key?
  package var scope: Scope = .everything
  package var origins: Set<Origin>?
  package var operations: Set<Operation>?
  package var field: String?
  /// Milliseconds since 1970, both ends included.
  package var since: UInt64?
  package var until: UInt64?

  package init() {}

  package func contains(_ event: Event) -> Bool {
    if let model, event.model != model { return false }
    if let key, event.key != key { return false }
    if let origins, !origins.contains(event.dot.origin) { return false }
    if let operations, !operations.contains(event.operation) { return false }
    if let field, !event.assignments.contains(where: { $0.field == field }) { return false }
    if let since, event.timestamp.milliseconds < since { return false }
    if let until, event.timestamp.milliseconds > until { return false }
    return scope.contains(event.partition)
  }
}
