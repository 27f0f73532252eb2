import StemmaEvents
import StemmaTables

extension ReadConnection {
  /// All rows of a statement that selects `Row`'s columns from its first one on.
  func rows<Row: Table>(
    _ type: Row.Type, _ sql: String, _ bindings: [Value], _ store: Store
  ) throws -> [Row] {
    try statement(sql).read(StatementText(sql, bindings), store) { cursor in
      var rows: [Row] = []
      while try cursor.next() { rows.append(try Row(cursor.row(of: Row.self))) }
      return rows
    }
  }

  func row<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey, _ store: Store) throws -> Row? {
    var record = RecordWriter()
    key.write(to: &record)
    let description = Row.description
    let text = StatementText(description.selectByKey, record.key.map { $0?.value ?? .null })
    return try statement(text.sql).read(text, store) { cursor in
      try cursor.next() ? try Row(cursor.row(of: Row.self)) : nil
    }
  }
}
