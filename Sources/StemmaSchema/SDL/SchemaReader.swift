/// Builds a schema from a syntax tree. See `SDL` for the phases.
struct SchemaReader {
  let document: Document
  private(set) var errors: [Diagnostic] = []
  private(set) var warnings: [Diagnostic] = []

  var models: [ModelDraft] = []
  /// Index into `models`.
  var modelNames: [String: Int] = [:]
  var enums: [String: EnumType] = [:]
  /// Names of the embedded types; their fields are read after all names are known.
  var embeddedNames: Set<String> = []
  var embeddedTypes: [EmbeddedType] = []

  init(_ document: Document) { self.document = document }

  mutating func error(_ place: Place, _ message: String, _ advice: String? = nil) {
    errors.append(Diagnostic(place, message, advice))
  }

  mutating func warn(_ place: Place, _ message: String, _ advice: String? = nil) {
    warnings.append(Diagnostic(place, message, advice))
  }

  /// The schema; invalid if `errors` is not empty afterwards.
  mutating func read() -> Schema {
    readTypeNames()
    readEmbeddedTypes()
    for index in models.indices { readFields(ofModel: index) }
    for index in models.indices { readKey(ofModel: index) }
    for index in models.indices {
      readPartition(ofModel: index)
      readConflictPolicy(ofModel: index)
      readTimestamps(ofModel: index)
      readIndexes(ofModel: index)
    }
    readRelationships()
    checkNames()
    return Schema(
      models: models.map(\.model), enums: document.enums.compactMap { enums[$0.name.text] },
      embeddedTypes: embeddedTypes)
  }
}

/// A model that is being read.
struct ModelDraft {
  var name: String
  var place: Place
  var syntax: [FieldSyntax] = []
  /// The directives that affect data.
  var directives: [DirectiveSyntax] = []
  var storedName: String
  var tableName: String
  var tablePlace: Place
  var fields: [FieldDraft] = []
  var relationships: [RelationshipDraft] = []
  var keyFields: [Int] = []
  var partitionDepth = 0
  var indexes: [Index] = []
  var conflictPolicy = ConflictPolicy.automerge
  var deletePolicy = DeletePolicy.byVersion
  var createdAt: String?
  var updatedAt: String?

  init(name: String, place: Place) {
    self.name = name
    self.place = place
    storedName = name
    tableName = Naming.tableName(ofModel: name)
    tablePlace = place
  }

  func directive(_ name: String) -> DirectiveSyntax? { directives.first { $0.name.text == name } }
  func fieldIndex(_ name: String) -> Int? { fields.firstIndex { $0.field.name == name } }
  func field(_ name: String) -> Field? { fieldIndex(name).map { fields[$0].field } }
  func relationship(_ name: String) -> RelationshipDraft? { relationships.first { $0.name == name } }

  /// The key's parts in order; empty while the key is unknown or invalid.
  var key: [Field] { keyFields.map { fields[$0].field } }
  func isKeyPart(_ name: String) -> Bool { keyFields.contains { fields[$0].field.name == name } }

  var model: Model {
    Model(
      name: name, storedName: storedName, tableName: tableName, fields: fields.map(\.field),
      keyFields: keyFields, partitionDepth: partitionDepth,
      relationships: relationships.map(\.relationship), indexes: indexes, conflictPolicy: conflictPolicy,
      deletePolicy: deletePolicy, createdAt: createdAt, updatedAt: updatedAt)
  }
}

struct FieldDraft {
  var field: Field
  var place: Place
  var directives: [DirectiveSyntax] = []
}

/// A relationship that is being read.
struct RelationshipDraft {
  var name: String
  var place: Place
  var kind: Relationship.Kind
  var directive: DirectiveSyntax
  var target: String
  /// Whether the field itself has the required marker.
  var isMarkedRequired: Bool
  var storesReference = false
  /// Empty while unknown.
  var referenceFields: [String] = []
  var isRequired = false
  var deleteRule = Relationship.DeleteRule.standard
  var joinModel: String?
  /// An error was reported, which suppresses others.
  var isBroken = false

  var relationship: Relationship {
    Relationship(
      name: name, kind: kind, target: target, storesReference: storesReference,
      referenceFields: referenceFields, isRequired: isRequired, deleteRule: deleteRule, joinModel: joinModel)
  }
}
