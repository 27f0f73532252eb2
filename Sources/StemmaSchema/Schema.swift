/// The shape of a node's data: models, enums and embedded types.
///
/// A schema is a plain value. It is read from GraphQL SDL, checked once while reading, and then
/// complete. It contains implied `id` fields, implicit reference fields and the join models of
/// `@manyToMany` like declared ones. All names are ASCII, `[_A-Za-z][_0-9A-Za-z]*`, so comparing
/// Swift strings compares bytes.
package struct Schema: Sendable, Equatable {
  /// In order of declaration; join models that `@manyToMany` implies come last.
  package let models: [Model]
  package var enums: [EnumType]
  package var embeddedTypes: [EmbeddedType]

  private var modelIndex: [String: Int]

  package init(models: [Model] = [], enums: [EnumType] = [], embeddedTypes: [EmbeddedType] = []) {
    self.models = Self.withReferences(models)
    self.enums = enums
    self.embeddedTypes = embeddedTypes
    modelIndex = Dictionary(
      models.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package func model(named name: String) -> Model? {
    modelIndex[name].map { models[$0] }
  }

  package func enumType(named name: String) -> EnumType? { enums.first { $0.name == name } }
  package func embeddedType(named name: String) -> EmbeddedType? { embeddedTypes.first { $0.name == name } }
}

/// A record type.
package struct Model: Sendable, Equatable {
  package var name: String
  /// The model's name in events of the log; differs from `name` after a rename with `@mapsTo`.
  package var storedName: String
  /// The table of the projection.
  package var tableName: String
  /// All stored fields, key parts and reference fields included, in order of declaration.
  package let fields: [Field]
  /// Indices into `fields`, in the order of the key's definition.
  package var keyFields: [Int]
  /// How many leading key parts make up the partition's name. At 0, all records of the model share
  /// the partition that is named after the model.
  package var partitionDepth: Int
  package var relationships: [Relationship]
  /// Every reference that this model stores, whichever side declares it: those of its own
  /// relationships, then those that only the other model's `hasMany` or `hasOne` names. The list is
  /// empty until a schema contains the model.
  package internal(set) var references: [Reference] = []
  package var indexes: [Index]
  package var conflictPolicy: ConflictPolicy
  package var deletePolicy: DeletePolicy
  /// Names of the declared fields that the node maintains, if the type declares them.
  package var createdAt: String?
  package var updatedAt: String?

  private var fieldIndex: [String: Int]

  package init(
    name: String, storedName: String? = nil, tableName: String, fields: [Field], keyFields: [Int],
    partitionDepth: Int, relationships: [Relationship] = [], indexes: [Index] = [],
    conflictPolicy: ConflictPolicy = .automerge, deletePolicy: DeletePolicy = .byVersion,
    createdAt: String? = nil, updatedAt: String? = nil
  ) {
    self.name = name
    self.storedName = storedName ?? name
    self.tableName = tableName
    self.fields = fields
    self.keyFields = keyFields
    self.partitionDepth = partitionDepth
    self.relationships = relationships
    self.indexes = indexes
    self.conflictPolicy = conflictPolicy
    self.deletePolicy = deletePolicy
    self.createdAt = createdAt
    self.updatedAt = updatedAt
    fieldIndex = Dictionary(
      fields.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The position of a field in `fields`, by its declared name.
  package func index(ofField name: String) -> Int? { fieldIndex[name] }
  package func field(named name: String) -> Field? { fieldIndex[name].map { fields[$0] } }
  package func relationship(named name: String) -> Relationship? { relationships.first { $0.name == name } }
  package func isKeyField(_ index: Int) -> Bool { keyFields.contains(index) }

  /// The key part that is minted if it is absent: a field named `id` of type ID, String or Int.
  package var autoPopulatedField: Int? { keyFields.first { fields[$0].isMinted } }

  /// Whether the reference fields of two or more relationships make up the whole key, and no other
  /// field is required. Linking creates a row of such a model, unlinking deletes it.
  package var isJoinModel: Bool {
    let key = Set(keyFields.map { fields[$0].name })
    let inside = relationships.filter {
      $0.storesReference && $0.kind == .belongsTo && key.isSuperset(of: $0.referenceFields)
    }
    return inside.count >= 2 && key == Set(inside.flatMap(\.referenceFields))
      && fields.allSatisfy {
        !$0.isRequired || key.contains($0.name) || $0.defaultValue != nil || $0.name == createdAt
          || $0.name == updatedAt
      }
  }
}

/// One stored field of a model, or of an embedded type.
package struct Field: Sendable, Equatable {
  package var name: String
  /// The field's name in assignments of the log; differs from `name` after a rename.
  package var storedName: String
  package var type: FieldType
  package var isRequired: Bool
  /// The literal of `@default`, as JSON text.
  package var defaultValue: String?

  /// Whether a node generates the value of such a key part if it is absent.
  package var isMinted: Bool { name == "id" && [.id, .string, .int].contains(type.scalar) }

  package init(
    name: String, storedName: String? = nil, type: FieldType, isRequired: Bool, defaultValue: String? = nil
  ) {
    self.name = name
    self.storedName = storedName ?? name
    self.type = type
    self.isRequired = isRequired
    self.defaultValue = defaultValue
  }
}

/// The type of a field, without its own required marker.
package struct FieldType: Sendable, Equatable {
  package enum Base: Sendable, Equatable {
    case scalar(Scalar)
    case enumeration(String)
    case embedded(String)
  }

  package var base: Base
  package var isList: Bool
  /// `[T!]`: whether the list refuses null.
  package var elementsRequired: Bool

  package init(_ base: Base, isList: Bool = false, elementsRequired: Bool = false) {
    self.base = base
    self.isList = isList
    self.elementsRequired = elementsRequired
  }

  /// The scalar, if the field is one single scalar.
  package var scalar: Scalar? {
    if !isList, case .scalar(let scalar) = base { scalar } else { nil }
  }
}

package enum Scalar: String, Sendable, CaseIterable {
  case id = "ID"
  case string = "String"
  case int = "Int"
  case float = "Float"
  case boolean = "Boolean"
  case awsDate = "AWSDate"
  case awsTime = "AWSTime"
  case awsDateTime = "AWSDateTime"
  case awsTimestamp = "AWSTimestamp"
  case awsEmail = "AWSEmail"
  case awsJSON = "AWSJSON"
  case awsPhone = "AWSPhone"
  case awsURL = "AWSURL"
  case awsIPAddress = "AWSIPAddress"
}

package struct EnumType: Sendable, Equatable {
  package var name: String
  package var cases: [String]

  package init(name: String, cases: [String]) {
    self.name = name
    self.cases = cases
  }
}

/// A non-model type; its values are stored inside of records.
package struct EmbeddedType: Sendable, Equatable {
  package var name: String
  package var fields: [Field]

  package init(name: String, fields: [Field]) {
    self.name = name
    self.fields = fields
  }
}

/// A secondary index: the indexed field, then the sort key fields.
package struct Index: Sendable, Equatable {
  package var name: String
  package var fields: [String]

  package init(name: String, fields: [String]) {
    self.name = name
    self.fields = fields
  }
}

/// How concurrent writes of a record's fields are merged.
package enum ConflictPolicy: String, Sendable, CaseIterable {
  /// Per field; the highest version is shown.
  case automerge = "AUTOMERGE"
  /// Per field; the latest timestamp is shown.
  case latest = "LATEST"
  /// Per record, as a whole.
  case optimistic = "OPTIMISTIC"
}

/// The result for a record that was deleted and changed concurrently.
package enum DeletePolicy: String, Sendable, CaseIterable {
  case byVersion = "BY_VERSION"
  case deleteWins = "DELETE_WINS"
  case updateWins = "UPDATE_WINS"
}
