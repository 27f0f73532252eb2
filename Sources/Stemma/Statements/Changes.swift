/// A statement that changes records: run by a store in a commit of its own, or as a part of one.
public protocol ChangeStatement<Row>: Sendable {
  /// The type of the records that it changes.
  associatedtype Row: Table
  /// Makes the change. `result` gets each record as the change leaves it, or, if it deletes it, as it was. Nil: nobody
  /// wants to know, which spares making them.
  func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws
}

extension ChangeStatement {
  /// Makes the change as a part of the transaction's commit.
  ///
  /// The records are changed one after the other. If one throws and the closure does not pass the error on,
  /// those before it stay changed in the commit.
  public func execute(_ transaction: Store.Transaction) throws { try run(transaction, nil) }

  /// Runs the statement in a commit of its own: all of it, or nothing.
  public func execute(_ store: Store) async throws { try await store.write { try execute($0) } }

  /// The same change, which also gives something of each record: the record itself with `\.self`, or a property.
  public func returning<Output: Sendable>(
    _ output: @escaping @Sendable (Row) throws -> Output
  ) -> Returning<Self, Output> { Returning(change: self, output: output) }
}

/// A change that gives something of each record.
public struct Returning<Change: ChangeStatement, Output: Sendable>: Sendable {
  let change: Change
  let output: @Sendable (Change.Row) throws -> Output

  /// Makes the change.
  public func fetchAll(_ transaction: Store.Transaction) throws -> [Output] {
    var all: [Output] = []
    try change.run(transaction) { all.append(try output($0)) }
    return all
  }

  /// Makes the change, all of it; gives what the first record gives.
  public func fetchOne(_ transaction: Store.Transaction) throws -> Output? {
    try fetchAll(transaction).first
  }

  /// Makes the change in a commit of its own.
  public func fetchAll(_ store: Store) async throws -> [Output] {
    try await store.write { try fetchAll($0) }
  }

  /// Makes the change in a commit of its own, all of it; gives what the first record gives, nil if there is
  /// none.
  public func fetchOne(_ store: Store) async throws -> Output? { try await fetchAll(store).first }
}

/// Creates one record for each draft, in their order. Made by `insert`.
public struct Insert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]
  /// What to do with a record that is there.
  let conflict: (@Sendable (inout Draft.Row, Draft) throws -> Void)?

  /// Fails with `alreadyExists` for a key that is taken, unless there is a closure for that, and with
  /// `invalid` for a value that its field does not allow.
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

/// Creates one record for each draft, or updates the one that has its key, in their order. Made by `upsert`.
public struct Upsert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]

  /// A record that is there gets all of its draft's values, also those that the draft has by default; only
  /// what differs is recorded. A draft whose key is to be minted creates a record.
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

  /// Reads all rows before it changes the first, so a change does not make other rows fit the statement. All
  /// of them are in memory meanwhile.
  ///
  /// The closure gets whole rows: fails with `unreadable`, and changes none, if a column of one holds what its Swift type
  /// cannot, whether the closure touches it or not.
  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    for var row in try rows.fetchAll(transaction) {
      try change(&row)
      try transaction.update(row, result)
    }
  }
}

/// What `update(row)` gives: one record, compared with what was loaded.
public struct RowUpdate<Row: Table>: ChangeStatement {
  let row: Row

  /// Fails with `notFound` if the record is not there any more, and with `requiredReference`.
  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    try transaction.update(row, result)
  }
}

/// Deletes the rows of a statement one by one. Made by `delete()`.
public struct Delete<Row: Table>: ChangeStatement {
  let rows: Select<Row>

  /// Finds all rows before it deletes the first; what a delete rule has taken along is passed over. Fails
  /// with `restricted` if a delete rule forbids one. Whatever the rows hold they can be deleted: they are read only for
  /// `returning`, and where a closure of `map` is asked about each.
  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    // A closure of `map` may throw, and then nothing is to be deleted.
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

/// The drafts of `insert { … }`, one after the other; rows that know their key count as drafts of themselves.
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

  /// Creates records; where one has the key already, `change` gets it and the draft.
  public static func insert(
    @DraftBuilder<Draft> _ drafts: () -> [Draft],
    onConflictDoUpdate change: @escaping @Sendable (inout Self, Draft) throws -> Void
  ) -> Insert<Draft> { Insert(drafts: drafts(), conflict: change) }

  /// Creates records, or gives those that have their keys the drafts' values.
  public static func upsert(@DraftBuilder<Draft> _ drafts: () -> [Draft]) -> Upsert<Draft> {
    Upsert(drafts: drafts())
  }
  /// Creates a record, or gives the one that has its key the draft's values.
  public static func upsert(_ draft: Draft) -> Upsert<Draft> { Upsert(drafts: [draft]) }

  /// Changes each row; what differs afterwards is recorded.
  public static func update(_ change: @escaping @Sendable (inout Self) throws -> Void) -> Update<Self> {
    all.update(change)
  }
  /// Records what differs from the record as it was read, which is merged with what others have changed
  /// since.
  public static func update(_ row: Self) -> RowUpdate<Self> { RowUpdate(row: row) }
  /// Deletes all rows, one event for each record.
  public static func delete() -> Delete<Self> { all.delete() }
  /// Deletes the record with this row's key as it is then, whatever was changed since the row was read; none
  /// if it is not there any more. `store.delete(row)` deletes it as it was read.
  public static func delete(_ row: Self) -> Delete<Self> { find(row.primaryKey).delete() }
}
