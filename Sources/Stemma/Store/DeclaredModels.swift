import StemmaNode
import StemmaSchema

/// The models that a program passes to open a store, and those that their relationships lead to.
struct DeclaredModels: Sendable {
  let tables: [any Table.Type]

  /// - Throws: `models` if two types have one name.
  init(_ named: [any Table.Type]) throws(StoreError) {
    var tables: [any Table.Type] = []
    var open = named[...]
    while let table = open.popFirst() {
      if let known = tables.first(where: { $0.modelName == table.modelName }) {
        guard ObjectIdentifier(known) == ObjectIdentifier(table) else {
          throw .models("two types declare the model \(table.modelName); rename one of them")
        }
        continue
      }
      tables.append(table)
      for relationship in table.description.relationships {
        open.append(relationship.target())
        if let join = relationship.join { open.append(join()) }
      }
    }
    self.tables = tables
  }

  /// A schema of these models alone.
  ///
  /// - Throws: `models` with all errors, by model and property.
  func schema() throws(StoreError) -> Schema {
    for table in tables { try table.description.checkJoins() }
    var lines: [ModelDescription.Line] = []
    var written: Set<String> = []
    for table in tables {
      for enumeration in table.description.enumerations where written.insert(enumeration.name).inserted {
        let subject = "\(enumeration.name), an enum of \(table.modelName)"
        let cases = enumeration.cases.map { "  \($0)" }
        lines += (["enum \(enumeration.name) {"] + cases + ["}"]).map {
          ModelDescription.Line(text: $0, subject: subject)
        }
      }
    }
    lines += tables.flatMap { $0.description.lines }
    let text = lines.map(\.text).joined(separator: "\n")
    do throws(SchemaError) { return try SDL.read(text).schema } catch {
      throw .models("the declared models are wrong: \(Self.words(error, lines))")
    }
  }

  /// The errors by model or property: the program has no SDL text for line numbers.
  private static func words(_ error: SchemaError, _ lines: [ModelDescription.Line]) -> String {
    let complaints = error.diagnostics.map { complaint -> String in
      let index = complaint.line - 1
      let subject = lines.indices.contains(index) ? lines[index].subject : "a model"
      return "\(subject): \(complaint.message)" + (complaint.advice.map { "; \($0)" } ?? "")
    }
    return complaints.joined(separator: "\n")
  }

  /// The node's schema with these models in it.
  ///
  /// Undeclared parts stay: models, optional fields, enum cases, indexes, relationships. So
  /// programs of different versions can share a node.
  func extending(_ known: Schema) throws(StoreError) -> Schema {
    let own = try schema()
    var models: [Model] = []
    for model in known.models {
      models.append(
        try own.model(named: model.name).map { (own) throws(StoreError) in try model.extended(by: own) }
          ?? model)
    }
    models += own.models.filter { known.model(named: $0.name) == nil }
    var enums = known.enums
    for type in own.enums {
      guard let index = enums.firstIndex(where: { $0.name == type.name }) else {
        enums.append(type)
        continue
      }
      enums[index].cases += type.cases.filter { !enums[index].cases.contains($0) }
    }
    // The printed form implies join models without a declaration; an extended one needs its own.
    let implied = Set(models.flatMap { $0.relationships.compactMap(\.joinModel) })
    let changed = implied.filter { name in
      models.first { $0.name == name }?.fields != known.model(named: name)?.fields
    }
    for index in models.indices {
      models[index].relationships.removeAll { $0.joinModel.map(changed.contains) ?? false }
    }
    return Schema(models: models, enums: enums, embeddedTypes: known.embeddedTypes)
  }

  /// - Throws: `models` if a declared model or field is missing in the node's schema.
  func check(_ known: Schema) throws(StoreError) {
    for own in try schema().models {
      guard let model = known.model(named: own.name) else {
        throw .models("the node has no model \(own.name), and the store was opened for reading only")
      }
      for field in own.fields where model.field(named: field.name) == nil {
        throw .models(
          "the node has no field \(own.name).\(field.name), and the store was opened for reading only")
      }
    }
  }
}

extension Model {
  /// The node's model with a program's additions, which are checked when the schema is applied.
  fileprivate func extended(by own: Model) throws(StoreError) -> Model {
    var fields: [Field] = []
    for (index, field) in self.fields.enumerated() {
      if let declared = own.fields.first(where: { $0.storedName == field.storedName || $0.name == field.name }
      ) {
        fields.append(field.extended(by: declared))
        continue
      }
      // A different key is a different model, which is checked when the schema is applied.
      if isKeyField(index) { continue }
      let isGiven =
        !field.isRequired || field.defaultValue != nil || field.name == createdAt || field.name == updatedAt
      guard isGiven else {
        throw .models(
          "\(name).\(field.name) is required in the node's schema, and the type \(own.name) has no property for it; add one"
        )
      }
      fields.append(field)
    }
    fields += own.fields.filter { declared in !fields.contains { $0.name == declared.name } }
    let key = own.keyFields.map { own.fields[$0].name }
    var indexes = self.indexes.filter { index in !own.indexes.contains { $0.name == index.name } }
    indexes += own.indexes
    var relationships = self.relationships.map { known in own.relationship(named: known.name) ?? known }
    relationships += own.relationships.filter { relationship(named: $0.name) == nil }
    return Model(
      name: own.name, storedName: storedName, tableName: own.tableName, fields: fields,
      keyFields: key.compactMap { name in fields.firstIndex { $0.name == name } },
      partitionDepth: own.partitionDepth, relationships: relationships, indexes: indexes,
      // The default policies of a program leave the node's policies unchanged.
      conflictPolicy: own.conflictPolicy == .automerge ? conflictPolicy : own.conflictPolicy,
      deletePolicy: own.deletePolicy == .byVersion ? deletePolicy : own.deletePolicy,
      createdAt: own.createdAt ?? createdAt, updatedAt: own.updatedAt ?? updatedAt)
  }
}

extension Field {
  fileprivate func extended(by declared: Field) -> Field {
    var field = declared
    field.storedName = storedName
    field.defaultValue = declared.defaultValue ?? defaultValue
    if declared.type.holdsAll(of: type) { field.type = type }
    return field
  }
}

extension FieldType {
  /// Whether the Swift type holds all values of the node's stricter type, as `String` for AWSEmail.
  fileprivate func holdsAll(of strict: FieldType) -> Bool {
    // `Codable` values and lists of them are JSON here; the schema can be more specific.
    if !isList, base == .scalar(.awsJSON), case .embedded = strict.base { return true }
    guard isList == strict.isList, elementsRequired == strict.elementsRequired || !isList else {
      return false
    }
    switch (base, strict.base) {
    case (.scalar(.string), .enumeration): return true
    case (.scalar(.string), .scalar(let scalar)):
      return ![.int, .float, .boolean, .awsTimestamp, .awsJSON].contains(scalar)
    case (.scalar(.int), .scalar(.awsTimestamp)): return true
    default: return false
    }
  }
}
