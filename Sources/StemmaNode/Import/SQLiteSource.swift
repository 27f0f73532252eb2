import Foundation
import StemmaEvents
import StemmaSchema
import StemmaTables

/// The rows of a SQLite file, table by table in the order of the schema's models. A table belongs to the model whose
/// table, or which itself, has its name; case does not matter, as in SQLite.
final class SQLiteSource: MutationSource {
  private struct Work {
    let table: String
    let columns: [String]
    let shape: RowShape
  }

  private let file: SQLiteFile
  private let keepsText: Bool
  private var work: ArraySlice<Work>
  private var rows: (work: Work, rows: SQLiteFile.Rows)?
  private(set) var lineNumber = 0
  let header: [UInt8] = []
  /// Tables that no model goes by.
  let unknownTables: [String]

  /// - Parameter only: if given, the one model whose table is read.
  init(_ path: String, _ schema: Schema, _ only: Model?, keepsText: Bool) throws(NodeError) {
    guard path != "-" else {
      throw .malformedInput(source: path, what: "a SQLite file cannot be read from standard input; name it")
    }
    self.keepsText = keepsText
    let tables: [SQLiteFile.Table]
    guard access(path, R_OK) == 0 else { throw .cannotRead(path: path, errno: errno) }
    do {
      file = try SQLiteFile(path)
      tables = try file.tables().filter { !$0.name.hasPrefix("_") }
    } catch { throw .tables(error) }
    var work: [Work] = []
    for model in only.map({ [$0] }) ?? schema.models {
      guard let table = tables.first(where: { Self.isTable($0.name, of: model) }) else { continue }
      let columns = table.columns.map(\.name).filter { !$0.hasPrefix("_") }
      do throws(MutationError) {
        let shape = try RowShape(columns, model, schema) { Self.field($0, of: model) }
        work.append(Work(table: table.name, columns: columns, shape: shape))
      } catch {
        throw .malformedInput(
          source: path, what: "table \(table.name) of \(path): \(Explanations.text(of: error))")
      }
    }
    guard !work.isEmpty else {
      let names = tables.map(\.name).joined(separator: ", ")
      throw .malformedInput(
        source: path,
        what: tables.isEmpty
          ? "\(path) has no tables"
          : "no table of \(path) (\(names)) is that of \(only.map { "the model \($0.name)" } ?? "a model"); "
            + "`stemma schema infer` makes a schema of such a file")
    }
    unknownTables =
      only == nil
      ? tables.map(\.name).filter { name in !schema.models.contains { Self.isTable(name, of: $0) } } : []
    self.work = work[...]
  }

  private static func isTable(_ name: String, of model: Model) -> Bool {
    [model.tableName, model.name].contains { $0.lowercased() == name.lowercased() }
      || SchemaInference.modelName(name) == model.name
  }

  private static func field(_ column: String, of model: Model) -> Field? {
    let name = SchemaInference.fieldName(column).lowercased()
    return model.fields.first { $0.name.lowercased() == name }
  }

  func checkInvariants() {
    for table in Array(work) + (rows.map { [$0.work] } ?? []) {
      precondition(table.columns.count == table.shape.fields.count, "each column is a field")
      precondition(!unknownTables.contains(table.table), "a table is read or left out")
    }
  }

  func next() throws(SourceError) -> SourceItem? {
    while true {
      if rows == nil {
        guard let next = work.popFirst() else { return nil }
        do { rows = (next, try file.rows(next.table, next.columns)) } catch {
          throw SourceError(line: lineNumber + 1, reason: .tables(error))
        }
      }
      let row: [SQLiteFile.Rows.Cell]?
      do { row = try rows?.rows.next() } catch {
        throw SourceError(line: lineNumber + 1, reason: .tables(error))
      }
      guard let row, let shape = rows?.work.shape else {
        rows = nil
        continue
      }
      lineNumber += 1
      let (mutation, text) = read(row, shape)
      return SourceItem(line: lineNumber, lastLine: lineNumber, mutation: mutation, text: text)
    }
  }

  private func read(
    _ row: [SQLiteFile.Rows.Cell], _ shape: RowShape
  ) -> (Result<Mutation, MutationError>, text: [UInt8]) {
    var values: [JSON] = []
    var failure: MutationError?
    for (column, cell) in row.enumerated() {
      do throws(MutationError) { values.append(try json(cell, shape.fields[column], shape)) } catch {
        failure = failure ?? error
        // What stands in the file of refused lines shows what was there.
        if case .value(let value) = cell { values.append(value.json) } else { values.append(.null) }
      }
    }
    let mutation = shape.mutation(values)
    return (
      failure.map { .failure($0) } ?? .success(mutation), keepsText ? Array(mutation.json.text.utf8) : []
    )
  }

  /// SQLite keeps any value in any column; the field's type says what is meant.
  private func json(
    _ cell: SQLiteFile.Rows.Cell, _ field: Field, _ shape: RowShape
  ) throws(MutationError) -> JSON {
    switch cell {
    case .blob: throw .wrongShape("`\(field.name)` holds a blob, and there is no type for bytes")
    case .notUTF8: throw .wrongShape("`\(field.name)` is not UTF-8")
    case .value(.string(let text)):
      do { return try shape.schema.json(text: text, for: field, of: shape.model.name) } catch {
        throw .value(error)
      }
    case .value(let value):
      guard !field.type.isList, case .scalar(let scalar) = field.type.base else { return value.json }
      switch (scalar, value) {
      case (.boolean, .int(0)): return .bool(false)
      case (.boolean, .int(1)): return .bool(true)
      case (.int, .double(let number)), (.awsTimestamp, .double(let number)):
        return Int64(exactly: number).map { .int($0) } ?? value.json
      case (.int, _), (.awsTimestamp, _), (.float, _), (.awsJSON, _), (_, .null): return value.json
      case (_, .int(let number)): return .string(String(number))
      default: return value.json
      }
    }
  }
}
