import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

/// The rows of a SQLite file, table by table in the order of the schema's models. `SQLiteMapping`
/// finds the model of each table and the field of each column.
///
/// Reports each omission and each conversion of a column once.
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
  private let notice: (String) -> Void
  /// Conversions already reported.
  private var reported: Set<String> = []

  /// - Parameters:
  ///   - only: the one model whose table is read; nil: all.
  ///   - notice: called for each omission or conversion, one sentence each.
  init(
    _ path: String, _ schema: Schema, _ only: Model?, keepsText: Bool, notice: @escaping (String) -> Void
  ) throws(NodeError) {
    guard path != "-" else {
      throw .malformedInput(source: path, what: "a SQLite file cannot be read from standard input; name it")
    }
    self.keepsText = keepsText
    self.notice = notice
    let contents: SQLiteFile.Contents
    guard access(path, R_OK) == 0 else { throw .cannotRead(path: path, errno: errno) }
    do {
      file = try SQLiteFile(path)
      contents = try file.contents()
    } catch { throw .tables(error) }
    // All models take part, so that the selected one gets no table of another.
    let found = SQLiteMapping(contents.tables).entries(for: schema.models)
    var work: [Work] = []
    for model in only.map({ [$0] }) ?? schema.models {
      guard let entry = found[model.name] else { continue }
      do throws(MutationError) { work.append(try Self.work(entry, model, schema, notice)) } catch {
        throw .malformedInput(
          source: path, what: "table \(entry.table.name) of \(path): \(Explanations.text(of: error))")
      }
    }
    guard !work.isEmpty else {
      let names = contents.tables.map(\.name).joined(separator: ", ")
      throw .malformedInput(
        source: path,
        what: contents.tables.isEmpty
          ? "\(path) has no tables"
          : "no table of \(path) (\(names)) is that of \(only.map { "the model \($0.name)" } ?? "a model"); "
            + "\(step: .inferSchema) makes a schema of such a file")
    }
    if only == nil {
      for omitted in contents.omittedObjects { notice(SchemaInference.notice(omitted)) }
      let read = Set(work.map(\.table))
      for table in contents.tables where !read.contains(table.name) {
        notice("table \(table.name) belongs to no model and is left out")
      }
    }
    self.work = work[...]
  }

  /// The columns of a table that have a field. Reports the others.
  private static func work(
    _ entry: SQLiteMapping.Entry, _ model: Model, _ schema: Schema, _ notice: (String) -> Void
  ) throws(MutationError) -> Work {
    func named(_ name: String) -> Field? {
      model.fields.first { $0.name.lowercased() == name.lowercased() }
    }
    var columns: [(name: String, field: String)] = []
    // A column maps to the field of its own name first; no other column gets that field.
    let own = entry.table.columns.map { named($0.name) }
    let taken = Set(own.compactMap { $0?.name })
    for (index, column) in entry.table.columns.enumerated() {
      let other = named(entry.fields[index]).flatMap { taken.contains($0.name) ? nil : $0 }
      if let field = own[index] ?? other {
        columns.append((column.name, field.name))
      } else {
        notice(
          "column \(column.name) of table \(entry.table.name) has no field in \(model.name) and is left out")
      }
    }
    if let name = entry.table.rowNumber, let field = entry.rowNumberField.flatMap(named),
      !columns.contains(where: { $0.field == field.name })
    {
      columns.append((name, field.name))
    }
    let fields = Dictionary(columns.map { ($0.name, $0.field) }) { first, _ in first }
    let shape = try RowShape(columns.map(\.name), model, schema) { fields[$0].flatMap(named) }
    if let minted = model.autoPopulatedField,
      !shape.fields.contains(where: { $0.name == model.fields[minted].name })
    {
      notice(
        "table \(entry.table.name) has no column for the key of \(model.name): each import makes new records")
    }
    return Work(table: entry.table.name, columns: columns.map(\.name), shape: shape)
  }

  func checkInvariants() {
    for table in Array(work) + (rows.map { [$0.work] } ?? []) {
      precondition(table.columns.count == table.shape.fields.count, "each column is a field")
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
      guard let row, let work = rows?.work else {
        rows = nil
        continue
      }
      lineNumber += 1
      let (mutation, text) = read(row, work)
      return SourceItem(line: lineNumber, lastLine: lineNumber, mutation: mutation, text: text)
    }
  }

  private func read(
    _ row: [SQLiteFile.Rows.Cell], _ work: Work
  ) -> (Result<Mutation, MutationError>, text: [UInt8]) {
    var values: [JSON] = []
    var failure: MutationError?
    for (column, cell) in row.enumerated() {
      do throws(MutationError) { values.append(try json(cell, column, work)) } catch {
        failure = failure ?? error
        // The file of refused lines shows all values of the row.
        if case .value(let value) = cell { values.append(value.json) } else { values.append(.null) }
      }
    }
    let mutation = work.shape.mutation(values)
    return (
      failure.map { .failure($0) } ?? .success(mutation), keepsText ? Array(mutation.json.text.utf8) : []
    )
  }

  /// SQLite allows any value in any column. The field's type determines the conversion.
  private func json(
    _ cell: SQLiteFile.Rows.Cell, _ column: Int, _ work: Work
  ) throws(MutationError) -> JSON {
    let field = work.shape.fields[column]
    switch cell {
    case .blob: throw .wrongShape("`\(field.name)` holds a blob, and there is no type for bytes")
    case .notUTF8: throw .wrongShape("`\(field.name)` is not UTF-8")
    case .value(.string(let text)):
      do {
        let value = try work.shape.schema.json(text: text, for: field, of: work.shape.model.name)
        if let type = field.type.scalar, !type.isText, !field.type.isList {
          report("text becomes \(type.rawValue)", column, work)
        }
        return value
      } catch { throw .value(error) }
    case .value(.int(let number)): return json(number, column, work)
    case .value(.double(let number)): return try json(number, column, work)
    case .value(let value): return value.json
    }
  }

  private func json(_ number: Int64, _ column: Int, _ work: Work) -> JSON {
    switch work.shape.fields[column].type.scalar {
    case .boolean: return number == 0 ? .bool(false) : number == 1 ? .bool(true) : .int(number)
    case .float:
      if Int64(exactly: Double(number)) != number {
        report("integers beyond 2^53 become fractions", column, work)
      }
      return .int(number)
    case .some(let scalar) where scalar.isText && scalar != .awsJSON:
      report("numbers become text", column, work)
      return .string(String(number))
    default: return .int(number)
    }
  }

  private func json(_ number: Double, _ column: Int, _ work: Work) throws(MutationError) -> JSON {
    let field = work.shape.fields[column]
    switch field.type.scalar {
    case .some(let scalar) where scalar.isText && scalar != .awsJSON:
      report("numbers become text", column, work)
      return .string(number.isFinite ? number.description : number < 0 ? "-Infinity" : "Infinity")
    case _ where !number.isFinite:
      throw .wrongShape("`\(field.name)` is infinite; a String field keeps that as text")
    case .int, .awsTimestamp: return Int64(exactly: number).map { .int($0) } ?? Value.double(number).json
    default: return Value.double(number).json
    }
  }

  private func report(_ conversion: String, _ column: Int, _ work: Work) {
    let place = "\(work.table).\(work.columns[column])"
    if reported.insert("\(place) \(conversion)").inserted { notice("\(place): \(conversion)") }
  }
}
