import StemmaEvents
import StemmaNode
import StemmaSchema

/// Rows of one model as text. The first row names the fields, unless the dialect has no header.
final class CSVSource: MutationSource {
  private let reader: CSV.Reader
  private let dialect: CSV.Dialect
  private let columns: ColumnNames
  private let model: Model
  private let schema: Schema
  private let keepsText: Bool
  private var layout: Layout?
  private(set) var header: [UInt8] = []
  private(set) var notices: [String] = []

  /// The cells of a row that are read.
  private struct Layout {
    var width: Int
    /// The cell of each field of the shape.
    var cells: [Int]
    var shape: RowShape
  }

  init(
    _ path: String, _ dialect: CSV.Dialect, _ columns: ColumnNames, _ model: Model, _ schema: Schema,
    keepsText: Bool
  ) throws(NodeError) {
    reader = try CSV.Reader(path, dialect.delimiter)
    self.dialect = dialect
    self.columns = columns
    self.model = model
    self.schema = schema
    self.keepsText = keepsText
  }

  var lineNumber: Int { reader.lineNumber }
  var bytesRead: Int { reader.bytesRead }

  func checkInvariants() {
    precondition(layout != nil || header.isEmpty, "the first row is the header")
    precondition(layout.map { !$0.cells.isEmpty } ?? true, "a row has a key")
    precondition(layout.map { $0.cells.count == $0.shape.fields.count } ?? true, "a field has a cell")
    reader.checkInvariants()
  }

  func next() throws(SourceError) -> SourceItem? {
    guard var row = try reader.next() else { return nil }
    let layout: Layout
    if let known = self.layout {
      layout = known
    } else {
      do throws(MutationError) { layout = try self.layout(row) } catch {
        throw SourceError(line: row.line, reason: .mutation(error))
      }
      self.layout = layout
      if dialect.hasHeader {
        header = row.text
        guard let first = try reader.next() else { return nil }
        row = first
      }
    }
    let mutation: Result<Mutation, MutationError>
    do throws(MutationError) { mutation = .success(try read(row, layout)) } catch {
      mutation = .failure(error)
    }
    return SourceItem(
      line: row.line, lastLine: row.lastLine, mutation: mutation, text: keepsText ? row.text : [])
  }

  private func layout(_ row: CSV.Row) throws(MutationError) -> Layout {
    if let flaw = row.flaw { throw .wrongShape(flaw) }
    var names: [String] = []
    if dialect.hasHeader {
      for index in row.ends.indices { names.append(try text(row, index)) }
    } else if columns.fields.isEmpty {
      names = model.fields.map(\.name)
    } else {
      names = (1...row.ends.count).map(String.init)
    }
    if let column = columns.fields.keys.sorted().first(where: { !names.contains($0) }) {
      throw .wrongShape(
        "--map names the column `\(column)`, which is not there. Name one of: "
          + names.joined(separator: ", "))
    }
    let (used, shape) = try RowShape.of(names, model, schema, columns)
    let unused = names.indices.filter { !used.contains($0) }.map { names[$0] }
    if !unused.isEmpty { notices.append(ColumnNames.notice(unused)) }
    return Layout(width: names.count, cells: used, shape: shape)
  }

  private func read(_ row: CSV.Row, _ layout: Layout) throws(MutationError) -> Mutation {
    if let flaw = row.flaw { throw .wrongShape(flaw) }
    guard row.ends.count == layout.width else {
      let cells = "the row has \(row.ends.count) cell\(row.ends.count == 1 ? "" : "s")"
      throw .wrongShape(
        "\(cells), \(dialect.hasHeader ? "the header" : "a row of \(model.name)") has \(layout.width)")
    }
    var values: [JSON] = []
    values.reserveCapacity(layout.cells.count)
    for (column, index) in layout.cells.enumerated() {
      if row.isNull(index, dialect.nulls) {
        values.append(layout.shape.empty(column))
        continue
      }
      let text = try text(row, index)
      do {
        values.append(try schema.json(text: text, for: layout.shape.fields[column], of: model.name))
      } catch {
        throw .value(error)
      }
    }
    return layout.shape.mutation(values)
  }

  private func text(_ row: CSV.Row, _ index: Int) throws(MutationError) -> String {
    guard let text = row.cell(index, dialect.encoding) else {
      throw .wrongShape("cell \(index + 1) is not UTF-8")
    }
    return text
  }
}
