import StemmaTables

/// A statement that reads: run by a store, or inside of a transaction.
public protocol ReadStatement<Output>: Sendable {
  /// The output type of a row.
  associatedtype Output: Sendable
  /// The SQL and its parameters. Runs unchanged, on a read-only connection or inside of a commit.
  var text: StatementText { get }
  /// Makes the output of the current row of `row`.
  func read(_ row: RowCursor) throws -> Output
}

extension ReadStatement {
  /// The SQL that a store runs, with `?` for each value: for logs, and to analyze it with SQLite.
  public var sql: String { text.sql }

  // MARK: In a store, as it is now

  /// All rows of one committed state; all of them are in memory.
  ///
  /// - Throws: `unreadable` for a row that does not fit its Swift type, `closed`, `failed` for
  ///   invalid SQL.
  @inlinable
  public func fetchAll(_ store: Store) async throws -> [Output] {
    try await store.read(text) { try all($0) }
  }

  /// The first row; nil if there is none.
  @inlinable
  public func fetchOne(_ store: Store) async throws -> Output? {
    try await store.read(text) { try $0.next() ? try read($0) : nil }
  }

  /// The number of rows.
  public func fetchCount(_ store: Store) async throws -> Int {
    try await store.read(counted) { try $0.number() }
  }

  // MARK: In a transaction

  /// All rows; inside of a commit it sees the changes made so far.
  @inlinable
  public func fetchAll(_ transaction: Store.ReadTransaction) throws -> [Output] {
    try transaction.read(text) { try all($0) }
  }

  /// The first row; nil if there is none.
  @inlinable
  public func fetchOne(_ transaction: Store.ReadTransaction) throws -> Output? {
    try transaction.read(text) { try $0.next() ? try read($0) : nil }
  }

  /// The number of rows, without reading them.
  public func fetchCount(_ transaction: Store.ReadTransaction) throws -> Int {
    try transaction.read(counted) { try $0.number() }
  }

  // MARK: Parts

  @inlinable
  func all(_ rows: RowCursor) throws -> [Output] {
    var all: [Output] = []
    while try rows.next() { all.append(try read(rows)) }
    return all
  }

  var counted: StatementText {
    var counted = StatementText("SELECT count(*) FROM (")
    counted.append(text)
    counted.append(")")
    return counted
  }
}

extension ReadStatement where Output: Table {
  /// All rows, with their related records on some paths of any depth. Runs one statement for each
  /// step, whatever the number of rows. All results are of one committed state.
  public func fetchAll(
    _ store: Store, including paths: @Sendable (Output.Relationships) -> [any RelationshipPaths<Output>]
  ) async throws -> [Output] {
    let (names, text) = (paths(Output.relationships).map(\.names), text)
    return try await store.read { (connection: ReadConnection) in
      try connection.snapshot {
        let rows = try connection.statement(text.sql).read(text, store) { try all($0) }
        for path in names { try connection.include(path[...], in: rows, store) }
        return rows
      }
    }
  }
}

extension RowCursor {
  func number() throws -> Int { try next() ? try Int.read(row(of: nil), 0) : 0 }
}
