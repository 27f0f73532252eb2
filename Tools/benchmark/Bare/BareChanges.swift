import Foundation
import GRDBSQLite
import Measuring

/// Parsed changes, each as the parameters of one prepared statement. This is the work of a program
/// without a log for the same input.
struct BareChanges {
  private struct Change {
    var statement: Int32
    var first: Int
    var count: Int32
  }

  private var changes: [Change] = []
  private var values: [BareValue] = []
  private var statements: [String] = []
  private var statementIndex: [String: Int32] = [:]
  var texts = BareTexts()
  /// Statements that create triggers on the tables.
  var triggers: [String] = []
  /// The value of `_state` for a row with a short history.
  private var state: BareValue

  var count: Int { changes.count }

  init() {
    var bytes = [UInt8](repeating: 0, count: 28)
    bytes[0] = 0x11
    state = .null
    let start = bytes.withUnsafeBytes { texts.copy($0.baseAddress, $0.count) }
    state = .blob(start: start, count: 28)
  }

  /// Upserts the given columns of a row. `defaults` apply only to a new row.
  mutating func upsert(
    _ table: String, key: [(String, BareValue)], fields: [(String, BareValue)],
    defaults: [(String, BareValue)] = [], version: Int64 = 1
  ) {
    let all = key + defaults + fields + [("_version", .int(version)), ("_state", state)]
    let names = all.map { "\"\($0.0)\"" }
    let changed = names.dropFirst(key.count + defaults.count).map { "\($0) = excluded.\($0)" }
    add(
      """
      INSERT INTO "\(table)" (\(names.joined(separator: ", "))) \
      VALUES (\(names.map { _ in "?" }.joined(separator: ", "))) \
      ON CONFLICT (\(names.prefix(key.count).joined(separator: ", "))) \
      DO UPDATE SET \(changed.joined(separator: ", "))
      """, all.map(\.1))
  }

  mutating func delete(_ table: String, key: [(String, BareValue)]) {
    let terms = key.map { "\"\($0.0)\" = ?" }
    add("DELETE FROM \"\(table)\" WHERE \(terms.joined(separator: " AND "))", key.map(\.1))
  }

  private mutating func add(_ sql: String, _ parameters: [BareValue]) {
    var index = statementIndex[sql]
    if index == nil {
      index = Int32(statements.count)
      statementIndex[sql] = index
      statements.append(sql)
    }
    changes.append(
      Change(statement: index ?? 0, first: values.count, count: Int32(parameters.count)))
    values.append(contentsOf: parameters)
  }

  /// Applies the changes to a new file with the tables of `schema`, in durable transactions of
  /// `batch` changes.
  func apply(to path: String, tablesOf schema: String, batch: Int) throws -> Cost {
    let source = try BareSQLite(schema)
    let database = try BareSQLite(
      path, ["journal_mode = WAL", "synchronous = FULL", "recursive_triggers = ON"])
    for table in try source.modelTables() { try database.execute(table.create) }
    for statement in try source.indexStatements() + triggers { try database.execute(statement) }
    let prepared = try statements.map { try database.prepare($0) }
    defer { for statement in prepared { sqlite3_finalize(statement) } }
    let begin = try database.prepare("BEGIN IMMEDIATE")
    let commit = try database.prepare("COMMIT")
    defer {
      sqlite3_finalize(begin)
      sqlite3_finalize(commit)
    }
    var isDone = false
    let cost = Cost.of {
      isDone = texts.bytes.withUnsafeBufferPointer { texts -> Bool in
        guard let base = texts.baseAddress else { return changes.isEmpty }
        for (place, change) in changes.enumerated() {
          if place % batch == 0 { run(begin) }
          let statement = prepared[Int(change.statement)]
          for index in 0..<change.count {
            bind(values[change.first + Int(index)], statement, index + 1, base)
          }
          guard sqlite3_step(statement) == SQLITE_DONE else { return false }
          sqlite3_reset(statement)
          if place % batch == batch - 1 || place == changes.count - 1 { run(commit) }
        }
        return true
      }
    }
    if !isDone { throw database.failure("a change") }
    return cost
  }

  private func run(_ statement: OpaquePointer) {
    sqlite3_step(statement)
    sqlite3_reset(statement)
  }
}
