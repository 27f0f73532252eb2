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

  /// What an empty cell means: null, or the empty text where null cannot be.
  func empty(_ column: Int) -> JSON {
    let field = fields[column]
    let isText = !field.type.isList && field.type.scalar == .string
    return field.isRequired && isText && field.defaultValue == nil ? .string("") : .null
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

/// Rows of one model; the first one names the fields.
final class CSVSource: MutationSource {
  private let reader: CSV.Reader
  private let model: Model
  private let schema: Schema
  private let keepsText: Bool
  private var shape: RowShape?
  private(set) var header: [UInt8] = []

  init(
    _ path: String, _ delimiter: CSV.Delimiter, _ model: Model, _ schema: Schema, keepsText: Bool
  ) throws(NodeError) {
    reader = try CSV.Reader(path, delimiter)
    self.model = model
    self.schema = schema
    self.keepsText = keepsText
  }

  var lineNumber: Int { reader.lineNumber }

  func checkInvariants() {
    precondition((shape == nil) == header.isEmpty, "the first row is the header")
    precondition(shape.map { !$0.fields.isEmpty } ?? true, "a row has a key")
    reader.checkInvariants()
  }

  func next() throws(SourceError) -> SourceItem? {
    let shape: RowShape
    if let known = self.shape {
      shape = known
    } else {
      guard let row = try reader.next() else { return nil }
      do throws(MutationError) { shape = try readHeader(row) } catch {
        throw SourceError(line: row.line, reason: .mutation(error))
      }
      self.shape = shape
      header = row.text
    }
    guard let row = try reader.next() else { return nil }
    let mutation: Result<Mutation, MutationError>
    do throws(MutationError) { mutation = .success(try read(row, shape)) } catch {
      mutation = .failure(error)
    }
    return SourceItem(
      line: row.line, lastLine: row.lastLine, mutation: mutation, text: keepsText ? row.text : [])
  }

  private func readHeader(_ row: CSV.Row) throws(MutationError) -> RowShape {
    if let flaw = row.flaw { throw .wrongShape(flaw) }
    var names: [String] = []
    for index in row.ends.indices { names.append(try text(row, index)) }
    return try RowShape(names, model, schema) { model.field(named: $0) }
  }

  private func read(_ row: CSV.Row, _ shape: RowShape) throws(MutationError) -> Mutation {
    if let flaw = row.flaw { throw .wrongShape(flaw) }
    guard row.ends.count == shape.fields.count else {
      throw .wrongShape(
        "the row has \(row.ends.count) cell\(row.ends.count == 1 ? "" : "s"), the header has \(shape.fields.count)"
      )
    }
    var values: [JSON] = []
    values.reserveCapacity(shape.fields.count)
    for index in shape.fields.indices {
      if row.isNull(index) {
        values.append(shape.empty(index))
        continue
      }
      let text = try text(row, index)
      do { values.append(try schema.json(text: text, for: shape.fields[index], of: model.name)) } catch {
        throw .value(error)
      }
    }
    return shape.mutation(values)
  }

  private func text(_ row: CSV.Row, _ index: Int) throws(MutationError) -> String {
    guard let text = row.cell(index) else { throw .wrongShape("cell \(index + 1) is not UTF-8") }
    return text
  }
}
