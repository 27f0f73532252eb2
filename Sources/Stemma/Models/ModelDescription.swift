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
    package var isRestricted = false
    /// The model on the other side. Asked late: two models name each other.
    package var target: @Sendable () -> any Table.Type

    public static func belongsTo<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], isRequired: Bool
    ) -> Relationship {
      Relationship(name: name, kind: .belongsTo, fields: fields, isRequired: isRequired) { Target.self }
    }

    public static func hasMany<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String]
    ) -> Relationship {
      Relationship(name: name, kind: .hasMany, fields: fields, isRequired: false) { Target.self }
    }

    public static func hasOne<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String]
    ) -> Relationship {
      Relationship(name: name, kind: .hasOne, fields: fields, isRequired: false) { Target.self }
    }
  }

  package let name: String
  package let tableName: String
  /// Key parts in the order of the key, then the others in order of declaration.
  package let columns: [Column]
  package let keyCount: Int
  package let relationships: [Relationship]

  /// `SELECT` of all columns and `_state`, up to the table's name, for a reader that begins at its first column.
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
    let table = "\"\(tableName)\""
    let names = (self.columns.map(\.name) + ["_state"]).map { "\(table).\"\($0)\"" }
    selection = "SELECT \(names.joined(separator: ", ")) FROM \(table)"
    let matches = key.map { "\(table).\"\($0.name)\" = ?" }.joined(separator: " AND ")
    selectByKey = "\(selection) WHERE \(matches)"
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
    for relationship in relationships {
      let target = relationship.target().modelName
      let isMany = relationship.kind == .hasMany
      let fields = relationship.fields.map { "\"\($0)\"" }.joined(separator: ", ")
      text +=
        "  \(relationship.name): \(isMany ? "[\(target)]" : target)\(relationship.isRequired ? "!" : "")"
      text += " @\(relationship.kind.rawValue)(references: [\(fields)]"
      text += relationship.isRestricted ? ", onDelete: RESTRICT)\n" : ")\n"
    }
    return text + "}\n"
  }

  /// The enums that columns list the cases of.
  package var enumerations: [(name: String, cases: [String])] {
    columns.compactMap { column in column.type.enumeration.map { ($0, column.type.cases) } }
  }
}
