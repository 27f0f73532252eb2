import StemmaEvents
import StemmaSchema

/// The description of a model that a Swift type declares. One per type, created on first use.
public final class ModelDescription: Sendable {
  /// A stored column.
  public struct Column: Sendable {
    package let name: String
    /// The property's name.
    package let property: String
    package let type: ColumnType
    /// As SDL spells it.
    package let defaultValue: String?
    /// The value shown for null in rows older than the column; nil: null is shown.
    let valueOfOlderRows: Value?
    /// Rewrites a stored value as the property's type does: a date in another zone becomes UTC. Nil
    /// for a value that the type cannot read.
    package let canonical: @Sendable (Datum) -> Datum?

    /// - Parameters:
    ///   - name: the column's name in the table and the schema.
    ///   - type: how values are stored, the property's own type or the representation of it.
    ///   - property: nil: the column's name.
    ///   - defaultValue: the schema's default. Records older than the column are read with it.
    public init<Content: ColumnValue>(
      _ name: String, _ type: Content.Type, property: String? = nil, defaultValue: Content? = nil
    ) {
      self.name = name
      self.property = property ?? name
      self.type = Content.columnType
      valueOfOlderRows = Content.columnType.isOptional ? nil : defaultValue?.datum.value
      self.defaultValue = defaultValue.map { value in
        if case .string(let text) = value.datum.value { return JSON.string(text).text }
        return "\"\(value.datum.value.json.text)\""
      }
      canonical = { datum in
        do throws(StoreError) { return try Content(datum: datum).datum } catch {
          // A record that is older than the column.
          return datum.isNull ? defaultValue?.datum : nil
        }
      }
    }
  }

  /// An index on columns, identified by their properties.
  public struct Index: Sendable {
    package let fields: [String]
    package let name: String?

    /// - Parameters:
    ///   - fields: the properties, the most significant first.
    ///   - name: nil: made of the columns' names, as `byTitleAndRank`.
    public init(_ fields: [String], name: String? = nil) {
      self.fields = fields
      self.name = name
    }
  }

  /// A relationship as one of its sides declares it.
  public struct Relationship: Sendable {
    package var name: String
    package var kind: StemmaSchema.Relationship.Kind
    /// The properties that make up the reference, in the model that stores it.
    private var properties: [String]
    package var isRequired: Bool
    package var deleteRule = DeleteRule.standard
    /// The model on the other side. A closure, because two models can refer to each other.
    package var target: @Sendable () -> any Table.Type
    /// The model between the two sides of a many-to-many relationship.
    package var join: (@Sendable () -> any Table.Type)?
    /// The join model's relationship to this side, if it is named.
    package var joinRelationship: String?

    /// The reference's columns: of the declaring model for a `belongsTo`, else of the target.
    package fileprivate(set) var fields: [String] {
      get { kind == .belongsTo ? properties : target().description.columnNames(of: properties) }
      set { properties = newValue }
    }

    private init(
      _ name: String, _ kind: StemmaSchema.Relationship.Kind, _ properties: [String],
      isRequired: Bool = false,
      _ rule: DeleteRule = .standard, target: @escaping @Sendable () -> any Table.Type
    ) {
      self.name = name
      self.kind = kind
      self.properties = properties
      self.isRequired = isRequired
      deleteRule = rule
      self.target = target
    }

    /// A reference to one record, stored in the properties `fields`: one for each part of the
    /// target's key, in order. A required one is never null: it can be changed, but not cleared.
    public static func belongsTo<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], isRequired: Bool
    ) -> Relationship {
      Relationship(name, .belongsTo, fields, isRequired: isRequired) { Target.self }
    }

    /// The records whose `fields` refer to this one: a property for each part of this model's key.
    public static func hasMany<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
    ) -> Relationship {
      Relationship(name, .hasMany, fields, rule) { Target.self }
    }

    /// As `hasMany`.
    public static func hasOne<Target: Table>(
      _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
    ) -> Relationship {
      Relationship(name, .hasOne, fields, rule) { Target.self }
    }

    /// Records on the far side of a join model, which belongs to both sides, any number on each.
    /// The join model's `relationship` leads to this side; nil: its first that leads to this model.
    public static func manyToMany<Target: Table, Join: Table>(
      _ name: String, _ target: Target.Type, through join: Join.Type, by relationship: String? = nil
    ) -> Relationship {
      var many = Relationship(name, .manyToMany, []) { Target.self }
      many.join = { Join.self }
      many.joinRelationship = relationship
      return many
    }
  }

  package let name: String
  package let tableName: String
  /// Key parts in the order of the key, then the others in order of declaration.
  package let columns: [Column]
  package let keyCount: Int
  package let relationships: [Relationship]
  package let indexes: [Index]
  package let policy: ConflictPolicy
  package let deletes: DeletePolicy
  /// The key parts that make up the partition; nil: the schema's default rule applies.
  package let partition: [String]?

  /// All columns and `_state`, as selected for a reader that begins at the first column.
  package let selectedColumns: String
  /// The columns of the key, as statements name them.
  package let keyColumns: [String]
  /// `SELECT` of all columns and `_state`, up to the table's name.
  package let selection: String
  package let selectByKey: String

  /// - Parameters:
  ///   - name: the model's name, that of the Swift type.
  ///   - table: the table's name; nil: the model's in lower camel case and plural.
  ///   - policy: how concurrent writes of fields merge.
  ///   - deletes: what a deletion beside other changes shows.
  ///   - partition: the key properties that name the partition; `[]`: one partition of all records;
  ///     nil: the first part of a key of several, unless it is an `id`.
  ///   - indexes: the table's indexes, without the primary key.
  ///   - key: the columns of the primary key, in its order.
  ///   - columns: the others.
  ///   - relationships: to and from other models.
  public init(
    _ name: String, table: String? = nil, policy: ConflictPolicy = .automerge,
    deletes: DeletePolicy = .byVersion, partition: [String]? = nil, indexes: [Index] = [], key: [Column],
    columns: [Column] = [], relationships: [Relationship] = []
  ) {
    self.name = name
    tableName = table ?? Naming.tableName(ofModel: name)
    self.columns = key + columns
    keyCount = key.count
    self.policy = policy
    self.deletes = deletes
    let all = self.columns
    self.partition = partition.map { Self.names(of: $0, in: all) }
    self.indexes = indexes.map { Index(Self.names(of: $0.fields, in: all), name: $0.name) }
    self.relationships = relationships.map { relationship in
      guard relationship.kind == .belongsTo else { return relationship }
      var resolved = relationship
      resolved.fields = Self.names(of: relationship.fields, in: all)
      return resolved
    }
    let table = StatementText.quoted(tableName)
    selectedColumns = (self.columns.map(\.name) + ["_state"])
      .map { "\(table).\(StatementText.quoted($0))" }.joined(separator: ", ")
    keyColumns = key.map { "\(table).\(StatementText.quoted($0.name))" }
    selection = "SELECT \(selectedColumns) FROM \(table)"
    selectByKey = "\(selection) WHERE \(keyColumns.map { "\($0) = ?" }.joined(separator: " AND "))"
  }

  /// The columns that hold properties.
  package func columnNames(of properties: [String]) -> [String] { Self.names(of: properties, in: columns) }

  private static func names(of properties: [String], in columns: [Column]) -> [String] {
    properties.map { property in columns.first { $0.property == property }?.name ?? property }
  }

  package var key: ArraySlice<Column> { columns.prefix(keyCount) }

  package func relationship(named name: String) -> Relationship? { relationships.first { $0.name == name } }
}

extension ModelDescription {
  /// The model in the canonical form of schemas, which checks it like any other.
  package var sdl: String { lines.map { "\($0.text)\n" }.joined() }

  /// A line of the SDL, and its subject: the model, or one of its properties.
  struct Line {
    var text: String
    var subject: String
  }

  var lines: [Line] {
    var lines = [Line(text: head, subject: name)]
    for (index, column) in columns.enumerated() {
      lines.append(Line(text: line(of: column, at: index), subject: "\(name).\(column.property)"))
    }
    // A many-to-many relationship follows from the join model's relationships.
    for relationship in relationships where relationship.kind != .manyToMany {
      lines.append(Line(text: Self.line(of: relationship), subject: "\(name).\(relationship.name)"))
    }
    return lines + [Line(text: "}", subject: name)]
  }

  private var head: String {
    var text = "type \(name) @model"
    if tableName != Naming.tableName(ofModel: name) { text += " @table(name: \"\(tableName)\")" }
    if let partition { text += " @partition(fields: \(Self.list(partition)))" }
    var policies: [String] = []
    if policy != .automerge { policies.append("policy: \(policy.rawValue)") }
    if deletes != .byVersion { policies.append("deletes: \(deletes.rawValue)") }
    if !policies.isEmpty { text += " @conflict(\(policies.joined(separator: ", ")))" }
    return text + " {"
  }

  private func line(of column: Column, at position: Int) -> String {
    var text = "  \(column.name): \(column.type.typeText)"
    if position == 0 {
      let others = Self.list(key.dropFirst().map(\.name))
      text += keyCount > 1 ? " @primaryKey(sortKeyFields: \(others))" : " @primaryKey"
    }
    if let value = column.defaultValue { text += " @default(value: \(value))" }
    for index in indexes where index.fields.first == column.name {
      let others = index.fields.dropFirst()
      let arguments =
        (index.name.map { ["name: \"\($0)\""] } ?? [])
        + (others.isEmpty ? [] : ["sortKeyFields: \(Self.list(others))"])
      text += " @index\(arguments.isEmpty ? "" : "(\(arguments.joined(separator: ", ")))")"
    }
    return text
  }

  private static func line(of relationship: Relationship) -> String {
    let target = relationship.target().modelName
    let isMany = relationship.kind == .hasMany
    return "  \(relationship.name): \(isMany ? "[\(target)]" : target)\(relationship.isRequired ? "!" : "")"
      + " @\(relationship.kind.rawValue)(references: \(Self.list(relationship.fields))"
      + (relationship.deleteRule == .standard ? ")" : ", onDelete: \(relationship.deleteRule.word))")
  }

  private static func list(_ names: some Collection<String>) -> String {
    "[\(names.map { "\"\($0)\"" }.joined(separator: ", "))]"
  }

  /// The enums that columns list the cases of.
  package var enumerations: [(name: String, cases: [String])] {
    columns.compactMap { column in column.type.enumeration.map { ($0, column.type.cases) } }
  }
}
