/// One difference between a schema and its replacement. Names are those of the new schema, or of
/// the old one for a removal.
package enum SchemaChange: Sendable, Equatable, CustomStringConvertible {
  case modelAdded(String)
  /// Hidden; its events stay in the log.
  case modelRemoved(String)
  case modelRenamed(from: String, to: String)
  case tableRenamed(model: String, from: String, to: String)
  /// The key's definition, of a model without events.
  case keyChanged(model: String)
  case partitionRuleChanged(model: String)
  case conflictPolicyChanged(model: String)
  case timestampsChanged(model: String)
  case fieldAdded(type: String, field: String)
  /// Hidden; its values stay in the log.
  case fieldRemoved(type: String, field: String)
  case fieldRenamed(type: String, from: String, to: String)
  case fieldTypeChanged(type: String, field: String, from: String, to: String)
  case fieldBecameOptional(type: String, field: String)
  case fieldBecameRequired(type: String, field: String)
  case defaultChanged(type: String, field: String)
  case relationshipAdded(model: String, name: String)
  case relationshipRemoved(model: String, name: String)
  case relationshipChanged(model: String, name: String)
  case indexAdded(model: String, name: String)
  case indexRemoved(model: String, name: String)
  case enumAdded(String)
  case enumRemoved(String)
  case caseAdded(enumeration: String, name: String)
  case caseRemoved(enumeration: String, name: String)
  case embeddedTypeAdded(String)
  case embeddedTypeRemoved(String)

  package var description: String {
    switch self {
    case .modelAdded(let name): "new model \(name)"
    case .modelRemoved(let name): "model \(name) is hidden; its events are kept"
    case .modelRenamed(let from, let to): "model \(from) is renamed to \(to)"
    case .tableRenamed(let model, let from, let to): "table of \(model) is renamed from \(from) to \(to)"
    case .keyChanged(let model): "\(model) has another key"
    case .partitionRuleChanged(let model): "\(model) has another partition rule"
    case .conflictPolicyChanged(let model): "\(model) has another conflict policy"
    case .timestampsChanged(let model): "\(model) has other timestamps"
    case .fieldAdded(let type, let field): "new field \(type).\(field)"
    case .fieldRemoved(let type, let field): "field \(type).\(field) is hidden; its values are kept"
    case .fieldRenamed(let type, let from, let to): "field \(type).\(from) is renamed to \(to)"
    case .fieldTypeChanged(let type, let field, let from, let to):
      "\(type).\(field) changes from \(from) to \(to)"
    case .fieldBecameOptional(let type, let field): "\(type).\(field) becomes optional"
    case .fieldBecameRequired(let type, let field): "\(type).\(field) becomes required"
    case .defaultChanged(let type, let field): "\(type).\(field) has another default"
    case .relationshipAdded(let model, let name): "new relationship \(model).\(name)"
    case .relationshipRemoved(let model, let name): "relationship \(model).\(name) is dropped"
    case .relationshipChanged(let model, let name): "relationship \(model).\(name) changes"
    case .indexAdded(let model, let name): "new index \(name) on \(model)"
    case .indexRemoved(let model, let name): "index \(name) on \(model) is dropped"
    case .enumAdded(let name): "new enum \(name)"
    case .enumRemoved(let name): "enum \(name) is dropped"
    case .caseAdded(let name, let newCase): "new case \(newCase) of \(name)"
    case .caseRemoved(let name, let oldCase): "case \(oldCase) of \(name) is dropped"
    case .embeddedTypeAdded(let name): "new type \(name)"
    case .embeddedTypeRemoved(let name): "type \(name) is dropped"
    }
  }
}

/// A difference that cannot hold for the events in the log.
package struct SchemaRefusal: Sendable, Equatable, CustomStringConvertible {
  /// A model, an embedded type or an enum.
  package var type: String
  package var field: String?
  package var message: String
  /// The alternative.
  package var advice: String

  package init(type: String, field: String? = nil, message: String, advice: String) {
    self.type = type
    self.field = field
    self.message = message
    self.advice = advice
  }

  package var description: String { "\(type)\(field.map { ".\($0)" } ?? ""): \(message); \(advice)" }
}

/// The changes of a new schema, in its order.
package struct SchemaComparison: Sendable, Equatable {
  package private(set) var changes: [SchemaChange] = []
  /// If there are any, nothing may be applied.
  package private(set) var refusals: [SchemaRefusal] = []

  package var isEmpty: Bool { changes.isEmpty && refusals.isEmpty }

  mutating func add(_ change: SchemaChange) { changes.append(change) }

  /// Adds a change that is valid only without events.
  mutating func add(
    _ change: SchemaChange, unless hasEvents: Bool, _ type: String, _ field: String?, _ message: String,
    _ advice: String
  ) {
    if hasEvents {
      refusals.append(SchemaRefusal(type: type, field: field, message: message, advice: advice))
    } else {
      changes.append(change)
    }
  }
}
