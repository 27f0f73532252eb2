import GRDBSQLite
import StemmaEvents
import StemmaMerge
import StemmaSchema

/// How the table of a model stores its records.
///
/// A record is one row:
///
///     CREATE TABLE "books" (
///       "isbn" TEXT NOT NULL, "title" TEXT, "pages" INTEGER,      -- the fields, as the schema declares them
///       "_version" INTEGER NOT NULL, "_state" BLOB NOT NULL,      -- the record's version; what merging needs
///       PRIMARY KEY ("isbn")) WITHOUT ROWID
///
/// - A key that is one integer is `INTEGER PRIMARY KEY`, SQLite's own row number. Every other table
///   is WITHOUT ROWID: the primary key is the table, in key order.
/// - A field that no event has written shows its `@default`. A required field also shows it if an
///   event has written null. Without a default, the column is NULL even for a required field: a
///   peer or an older schema may have omitted the field.
/// - SQLite orders primary keys as `Key` orders its bytes (BINARY text, integers, doubles, false
///   before true), so `ORDER BY` the key columns is key order.
/// - A shown value is stored only in its column, unless its type differs from the schema's, as
///   after a schema change. Then `_state` has it, because the column's affinity may change it.
/// - `_state` ends with a checksum over all that new events build on (`StateChecksum`). A row with
///   a
///   changed byte is rejected, and the tables are rebuilt.
final class TableLayout: Sendable {
  /// The Swift and SQLite type of a column, and the type of `Value` that it holds exactly.
  enum Kind: String, Sendable {
    case text = "TEXT"
    case json = "TEXT /* JSON */"
    case integer = "INTEGER"
    case real = "REAL"
    case boolean = "INTEGER /* Boolean */"

    init(_ type: FieldType) {
      guard !type.isList else {
        self = .json
        return
      }
      switch type.base {
      case .embedded: self = .json
      case .enumeration: self = .text
      case .scalar(.int), .scalar(.awsTimestamp): self = .integer
      case .scalar(.float): self = .real
      case .scalar(.boolean): self = .boolean
      case .scalar: self = .text
      }
    }

    /// Whether a key part has this type.
    func fits(_ part: KeyPart) -> Bool {
      switch (part, self) {
      case (.string, .text), (.int, .integer), (.double, .real), (.bool, .boolean): true
      default: false
      }
    }
  }

  struct Column: Sendable {
    let field: Field
    let kind: Kind
  }

  let model: Model
  let rules: MergeRules
  /// Key parts, in the order of the key.
  let key: [Column]
  /// The kinds of `key`, which are needed with each row.
  let keyKinds: [Kind]
  let columns: [Column]
  /// The names of the key's columns in SQL, and of all columns.
  private let keyNames: [String]
  private let allNames: [String]
  private let storedName: [UInt8]
  /// The stored names of the leading key parts that make up the partition's name.
  private let partitionNames: [[UInt8]]
  /// For each of the rules' fields, its index in `columns`.
  let columnOfRule: [Int]
  /// For each of `columns`, its index among the rules' fields.
  let ruleOfColumn: [Int]

  init(_ model: Model) {
    self.model = model
    let rules = MergeRules(model)
    self.rules = rules
    key = model.keyFields.map { Column(field: model.fields[$0], kind: Kind(model.fields[$0].type)) }
    keyKinds = key.map(\.kind)
    storedName = Array(model.storedName.utf8)
    partitionNames = key.prefix(model.partitionDepth).map { Array($0.field.storedName.utf8) }
    let free = model.fields.indices.filter { !model.isKeyField($0) }
    columns = free.map { Column(field: model.fields[$0], kind: Kind(model.fields[$0].type)) }
    keyNames = key.map { Self.quoted($0.field.name) }
    allNames = keyNames + columns.map { Self.quoted($0.field.name) } + ["_version", "_state"]
    columnOfRule = rules.modelFields.compactMap { free.firstIndex(of: $0) }
    ruleOfColumn = free.compactMap { rules.modelFields.firstIndex(of: $0) }
  }

  func column(named name: String) -> Column? {
    key.first { $0.field.name == name } ?? columns.first { $0.field.name == name }
  }

  /// The partition of a record. Throws if the key's parts do not match the model.
  func partition(of key: Key) throws(TablesError) -> Partition {
    var index = 0
    for column in self.key {
      guard index < key.bytes.count else { throw .unfitKey(model: model.name, key) }
      let part: KeyPart
      do { part = try Key.decodePart(key.bytes, &index) } catch { throw .unfitKey(model: model.name, key) }
      guard column.kind.fits(part) else { throw .unfitKey(model: model.name, key) }
    }
    guard index == key.bytes.count else { throw .unfitKey(model: model.name, key) }
    return Partition(model: model, key: key)
  }

  /// Whether `partition(of:)` of a key with matching parts is `partition`. Allocates no partition.
  func holds(_ key: Key, in partition: Partition) -> Bool {
    var match = PartitionMatch(partition.bytes)
    if model.partitionDepth == 0 { return match.take(storedName) && match.isAtEnd }
    var index = 0
    for depth in 0..<model.partitionDepth {
      if depth > 0, !match.take(UInt8(ascii: ",")) { return false }
      guard match.take(partitionNames[depth]), match.take(UInt8(ascii: "=")) else { return false }
      if self.key[depth].kind == .text {
        index += 1
        while index < key.bytes.count {
          let byte = key.bytes[index]
          index += 1
          if byte == 0 {
            guard index < key.bytes.count, key.bytes[index] == 0xFF else { break }
            index += 1
          }
          guard match.take(escaping: byte) else { return false }
        }
      } else {
        guard index < key.bytes.count else { return false }
        let part: KeyPart
        do { part = try Key.decodePart(key.bytes, &index) } catch { return false }
        for byte in part.text.utf8 where !match.take(escaping: byte) { return false }
      }
    }
    return match.isAtEnd
  }

  // MARK: SQL

  /// `name` as an SQL identifier. Names of models, fields and tables hold no quotes.
  static func quoted(_ name: String) -> String { "\"\(name)\"" }

  var table: String { Self.quoted(model.tableName) }

  var isIntegerKeyed: Bool { key.count == 1 && key[0].kind == .integer }

  var createTable: String {
    var lines: [String] = model.fields.enumerated().map { index, field in
      let isKey = model.isKeyField(index)
      let kind = Kind(field.type).rawValue
      return Self.quoted(field.name) + " "
        + (isKey && isIntegerKeyed ? "INTEGER PRIMARY KEY" : isKey ? kind + " NOT NULL" : kind)
    }
    lines += ["_version INTEGER NOT NULL", "_state BLOB NOT NULL"]
    if !isIntegerKeyed { lines.append("PRIMARY KEY (\(keyNames.joined(separator: ", ")))") }
    return "CREATE TABLE \(table) (\n  \(lines.joined(separator: ",\n  "))\n)"
      + (isIntegerKeyed ? "" : " WITHOUT ROWID")
  }

  /// Parameters: key parts, fields, version, state; repeated for each row.
  func insert(rows: Int = 1) -> String {
    let places = "(\(allNames.map { _ in "?" }.joined(separator: ", ")))"
    return "INSERT INTO \(table) (\(allNames.joined(separator: ", "))) VALUES "
      + repeatElement(places, count: rows).joined(separator: ", ")
  }

  /// As `insert`, but overwrites a row with this key.
  var upsert: String {
    let changes = (columns.map { Self.quoted($0.field.name) } + ["_version", "_state"])
      .map { "\($0) = excluded.\($0)" }
    return "\(insert()) ON CONFLICT (\(keyNames.joined(separator: ", "))) DO UPDATE SET "
      + changes.joined(separator: ", ")
  }

  /// `a = ?1 AND b = ?2 …` for the first `count` key parts. `alias` is the table's in a join.
  func keyMatches(_ count: Int? = nil, alias: String? = nil) -> String {
    let prefix = alias.map { $0 + "." } ?? ""
    return keyNames.prefix(count ?? key.count).enumerated().map { "\(prefix)\($1) = ?\($0 + 1)" }
      .joined(separator: " AND ")
  }

  var delete: String { "DELETE FROM \(table) WHERE \(keyMatches())" }

  /// The columns of a row: key parts, fields, version, state. `alias` is the table's in a join.
  func selection(alias: String? = nil) -> String {
    "SELECT " + allNames.map { (alias.map { $0 + "." } ?? "") + $0 }.joined(separator: ", ")
  }

  var selectByKey: String { "\(selection()) FROM \(table) WHERE \(keyMatches())" }
  func keyOrder(alias: String? = nil) -> String {
    keyNames.map { (alias.map { $0 + "." } ?? "") + $0 }.joined(separator: ", ")
  }
  var selectAll: String { "\(selection()) FROM \(table) ORDER BY \(keyOrder())" }

  /// The columns of `_version` and `_state` in `selection`.
  var versionColumn: Int32 { Int32(key.count + columns.count) }
  var stateColumn: Int32 { versionColumn + 1 }

  // MARK: Columns of a statement that selects `selection`

  func value(_ statement: Statement, _ index: Int32, _ kind: Kind) -> Value {
    switch (statement.type(index), kind) {
    case (SQLiteType.null, _): .null
    case (SQLiteType.integer, .boolean) where (0...1).contains(statement.int(index)):
      .bool(statement.int(index) == 1)
    case (SQLiteType.integer, .real): .double(statement.double(index))
    case (SQLiteType.integer, _): .int(statement.int(index))
    case (SQLiteType.float, _): .double(statement.double(index))
    case (_, .json): .json(statement.text(index))
    default: .string(statement.text(index))
    }
  }

  /// The key of the current row, whose parts begin at column `first`.
  func key(_ statement: Statement, first: Int32 = 0) throws(TablesError) -> Key {
    Key(trusted: try keyParts(key.count, statement, first: first))
  }

  /// The first parts of the current row's key, encoded. Throws for a row that Stemma did not write:
  /// SQLite does not check changed bytes against the table's types.
  func keyParts(_ count: Int, _ statement: Statement, first: Int32 = 0) throws(TablesError) -> [UInt8] {
    var bytes: [UInt8] = []
    for (index, column) in key.prefix(count).enumerated() {
      guard let part = KeyPart(value(statement, first + Int32(index), column.kind)), column.kind.fits(part)
      else { throw corrupt("a key", statement) }
      Key.encode(part, into: &bytes)
    }
    return bytes
  }

  /// The key whose encoded form is in a column of the current row.
  func storedKey(_ statement: Statement, _ column: Int32) throws(TablesError) -> Key {
    let key = Key(trusted: Array(statement.bytes(column)))
    do { _ = try partition(of: key) } catch { throw corrupt("a key", statement) }
    return key
  }

  private func corrupt(_ what: String, _ statement: Statement) -> TablesError {
    .needsRebuild(path: statement.connection.path, .corrupt("\(what) of \(model.tableName)"))
  }

  /// Bytes of texts and state of the current row.
  func size(_ statement: Statement) -> Int {
    var size = 0
    for index in columns.indices where columns[index].kind == .text || columns[index].kind == .json {
      size += statement.bytes(Int32(key.count + index)).count
    }
    return size + statement.bytes(stateColumn).count
  }

  /// The record of the current row, which has this key.
  func state(_ statement: Statement, _ recordKey: Key) throws(TablesError) -> RecordState {
    try state(statement, recordKey, versionColumn, what: "row") { rule in
      let column = columnOfRule[rule]
      return value(statement, Int32(key.count + column), columns[column].kind)
    }
  }

  /// The record of a tombstone. Columns from `first` on: version, state.
  func tombstone(_ statement: Statement, _ first: Int32, _ key: Key) throws(TablesError) -> RecordState {
    try state(statement, key, first, what: "tombstone") { _ in .null }
  }

  /// `column` is the column of `_version`; `_state` follows it.
  private func state(
    _ statement: Statement, _ key: Key, _ column: Int32, what: String, value: (Int) -> Value
  ) throws(TablesError) -> RecordState {
    let defect: String
    do {
      let state = try RecordState(sealed: statement.bytes(column + 1), key, rules, column: value)
      if statement.int(column) == Int64(clamping: state.version.rawValue) { return state }
      defect = "its version is not that of its state"
    } catch { defect = "\(error)" }
    throw .needsRebuild(
      path: statement.connection.path,
      .corrupt("\(what) of \(model.name) \(KeyWords.text(key, of: model)): \(defect)"))
  }
}

/// Compares the name of a partition step by step.
private struct PartitionMatch {
  private let name: [UInt8]
  private var place = 0

  init(_ name: [UInt8]) { self.name = name }

  var isAtEnd: Bool { place == name.count }

  mutating func take(_ byte: UInt8) -> Bool {
    guard place < name.count, name[place] == byte else { return false }
    place += 1
    return true
  }

  mutating func take(_ bytes: [UInt8]) -> Bool {
    for byte in bytes where !take(byte) { return false }
    return true
  }

  /// A byte of a value; special bytes are percent-escaped.
  mutating func take(escaping byte: UInt8) -> Bool {
    if !Partition.isSpecial(byte) { return take(byte) }
    return take(UInt8(ascii: "%")) && take(Hexadecimal.upperDigit(byte >> 4))
      && take(Hexadecimal.upperDigit(byte & 15))
  }
}

/// SQLite's storage classes as constants that a pattern can name.
enum SQLiteType {
  static let null = SQLITE_NULL
  static let integer = SQLITE_INTEGER
  static let float = SQLITE_FLOAT
  static let blob = SQLITE_BLOB
}
