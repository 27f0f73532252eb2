/// A relationship as one of its two models declares it.
///
/// It is stored once, in the reference fields of one model (the child), and seen from both sides.
package struct Relationship: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case hasMany
    case hasOne
    case belongsTo
    /// Many to many through a join model; `target` is the other side's model.
    case manyToMany
  }

  package enum DeleteRule: String, Sendable {
    /// Required references: the child is deleted; optional ones: it is unlinked.
    case standard = "STANDARD"
    /// A parent with children cannot be deleted.
    case restrict = "RESTRICT"
  }

  package var name: String
  package var kind: Kind
  /// The model on the other side.
  package var target: String
  /// Whether the declaring model stores the reference fields. True for `belongsTo` and for Gen 1's
  /// `hasOne`; then the key of `target` is what they hold. False for `hasMany` and Gen 2's `hasOne`: then
  /// `target` stores them, and they hold the declaring model's key.
  package var storesReference: Bool
  /// Reference fields on the model that stores them, one per part of the other model's key, in its order.
  /// For `manyToMany`: the fields of the join model that hold the declaring model's key.
  package var referenceFields: [String]
  package var isRequired: Bool
  package var deleteRule: DeleteRule
  /// For `manyToMany`: the join model.
  package var joinModel: String?

  package init(
    name: String, kind: Kind, target: String, storesReference: Bool, referenceFields: [String],
    isRequired: Bool = false, deleteRule: DeleteRule = .standard, joinModel: String? = nil
  ) {
    self.name = name
    self.kind = kind
    self.target = target
    self.storesReference = storesReference
    self.referenceFields = referenceFields
    self.isRequired = isRequired
    self.deleteRule = deleteRule
    self.joinModel = joinModel
  }
}

extension Model {
  /// The reference fields of a relationship that are not parts of this model's own key. They are one
  /// register: written together, merged together. Empty if the key fixes the whole reference.
  package func freeReferenceFields(of relationship: Relationship) -> [String] {
    relationship.referenceFields.filter { name in !keyFields.contains { fields[$0].name == name } }
  }
}
