import StemmaEvents
import StemmaSchema

/// The name of a record's existence where the name of a field is expected.
package enum ExistenceName {
  /// A field or relationship of the model with this name takes precedence.
  package static let usual = "existence"

  /// The name beside the fields of a model: `_exists` if one of them is named `existence`.
  package static func name(in model: Model?) -> String {
    matches(usual, in: model) ? usual : Event.existenceField
  }

  /// Whether a name means existence. `_exists` always does, because no field can have that name.
  package static func matches(_ name: String, in model: Model?) -> Bool {
    if name == Event.existenceField { return true }
    return name == usual && model?.field(named: name) == nil && model?.relationship(named: name) == nil
  }
}
