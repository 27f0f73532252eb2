import StemmaEvents
import StemmaTables

extension Store {
  /// Reads of one state. Valid only inside of the closure that receives it.
  public class ReadTransaction {
    let store: Store
    private let prepared: (String) throws -> Statement
    /// The connection outside of a commit; nil inside of one.
    private let connection: ReadConnection?
    private var hasEnded = false

    /// For a commit. `prepared` returns a statement that is not in use, without bound parameters.
    init(_ store: Store, _ prepared: @escaping (String) throws -> Statement) {
      self.store = store
      self.prepared = prepared
      connection = nil
    }

    init(_ store: Store, _ connection: ReadConnection) {
      self.store = store
      self.connection = connection
      prepared = { try connection.statement($0) }
    }

    /// The enclosing commit, if it has events: what is read is durable only if it succeeds.
    var openCommit: RecordedSettings? { nil }

    /// Ends the transaction: its closure has returned.
    final func end() { hasEnded = true }

    /// - Throws: `ended`.
    final func checkIsOpen() throws(StoreError) { if hasEnded { throw .ended } }

    /// The record with a key; nil if there is none.
    public func get<Row: Table>(_ type: Row.Type, byIdentifier key: Row.PrimaryKey) throws -> Row? {
      guard let connection else { return try Row.find(key).fetchOne(self) }
      try checkIsOpen()
      return try connection.row(Row.self, key, store)
    }

    /// - Throws: `notFound`.
    public func find<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey) throws -> Row {
      guard let row = try get(type, byIdentifier: key) else {
        throw StoreError.notFound(model: Row.modelName, key: try store.text(of: key, Row.self))
      }
      return row
    }

    /// Runs a statement and passes its rows to `body`.
    @usableFromInline
    final func read<Result>(_ text: StatementText, _ body: (RowCursor) throws -> Result) throws -> Result {
      try checkIsOpen()
      let statement = try prepared(text.sql)
      defer { if let corruption = statement.corruption { note(corruption) } }
      return try statement.read(text, store, in: openCommit, body)
    }

    /// Receives corruption that a statement met; its reader gets an error in words.
    func note(_ corruption: TablesError) {}
  }

  /// Runs several reads on one committed state, whatever is written at the same time.
  public func read<Result: Sendable>(
    _ body: @escaping @Sendable (ReadTransaction) throws -> Result
  ) async throws -> Result {
    try await read { [self] (connection: ReadConnection) in
      try connection.snapshot {
        let transaction = ReadTransaction(self, connection)
        defer { transaction.end() }
        return try body(transaction)
      }
    }
  }

  /// Runs a statement and passes its rows to `body`, on a thread that may wait for the disk.
  @usableFromInline
  func read<Result: Sendable>(
    _ text: StatementText, _ body: @escaping @Sendable (RowCursor) throws -> Result
  ) async throws -> Result {
    try await read { [self] (connection: ReadConnection) in
      try connection.statement(text.sql).read(text, self, body)
    }
  }
}

extension Statement {
  func read<Result>(
    _ text: StatementText, _ store: Store, in commit: RecordedSettings? = nil, isPast: Bool = false,
    _ body: (RowCursor) throws -> Result
  ) throws -> Result {
    // A read that ends early must not leave the statement and its transaction open.
    defer { reset() }
    for (index, value) in text.values.enumerated() { bind(Int32(index + 1), value) }
    for (index, relationship) in text.ranked {
      let child = try store.model(of: relationship.target())
      bind(Int32(index + 1), ReferenceRank(child, relationship.fields))
    }
    return try body(RowCursor(self, store, commit, isPast: isPast))
  }
}
