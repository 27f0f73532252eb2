import StemmaEvents
import StemmaSchema

/// How the columns of a row become a mutation. A row is an upsert, as a line of JSON without `op` is; where the
/// auto-populated part of the key is absent it is a create.
struct RowShape {
  let schema: Schema
  let model: Model
  /// In the order of the columns.
  let fields: [Field]
  private let isKey: [Bool]

  /// - Parameter finds: the field that a column stands for.
  init(
    _ columns: [String], _ model: Model, _ schema: Schema, finds: (String) -> Field?
  ) throws(MutationError) {
    self.schema = schema
    self.model = model
    var fields: [Field] = []
    for column in columns {
      guard let field = finds(column) else {
        throw .unknownField(model: model.name, field: column, known: model.fields.map(\.name))
      }
      guard !fields.contains(where: { $0.name == field.name }) else {
        throw .wrongShape("the column `\(column)` stands there twice")
      }
      fields.append(field)
    }
    let key = model.keyFields.map { model.fields[$0].name }
    let minted = model.autoPopulatedField.map { model.fields[$0].name }
    let missing = key.filter { part in part != minted && !fields.contains { $0.name == part } }
    guard missing.isEmpty else {
      throw .wrongShape(
        "the key of \(model.name) has no column: \(missing.joined(separator: ", ")) is missing")
    }
    self.fields = fields
    isKey = fields.map { key.contains($0.name) }
  }

  /// The value of an empty cell: null, or the empty text where null cannot be.
  func empty(_ column: Int) -> JSON {
    let field = fields[column]
    let isText = !field.type.isList && field.type.scalar == .string
    return field.isRequired && isText && field.defaultValue == nil ? .string("") : .null
  }

  /// Null for each field without a column, where the field can be null.
  var clearing: [(name: String, value: JSON)] {
    let key = model.keyFields.map { model.fields[$0].name }
    return model.fields.filter { field in
      !key.contains(field.name) && !isFilled(field) && !fields.contains { $0.name == field.name }
    }.map { ($0.name, .null) }
  }

  func mutation(_ values: [JSON]) -> Mutation {
    var key: [(name: String, value: JSON)] = []
    var rest: [(name: String, value: JSON)] = []
    let minted = model.autoPopulatedField.map { model.fields[$0].name }
    for (column, value) in values.enumerated() {
      let field = fields[column]
      if isKey[column] {
        if value != .null || field.name != minted { key.append((field.name, value)) }
      } else if value != .null || !isFilled(field) {
        rest.append((field.name, value))
      }
    }
    let mints = minted.map { name in !key.contains { $0.name == name } } ?? false
    return Mutation(
      mints ? .create : .upsert, model: model.name, key: key.isEmpty ? nil : .object(key), fields: rest)
  }

  /// Whether the node has a value for the field where the row has none.
  private func isFilled(_ field: Field) -> Bool {
    field.name == model.createdAt || field.name == model.updatedAt
      || (field.isRequired && field.defaultValue != nil)
  }
}
