import StemmaEvents
import StemmaTables

extension ReadConnection {
  /// All rows of a statement that selects `Row`'s columns from its first one on.
  func rows<Row: Table>(
    _ type: Row.Type, _ sql: String, _ bindings: [Value], _ store: Store
  ) throws -> [Row] {
    try statement(sql).rows(type, bindings, store)
  }

  func row<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey, _ store: Store) throws -> Row? {
    var record = RecordWriter()
    key.write(to: &record)
    return try rows(type, Row.description.selectByKey, record.key.map { $0?.value ?? .null }, store).first
  }
}

extension Statement {
  func rows<Row: Table>(_ type: Row.Type, _ bindings: [Value], _ store: Store) throws -> [Row] {
    for (index, value) in bindings.enumerated() { bind(Int32(index + 1), value) }
    // A row that cannot be read must not leave the statement, and with it a read transaction, open.
    defer { reset() }
    let reader = RowReader(handle, Row.description, store: store)
    var rows: [Row] = []
    while try step() { rows.append(try Row(reader)) }
    return rows
  }
}
