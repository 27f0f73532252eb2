import StemmaEvents

// A revision names one exact state of a record, on every node. A write that names one is made on that state or not at all;
// without it, a change of a record that somebody else has changed too is merged with theirs.

extension Store.Transaction {
  /// The revision of a record as it was when this value was read; of one that no store made, as it is now.
  ///
  /// - Throws: `notFound`, `notCommitted`.
  public func revision<Row: Table>(of row: Row) throws -> String {
    try row._record.check(Row.modelName)
    let model = try store.model(of: Row.self)
    return try writing {
      try $0.revision(model, Self.key(row.primaryKey), readAt: row._record.view?.read)
    }
  }

  /// Updates the record if it is at this revision: what was set in the value is written on top of that state, whichever it
  /// was read at.
  ///
  /// - Throws: `revisionMismatch` with the current one, `notFound`.
  @discardableResult
  public func update<Row: Table>(_ row: Row, ifRevision revision: String) throws -> Row {
    let model = try store.model(of: Row.self)
    try writing { try $0.check(revision, model, Self.key(row.primaryKey)) }
    return try present(Row.self, try record(row, from: nil))
  }

  /// Deletes the record if it is at this revision.
  ///
  /// - Throws: `revisionMismatch` with the current one, `notFound`.
  public func delete<Row: Table>(_ row: Row, ifRevision revision: String) throws {
    let model = try store.model(of: Row.self)
    try writing { write in
      let key = Self.key(row.primaryKey)
      try write.check(revision, model, key)
      try write.delete(model, key)
    }
  }
}

extension Store {
  /// The revision of a record as it was when this value was read; of one that no store made, as it is now.
  ///
  /// Of a value that is older than the record, it reads the record's events.
  /// - Throws: `notFound`, `notCommitted`.
  public func revision<Row: Table>(of row: Row) async throws -> String {
    try row._record.check(Row.modelName)
    let (key, read) = (Transaction.key(row.primaryKey), row._record.view?.read)
    let model = try model(of: Row.self)
    return try await inspect { try $0.revision(of: key, in: model, readAt: read) }
  }

  /// Updates the record if it is at this revision, in a commit of its own.
  @discardableResult
  public func update<Row: Table>(_ row: Row, ifRevision revision: String) async throws -> Row {
    try await write { try $0.update(row, ifRevision: revision) }
  }

  /// Deletes the record if it is at this revision, in a commit of its own.
  public func delete<Row: Table>(_ row: Row, ifRevision revision: String) async throws {
    try await write { try $0.delete(row, ifRevision: revision) }
  }
}
