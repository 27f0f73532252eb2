import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaSchema
import StemmaTables

extension Store {
  /// A commit in progress. Reads see its changes.
  public final class Transaction: ReadTransaction {
    let write: WriteTransaction
    let recorded: RecordedSettings
    /// The source of rows that are read without a statement.
    private let memory: RowSource

    init(_ store: Store, _ write: WriteTransaction, _ recorded: RecordedSettings) {
      self.recorded = recorded
      self.write = write
      memory = RowSource(store)
      super.init(store) { sql in
        do throws(NodeError) { return try write.prepare(sql) } catch {
          write.note(error)
          throw StoreError(error)
        }
      }
    }

    /// Runs a change of the commit at the node's level; translates its errors.
    func writing<Result>(_ body: (WriteTransaction) throws -> Result) throws -> Result {
      try checkIsOpen()
      do { return try body(write) } catch {
        write.note(error)
        throw StoreError.translated(error)
      }
    }

    override func note(_ corruption: TablesError) { write.note(corruption) }

    override var openCommit: RecordedSettings? { write.events.isEmpty ? nil : recorded }

    // MARK: Reading

    /// The record with a key as this commit has changed it; nil if there is none any longer.
    public override func get<Row: Table>(
      _ type: Row.Type, byIdentifier key: Row.PrimaryKey
    ) throws -> Row? {
      try row(Row.self, Self.key(key))
    }

    private func row<Row: Table>(_ type: Row.Type, _ key: Key) throws -> Row? {
      let model = try store.model(of: Row.self)
      guard let (state, rules) = try writing({ try $0.shown(model, key) }) else { return nil }
      memory.commit = openCommit
      memory.show(try Row.description.values(of: key, state, model, rules), state.context)
      return try Row(RowReader(memory, Row.self))
    }

    // MARK: Writing

    /// Creates a record; an omitted key part named `id` is minted.
    ///
    /// - Throws: `alreadyExists`.
    @discardableResult
    public func insert<Draft: TableDraft>(_ draft: Draft) throws -> Draft.Row {
      let key = try create(draft)
      return try present(Draft.Row.self, key)
    }

    /// Creates a record from a row with its key.
    @discardableResult
    public func insert<Row: Table>(_ row: Row) throws -> Row { try insert(Row.Draft(row)) }

    /// The record with a draft's key; nil if there is none, or a key part is to be minted.
    func row<Draft: TableDraft>(of draft: Draft) throws -> Draft.Row? {
      var record = RecordWriter()
      draft.write(to: &record)
      let parts = record.key.compactMap { $0 }
      return parts.count == record.key.count ? try row(Draft.Row.self, Key(parts)) : nil
    }

    @discardableResult
    func create<Draft: TableDraft>(_ draft: Draft) throws -> Key {
      let model = try store.model(of: Draft.Row.self)
      var record = RecordWriter()
      draft.write(to: &record)
      let key = try writing { try $0.key(record.key, of: model) }
      let values = try assignments(record.values, Draft.Row.description, model)
      try writing { try $0.create(model, key, values) }
      return key
    }

    /// Creates the record, or updates the one that has its key.
    @discardableResult
    public func upsert<Draft: TableDraft>(_ draft: Draft) throws -> Draft.Row {
      try present(Draft.Row.self, try record(draft))
    }

    /// Creates the record, or updates the one that has its key; returns the key.
    @discardableResult
    func record<Draft: TableDraft>(_ draft: Draft) throws -> Key {
      let model = try store.model(of: Draft.Row.self)
      var record = RecordWriter()
      draft.write(to: &record)
      let key = try writing { try $0.key(record.key, of: model) }
      let values = try assignments(record.values, Draft.Row.description, model)
      try writing { write in
        if try write.exists(model, key) {
          // Times that the draft leaves to the node stay unchanged.
          let given = write.withoutUnsetTimes(values, model)
          try write.update(model, key, given) { given[$0].value == $1 }
        } else {
          try write.create(model, key, values)
        }
      }
      return key
    }

    /// Records the differences from the record as it was read, and returns its current state.
    ///
    /// Each copy of a value is compared with what it was read with, and what was recorded from it
    /// or its original. A field that another copy has recorded since conflicts if this one has set
    /// it, too, and stays unchanged otherwise. A value of no store is compared with the current
    /// one.
    /// - Throws: `notFound`, `requiredReference`, `notCommitted`.
    @discardableResult
    public func update<Row: Table>(_ row: Row) throws -> Row {
      try present(Row.self, try record(row, from: row._record.view))
    }

    /// The same. `result`, if any, gets the record after the update.
    func update<Row: Table>(_ row: Row, _ result: ((Row) throws -> Void)?) throws {
      let key = try record(row, from: row._record.view)
      if let result { try result(try present(Row.self, key)) }
    }

    /// Records changes on top of `view`; nil: the current state. Returns the record's key.
    func record<Row: Table>(_ row: Row, from view: RecordView?) throws -> Key {
      try row._record.check(Row.modelName)
      let model = try store.model(of: Row.self)
      var record = RecordWriter()
      row.write(to: &record)
      let key = try writing { try $0.key(record.key, of: model) }
      let columns = Row.description.columns.dropFirst(Row.description.keyCount)
      let values = try assignments(record.values, Row.description, model)
      let differences =
        row._record.unrecorded(record.values)
        ?? values.indices.map { Setting.Difference(column: $0, isFromRecorded: false) }
      let seen = try writing { write in
        try write.update(model, key, differences.map { values[$0.column] }, from: view) { index, old in
          let (place, isFromRecorded) = (differences[index].column, differences[index].isFromRecorded)
          if isFromRecorded { return false }
          return values[place].value == old
            || columns[columns.startIndex + place].canonical(Datum(old))?.value == record.values[place]
        }
      }
      let marks = row._record.marks(of: differences.map(\.column))
      if !marks.isEmpty, let newest = row._record.newestMark { recorded.note(marks, newest: newest, seen) }
      return key
    }

    /// Deletes the record as it was read. Later changes by others are not deleted unseen, but
    /// conflict with the deletion.
    ///
    /// - Throws: `notFound`, `notCommitted`, `restricted` if a delete rule forbids it.
    public func delete<Row: Table>(_ row: Row) throws {
      try row._record.check(Row.modelName)
      let model = try store.model(of: Row.self)
      try writing {
        try $0.delete(model, Self.key(row.primaryKey), readAt: row._record.view?.read)
      }
    }

    /// Deletes the record with a key in any state.
    ///
    /// - Throws: `notFound`, `restricted` if a delete rule forbids it.
    public func delete<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey) throws {
      let model = try store.model(of: Row.self)
      try writing { try $0.delete(model, Self.key(key)) }
    }

    /// Deletes the record with a key in any state. False if it is missing, because a delete rule
    /// may have deleted it with another.
    func deleteIfThere<Row: Table>(_ type: Row.Type, _ key: Key) throws -> Bool {
      let model = try store.model(of: Row.self)
      return try writing { write in
        guard try write.exists(model, key) else { return false }
        try write.delete(model, key)
        return true
      }
    }

    // MARK: Parts

    func present<Row: Table>(_ type: Row.Type, _ key: Key) throws -> Row {
      guard let row = try row(type, key) else {
        throw StoreError.notFound(
          model: Row.modelName, key: KeyWords.text(key, of: try store.model(of: Row.self)))
      }
      return row
    }

    /// The keys of a statement's rows; no other columns are read.
    func keys<Row: Table>(of rows: Select<Row>) throws -> [Key] {
      let description = Row.description
      let types = description.columns.prefix(description.keyCount).map(\.type)
      return try read(rows.parts.keysAlone) { cursor in
        var keys: [Key] = []
        while try cursor.next() {
          let row = cursor.row(of: Row.self)
          keys.append(Key(types.enumerated().compactMap { KeyPart(row.datum($0, $1).value) }))
        }
        return keys
      }
    }

    static func key(_ key: some TableKey) -> Key {
      var record = RecordWriter()
      key.write(to: &record)
      return Key(record.key.compactMap { $0 })
    }

    private func assignments(
      _ values: [Value], _ description: ModelDescription, _ model: Model
    ) throws -> [Assignment] {
      var assignments: [Assignment] = []
      assignments.reserveCapacity(values.count)
      for (column, value) in zip(description.columns.dropFirst(description.keyCount), values) {
        guard let field = model.field(named: column.name) else { throw Self.unknown(column, model) }
        // The node's schema may be stricter: a String property can be a field of type AWSEmail.
        let isChecked = field.type.base != column.type.base
        assignments.append(
          Assignment(
            field.storedName, isChecked ? try writing { try $0.value(value, of: field, model) } : value))
      }
      return assignments
    }

    private static func unknown(_ column: ModelDescription.Column, _ model: Model) -> StoreError {
      .models("the node's \(model.name) has no field \(column.name)")
    }
  }
}

// MARK: One commit for one change

extension Store {
  /// Creates a record in its own commit.
  @discardableResult
  public func insert<Draft: TableDraft>(_ draft: Draft) async throws -> Draft.Row {
    try await write { try $0.insert(draft) }
  }

  /// Creates a record from a row with its key, in its own commit.
  ///
  /// - Throws: `alreadyExists`.
  @discardableResult
  public func insert<Row: Table>(_ row: Row) async throws -> Row { try await write { try $0.insert(row) } }

  /// Creates the record, or gives an existing one the draft's values, in its own commit.
  @discardableResult
  public func upsert<Draft: TableDraft>(_ draft: Draft) async throws -> Draft.Row {
    try await write { try $0.upsert(draft) }
  }

  /// Records the differences from the record as it was read, and returns its current state.
  @discardableResult
  public func update<Row: Table>(_ row: Row) async throws -> Row { try await write { try $0.update(row) } }

  /// Deletes the record as it was read, in its own commit. Later changes by others conflict with
  /// the deletion.
  ///
  /// - Throws: `notFound`, `restricted` if a delete rule forbids it.
  public func delete<Row: Table>(_ row: Row) async throws { try await write { try $0.delete(row) } }

  /// Deletes the record with a key in any state, in its own commit.
  ///
  /// - Throws: `notFound`, `restricted` if a delete rule forbids it.
  public func delete<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey) async throws {
    try await write { try $0.delete(type, key) }
  }
}
