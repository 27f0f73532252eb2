/// A statement that changes records: run by a store in a commit of its own, or as a part of one.
public protocol ChangeStatement<Row>: Sendable {
  /// The type of the records that it changes.
  associatedtype Row: Table
  /// Makes the change. `result` gets each record after the change, or before its deletion. If it is
  /// nil, these records are not read.
  func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws
}

extension ChangeStatement {
  /// Makes the change as a part of the transaction's commit.
  ///
  /// The records are changed one after the other. If one throws and the closure handles the error,
  /// the records before it stay changed in the commit.
  public func execute(_ transaction: Store.Transaction) throws { try run(transaction, nil) }

  /// Runs the statement in its own commit: all of it, or nothing.
  public func execute(_ store: Store) async throws { try await store.write { try execute($0) } }

  /// The same change, returning a value for each record: the record with `\.self`, or a property.
  public func returning<Output: Sendable>(
    _ output: @escaping @Sendable (Row) throws -> Output
  ) -> Returning<Self, Output> { Returning(change: self, output: output) }
}

/// A change that returns a value for each record.
public struct Returning<Change: ChangeStatement, Output: Sendable>: Sendable {
  let change: Change
  let output: @Sendable (Change.Row) throws -> Output

  /// Makes the change.
  public func fetchAll(_ transaction: Store.Transaction) throws -> [Output] {
    var all: [Output] = []
    try change.run(transaction) { all.append(try output($0)) }
    return all
  }

  /// Makes the whole change; returns the output of the first record.
  public func fetchOne(_ transaction: Store.Transaction) throws -> Output? {
    try fetchAll(transaction).first
  }

  /// Makes the change in its own commit.
  public func fetchAll(_ store: Store) async throws -> [Output] {
    try await store.write { try fetchAll($0) }
  }

  /// Makes the whole change in its own commit; returns the first record's output, or nil.
  public func fetchOne(_ store: Store) async throws -> Output? { try await fetchAll(store).first }
}

/// Creates one record for each draft, in their order. Made by `insert`.
public struct Insert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]
  /// The change of an existing record with the draft's key.
  let conflict: (@Sendable (inout Draft.Row, Draft) throws -> Void)?

  /// Fails with `alreadyExists` for a key that is taken, unless there is a conflict closure, and
  /// with `invalid` for a value that its field does not allow.
  public func run(_ transaction: Store.Transaction, _ result: ((Draft.Row) throws -> Void)?) throws {
    for draft in drafts {
      if let conflict, var row = try transaction.row(of: draft) {
        try conflict(&row, draft)
        try transaction.update(row, result)
      } else if let result {
        try result(try transaction.insert(draft))
      } else {
        try transaction.create(draft)
      }
    }
  }
}

/// Creates a record for each draft in order, or updates the one with its key. Made by `upsert`.
public struct Upsert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]

  /// An existing record gets all values of its draft, default values included; only differences are
  /// recorded. A draft whose key is to be minted creates a record.
  public func run(_ transaction: Store.Transaction, _ result: ((Draft.Row) throws -> Void)?) throws {
    for draft in drafts {
      if let result {
        try result(try transaction.upsert(draft))
      } else {
        try transaction.record(draft)
      }
    }
  }
}

/// Changes the rows of a statement one by one. Made by `update { … }`.
public struct Update<Row: Table>: ChangeStatement {
  let rows: Select<Row>
  let change: @Sendable (inout Row) throws -> Void

  /// Reads all rows into memory before it changes the first, so a change cannot make other rows
  /// match.
  ///
  /// The closure gets whole rows. Fails with `unreadable`, and changes no row, if a column of one
  /// does not fit its Swift type, even if the closure does not use that column.
  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    for var row in try rows.fetchAll(transaction) {
      try change(&row)
      try transaction.update(row, result)
    }
  }
}

/// The result of `update(row)`: changes one record by its differences from what was read.
public struct RowUpdate<Row: Table>: ChangeStatement {
  let row: Row

  /// Fails with `notFound` if the record no longer exists, and with `requiredReference`.
  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    try transaction.update(row, result)
  }
}

/// Deletes the rows of a statement one by one. Made by `delete()`.
public struct Delete<Row: Table>: ChangeStatement {
  let rows: Select<Row>

  /// Finds all rows before it deletes the first; rows that a delete rule has deleted are skipped.
  /// Fails with `restricted` if a delete rule forbids a deletion. Unreadable rows can be deleted:
  /// rows are read only for `returning`, and for a closure of `map`.
  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    // A closure of `map` can throw; then nothing is deleted.
    if result != nil || rows.parts.isMapped {
      for row in try rows.fetchAll(transaction) {
        let key = Store.Transaction.key(row.primaryKey)
        if try transaction.deleteIfThere(Row.self, key) { try result?(row) }
      }
    } else {
      for key in try transaction.keys(of: rows) { _ = try transaction.deleteIfThere(Row.self, key) }
    }
  }
}

/// The drafts of `insert { … }`, in order; rows with a key count as drafts of themselves.
@resultBuilder
public enum DraftBuilder<Draft: TableDraft> {
  /// One draft.
  public static func buildExpression(_ draft: Draft) -> [Draft] { [draft] }
  /// Drafts that were made elsewhere.
  public static func buildExpression(_ drafts: [Draft]) -> [Draft] { drafts }
  /// A row as a draft of itself: with its key, and all of its values.
  public static func buildExpression(_ row: Draft.Row) -> [Draft] { [Draft(row)] }
  /// Rows as drafts of themselves.
  public static func buildExpression(_ rows: [Draft.Row]) -> [Draft] { rows.map { Draft($0) } }
  /// Line after line.
  public static func buildBlock(_ parts: [Draft]...) -> [Draft] { Array(parts.joined()) }
  /// The drafts of a `for` loop, in its order.
  public static func buildArray(_ parts: [[Draft]]) -> [Draft] { Array(parts.joined()) }
  /// None if the `if` does not hold.
  public static func buildOptional(_ part: [Draft]?) -> [Draft] { part ?? [] }
  /// The branch that was taken.
  public static func buildEither(first part: [Draft]) -> [Draft] { part }
  /// The branch that was taken.
  public static func buildEither(second part: [Draft]) -> [Draft] { part }
}

extension Table {
  /// Creates records. One whose key is taken is an error.
  public static func insert(@DraftBuilder<Draft> _ drafts: () -> [Draft]) -> Insert<Draft> {
    Insert(drafts: drafts(), conflict: nil)
  }
  /// Creates one record. If its key is taken, it is an error.
  public static func insert(_ draft: Draft) -> Insert<Draft> { Insert(drafts: [draft], conflict: nil) }

  /// Creates records; if a key is taken, `change` gets the existing record and the draft.
  public static func insert(
    @DraftBuilder<Draft> _ drafts: () -> [Draft],
    onConflictDoUpdate change: @escaping @Sendable (inout Self, Draft) throws -> Void
  ) -> Insert<Draft> { Insert(drafts: drafts(), conflict: change) }

  /// Creates records; existing records with their keys get the drafts' values.
  public static func upsert(@DraftBuilder<Draft> _ drafts: () -> [Draft]) -> Upsert<Draft> {
    Upsert(drafts: drafts())
  }
  /// Creates a record; an existing record with its key gets the draft's values.
  public static func upsert(_ draft: Draft) -> Upsert<Draft> { Upsert(drafts: [draft]) }

  /// Changes each row; differences are recorded.
  public static func update(_ change: @escaping @Sendable (inout Self) throws -> Void) -> Update<Self> {
    all.update(change)
  }
  /// Records the differences from the record as it was read, and merges them with later changes of
  /// others.
  public static func update(_ row: Self) -> RowUpdate<Self> { RowUpdate(row: row) }
  /// Deletes all rows, one event for each record.
  public static func delete() -> Delete<Self> { all.delete() }
  /// Deletes the record with this row's key, whatever was changed since the row was read; nothing
  /// if it is gone. To delete it as it was read, use `store.delete(row)`.
  public static func delete(_ row: Self) -> Delete<Self> { find(row.primaryKey).delete() }
}
