import StemmaEvents

/// Which rows of a table to read, change or delete. A value; nothing happens until a store runs it.
public struct Select<Row: Table>: Sendable {
  var predicates: [Fragment] = []
  var ordering: [Fragment] = []
  var limit: Int?
  var offset = 0

  init() {}

  /// Only rows for which this holds too.
  public func `where`(_ predicate: (Row.Columns) -> some ExpressionProtocol<Bool>) -> Select {
    var copy = self
    copy.predicates.append(predicate(Row.columns).fragment)
    return copy
  }

  /// Rows that are equal here come in the order of terms that follow, then in key order. Null comes first.
  public func order(_ term: (Row.Columns) -> some OrderingTerm) -> Select {
    var copy = self
    copy.ordering.append(term(Row.columns).ordering.fragment)
    return copy
  }

  public func limit(_ count: Int, offset: Int = 0) -> Select {
    var copy = self
    copy.limit = count
    copy.offset = offset
    return copy
  }

  var fragment: Fragment {
    let description = Row.description
    var statement = Fragment(sql: description.selection)
    for (index, predicate) in predicates.enumerated() {
      statement = statement + Fragment(sql: index == 0 ? " WHERE " : " AND ") + predicate
    }
    let key = description.key.map { Fragment(sql: "\"\(description.tableName)\".\"\($0.name)\"") }
    for (index, term) in (ordering + key).enumerated() {
      statement = statement + Fragment(sql: index == 0 ? " ORDER BY " : ", ") + term
    }
    if limit != nil || offset > 0 {
      statement =
        statement
        + Fragment(sql: " LIMIT ? OFFSET ?", bindings: [.int(Int64(limit ?? -1)), .int(Int64(offset))])
    }
    return statement
  }

  // MARK: Reading

  public func fetchAll(_ store: Store) async throws -> [Row] {
    let statement = fragment
    return try await store.read { try $0.rows(Row.self, statement.sql, statement.bindings, store) }
  }

  public func fetchOne(_ store: Store) async throws -> Row? { try await limit(1).fetchAll(store).first }

  public func fetchAll(_ transaction: Store.Transaction) throws -> [Row] { try transaction.rows(self) }

  // MARK: Changing

  /// Changes each of the rows; what differs afterwards is recorded, one event for each record.
  public func update(_ change: @escaping @Sendable (inout Row) throws -> Void) -> Update<Row> {
    Update(rows: self, change: change)
  }

  public func delete() -> Delete<Row> { Delete(rows: self) }
}

extension Table {
  /// All rows.
  public static var all: Select<Self> { Select() }

  public static func `where`(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Select<Self> {
    all.where(predicate)
  }

  public static func order(_ term: (Columns) -> some OrderingTerm) -> Select<Self> { all.order(term) }
  public static func limit(_ count: Int, offset: Int = 0) -> Select<Self> {
    all.limit(count, offset: offset)
  }

  /// The row with a key.
  public static func find(_ key: PrimaryKey) -> Select<Self> {
    var record = RecordWriter()
    key.write(to: &record)
    var select = all
    for (column, part) in zip(description.key, record.key) {
      select.predicates.append(
        Fragment(
          sql: "\"\(description.tableName)\".\"\(column.name)\" = ?", bindings: [part?.value ?? .null]))
    }
    return select
  }
}

extension Store.Transaction {
  func rows<Row: Table>(_ select: Select<Row>) throws -> [Row] {
    let statement = select.fragment
    return try write.prepare(statement.sql).rows(Row.self, statement.bindings, store)
  }
}
