/// A reference to a model, seen from the model that it leads to.
package struct InverseReference: Sendable, Equatable {
  /// The model that stores the reference.
  package var child: Model
  /// The child's declaration, or one derived from the parent's.
  package var relationship: Relationship
  /// Whether the child cannot be without it.
  package var isRequired: Bool
  package var rule: Relationship.DeleteRule
}

extension Schema {
  /// All references that lead to records of `model`, each once, in order of declaration.
  package func inverseReferences(to model: Model) -> [InverseReference] {
    var found: [InverseReference] = []
    for child in models {
      for relationship in child.relationships
      where relationship.storesReference && relationship.target == model.name {
        found.append(inverse(child, relationship, of: model))
      }
    }
    // A hasMany or hasOne without a belongsTo on the other side.
    for declared in model.relationships where !declared.storesReference && declared.kind != .manyToMany {
      guard let child = self.model(named: declared.target),
        !found.contains(where: {
          $0.child.name == child.name && $0.relationship.referenceFields == declared.referenceFields
        })
      else { continue }
      let relationship = Relationship(
        name: declared.name, kind: .belongsTo, target: model.name, storesReference: true,
        referenceFields: declared.referenceFields)
      found.append(inverse(child, relationship, of: model))
    }
    return found
  }

  private func inverse(_ child: Model, _ relationship: Relationship, of model: Model) -> InverseReference {
    let free = child.freeReferenceFields(of: relationship)
    let facing = model.relationships.first {
      !$0.storesReference && $0.target == child.name && $0.referenceFields == relationship.referenceFields
    }
    return InverseReference(
      child: child, relationship: relationship,
      isRequired: relationship.isRequired || free.isEmpty
        || free.contains { child.field(named: $0)?.isRequired ?? false },
      rule: facing?.deleteRule ?? .standard)
  }
}
