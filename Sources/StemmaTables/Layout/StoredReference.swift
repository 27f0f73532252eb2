import StemmaEvents
import StemmaSchema

/// One stored reference: fields of a child's table that hold the key of a parent.
struct StoredReference {
  let inverse: InverseReference
  let parent: Model
  /// The relationship that allows one child a parent, as the parent names it, if there is one: then two children of
  /// one parent are a conflict.
  let hasOne: String?

  var child: Model { inverse.child }
  /// One per part of the parent's key, in its order.
  var fields: [String] { inverse.relationship.referenceFields }

  /// Each reference of the schema once: by parent, in the order of the schema.
  static func all(of schema: Schema) -> [StoredReference] {
    schema.models.flatMap { parent in
      schema.inverseReferences(to: parent).map { inverse in
        StoredReference(inverse: inverse, parent: parent, hasOne: hasOne(inverse, parent))
      }
    }
  }

  /// A `hasOne` is one to one, whichever side stores it. Gen 2 stores it in the child, where two children may come
  /// together. Gen 1 stores it in the model that declares it: two of these may then share one target, and where
  /// the target has a `belongsTo` of its own, two targets may belong to one of these.
  private static func hasOne(_ inverse: InverseReference, _ parent: Model) -> String? {
    let (relationship, child) = (inverse.relationship, inverse.child)
    let declared = parent.relationships.first {
      !$0.storesReference && $0.kind != .manyToMany && $0.target == child.name
        && $0.referenceFields == relationship.referenceFields
    }
    if let declared { return declared.kind == .hasOne ? declared.name : nil }
    switch relationship.kind {
    case .hasOne:
      return only(parent.relationships.filter { $0.kind == .belongsTo && $0.target == child.name })
        ?? relationship.name
    case .belongsTo:
      // With several it is not said which of them faces the `hasOne`.
      guard only(child.relationships.filter { $0.kind == .belongsTo && $0.target == parent.name }) != nil
      else { return nil }
      return only(
        parent.relationships.filter { $0.kind == .hasOne && $0.storesReference && $0.target == child.name })
    case .hasMany, .manyToMany: return nil
    }
  }

  private static func only(_ relationships: [Relationship]) -> String? {
    relationships.count == 1 ? relationships[0].name : nil
  }
}
