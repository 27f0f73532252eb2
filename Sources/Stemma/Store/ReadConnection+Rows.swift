import StemmaEvents
import StemmaTables

extension ReadConnection {
  /// All rows of a statement that selects the columns of `Row` first.
  func rows<Row: Table>(
    _ type: Row.Type, _ sql: String, _ bindings: [Value], _ store: Store, _ isPast: Bool
  ) throws -> [Row] {
    try statement(sql).read(StatementText(sql, bindings), store, isPast: isPast) { cursor in
      var rows: [Row] = []
      while try cursor.next() { rows.append(try Row(cursor.row(of: Row.self))) }
      return rows
    }
  }

  func row<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey, _ store: Store) throws -> Row? {
    var record = RecordWriter()
    key.write(to: &record)
    let statement = try statement(of: ObjectIdentifier(Row.self), Row.description.selectByKey)
    for (index, part) in record.key.enumerated() { statement.bind(Int32(index + 1), part?.value ?? .null) }
    defer { statement.reset() }
    let cursor = RowCursor(statement, store)
    return try withExtendedLifetime(cursor) { try cursor.next() ? try Row(cursor.row(of: Row.self)) : nil }
  }
}
