import StemmaEvents

/// The records on the other side of a `@HasMany` or `@ManyToMany`.
///
/// Every call queries the store; `loaded(\.members)` returns records that were read along with one.
/// As a sequence, it reads a page at a time:
///
///     for try await member in team.members { … }
public struct Related<Target>: Sendable {
  private let record: RecordHandle
  private let owner: ModelDescription
  private let name: String
  private let key: [Value]
}

extension Related where Target: Table {

  /// The records of a relationship of `owner`, by its name. Reads nothing.
  public init<Owner: Table>(of owner: Owner, _ name: String) {
    record = owner._record
    self.owner = Owner.description
    self.name = name
    key = owner.keyValues
  }

  /// As above. `reference` is never called: it lets the compiler check that the reference fields
  /// match the owner's key.
  public init<Owner: Table>(
    of owner: Owner, _ name: String, _ reference: (ReferenceFields<Target>) -> Owner.PrimaryKey.OptionalParts
  ) {
    self.init(of: owner, name)
  }

  /// The statement that selects them, to refine: `try team.members.rows().where { $0.isActive }`.
  ///
  /// - Throws: `models` if the relationship's join model does not belong to both sides.
  public func rows() throws(StoreError) -> Select<Target> {
    var select = Target.all
    select.parts.predicates.append(try owner.route(name).route.predicate(Target.description, key))
    return select
  }

  // MARK: Reading

  /// The related records as they are now, in key order.
  ///
  /// - Throws: `notFromStore` if the owner was not read from a store.
  public func fetch() async throws -> [Target] {
    let store = try store()
    return try await rows().fetchAll(store)
  }

  /// A page of them.
  public func fetch(limit: Int, offset: Int = 0) async throws -> [Target] {
    let store = try store()
    return try await rows().limit(limit, offset: offset).fetchAll(store)
  }

  /// In a transaction; inside of a commit it sees the changes made so far.
  public func fetch(_ transaction: Store.ReadTransaction) throws -> [Target] {
    try rows().fetchAll(transaction)
  }

  /// The first by key.
  public func first() async throws -> Target? { try await fetch(limit: 1).first }

  /// How many there are now, counted by the database.
  ///
  /// - Throws: `notFromStore` if the owner was not read from a store.
  public func count() async throws -> Int {
    let store = try store()
    return try await rows().fetchCount(store)
  }

  /// Whether there is none now. Reads one record at most.
  public func isEmpty() async throws -> Bool { try await first() == nil }

  private func store() throws(StoreError) -> Store { try record.store(of: owner.name) }

  // MARK: Changing

  /// Relates a record to this one in its own commit: sets its reference, or creates a join row.
  ///
  /// - Throws: `notFound` if one of the two does not exist.
  public func add(_ target: Target) async throws {
    try await store().write { try add(target, $0) }
  }

  /// Ends the relation to a record in its own commit: clears its reference, or deletes join rows.
  ///
  /// - Throws: `requiredReference`; `failed` if the record is not related to this one.
  public func remove(_ target: Target) async throws {
    try await store().write { try remove(target, $0) }
  }

  /// As a part of a commit.
  public func add(_ target: Target, _ transaction: Store.Transaction) throws {
    try transaction.relate(owner, key, name, target)
  }

  /// As a part of a commit.
  public func remove(_ target: Target, _ transaction: Store.Transaction) throws {
    try transaction.unrelate(owner, key, name, target)
  }
}

// MARK: Pages

extension Related: AsyncSequence where Target: Table {
  /// One related record.
  public typealias Element = Target

  /// Begins at the lowest key.
  public func makeAsyncIterator() -> Iterator { Iterator(related: self) }

  /// Continues after the last key, so that a concurrent change neither skips nor repeats records.
  public struct Iterator: AsyncIteratorProtocol {
    let related: Related
    private var page: ArraySlice<Target> = []
    private var last: [Value]?
    private var isAtEnd = false

    /// How many records are read at once.
    private static var pageSize: Int { 200 }

    init(related: Related) { self.related = related }

    /// The next record by key, from a page of up to 200 that is read when the previous one is used
    /// up; nil after the last.
    ///
    /// - Throws: `notFromStore`, and read errors; the next call retries at the same key.
    public mutating func next() async throws -> Target? {
      if page.isEmpty, !isAtEnd {
        var rows = try related.rows().limit(Self.pageSize)
        if let last { rows.parts.predicates.append(Self.isBehind(last)) }
        page = try await rows.fetchAll(related.store())[...]
        isAtEnd = page.count < Self.pageSize
        last = page.last?.keyValues
      }
      return page.popFirst()
    }

    private static func isBehind(_ key: [Value]) -> StatementText {
      let columns = Target.description.key.map(\.name)
      let marks = key.map { _ in "?" }.joined(separator: ", ")
      return StatementText(
        "\(Route.row(Target.description.tableName, columns)) > \(key.count == 1 ? marks : "(\(marks))")", key)
    }
  }
}
