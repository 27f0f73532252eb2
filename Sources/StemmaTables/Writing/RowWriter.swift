import GRDBSQLite
import StemmaEvents
import StemmaMerge

/// A buffer for the text of one row, which SQLite reads in place during the step.
final class RowText {
  fileprivate private(set) var bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 1)
  fileprivate private(set) var used = 0

  deinit { bytes.deallocate() }

  /// Discards all text and reserves `count` bytes. Text that was bound in place becomes invalid.
  func begin(_ count: Int) {
    used = 0
    if count > bytes.count {
      bytes.deallocate()
      bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count + count / 2, alignment: 1)
    }
  }

  /// Appends a copy of the text. `begin` must have reserved the space.
  func append(_ text: String) -> UnsafeRawBufferPointer {
    var text = text
    return text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Traps if more bytes are used than were reserved.
  func checkInvariants() { precondition(used <= bytes.count, "room is made before it is taken") }

  func append(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let place = UnsafeMutableRawBufferPointer(rebasing: bytes[used..<used + text.count])
    place.copyMemory(from: text)
    used += text.count
    return UnsafeRawBufferPointer(place)
  }
}

extension RowText {
  /// Copies the string part of a key that begins at `index`, without its escapes, and moves `index`
  /// past it. Nil if there is none.
  func append(keyPart key: [UInt8], _ index: inout Int) -> UnsafeRawBufferPointer? {
    key.withUnsafeBytes { key in
      guard key[index] == 0x02 else { return nil }
      let start = used
      index += 1
      while true {
        var end = index
        while end < key.count, key[end] != 0 { end += 1 }
        if end == key.count { return nil }
        _ = append(UnsafeRawBufferPointer(rebasing: key[index..<end]))
        index = end + 1
        guard index < key.count, key[index] == 0xFF else { break }
        _ = append(UnsafeRawBufferPointer(rebasing: key[end..<end + 1]))
        index += 1
      }
      return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[start..<used])
    }
  }
}

/// Writes the rows and tombstones of one model through statements that are prepared once.
final class RowWriter {
  let layout: TableLayout
  private let connection: Connection
  private let storedName: [UInt8]
  private let text = RowText()
  private var values: [Value] = []
  /// The size of the last state that was read; 0 if there was none.
  private(set) var readBytes = 0
  private let put: Statement
  private var remove: Statement?
  private var find: Statement?
  private var putTombstone: Statement?
  private var removeTombstone: Statement?
  private var findTombstone: Statement?
  private var putConflict: Statement?
  private var removeConflict: Statement?

  /// `isEmpty`: the tables are new, so rows are inserted, and an existing row is an error.
  init(_ layout: TableLayout, _ connection: Connection, isEmpty: Bool) throws(TablesError) {
    self.layout = layout
    self.connection = connection
    storedName = Array(layout.model.storedName.utf8)
    put = try connection.prepare(isEmpty ? layout.insert() : layout.upsert)
    values.reserveCapacity(layout.columns.count)
  }

  private func prepared(
    _ statement: inout Statement?, _ sql: @autoclosure () -> String
  ) throws(TablesError) -> Statement {
    if let statement { return statement }
    let made = try connection.prepare(sql())
    statement = made
    return made
  }

  // MARK: Rows

  /// Writes the row of an existing record. Returns the size of the keys, texts and states.
  @discardableResult
  func write(_ key: Key, _ state: RecordState) throws(TablesError) -> Int {
    let rules = layout.rules
    var room = key.bytes.count
    values.removeAll(keepingCapacity: true)
    for column in layout.ruleOfColumn {
      let value = state.value(ofField: column, rules)
      switch value {
      case .string(let text), .json(let text): room += text.utf8.count
      default: break
      }
      values.append(value)
    }
    text.begin(room)
    try bind(key, to: put)
    var index = Int32(layout.key.count)
    for value in values {
      index += 1
      switch value {
      case .string(let value), .json(let value): put.bind(index, inPlace: text.append(value))
      case .null: put.bind(index, null: ())
      case .bool(let flag): put.bind(index, Int64(flag ? 1 : 0))
      case .int(let number): put.bind(index, number)
      case .double(let number): put.bind(index, number)
      }
    }
    put.bind(index + 1, Int64(clamping: state.version.rawValue))
    let bytes = state.sealed(rules, omitsShown: true, key.bytes)
    try put.run(blob: bytes, at: index + 2)
    return room + bytes.count
  }

  /// Binds the parts of a key to the first parameters. Their text is copied to `text`, which must
  /// have space reserved, and stays there until the next row.
  private func bind(_ key: Key, to statement: Statement) throws(TablesError) {
    var index = 0
    for number in layout.keyKinds.indices {
      guard index < key.bytes.count else { throw unfit(key) }
      let parameter = Int32(number + 1)
      if layout.keyKinds[number] == .text {
        guard let string = text.append(keyPart: key.bytes, &index) else { throw unfit(key) }
        statement.bind(parameter, inPlace: string)
        continue
      }
      let part: KeyPart
      do { part = try Key.decodePart(key.bytes, &index) } catch { throw unfit(key) }
      switch (part, layout.keyKinds[number]) {
      case (.int(let integer), .integer): statement.bind(parameter, integer)
      case (.double(let double), .real): statement.bind(parameter, double)
      case (.bool(let flag), .boolean): statement.bind(parameter, Int64(flag ? 1 : 0))
      default: throw unfit(key)
      }
    }
    guard index == key.bytes.count else { throw unfit(key) }
  }

  private func unfit(_ key: Key) -> TablesError { .unfitKey(model: layout.model.name, key) }

  func deleteRow(_ key: Key) throws(TablesError) {
    let statement = try prepared(&remove, layout.delete)
    text.begin(key.bytes.count)
    try bind(key, to: statement)
    try statement.run()
    try checkDeleted(layout.model.tableName)
  }

  /// Throws `needsRebuild` unless one row was deleted: the table is not as it was read before.
  private func checkDeleted(_ table: String) throws(TablesError) {
    guard connection.changedRows == 1 else {
      throw .needsRebuild(path: connection.path, .corrupt("\(table): a row is missing"))
    }
  }

  /// The state of a record that has a row; nil if it has none.
  func row(_ key: Key) throws(TablesError) -> RecordState? {
    let statement = try prepared(&find, layout.selectByKey)
    text.begin(key.bytes.count)
    try bind(key, to: statement)
    readBytes = 0
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    readBytes = layout.size(statement)
    return try layout.state(statement, key)
  }

  // MARK: Tombstones and conflicts

  /// Parameters: model, key, partition, version, state.
  static let upsertTombstone = """
    INSERT INTO _stemma_tombstones (model, key, partition, version, state) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (model, key) DO UPDATE SET version = excluded.version, state = excluded.state
    """

  /// Parameters: model, key, partition.
  static let insertConflict =
    "INSERT OR IGNORE INTO _stemma_conflicts (model, key, partition) VALUES (?, ?, ?)"

  /// Returns the same as `write`.
  @discardableResult
  func writeTombstone(
    _ key: Key, _ partition: Partition, _ state: RecordState
  ) throws(TablesError) -> Int {
    let statement = try prepared(&putTombstone, Self.upsertTombstone)
    statement.bind(1, text: storedName)
    statement.bind(2, blob: key.bytes)
    statement.bind(3, text: partition.bytes)
    statement.bind(4, Int64(clamping: state.version.rawValue))
    let bytes = state.sealed(layout.rules, omitsShown: false, key.bytes)
    try statement.run(blob: bytes, at: 5)
    return key.bytes.count + bytes.count
  }

  func deleteTombstone(_ key: Key) throws(TablesError) {
    try runNamed(
      prepared(&removeTombstone, "DELETE FROM _stemma_tombstones WHERE model = ? AND key = ?"), key)
    try checkDeleted("_stemma_tombstones")
  }

  func tombstone(_ key: Key) throws(TablesError) -> RecordState? {
    let statement = try prepared(
      &findTombstone, "SELECT version, state FROM _stemma_tombstones WHERE model = ? AND key = ?")
    statement.bind(1, text: storedName)
    statement.bind(2, blob: key.bytes)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return try layout.tombstone(statement, 0, key)
  }

  func writeConflict(_ key: Key, _ partition: Partition) throws(TablesError) {
    let statement = try prepared(&putConflict, Self.insertConflict)
    statement.bind(3, text: partition.bytes)
    try runNamed(statement, key)
  }

  func deleteConflict(_ key: Key) throws(TablesError) {
    try runNamed(prepared(&removeConflict, "DELETE FROM _stemma_conflicts WHERE model = ? AND key = ?"), key)
    try checkDeleted("_stemma_conflicts")
  }

  /// Writes a record that the tables lack: its row or tombstone, and its conflict entry.
  func writeAll(_ key: Key, _ partition: Partition, _ state: RecordState) throws(TablesError) {
    if state.exists(layout.rules) { try write(key, state) } else { try writeTombstone(key, partition, state) }
    if state.isInConflict(layout.rules) { try writeConflict(key, partition) }
  }

  /// Deletes all entries of a record. Returns whether it had a row.
  func deleteAll(_ key: Key) throws(TablesError) -> Bool {
    var state = try row(key)
    let isRow = state != nil
    if !isRow { state = try tombstone(key) }
    guard let state else { return false }
    if state.isInConflict(layout.rules) { try deleteConflict(key) }
    if isRow { try deleteRow(key) } else { try deleteTombstone(key) }
    return isRow
  }

  /// Traps if a statement is in the middle of its rows, or a row does not match its table. For
  /// tests, between two rows.
  func checkInvariants() {
    text.checkInvariants()
    precondition(values.isEmpty || values.count == layout.columns.count, "a row has a value for each column")
    precondition(layout.keyKinds.count == layout.key.count, "a key has a value for each part")
    let made = [
      remove, find, putTombstone, removeTombstone, findTombstone, putConflict, removeConflict,
    ]
    for statement in made.compactMap({ $0 }) + [put] { statement.checkIsAtRest() }
  }

  /// Runs a statement whose first parameters are the model and the encoded key.
  private func runNamed(_ statement: Statement, _ key: Key) throws(TablesError) {
    statement.bind(1, text: storedName)
    statement.bind(2, blob: key.bytes)
    try statement.run()
  }
}

extension Statement {
  /// Runs a statement without result rows. `bind` binds parameters in place, from `bytes`.
  func run(
    _ bytes: [UInt8], _ bind: (Statement, UnsafeRawBufferPointer) -> Void
  ) throws(TablesError) {
    let code = bytes.withUnsafeBytes { bytes in
      bind(self, bytes)
      let code = sqlite3_step(handle)
      sqlite3_reset(handle)
      return code
    }
    guard code == SQLITE_DONE || code == SQLITE_ROW else { throw connection.failure(code) }
  }

  /// Binds a blob in place and runs the statement.
  func run(blob: [UInt8], at index: Int32) throws(TablesError) {
    let code = blob.withUnsafeBytes { bytes in
      sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), nil)
      let code = sqlite3_step(handle)
      sqlite3_reset(handle)
      return code
    }
    guard code == SQLITE_DONE || code == SQLITE_ROW else { throw connection.failure(code) }
  }
}
