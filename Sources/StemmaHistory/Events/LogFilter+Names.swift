import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSchema

extension LogFilter {
  /// The stored names of a field, of the fields of a reference, or of existence; empty: there is no
  /// such field. A name that no model has may be a removed field, or one that this schema does not
  /// have yet. The log then contains it, within `readable`.
  package static func storedNames(
    ofField name: String, of chosen: [Model], in node: Node, within readable: Scope = .everything
  ) throws(NodeError) -> Set<String> {
    let models = chosen.isEmpty ? node.schema.models : chosen
    var names = Set(models.compactMap { $0.field(named: name)?.storedName })
    // Other models may have removed a field of that name.
    if !names.isEmpty, chosen.isEmpty { names.insert(name) }
    if models.contains(where: { ExistenceName.matches(name, in: $0) }) { names.insert(Event.existenceField) }
    guard names.isEmpty else { return names }
    for model in models {
      guard let relationship = model.relationship(named: name), relationship.storesReference else { continue }
      names.formUnion(relationship.referenceFields.compactMap { model.field(named: $0)?.storedName })
    }
    guard names.isEmpty, try isWritten(name, of: chosen, in: node, within: readable) else { return names }
    return [name]
  }

  /// Whether an event writes a field of this stored name.
  package static func isWritten(
    _ name: String, of models: [Model], in node: Node, within readable: Scope = .everything
  ) throws(NodeError) -> Bool {
    var filter = LogFilter()
    filter.fields = [name]
    filter.scope = NarrowedScope(readable)
    filter.models = models
    filter.modelNames = Set(models.map(\.storedName))
    var isWritten = false
    do throws(NodeError) {
      try node.forEachEvent(filter, newestFirst: true) { _, _ in
        isWritten = true
        return false
      }
    } catch {
      // The read of the selected events reports missing events.
      guard case .missing = error else { throw error }
      isWritten = true
    }
    return isWritten
  }

  /// The partition of all selected events, if it is only one. `patterns`: those of the scope.
  package func onlyPartition(_ patterns: [String]) -> String? {
    if !patterns.isEmpty { return patterns.count == 1 ? patterns[0] : nil }
    guard let model else { return nil }
    return (key.map { Partition(model: model, key: $0) } ?? Partition(of: model))?.description
  }
}
