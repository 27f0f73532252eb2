/// Everything that a node knows about the shape of its data: models, enums and embedded types.
///
/// A schema is a plain value. It is read from GraphQL SDL, checked once while reading, and from then on
/// complete: implied `id` fields, implicit reference fields and the join models of `@manyToMany` stand in
/// it like declared ones. All names are GraphQL names, `[_A-Za-z][_0-9A-Za-z]*`, hence ASCII, so comparing
/// them as Swift strings compares bytes.
package struct Schema: Sendable, Equatable {
  /// In order of declaration; join models that `@manyToMany` implies follow at the end.
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
  /// The name under which events of this model stand in the log; differs from `name` after a rename
  /// with `@mapsTo`.
  package var storedName: String
  /// The table of the projection.
  package var tableName: String
  /// All stored fields, reference fields included, in order of declaration. Key parts are among them.
  package let fields: [Field]
  /// Indices into `fields`, in the order of the key's definition.
  package var keyFields: [Int]
  /// How many leading key parts make up the partition's name; 0 when all records of the model share the
  /// partition that is named after the model.
  package var partitionDepth: Int
  package var relationships: [Relationship]
  /// Every reference that this model stores, whichever side declares it: those of its own relationships,
  /// then those that only the other model's `hasMany` or `hasOne` names. A model that stands in a schema has
  /// them; before that the list is empty.
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

  /// The key part that is minted when it is absent: a field named `id` of type ID, String or Int.
  package var autoPopulatedField: Int? { keyFields.first { fields[$0].isMinted } }

  /// Whether two or more relationships' reference fields make up the whole key and no other field is
  /// required. Linking makes a row of such a model, unlinking deletes it.
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
  /// The name under which assignments stand in the log; differs from `name` after a rename.
  package var storedName: String
  package var type: FieldType
  package var isRequired: Bool
  /// The literal of `@default`, as JSON text.
  package var defaultValue: String?

  /// Whether a node makes up the value of such a part of a key where it is absent.
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
  /// `[T!]`: whether null is refused inside of the list.
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

/// A non-model type; its values are stored inside of the records that have them.
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
  /// The whole record is one register.
  case optimistic = "OPTIMISTIC"
}

/// What is shown when a record was deleted and changed concurrently.
package enum DeletePolicy: String, Sendable, CaseIterable {
  case byVersion = "BY_VERSION"
  case deleteWins = "DELETE_WINS"
  case updateWins = "UPDATE_WINS"
}
