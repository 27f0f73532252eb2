import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaSchema
import StemmaTables

extension Store {
  /// One commit while it is being made. Reads see what it has written.
  public final class Transaction: ReadTransaction {
    let write: WriteTransaction
    let recorded: RecordedSettings
    /// What records are read from that need no statement.
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

    /// Does something to the commit at the node's level; its errors in the store's words.
    func writing<Result>(_ body: (WriteTransaction) throws -> Result) throws -> Result {
      try checkIsOpen()
      do { return try body(write) } catch {
        write.note(error)
        throw StoreError.translated(error)
      }
    }

    override func note(_ damage: TablesError) { write.note(damage) }

    override var openCommit: RecordedSettings? { write.events.isEmpty ? nil : recorded }

    // MARK: Reading

    /// The record with a key as this commit has made it so far; nil if there is none, or it has deleted it.
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

    /// Creates a record; a key part named `id` that the draft leaves out is minted.
    ///
    /// - Throws: `alreadyExists`.
    @discardableResult
    public func insert<Draft: TableDraft>(_ draft: Draft) throws -> Draft.Row {
      let key = try create(draft)
      return try present(Draft.Row.self, key)
    }

    /// Creates a record that knows its key.
    @discardableResult
    public func insert<Row: Table>(_ row: Row) throws -> Row { try insert(Row.Draft(row)) }

    /// The record with a draft's key; nil if there is none, or a part of the key is yet to be minted.
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

    /// Creates the record, or updates the one that has its key; gives that.
    @discardableResult
    func record<Draft: TableDraft>(_ draft: Draft) throws -> Key {
      let model = try store.model(of: Draft.Row.self)
      var record = RecordWriter()
      draft.write(to: &record)
      let key = try writing { try $0.key(record.key, of: model) }
      let values = try assignments(record.values, Draft.Row.description, model)
      try writing { write in
        if try write.exists(model, key) {
          // What the draft leaves to the node stays as it is.
          let given = write.withoutUnsetTimes(values, model)
          try write.update(model, key, given) { given[$0].value == $1 }
        } else {
          try write.create(model, key, values)
        }
      }
      return key
    }

    /// Records what differs from the record as it was read, and returns it as it is now.
    ///
    /// Each copy of a value stands for itself: what counts is what it was read with, and what was recorded from it or from
    /// the one that it was copied from. A field that another copy has recorded since is in conflict if this one has set
    /// it, too, and stays as it is otherwise. A value that no store made is compared with what is there.
    /// - Throws: `notFound`, `requiredReference`, `notCommitted`.
    @discardableResult
    public func update<Row: Table>(_ row: Row) throws -> Row {
      try present(Row.self, try record(row, from: row._record.view))
    }

    /// The same. `result` gets the record as it is then; nil: nobody wants to know.
    func update<Row: Table>(_ row: Row, _ result: ((Row) throws -> Void)?) throws {
      let key = try record(row, from: row._record.view)
      if let result { try result(try present(Row.self, key)) }
    }

    /// `view`: what the changes are made on top of; nil: the record as it is. Gives its key.
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

    /// Deletes the record as it was read: what somebody else changed of it since is not deleted unseen, but stays in
    /// conflict with the deletion.
    ///
    /// - Throws: `notFound`, `notCommitted`, `restricted` if the delete rule of a relationship forbids it.
    public func delete<Row: Table>(_ row: Row) throws {
      try row._record.check(Row.modelName)
      let model = try store.model(of: Row.self)
      try writing {
        try $0.delete(model, Self.key(row.primaryKey), readAt: row._record.view?.read)
      }
    }

    /// Deletes the record with a key, whatever its state.
    ///
    /// - Throws: `notFound`, `restricted` if the delete rule of a relationship forbids it.
    public func delete<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey) throws {
      let model = try store.model(of: Row.self)
      try writing { try $0.delete(model, Self.key(key)) }
    }

    /// Deletes the record with a key as it is now; false if it is not there: a delete rule may have taken it along with
    /// another one.
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

    /// The keys of a statement's rows, of which nothing else is read.
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
  /// Creates a record in a commit of its own.
  @discardableResult
  public func insert<Draft: TableDraft>(_ draft: Draft) async throws -> Draft.Row {
    try await write { try $0.insert(draft) }
  }

  /// Creates a record that knows its key, in a commit of its own.
  ///
  /// - Throws: `alreadyExists`.
  @discardableResult
  public func insert<Row: Table>(_ row: Row) async throws -> Row { try await write { try $0.insert(row) } }

  /// Creates the record, or gives the one that has its key the draft's values, in a commit of its own.
  @discardableResult
  public func upsert<Draft: TableDraft>(_ draft: Draft) async throws -> Draft.Row {
    try await write { try $0.upsert(draft) }
  }

  /// Records what differs from the record as it was read, and returns it as it is now.
  @discardableResult
  public func update<Row: Table>(_ row: Row) async throws -> Row { try await write { try $0.update(row) } }

  /// Deletes the record as it was read, in a commit of its own: what somebody else changed of it since stays
  /// in conflict with the deletion.
  ///
  /// - Throws: `notFound`, `restricted` if the delete rule of a relationship forbids it.
  public func delete<Row: Table>(_ row: Row) async throws { try await write { try $0.delete(row) } }

  /// Deletes the record with a key, whatever its state, in a commit of its own.
  ///
  /// - Throws: `notFound`, `restricted` if the delete rule of a relationship forbids it.
  public func delete<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey) async throws {
    try await write { try $0.delete(type, key) }
  }
}
