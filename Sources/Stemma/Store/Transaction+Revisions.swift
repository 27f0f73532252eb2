import StemmaEvents

// A revision identifies an exact state of a record, on every node. A write with a revision applies
// to that state, or fails. A write without one is merged with concurrent changes of others.

extension Store.Transaction {
  /// The revision of a record when this value was read; for a value of no store, the current one.
  ///
  /// - Throws: `notFound`, `notCommitted`.
  public func revision<Row: Table>(of row: Row) throws -> String {
    try row._record.check(Row.modelName)
    let model = try store.model(of: Row.self)
    return try writing {
      try $0.revision(model, Self.key(row.primaryKey), readAt: row._record.view?.read)
    }
  }

  /// Updates the record if it is at this revision. The settings of the value are written on top of
  /// that state, whichever state it was read at.
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
  /// The revision of a record when this value was read; for a value of no store, the current one.
  ///
  /// Reads the record's events if the value is older than the record.
  /// - Throws: `notFound`, `notCommitted`.
  public func revision<Row: Table>(of row: Row) async throws -> String {
    try row._record.check(Row.modelName)
    let (key, read) = (Transaction.key(row.primaryKey), row._record.view?.read)
    let model = try model(of: Row.self)
    return try await inspect { try $0.revision(of: key, in: model, readAt: read) }
  }

  /// Updates the record if it is at this revision, in its own commit.
  @discardableResult
  public func update<Row: Table>(_ row: Row, ifRevision revision: String) async throws -> Row {
    try await write { try $0.update(row, ifRevision: revision) }
  }

  /// Deletes the record if it is at this revision, in its own commit.
  public func delete<Row: Table>(_ row: Row, ifRevision revision: String) async throws {
    try await write { try $0.delete(row, ifRevision: revision) }
  }
}
