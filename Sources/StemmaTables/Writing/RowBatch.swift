import Foundation
import GRDBSQLite
import StemmaEvents
import StemmaMerge

/// Parameters of some statements, laid out so that another thread can run them without looking at them twice:
/// numbers by value, texts and blobs one behind the other in one buffer.
struct RowBatch: Sendable {
  struct Row: Sendable {
    /// Which of the statements that the reader of the batch has prepared.
    var statement: Int32
    var firstCell: Int32
    /// Over the key, for a row of which the last cell is a state that has no checksum yet: whoever runs the statements has time
    /// for that, whoever makes the rows has none.
    var seal: StateSeal?
  }

  struct Cell: Sendable {
    /// `unwritten`: of a field that shows its default; no row of a batch has such a cell.
    enum Kind: UInt8, Sendable { case null, unwritten, int, double, text, blob }

    var kind: Kind
    /// Of a text or blob.
    var count: UInt32
    /// The bits of a number, or where the bytes begin.
    var bits: UInt64

    static let null = Cell(kind: .null, count: 0, bits: 0)
    static let unwritten = Cell(kind: .unwritten, count: 0, bits: 0)
    static func int(_ number: Int64) -> Cell { Cell(kind: .int, count: 0, bits: UInt64(bitPattern: number)) }
    static func double(_ number: Double) -> Cell { Cell(kind: .double, count: 0, bits: number.bitPattern) }
  }

  private(set) var rows: [Row] = []
  var cells: [Cell] = []
  var bytes: [UInt8] = []
  /// What the log had up to here.
  var progress = RebuildProgress()

  /// When to hand it over, in bytes of texts: early enough that rows of few events, too, are inserted while others are made.
  static let target = 64 << 10

  var isFull: Bool { bytes.count >= Self.target || cells.count >= Self.target / 16 }

  init() {
    bytes.reserveCapacity(Self.target + Self.target / 4)
    cells.reserveCapacity(Self.target / 16 + 64)
  }

  /// The cells that follow are the parameters of this statement.
  mutating func begin(_ statement: Int) {
    rows.append(Row(statement: Int32(statement), firstCell: Int32(cells.count)))
  }

  /// Ends a row whose values all stand in columns with its state, of which the bytes begin at `start`, and with room for the
  /// checksum behind it.
  mutating func end(_ start: Int, _ key: [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: StateSeal.size))
    cells.append(Cell(kind: .blob, count: UInt32(bytes.count - start), bits: UInt64(start)))
    rows[rows.count - 1].seal = key.withUnsafeBytes { StateSeal($0) }
  }

  @inline(__always)
  mutating func copy(_ text: UnsafeRawBufferPointer, _ kind: Cell.Kind = .text) -> Cell {
    let cell = Cell(kind: kind, count: UInt32(text.count), bits: UInt64(bytes.count))
    bytes.append(contentsOf: text)
    return cell
  }

  mutating func copy(_ text: String) -> Cell {
    var text = text
    return text.withUTF8 { copy(UnsafeRawBufferPointer($0)) }
  }

  mutating func copy(_ blob: [UInt8], _ kind: Cell.Kind) -> Cell { blob.withUnsafeBytes { copy($0, kind) } }

  mutating func cell(_ value: Value) -> Cell {
    switch value {
    case .null: .null
    case .bool(let flag): .int(flag ? 1 : 0)
    case .int(let number): .int(number)
    case .double(let number): .double(number)
    case .string(let text), .json(let text): copy(text)
    }
  }

  /// Traps if a row has another one's cells, or a cell bytes that are not there. In debug builds when it is handed over.
  func checkInvariants() {
    precondition(rows.isEmpty ? cells.isEmpty : rows[0].firstCell == 0, "each cell is of a row")
    for (a, b) in zip(rows, rows.dropFirst()) { precondition(a.firstCell < b.firstCell, "a row has cells") }
    precondition(rows.last.map { $0.firstCell < cells.count } ?? true, "a row has cells")
    for (place, row) in rows.enumerated() where row.seal != nil {
      let last = cells[place + 1 < rows.count ? Int(rows[place + 1].firstCell) - 1 : cells.count - 1]
      precondition(last.kind == .blob && last.count >= StateSeal.size, "a state has room for its checksum")
    }
    for cell in cells {
      switch cell.kind {
      case .unwritten: preconditionFailure("a row has the default")
      case .null, .int, .double: precondition(cell.count == 0, "a number has no bytes")
      case .text, .blob:
        precondition(cell.bits + UInt64(cell.count) <= UInt64(bytes.count), "the bytes of a cell are there")
      }
    }
  }

  /// Runs every row's statement with its cells, bound where they lie: of rows that follow each other and have the same one,
  /// as many at once as it takes.
  mutating func run(_ statements: [BatchStatement]) throws(TablesError) {
    var outcome = Result<Void, TablesError>.success(())
    let (rows, cells) = (rows, cells)
    bytes.withUnsafeMutableBytes { bytes in
      cells.withUnsafeBufferPointer { cells in
        rows.withUnsafeBufferPointer { rows in
          let run = BatchRun(rows: rows, cells: cells, bytes: bytes)
          outcome = Result { () throws(TablesError) in try run.run(statements) }
        }
      }
    }
    try outcome.get()
  }
}

/// The running of a batch's statements, its memory in place.
private struct BatchRun {
  let rows: UnsafeBufferPointer<RowBatch.Row>
  let cells: UnsafeBufferPointer<RowBatch.Cell>
  let bytes: UnsafeMutableRawBufferPointer

  func run(_ statements: [BatchStatement]) throws(TablesError) {
    var place = 0
    while place < rows.count {
      let kind = statements[Int(rows[place].statement)]
      let isSeveral = isRun(at: place, of: kind.rowsAtOnce)
      let statement = isSeveral ? try kind.several() : kind.one
      let end = place + (isSeveral ? kind.rowsAtOnce : 1)
      for row in place..<end { seal(row, kind.values) }
      var parameter: Int32 = 0
      for index in Int(rows[place].firstCell)..<firstCell(of: end) {
        parameter += 1
        bind(cells[index], statement, parameter)
      }
      let code = sqlite3_step(statement.handle)
      sqlite3_reset(statement.handle)
      if code != SQLITE_DONE { throw statement.connection.failure(code) }
      place = end
    }
  }

  private func firstCell(of row: Int) -> Int { row < rows.count ? Int(rows[row].firstCell) : cells.count }

  /// Whether so many rows from here on have the same statement.
  private func isRun(at start: Int, of count: Int) -> Bool {
    let end = start + count
    return count > 1 && end <= rows.count
      && rows[start..<end].allSatisfy { $0.statement == rows[start].statement }
  }

  /// Writes the checksum of a state that has none: over what `StateSeal` covers of a row whose values all stand in columns.
  private func seal(_ row: Int, _ values: [BatchStatement.Value]) {
    guard var seal = rows[row].seal else { return }
    let first = Int(rows[row].firstCell)
    for field in values.indices {
      let cell = cells[first + values[field].cell]
      switch cell.kind {
      case .null, .unwritten, .blob: continue
      case .int, .double: seal.add(field, values[field].tag, bits: cell.bits)
      case .text: seal.add(field, values[field].tag, text: UnsafeRawBufferPointer(content(of: cell)))
      }
    }
    seal.close(content(of: cells[firstCell(of: row + 1) - 1]))
  }

  private func content(of cell: RowBatch.Cell) -> UnsafeMutableRawBufferPointer {
    let start = Int(cell.bits)
    return UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + Int(cell.count)])
  }

  @inline(__always)
  private func bind(_ cell: RowBatch.Cell, _ statement: Statement, _ parameter: Int32) {
    switch cell.kind {
    case .null, .unwritten: statement.bind(parameter, null: ())
    case .int: statement.bind(parameter, Int64(bitPattern: cell.bits))
    case .double: statement.bind(parameter, Double(bitPattern: cell.bits))
    case .text: statement.bind(parameter, inPlace: UnsafeRawBufferPointer(content(of: cell)))
    case .blob: statement.bind(parameter, blobInPlace: UnsafeRawBufferPointer(content(of: cell)))
    }
  }
}

extension RowBatch {
  /// Appends the string part of a key at `index` without its escapes, and moves `index` behind it. False if there is
  /// none.
  mutating func appendText(ofKey key: UnsafeRawBufferPointer, at index: inout Int) -> Bool {
    guard key[index] == 0x02 else { return false }
    index += 1
    while true {
      let rest = UnsafeRawBufferPointer(rebasing: key[index...])
      guard let base = rest.baseAddress, let zero = memchr(base, 0, rest.count) else { return false }
      let count = UnsafeRawPointer(zero) - base
      bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      index += count + 1
      guard index < key.count, key[index] == 0xFF else { return true }
      bytes.append(0)
      index += 1
    }
  }
}

/// What a batch's rows are run with: a statement for one of them and, where rows are inserted, one for several, which
/// takes SQLite a third less time for each of them.
final class BatchStatement {
  /// A value of a field among a row's cells.
  struct Value {
    let cell: Int
    let tag: ValueTag
  }

  let one: Statement
  /// By field, for rows that are sealed when they are inserted.
  let values: [Value]
  /// How many rows `several` takes.
  let rowsAtOnce: Int
  /// Of `several`; nil where rows are not inserted.
  private let sql: String?
  private var prepared: Statement?

  /// Runs a statement row by row.
  init(_ sql: String, _ connection: Connection) throws(TablesError) {
    one = try connection.prepare(sql)
    values = []
    rowsAtOnce = 1
    self.sql = nil
  }

  init(inserting layout: TableLayout, _ connection: Connection) throws(TablesError) {
    one = try connection.prepare(layout.insert())
    let limit = sqlite3_limit(connection.handle, SQLITE_LIMIT_VARIABLE_NUMBER, -1)
    // Each row has a version and a state. With more rows than sixteen, time falls by a few percent.
    rowsAtOnce = max(1, min(16, Int(limit / sqlite3_bind_parameter_count(one.handle))))
    sql = layout.insert(rows: rowsAtOnce)
    values = layout.columnOfRule.enumerated().map { field, column in
      Value(cell: layout.key.count + column, tag: layout.rules.tag(ofField: field))
    }
  }

  func several() throws(TablesError) -> Statement {
    if let prepared { return prepared }
    guard let sql else { return one }
    let statement = try one.connection.prepare(sql)
    prepared = statement
    return statement
  }
}
