import Foundation
import GRDBSQLite
import StemmaEvents

/// Parameters of some statements, laid out so that another thread can run them without looking at them twice:
/// numbers by value, texts and blobs one behind the other in one buffer.
struct RowBatch: Sendable {
  struct Row: Sendable {
    /// Which of the statements that the reader of the batch has prepared.
    var statement: Int32
    var firstCell: Int32
  }

  struct Cell: Sendable {
    enum Kind: UInt8, Sendable { case null, int, double, text, blob }

    var kind: Kind
    /// Of a text or blob.
    var count: UInt32
    /// The bits of a number, or where the bytes begin.
    var bits: UInt64

    static let null = Cell(kind: .null, count: 0, bits: 0)
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
    for cell in cells {
      switch cell.kind {
      case .null, .int, .double: precondition(cell.count == 0, "a number has no bytes")
      case .text, .blob:
        precondition(cell.bits + UInt64(cell.count) <= UInt64(bytes.count), "the bytes of a cell are there")
      }
    }
  }

  /// Runs every row's statement with its cells, bound where they lie.
  func run(_ statements: [Statement]) throws(TablesError) {
    var failed: (Statement, Int32)?
    bytes.withUnsafeBytes { bytes in
      cells.withUnsafeBufferPointer { cells in
        for (place, row) in rows.enumerated() {
          let statement = statements[Int(row.statement)]
          let end = place + 1 < rows.count ? Int(rows[place + 1].firstCell) : cells.count
          var parameter: Int32 = 0
          for index in Int(row.firstCell)..<end {
            parameter += 1
            bind(cells[index], bytes, statement, parameter)
          }
          let code = sqlite3_step(statement.handle)
          sqlite3_reset(statement.handle)
          if code != SQLITE_DONE {
            failed = (statement, code)
            return
          }
        }
      }
    }
    if let (statement, code) = failed { throw statement.connection.failure(code) }
  }

  @inline(__always)
  private func bind(
    _ cell: Cell, _ bytes: UnsafeRawBufferPointer, _ statement: Statement, _ parameter: Int32
  ) {
    switch cell.kind {
    case .null: statement.bind(parameter, null: ())
    case .int: statement.bind(parameter, Int64(bitPattern: cell.bits))
    case .double: statement.bind(parameter, Double(bitPattern: cell.bits))
    case .text:
      let start = Int(cell.bits)
      statement.bind(
        parameter, inPlace: UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(cell.count)]))
    case .blob:
      let start = Int(cell.bits)
      statement.bind(
        parameter, blobInPlace: UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(cell.count)]))
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
