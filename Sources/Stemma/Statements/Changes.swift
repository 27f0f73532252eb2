/// A statement that changes records: run by a store in a commit of its own, or as a part of one.
public protocol ChangeStatement: Sendable {
  func execute(_ transaction: Store.Transaction) throws
}

extension ChangeStatement {
  /// Runs the statement in a commit of its own: all of it, or nothing.
  public func execute(_ store: Store) async throws { try await store.write { try execute($0) } }
}

public struct Insert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]

  public func execute(_ transaction: Store.Transaction) throws {
    for draft in drafts { try transaction.create(draft) }
  }
}

public struct Upsert<Draft: TableDraft>: ChangeStatement {
  let drafts: [Draft]

  public func execute(_ transaction: Store.Transaction) throws {
    for draft in drafts { try transaction.upsert(draft) }
  }
}

public struct Update<Row: Table>: ChangeStatement {
  let rows: Select<Row>
  let change: @Sendable (inout Row) throws -> Void

  public func execute(_ transaction: Store.Transaction) throws {
    for var row in try transaction.rows(rows) {
      try change(&row)
      try transaction.update(row)
    }
  }
}

/// What `update(row)` gives: one record, compared with what was loaded.
public struct RowUpdate<Row: Table>: ChangeStatement {
  let row: Row

  public func execute(_ transaction: Store.Transaction) throws { try transaction.update(row) }
}

public struct Delete<Row: Table>: ChangeStatement {
  let rows: Select<Row>

  public func execute(_ transaction: Store.Transaction) throws {
    for row in try transaction.rows(rows) { try transaction.delete(row) }
  }
}

/// The drafts of `insert { … }`, one after the other.
@resultBuilder
public enum DraftBuilder<Element> {
  public static func buildExpression(_ element: Element) -> [Element] { [element] }
  public static func buildExpression(_ elements: [Element]) -> [Element] { elements }
  public static func buildBlock(_ parts: [Element]...) -> [Element] { Array(parts.joined()) }
  public static func buildArray(_ parts: [[Element]]) -> [Element] { Array(parts.joined()) }
  public static func buildOptional(_ part: [Element]?) -> [Element] { part ?? [] }
  public static func buildEither(first part: [Element]) -> [Element] { part }
  public static func buildEither(second part: [Element]) -> [Element] { part }
}

extension Table {
  public static func insert(@DraftBuilder<Draft> _ drafts: () -> [Draft]) -> Insert<Draft> {
    Insert(drafts: drafts())
  }
  public static func insert(_ draft: Draft) -> Insert<Draft> { Insert(drafts: [draft]) }
  public static func upsert(@DraftBuilder<Draft> _ drafts: () -> [Draft]) -> Upsert<Draft> {
    Upsert(drafts: drafts())
  }
  public static func update(_ row: Self) -> RowUpdate<Self> { RowUpdate(row: row) }
  public static func delete(_ row: Self) -> Delete<Self> { find(row.primaryKey).delete() }
}
