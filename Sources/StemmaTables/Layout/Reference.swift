import StemmaEvents
import StemmaSchema

/// One stored reference: fields of a child's table that hold the key of a parent.
struct Reference {
  let inverse: InverseReference
  let parent: Model
  /// The parent's `hasOne` that shows it, if there is one: then two children of one parent are a conflict.
  let hasOne: String?

  var child: Model { inverse.child }
  /// One per part of the parent's key, in its order.
  var fields: [String] { inverse.relationship.referenceFields }

  /// Each reference of the schema once: by parent, in the order of the schema.
  static func all(of schema: Schema) -> [Reference] {
    schema.models.flatMap { parent in
      schema.inverseReferences(to: parent).map { inverse in
        let hasOne = parent.relationships.first {
          $0.kind == .hasOne && !$0.storesReference && $0.target == inverse.child.name
            && $0.referenceFields == inverse.relationship.referenceFields
        }
        return Reference(inverse: inverse, parent: parent, hasOne: hasOne?.name)
      }
    }
  }
}
