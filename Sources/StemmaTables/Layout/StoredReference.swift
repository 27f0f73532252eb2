import StemmaEvents
import StemmaSchema

/// One stored reference: fields of a child's table that hold the key of a parent.
struct StoredReference {
  let inverse: InverseReference
  let parent: Model
  /// The `hasOne` that allows one child per parent, if there is one, by the declaring model's name
  /// for it. Then two children of one parent are a conflict.
  let hasOne: String?

  var child: Model { inverse.child }
  /// One field per part of the parent's key, in key order.
  var fields: [String] { inverse.relationship.referenceFields }

  /// Each reference of the schema once, by parent, in schema order.
  static func all(of schema: Schema) -> [StoredReference] {
    schema.models.flatMap { parent in
      schema.inverseReferences(to: parent).map { inverse in
        StoredReference(inverse: inverse, parent: parent, hasOne: hasOne(inverse, parent))
      }
    }
  }

  /// A `hasOne` is one to one, whichever side stores it. If the child stores it, two children may
  /// refer to one parent. If the declaring model stores it, two of its records may share one
  /// target. A `belongsTo` with its own reference fields is another relationship.
  private static func hasOne(_ inverse: InverseReference, _ parent: Model) -> String? {
    let (relationship, child) = (inverse.relationship, inverse.child)
    let declared = parent.relationships.first {
      !$0.storesReference && $0.kind != .manyToMany && $0.target == child.name
        && $0.referenceFields == relationship.referenceFields
    }
    if let declared { return declared.kind == .hasOne ? declared.name : nil }
    return relationship.kind == .hasOne ? relationship.name : nil
  }
}
