import Foundation
import GRDBSQLite
import StemmaEvents
import StemmaMerge

/// Parameters of statements, laid out so that another thread can bind them directly: numbers by
/// value, texts and blobs in one buffer.
struct RowBatch: Sendable {
  struct Row: Sendable {
    /// The index of a prepared statement of the batch's reader.
    var statement: Int32
    var firstCell: Int32
    /// The checksum over the key, for a row whose last cell is a state without checksum. The
    /// running thread completes it, because the producing thread is the bottleneck.
    var seal: StateChecksum?
  }

  struct Cell: Sendable {
    /// `unwritten`: the field shows its default. No row of a batch has such a cell.
    enum Kind: UInt8, Sendable { case null, unwritten, int, double, text, blob }

    var kind: Kind
    /// The size of a text or blob.
    var count: UInt32
    /// The bits of a number, or the offset of the bytes.
    var bits: UInt64

    static let null = Cell(kind: .null, count: 0, bits: 0)
    static let unwritten = Cell(kind: .unwritten, count: 0, bits: 0)
    static func int(_ number: Int64) -> Cell { Cell(kind: .int, count: 0, bits: UInt64(bitPattern: number)) }
    static func double(_ number: Double) -> Cell { Cell(kind: .double, count: 0, bits: number.bitPattern) }
  }

  private(set) var rows: [Row] = []
  var cells: [Cell] = []
  var bytes: [UInt8] = []
  /// The progress of the rebuild at the end of this batch.
  var progress = RebuildProgress()

  /// The size at which a batch is handed over: small, so that inserting overlaps with folding.
  static let target = 64 << 10

  var isFull: Bool { bytes.count >= Self.target || cells.count >= Self.target / 16 }

  init() {
    bytes.reserveCapacity(Self.target + Self.target / 4)
    cells.reserveCapacity(Self.target / 16 + 64)
  }

  /// Begins a row. The cells that follow are the parameters of this statement.
  mutating func begin(_ statement: Int) {
    rows.append(Row(statement: Int32(statement), firstCell: Int32(cells.count)))
  }

  /// Ends a row whose values are all in columns. Appends its state, whose bytes begin at `start`,
  /// and space for the checksum.
  mutating func end(_ start: Int, _ key: [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: StateChecksum.size))
    cells.append(Cell(kind: .blob, count: UInt32(bytes.count - start), bits: UInt64(start)))
    rows[rows.count - 1].seal = key.withUnsafeBytes { StateChecksum($0) }
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

  /// Traps if a row has cells of another row, or a cell has bytes outside of the buffer.
  func checkInvariants() {
    precondition(rows.isEmpty ? cells.isEmpty : rows[0].firstCell == 0, "each cell is of a row")
    for (a, b) in zip(rows, rows.dropFirst()) { precondition(a.firstCell < b.firstCell, "a row has cells") }
    precondition(rows.last.map { $0.firstCell < cells.count } ?? true, "a row has cells")
    for (place, row) in rows.enumerated() where row.seal != nil {
      let last = cells[place + 1 < rows.count ? Int(rows[place + 1].firstCell) - 1 : cells.count - 1]
      precondition(
        last.kind == .blob && last.count >= StateChecksum.size, "a state has room for its checksum")
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

  /// Runs every row's statement with its cells, bound in place. Consecutive rows of one statement
  /// run together, as many as it accepts.
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

/// One run of a batch's statements, with its memory pinned.
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

  /// Whether the next `count` rows have the same statement.
  private func isRun(at start: Int, of count: Int) -> Bool {
    let end = start + count
    return count > 1 && end <= rows.count
      && rows[start..<end].allSatisfy { $0.statement == rows[start].statement }
  }

  /// Writes the checksum of a state that has none, over the row's columns, as `StateChecksum` does.
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
  /// Appends the string part of a key at `index` without its escapes, and moves `index` past it.
  /// False if there is none.
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

/// The statements that insert a batch's rows: one for a single row and one for several. Inserting
/// several saves SQLite a third of the time per row.
final class BatchStatement {
  /// A value of a field among a row's cells.
  struct Value {
    let cell: Int
    let tag: ValueTag
  }

  let one: Statement
  /// By field, for rows that are sealed on insertion.
  let values: [Value]
  /// How many rows `several` inserts.
  let rowsAtOnce: Int
  /// The SQL of `several`; nil for statements that run row by row.
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
    // Each row has a version and a state. More than sixteen rows save only a few percent.
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
