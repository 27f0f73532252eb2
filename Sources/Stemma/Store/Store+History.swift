import StemmaEvents
import StemmaMerge
import StemmaHistory
import StemmaNode
import StemmaSchema
import StemmaTables

extension Store {
  // MARK: Events

  /// All events of a record, in the order of this node's log. Reads only the blocks that may have
  /// the record.
  public func history<Row: Table>(of row: Row) async throws -> [RecordEvent] {
    try await history(of: Row.self, row.primaryKey)
  }

  /// All events of the record with a key, deleted or not; none if it never existed. In the order of
  /// this node's log.
  public func history<Row: Table>(
    of type: Row.Type, _ key: Row.PrimaryKey
  ) async throws -> [RecordEvent] {
    let key = Transaction.key(key)
    return try await inspect { node in
      var filter = LogFilter()
      filter.model = node.schema.model(named: Row.modelName)
      filter.key = key
      var found: [RecordEvent] = []
      try node.forEachEvent(filter, newestFirst: false) { stored, message in
        found.append(RecordEvent(stored, message, node.description))
        return !Task.isCancelled
      }
      try Task.checkCancellation()
      return found
    }
  }

  /// Events in the order of this node's log, its own and those of peers, each once. Begins after
  /// `last`, or after the current end.
  public func observeEvents(after last: RecordEvent? = nil) async throws -> EventObservation {
    let changes = changes.stream()
    let start =
      if let last { last.position.next } else { try await inspect { $0.logEnd } }
    return EventObservation(store: self, changes: changes, start: start)
  }

  // MARK: The past

  /// A record as it was; nil if it did not exist. Past values belong to no store: a program can
  /// read and compare them, and copy them into drafts.
  public func get<Row: Table>(
    _ type: Row.Type, byIdentifier key: Row.PrimaryKey, asOf pointInTime: PointInTime
  ) async throws -> Row? {
    let key = Transaction.key(key)
    let model = try model(of: Row.self)
    return try await inspect { node in
      let life = try node.life(of: key, in: model, asOf: pointInTime.position)
      let state = try life.state()
      guard state.exists(life.rules) else { return nil }
      let description = Row.description
      let source = RowSource(nil)
      source.show(
        try description.values(of: key, state, model, life.rules), state.context)
      return try withExtendedLifetime(source) { try Row(RowReader(source, Row.self)) }
    }
  }

  /// Reads all records as they were, from temporary tables. If few records have changed since,
  /// these are built from a copy of the current tables. Otherwise they are built from the log, in
  /// time proportional to the log.
  public func asOf<Result: Sendable>(
    _ pointInTime: PointInTime, _ body: @escaping @Sendable (Past) throws -> Result
  ) async throws -> Result {
    try await inspect { [self] node in
      try node.withTables(asOf: pointInTime.position) { past in
        let connection = try ReadConnection(past.tablesFile)
        return try connection.endingWhenCancelled { try body(Past(store: self, connection: connection)) }
      }
    }
  }

  /// The tables of an earlier time. Valid only inside of the closure that receives it.
  public struct Past {
    let store: Store
    let connection: ReadConnection

    /// All rows as they were; all of them are in memory. Records among them belong to no store.
    ///
    /// - Throws: `unreadable` for a value that does not fit its Swift type, which may be newer.
    public func fetchAll<Statement: ReadStatement>(_ rows: Statement) throws -> [Statement.Output] {
      try read(rows.text) { try rows.all($0) }
    }

    /// All rows as they were, with their related records of that time, for `loaded`.
    public func fetchAll<Statement: ReadStatement>(
      _ rows: Statement,
      including paths: (Statement.Output.Relationships) -> [any RelationshipPaths<Statement.Output>]
    ) throws -> [Statement.Output] where Statement.Output: Table {
      let found = try fetchAll(rows)
      for path in paths(Statement.Output.relationships) {
        try connection.include(path.names[...], in: found, store, isPast: true)
      }
      return found
    }

    /// The first row as it was; nil if there was none.
    public func fetchOne<Statement: ReadStatement>(_ rows: Statement) throws -> Statement.Output? {
      try read(rows.text) { try $0.next() ? try rows.read($0) : nil }
    }

    /// The number of rows, without reading them.
    public func fetchCount<Statement: ReadStatement>(_ rows: Statement) throws -> Int {
      try read(rows.counted) { try $0.number() }
    }

    private func read<Result>(_ text: StatementText, _ body: (RowCursor) throws -> Result) throws -> Result {
      try connection.statement(text.sql).read(text, store, isPast: true, body)
    }

    /// The record with a key; nil if there was none.
    public func get<Row: Table>(_ type: Row.Type, byIdentifier key: Row.PrimaryKey) throws -> Row? {
      try fetchOne(Row.find(key))
    }
  }
}

extension ModelDescription {
  /// The values of a record's columns, in their order.
  func values(
    of key: Key, _ state: RecordState, _ model: Model, _ rules: MergeRules
  ) throws(StoreError) -> [Value] {
    var values = key.parts.map(\.value)
    for column in columns.dropFirst(keyCount) {
      guard let field = model.field(named: column.name) else {
        throw .models("the node's \(model.name) has no field \(column.name)")
      }
      values.append(state.value(of: field.storedName, rules))
    }
    return values
  }
}

/// Events in the order of a node's log.
public struct EventObservation: AsyncSequence {
  /// One event.
  public typealias Element = RecordEvent

  let store: Store
  let changes: AsyncStream<Void>
  let start: Position

  /// Iterators of one observation share its wake-ups: use one only, and `observeEvents` for more.
  public func makeAsyncIterator() -> Iterator {
    Iterator(store: store, changes: changes.makeAsyncIterator(), start: start)
  }

  /// Reads up to 1000 events at once into memory. Keeps the store alive.
  public struct Iterator: AsyncIteratorProtocol {
    let store: Store
    var changes: AsyncStream<Void>.Iterator
    /// The position up to which the log was read.
    private var start: Position
    private var found: ArraySlice<RecordEvent> = []

    /// How many events are in memory at once.
    private static let limit = 1000

    init(store: Store, changes: AsyncStream<Void>.Iterator, start: Position) {
      self.store = store
      self.changes = changes
      self.start = start
    }

    /// The next event, as soon as the log has it. Nil if the store is closed, or the task
    /// cancelled, while it waits.
    ///
    /// - Throws: `closed` if the store was closed before; `failed` if the log cannot be read.
    public mutating func next() async throws -> RecordEvent? {
      var isAtEnd = false
      while true {
        if let event = found.popFirst() { return event }
        if isAtEnd, await changes.next() == nil { return nil }
        let start = start
        let events: [RecordEvent]
        do {
          events = try await store.inspect { node in
            var filter = LogFilter()
            filter.since = .position(start)
            var events: [RecordEvent] = []
            try node.forEachEvent(filter, newestFirst: false) { stored, message in
              events.append(RecordEvent(stored, message, node.description))
              return events.count < Self.limit
            }
            return events
          }
        } catch is CancellationError { return nil }
        if let last = events.last { self.start = last.position.next }
        found = events[...]
        isAtEnd = events.count < Self.limit
      }
    }
  }
}
