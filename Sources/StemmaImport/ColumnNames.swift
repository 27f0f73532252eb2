import StemmaEvents
import StemmaNode
import StemmaSchema

/// Maps the columns of a row to fields.
package struct ColumnNames: Sendable {
  /// Columns whose fields have different names.
  package var fields: [String: String] = [:]
  /// Whether columns without a field are ignored.
  package var ignoresUnknown = false
  /// Whether only letters and digits count: column `first_name` is field `firstName`.
  var folds = false
  package init() {}

  /// Nil for an ignored column.
  func field(_ column: String, of model: Model) throws(MutationError) -> Field? {
    let name = fields[column] ?? column
    if let field = model.field(named: name) { return field }
    if folds, fields[column] == nil {
      let found = model.fields.filter { Self.folded($0.name) == Self.folded(column) }
      if found.count == 1 { return found[0] }
    }
    if ignoresUnknown, fields[column] == nil { return nil }
    throw .unknownField(model: model.name, field: name, known: model.fields.map(\.name))
  }

  static func folded(_ name: String) -> String {
    String(name.lowercased().filter { $0.isLetter || $0.isNumber })
  }

  static func notice(_ columns: [String]) -> String {
    "left out \(columns.count == 1 ? "the column" : "\(columns.count) columns"): "
      + columns.joined(separator: ", ")
  }
}

extension RowShape {
  /// The shape of rows with these columns, and the indices of the columns in use.
  static func of(
    _ names: [String], _ model: Model, _ schema: Schema, _ columns: ColumnNames
  ) throws(MutationError) -> (used: [Int], shape: RowShape) {
    var used: [Int] = []
    var found: [String: Field] = [:]
    for (index, name) in names.enumerated() {
      guard let field = try columns.field(name, of: model) else { continue }
      used.append(index)
      found[name] = field
    }
    return (used, try RowShape(used.map { names[$0] }, model, schema) { found[$0] })
  }
}

/// Rows of one model as JSON objects. Consecutive rows with the same members share one shape.
struct RowObjects: Sendable {
  private let model: Model
  private let schema: Schema
  private let columns: ColumnNames
  /// Whether an absent member is null.
  private let isWhole: Bool
  private var last: Layout?
  /// The first hundred ignored members, each once.
  private(set) var ignored: [String] = []

  private struct Layout {
    var names: [String]
    var used: [Int]
    var shape: RowShape
    var clearing: [(name: String, value: JSON)]
  }

  init(_ model: Model, _ schema: Schema, _ columns: ColumnNames, isWhole: Bool = false) {
    self.model = model
    self.schema = schema
    self.columns = columns
    self.isWhole = isWhole
  }

  mutating func mutation(
    _ members: [(name: String, value: JSON)],
    _ convert: (JSON, Field) throws(MutationError) -> JSON = { value, _ in value }
  ) throws(MutationError) -> Mutation {
    let layout = try layout(members.map(\.name))
    var values: [JSON] = []
    for (index, field) in zip(layout.used, layout.shape.fields) {
      values.append(try convert(members[index].value, field))
    }
    var mutation = layout.shape.mutation(values)
    mutation.fields += layout.clearing
    return mutation
  }

  private mutating func layout(_ names: [String]) throws(MutationError) -> Layout {
    if let last, last.names == names { return last }
    let (used, shape) = try RowShape.of(names, model, schema, columns)
    for index in names.indices
    where ignored.count < 100 && !used.contains(index) && !ignored.contains(names[index]) {
      ignored.append(names[index])
    }
    let layout = Layout(names: names, used: used, shape: shape, clearing: isWhole ? shape.clearing : [])
    last = layout
    return layout
  }

  /// The key of a row; nil if a part of it is absent or null.
  func key(
    of members: [(name: String, value: JSON)], _ convert: (JSON, Field) throws(MutationError) -> JSON
  ) throws(MutationError) -> JSON? {
    let names = model.keyFields.map { model.fields[$0].name }
    var parts: [(name: String, value: JSON)] = []
    for (name, value) in members where !value.isNull {
      guard let field = try columns.field(name, of: model), names.contains(field.name) else { continue }
      parts.append((field.name, try convert(value, field)))
    }
    return parts.count == names.count ? .object(parts) : nil
  }

  /// Whether the members of an object are fields. Members of a mutation are `op`, `fields` and the
  /// like, unless the model has fields of these names.
  func isRow(_ members: [(name: String, value: JSON)]) -> Bool {
    let others = members.filter { model.field(named: columns.fields[$0.name] ?? $0.name) == nil }
    for (name, value) in others {
      switch (name, value) {
      case ("op", .string(let text)) where Mutation.Operation(rawValue: text) != nil: return false
      case ("fields", .object): return false
      default: break
      }
    }
    return others.isEmpty || !members.allSatisfy { Mutation.memberNames.contains($0.name) }
  }
}
