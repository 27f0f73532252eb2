import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaTables

/// Selects conflicts.
package struct ConflictFilter: Sendable {
  package typealias Kind = OpenConflict.Kind

  package var model: Model?
  package var key: Key?
  /// Declared names, or names that `ExistenceName.matches` accepts; empty: all.
  package var fields: Set<String> = []
  package var scope = NarrowedScope(.everything)
  package var kinds: Set<Kind> = [.value, .delete, .cardinality, .dangling]

  package init(model: Model? = nil) { self.model = model }

  /// - Parameter model: the model of the conflict.
  func contains(_ conflict: OpenConflict, of model: Model?) -> Bool {
    guard kinds.contains(conflict.kind) else { return false }
    if let key, conflict.key != key { return false }
    // The candidates of a cardinality conflict can be records of several partitions.
    guard conflict.choices.allSatisfy({ scope.contains($0.event.partition) }) else { return false }
    return fields.isEmpty || fields.contains { isAbout($0, conflict, model) }
  }

  private func isAbout(_ field: String, _ conflict: OpenConflict, _ model: Model?) -> Bool {
    if conflict.kind == .delete { return ExistenceName.matches(field, in: model) }
    if conflict.field == field { return true }
    // Several reference fields form one register named after the relationship; one keeps its name.
    guard conflict.kind == .value else { return false }
    if let relationship = model?.relationship(named: field), relationship.storesReference {
      return relationship.referenceFields.contains { $0 == conflict.field }
    }
    return conflict.choices.contains { choice in
      if case .fields(let assignments) = choice.value {
        assignments.contains { $0.field == field }
      } else {
        false
      }
    }
  }
}
