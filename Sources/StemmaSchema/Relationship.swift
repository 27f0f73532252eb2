/// A relationship, from the view of one of its two models.
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

  package enum DeleteRule: String, Sendable, CaseIterable {
    /// A child is deleted if its reference is required, and unlinked otherwise.
    case standard = "STANDARD"
    /// A parent with children cannot be deleted.
    case restrict = "RESTRICT"
    /// The child is deleted, even if its reference is optional.
    case cascade = "CASCADE"
  }

  package var name: String
  package var kind: Kind
  /// The model on the other side.
  package var target: String
  /// Whether the declaring model stores the reference fields, with the key of `target`. True for
  /// `belongsTo` and for Gen 1's `hasOne`. False for `hasMany` and Gen 2's `hasOne`: then `target`
  /// stores them, with the declaring model's key.
  package var storesReference: Bool
  /// Reference fields in the model that stores them, one for each part of the other model's key, in
  /// its order. For `manyToMany`: the fields of the join model with the declaring model's key.
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

/// The key of another record, as a record stores it.
package struct Reference: Sendable, Equatable {
  /// The model whose key the fields hold.
  package var target: String
  /// One for each part of the target's key, in its order.
  package var fields: [String]
  /// This model's relationship that stores it; nil if only the target declares one.
  package var relationship: String?
  /// Whether it must not be null.
  package var isRequired: Bool

  package init(target: String, fields: [String], relationship: String?, isRequired: Bool) {
    self.target = target
    self.fields = fields
    self.relationship = relationship
    self.isRequired = isRequired
  }
}

extension Schema {
  /// Gives each model its references.
  static func withReferences(_ models: [Model]) -> [Model] {
    var positions: [String: Int] = [:]
    for (position, model) in models.enumerated() { positions[model.name] = position }
    var models = models
    for position in models.indices {
      models[position].references = models[position].relationships.filter(\.storesReference).map {
        Reference(
          target: $0.target, fields: $0.referenceFields, relationship: $0.name, isRequired: $0.isRequired)
      }
    }
    for parent in models {
      for relationship in parent.relationships
      where !relationship.storesReference && relationship.kind != .manyToMany {
        guard let child = positions[relationship.target] else { continue }
        let fields = relationship.referenceFields
        let isKnown = models[child].references.contains { $0.target == parent.name && $0.fields == fields }
        if isKnown { continue }
        let free = models[child].freeFields(of: fields)
        let isRequired = free.allSatisfy { models[child].field(named: $0)?.isRequired == true }
        models[child].references.append(
          Reference(target: parent.name, fields: fields, relationship: nil, isRequired: isRequired))
      }
    }
    return models
  }
}

extension Model {
  /// A relationship's reference fields that are not parts of this model's own key. They are one
  /// register: written together, merged together. Empty if the key fixes the whole reference.
  package func freeReferenceFields(of relationship: Relationship) -> [String] {
    freeFields(of: relationship.referenceFields)
  }

  package func freeReferenceFields(of reference: Reference) -> [String] { freeFields(of: reference.fields) }

  func freeFields(of names: [String]) -> [String] {
    names.filter { name in !keyFields.contains { fields[$0].name == name } }
  }

  /// Free reference fields in groups that are written and merged together: those of a reference,
  /// and of all that share a field with it. Groups and fields are in the order of `fields`.
  package var referenceRegisters: [[String]] {
    var groups: [Set<String>] = []
    for reference in references {
      var merged = Set(freeReferenceFields(of: reference))
      if merged.isEmpty { continue }
      for group in groups where !group.isDisjoint(with: merged) { merged.formUnion(group) }
      groups.removeAll { !$0.isDisjoint(with: merged) }
      groups.append(merged)
    }
    let order = groups.map { group in fields.indices.filter { group.contains(fields[$0].name) } }
    return order.sorted { $0.lexicographicallyPrecedes($1) }.map { $0.map { fields[$0].name } }
  }

  /// Whether a field holds a key part of this record or of another. Its values are then written
  /// like key parts: an AWSDateTime in UTC.
  package func holdsKeyPart(_ name: String) -> Bool {
    keyFields.contains { fields[$0].name == name } || references.contains { $0.fields.contains(name) }
  }
}
