/// A statement that changes records: run by a store in a commit of its own, or as a part of one.
public protocol ChangeStatement<Row>: Sendable {
  associatedtype Row: Table
  /// Makes the change.
  ///
  /// - Parameter result: gets each record as the change leaves it, or, if it deletes it, as it was. Nil: nobody wants
  ///   to know, which spares making them.
  func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws
}

extension ChangeStatement {
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

  public func fetchOne(_ store: Store) async throws -> Output? { try await fetchAll(store).first }
}

public struct Insert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]
  /// What to do with a record that is there.
  let conflict: (@Sendable (inout Draft.Row, Draft) throws -> Void)?

  public func run(_ transaction: Store.Transaction, _ result: ((Draft.Row) throws -> Void)?) throws {
    for draft in drafts {
      if let conflict, var row = try transaction.row(of: draft) {
        try conflict(&row, draft)
        let fresh = try transaction.update(row)
        try result?(fresh)
      } else if let result {
        try result(try transaction.insert(draft))
      } else {
        try transaction.create(draft)
      }
    }
  }
}

public struct Upsert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]

  public func run(_ transaction: Store.Transaction, _ result: ((Draft.Row) throws -> Void)?) throws {
    for draft in drafts {
      let row = try transaction.upsert(draft)
      try result?(row)
    }
  }
}

public struct Update<Row: Table>: ChangeStatement {
  let rows: Select<Row>
  let change: @Sendable (inout Row) throws -> Void

  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    for var row in try rows.fetchAll(transaction) {
      try change(&row)
      let fresh = try transaction.update(row)
      try result?(fresh)
    }
  }
}

/// What `update(row)` gives: one record, compared with what was loaded.
public struct RowUpdate<Row: Table>: ChangeStatement {
  let row: Row

  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    let fresh = try transaction.update(row)
    try result?(fresh)
  }
}

public struct Delete<Row: Table>: ChangeStatement {
  let rows: Select<Row>

  public func run(_ transaction: Store.Transaction, _ result: ((Row) throws -> Void)?) throws {
    for row in try rows.fetchAll(transaction) {
      // A delete rule may have taken it along with one before it.
      guard try transaction.get(Row.self, byIdentifier: row.primaryKey) != nil else { continue }
      try transaction.delete(row)
      try result?(row)
    }
  }
}

/// The drafts of `insert { … }`, one after the other; rows that know their key count as drafts of themselves.
@resultBuilder
public enum DraftBuilder<Draft: TableDraft> {
  public static func buildExpression(_ draft: Draft) -> [Draft] { [draft] }
  public static func buildExpression(_ drafts: [Draft]) -> [Draft] { drafts }
  public static func buildExpression(_ row: Draft.Row) -> [Draft] { [Draft(row)] }
  public static func buildExpression(_ rows: [Draft.Row]) -> [Draft] { rows.map { Draft($0) } }
  public static func buildBlock(_ parts: [Draft]...) -> [Draft] { Array(parts.joined()) }
  public static func buildArray(_ parts: [[Draft]]) -> [Draft] { Array(parts.joined()) }
  public static func buildOptional(_ part: [Draft]?) -> [Draft] { part ?? [] }
  public static func buildEither(first part: [Draft]) -> [Draft] { part }
  public static func buildEither(second part: [Draft]) -> [Draft] { part }
}

extension Table {
  /// Creates records. One whose key is taken is an error.
  public static func insert(@DraftBuilder<Draft> _ drafts: () -> [Draft]) -> Insert<Draft> {
    Insert(drafts: drafts(), conflict: nil)
  }
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
  public static func upsert(_ draft: Draft) -> Upsert<Draft> { Upsert(drafts: [draft]) }

  /// Changes each row; what differs afterwards is recorded.
  public static func update(_ change: @escaping @Sendable (inout Self) throws -> Void) -> Update<Self> {
    all.update(change)
  }
  public static func update(_ row: Self) -> RowUpdate<Self> { RowUpdate(row: row) }
  public static func delete() -> Delete<Self> { all.delete() }
  public static func delete(_ row: Self) -> Delete<Self> { find(row.primaryKey).delete() }
}
