import StemmaSchema

/// What a Swift type says of its model. One value per type, made when it is first asked for.
public struct ModelDescription: Sendable {
  /// A stored column.
  public struct Column: Sendable {
    package var name: String
    /// The name under which older events know it.
    package var storedName: String?
    package var type: ColumnType
    /// JSON text.
    package var defaultValue: String?

    public init(
      _ name: String, _ type: ColumnType, storedName: String? = nil, defaultValue: String? = nil
    ) {
      self.name = name
      self.type = type
      self.storedName = storedName
      self.defaultValue = defaultValue
    }
  }

  /// A relationship as one of its sides declares it.
  public struct Relationship: Sendable {
    package var name: String
    package var kind: StemmaSchema.Relationship.Kind
    package var fields: [String]
    package var isRequired: Bool
    package var deleteRule = DeleteRule.standard
    /// The model on the other side. Asked late: two models name each other.
    package var target: @Sendable () -> any Table.Type
    /// The model between the two sides of a many-to-many relationship.
    package var join: (@Sendable () -> any Table.Type)?
    /// Its relationship to this side, where it is named.
    package var joinRelationship: String?

    public static func belongsTo<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], isRequired: Bool
    ) -> Relationship {
      Relationship(name: name, kind: .belongsTo, fields: fields, isRequired: isRequired) { Target.self }
    }

    public static func hasMany<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
    ) -> Relationship {
      Relationship(name: name, kind: .hasMany, fields: fields, isRequired: false, deleteRule: rule) {
        Target.self
      }
    }

    public static func hasOne<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
    ) -> Relationship {
      Relationship(name: name, kind: .hasOne, fields: fields, isRequired: false, deleteRule: rule) {
        Target.self
      }
    }

    public static func manyToMany<Target: Table, Join: Table>(
      _ name: String, _ target: Target.Type, through join: Join.Type, by relationship: String? = nil
    ) -> Relationship {
      Relationship(
        name: name, kind: .manyToMany, fields: [], isRequired: false, target: { Target.self },
        join: { Join.self }, joinRelationship: relationship)
    }
  }

  package let name: String
  package let tableName: String
  /// Key parts in the order of the key, then the others in order of declaration.
  package let columns: [Column]
  package let keyCount: Int
  package let relationships: [Relationship]

  /// All columns and `_state`, as a statement selects them for a reader that begins at its first column.
  package let selectedColumns: String
  /// The columns of the key, as statements name them.
  package let keyColumns: [String]
  /// `SELECT` of all columns and `_state`, up to the table's name.
  package let selection: String
  package let selectByKey: String

  public init(
    _ name: String, table: String? = nil, key: [Column], columns: [Column] = [],
    relationships: [Relationship] = []
  ) {
    self.name = name
    tableName = table ?? Naming.tableName(ofModel: name)
    self.columns = key + columns
    keyCount = key.count
    self.relationships = relationships
    let table = StatementText.quoted(tableName)
    selectedColumns = (self.columns.map(\.name) + ["_state"])
      .map { "\(table).\(StatementText.quoted($0))" }.joined(separator: ", ")
    keyColumns = key.map { "\(table).\(StatementText.quoted($0.name))" }
    selection = "SELECT \(selectedColumns) FROM \(table)"
    selectByKey = "\(selection) WHERE \(keyColumns.map { "\($0) = ?" }.joined(separator: " AND "))"
  }

  package var key: ArraySlice<Column> { columns.prefix(keyCount) }

  package func relationship(named name: String) -> Relationship? { relationships.first { $0.name == name } }
}

extension ModelDescription {
  /// The model in the canonical form of schemas, which checks it like any other.
  package var sdl: String {
    var text = "type \(name) @model"
    if tableName != Naming.tableName(ofModel: name) { text += " @table(name: \"\(tableName)\")" }
    text += " {\n"
    for (index, column) in columns.enumerated() {
      text += "  \(column.name): \(column.type.typeText)"
      if index == 0 {
        let others = key.dropFirst().map { "\"\($0.name)\"" }.joined(separator: ", ")
        text += keyCount > 1 ? " @primaryKey(sortKeyFields: [\(others)])" : " @primaryKey"
      }
      if let value = column.defaultValue { text += " @default(value: \(value))" }
      if let name = column.storedName { text += " @mapsTo(name: \"\(name)\")" }
      text += "\n"
    }
    // What leads through a join model is known by the relationships of that model.
    for relationship in relationships where relationship.kind != .manyToMany {
      let target = relationship.target().modelName
      let isMany = relationship.kind == .hasMany
      let fields = relationship.fields.map { "\"\($0)\"" }.joined(separator: ", ")
      text +=
        "  \(relationship.name): \(isMany ? "[\(target)]" : target)\(relationship.isRequired ? "!" : "")"
      text += " @\(relationship.kind.rawValue)(references: [\(fields)]"
      text += relationship.deleteRule == .restrict ? ", onDelete: RESTRICT)\n" : ")\n"
    }
    return text + "}\n"
  }

  /// The enums that columns list the cases of.
  package var enumerations: [(name: String, cases: [String])] {
    columns.compactMap { column in column.type.enumeration.map { ($0, column.type.cases) } }
  }
}
