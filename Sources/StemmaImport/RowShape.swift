import StemmaEvents
import StemmaNode
import StemmaSchema

/// Turns the columns of a row into a mutation. A row is an upsert, like a line of JSON without
/// `op`. A row without the auto-populated part of the key is a create.
struct RowShape {
  let schema: Schema
  let model: Model
  /// In the order of the columns.
  let fields: [Field]
  private let isKey: [Bool]

  /// - Parameter finds: returns the field of a column.
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
        throw .wrongShape("the column `\(column)` occurs twice")
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

  /// The value of an empty cell: null, or the empty text if null is not allowed.
  func empty(_ column: Int) -> JSON {
    let field = fields[column]
    let isText = !field.type.isList && field.type.scalar == .string
    return field.isRequired && isText && field.defaultValue == nil ? .string("") : .null
  }

  /// Null for each nullable field without a column.
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

  /// Whether the node supplies the field's value if the row has none.
  private func isFilled(_ field: Field) -> Bool {
    field.name == model.createdAt || field.name == model.updatedAt
      || (field.isRequired && field.defaultValue != nil)
  }
}
