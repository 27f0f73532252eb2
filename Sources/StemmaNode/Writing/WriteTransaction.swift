import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// The writes of one commit in progress.
///
/// Each change is checked against its record in the tables, which include earlier changes of the
/// commit. It becomes an event and is applied to the tables inside a SQLite transaction. The node
/// commits the transaction after the log has synced the events, or rolls it back after an error.
package final class WriteTransaction {
  package let schema: Schema
  let tables: TablesTransaction
  let isInScope: (Partition) -> Bool
  /// Returns the logged events of a record in position order, without those of this commit group.
  let history: (RecordKey) throws(NodeError) -> [Event]
  let random: any RandomSource
  let wallClock: any Clock
  /// Milliseconds since 1970 when the commit began.
  let wall: UInt64
  private(set) var clock: HybridClock
  var identifiers: UUIDv7
  /// The generator for integer keys in this commit; nil until one is needed.
  var integers: IntegerIdentifiers?
  let commit: CommitID
  var origin: Origin { commit.origin }
  /// The commit; nil as long as it has no event.
  package var madeCommit: CommitID? { events.isEmpty ? nil : commit }

  /// The author, message and source of this commit.
  package var message: CommitMessage
  /// Whether references to absent records are refused.
  package var refusesDangling = false
  /// If not nil, collects such references instead.
  package var dangling: [DanglingReference]?
  /// Whether a write of the shown value resolves its field's conflict, instead of having no effect.
  package var closesConflicts = true
  /// Whether a partition lost events to corruption, which makes its records read-only.
  var isCorrupt: (Partition) -> Bool = { _ in false }
  /// The partitions that the caller may change.
  var writable = Scope.everything
  package private(set) var events: [Event] = []
  /// The digests of `events`, at the same indices.
  private(set) var digests: [StreamHash] = []
  private var digester = EventDigester()
  package internal(set) var counts = WriteCounts()
  /// Corruption of the tables that the body or its reader met, even if it caught the error.
  private(set) var tableCorruption: TablesError?

  /// The schema index of the model that was changed last.
  private var lastModel: Int?
  /// The event that causes the next events.
  private var cause: QualifiedEventID?

  init(
    schema: Schema, tables: TablesTransaction, commit: CommitID, clock: HybridClock, identifiers: UUIDv7,
    wall: any Clock, random: any RandomSource, message: CommitMessage,
    isInScope: @escaping (Partition) -> Bool,
    history: @escaping (RecordKey) throws(NodeError) -> [Event]
  ) {
    self.schema = schema
    self.tables = tables
    self.commit = commit
    self.clock = clock
    self.identifiers = identifiers
    wallClock = wall
    self.wall = wall.milliseconds()
    self.random = random
    self.message = message
    self.isInScope = isInScope
    self.history = history
  }

  // MARK: Reading

  package func model(_ name: String) throws(NodeError) -> Model {
    // Consecutive changes often concern the same model.
    if lastModel.map({ schema.models[$0].name.hasSameBytes(as: name) }) == true, let lastModel {
      return schema.models[lastModel]
    }
    guard let index = schema.models.firstIndex(where: { $0.name == name }) else {
      throw .mutation(.unknownModel(name, known: schema.models.map(\.name)))
    }
    lastModel = index
    return schema.models[index]
  }

  package func state(_ model: Model, _ key: Key) throws(NodeError) -> RecordState {
    do { return try tables.state(of: key, in: model) ?? RecordState() } catch { throw .tables(error) }
  }

  /// The state of a record that must exist.
  func existing(_ model: Model, _ key: Key) throws(NodeError) -> RecordState {
    let state = try state(model, key)
    guard state.exists(rules(model)) else {
      throw .mutation(.notFound(model: model.name, key: text(key, model)))
    }
    return state
  }

  package func rules(_ model: Model) -> MergeRules { tables.tableSet.rules(of: model) }

  package func text(_ key: Key, _ model: Model) -> String { KeyWords.text(key, of: model) }

  /// Reads a key. With `mints`, generates an absent part named `id`.
  func key(_ json: JSON?, of model: Model, mints: Bool = false) throws(NodeError) -> Key {
    guard json != nil || mints else {
      throw .mutation(.missingKey(model: model.name, parts: model.keyFields.map { model.fields[$0].name }))
    }
    if mints { try prepareMinting(model) }
    do {
      return try schema.key(json, of: model, mint: mints ? { self.mintedPart(of: model) } : nil)
    } catch { throw .mutation(.value(error)) }
  }

  /// Notes an error that the body or its reader met. Corruption of the tables ends the commit.
  package func note(_ error: any Error) {
    switch error {
    case let error as TablesError: if case .needsRebuild = error { tableCorruption = error }
    case NodeError.tables(let error): note(error)
    default: break
    }
  }

  // MARK: Recording

  /// Appends one event to the commit and applies it to the tables.
  func record(
    _ operation: EventOperation, _ model: Model, _ key: Key, state: RecordState, relationship: String? = nil,
    assignments: [Assignment] = [], milliseconds: UInt64?
  ) throws(NodeError) {
    let partition = Partition(model: model, key: key)
    guard isInScope(partition) else {
      throw .mutation(.outsideScope(partition: partition.description))
    }
    guard writable.contains(partition) else { throw .replication(.notPermitted([partition])) }
    guard !isCorrupt(partition) else { throw .corruptPartition(partition.description) }
    var timestamp: Timestamp?
    if let milliseconds {
      timestamp = HybridClock.imported(milliseconds: milliseconds, wall: wall, above: state.latest)
      counts.note(requested: milliseconds, given: timestamp)
    }
    var assignments = assignments
    maintainTimes(&assignments, operation, model, (timestamp ?? Timestamp(milliseconds: wall)).milliseconds)
    assignments.sort { $0.field < $1.field }
    do {
      let event = Event(
        partition: partition, model: model.storedName, key: key, operation: operation,
        relationship: relationship, assignments: assignments,
        id: EventID(origin, try tables.head(partition, origin).sequence.next), context: state.context,
        version: state.version.next, timestamp: timestamp ?? clock.now(wall: wall, above: state.latest),
        commit: commit, cause: cause)
      let digest = digester.digest(of: event).hash
      try tables.apply(event, digest: digest)
      events.append(event)
      digests.append(digest)
    } catch { throw .tables(error) }
  }

  /// Sets `createdAt` and `updatedAt` if the model declares them and the change does not set them.
  private func maintainTimes(
    _ assignments: inout [Assignment], _ operation: EventOperation, _ model: Model, _ milliseconds: UInt64
  ) {
    guard operation != .delete else { return }
    if model.createdAt == nil, model.updatedAt == nil { return }
    for (name, isOnlyAtCreation) in [(model.createdAt, true), (model.updatedAt, false)] {
      guard let name, let field = model.field(named: name), !isOnlyAtCreation || operation == .create,
        !assignments.contains(where: { $0.field == field.storedName })
      else { continue }
      let value: Value =
        field.type.scalar == .awsTimestamp
        ? .int(Int64(milliseconds / 1000))
        : .string(DateText(millisecondsSince1970: Int64(clamping: milliseconds)).utcText ?? "")
      assignments.append(Assignment(field.storedName, value))
    }
  }

  /// Records events inside `body` with `event` as their cause.
  func causing<Result>(
    _ event: QualifiedEventID?, _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    let outer = cause
    cause = event
    defer { cause = outer }
    return try body()
  }

  /// Traps if the commit is inconsistent. Runs in debug builds at the end of each commit.
  ///
  /// - All events are of this commit and in scope, each in the partition of its key.
  /// - The sequences of each stream are consecutive, also after a partial rollback.
  package func checkInvariants() {
    precondition(cause == nil, "an event causes others while they are made")
    precondition(digests.count == events.count, "each event has its digest")
    let models = Dictionary(uniqueKeysWithValues: schema.models.map { ($0.storedName, $0) })
    var last: [Partition: SequenceNumber] = [:]
    for event in events {
      precondition(
        event.commit == commit && event.id.origin == origin, "a commit has one name and one writer")
      precondition(isInScope(event.partition) && !isCorrupt(event.partition), "what is written is held whole")
      let model = models[event.model]
      precondition(
        model.map { Partition(model: $0, key: event.key) } == event.partition, "a key has one partition")
      precondition(
        last[event.partition]?.next ?? event.id.sequence == event.id.sequence, "events are a run")
      last[event.partition] = event.id.sequence
    }
  }

  /// Discards the rehearsed events so far. The tables keep their effects.
  package func forgetEvents() { (events, digests) = ([], []) }

  /// Runs `body` as a nested commit, which is rolled back if it throws.
  package func separately(_ body: (WriteTransaction) throws(NodeError) -> Void) throws(NodeError) {
    _ = try nested { transaction throws(NodeError) in
      try body(transaction)
      return transaction.events.count
    }
  }

  /// As `separately`. Returns the number of new events; `body` returns the total.
  package func nested(_ body: (WriteTransaction) throws(NodeError) -> Int) throws(NodeError) -> Int {
    let before = events.count
    let countsBefore = counts
    do throws(NodeError) {
      return try tables.savepoint(NodeError.tables) { () throws(NodeError) in try body(self) } - before
    } catch {
      events.removeSubrange(before...)
      digests.removeSubrange(before...)
      counts = countsBefore
      throw error
    }
  }
}

/// Deviations of a commit from the request of its source.
package struct WriteCounts: Equatable, Sendable {
  /// Events with a requested time before the record's last event, which they follow directly.
  package private(set) var early = 0
  /// Events with a requested time in the future; they have the time of the import.
  package private(set) var future = 0
  /// Records that were deleted under one key and created under another.
  package internal(set) var moved = 0
  package init() {}

  mutating func note(requested: UInt64, given: Timestamp?) {
    guard let given else { return future += 1 }
    if given.milliseconds != requested { early += 1 }
  }

  package static func + (a: WriteCounts, b: WriteCounts) -> WriteCounts { a.adding(b, 1) }
  package static func - (a: WriteCounts, b: WriteCounts) -> WriteCounts { a.adding(b, -1) }

  private func adding(_ other: WriteCounts, _ sign: Int) -> WriteCounts {
    var sum = self
    sum.early += sign * other.early
    sum.future += sign * other.future
    sum.moved += sign * other.moved
    return sum
  }
}

/// Generated key parts, and checks of typed values. (JSON is checked when it is read.)
extension WriteTransaction {
  /// Prepares `mintedPart` for a model. The caller runs this first.
  func prepareMinting(_ model: Model) throws(NodeError) {
    guard integers == nil, let part = model.autoPopulatedField, model.fields[part].type.scalar == .int else {
      return
    }
    do {
      integers = IntegerIdentifiers(origin: origin, eventCount: try tables.eventCount(of: origin))
    } catch { throw .tables(error) }
  }

  /// A new value for the key part named `id`: a UUIDv7 as text, or an integer that no other node
  /// generates.
  func mintedPart(of model: Model) -> Value {
    guard let part = model.autoPopulatedField, model.fields[part].type.scalar == .int,
      let number = integers?.mint()
    else { return .string(identifiers.mint(clock: wallClock, random: random)) }
    return .int(number)
  }

  /// The key of a record to write. Checks its parts and generates the one named `id` if it is nil.
  ///
  /// - Throws: `missingKey` if another part is nil; `value` if the type does not allow a part, or
  ///   if the key is too long.
  package func key(_ parts: [KeyPart?], of model: Model) throws(NodeError) -> Key {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(parts.count * 40)
    for (position, part) in zip(model.keyFields, parts) {
      let value: Value
      if let part {
        do { value = try checked(part.value, model.fields[position], model) } catch {
          throw .mutation(.value(error))
        }
      } else if position == model.autoPopulatedField {
        try prepareMinting(model)
        value = mintedPart(of: model)
      } else {
        throw .mutation(
          .missingKey(model: model.name, parts: model.keyFields.map { model.fields[$0].name }))
      }
      guard let whole = KeyPart(value) else {
        throw .mutation(
          .missingKey(model: model.name, parts: model.keyFields.map { model.fields[$0].name }))
      }
      Key.encode(whole, into: &encoded)
    }
    let key = Key(trusted: encoded)
    // A short key is within every limit: a byte becomes three of a partition's name at most.
    if encoded.count > Limits.partition / 4 {
      do { _ = try schema.key(schema.json(of: key, model: model), of: model) } catch {
        throw .mutation(.value(error))
      }
    }
    return key
  }

  /// Values in the canonical form of their fields.
  ///
  /// - Throws: `value` for a value that its field's type does not allow. Null passes; the operation
  ///   decides whether it is allowed.
  func checked(_ values: [Assignment], _ model: Model, _ key: Key) throws(NodeError) -> [Assignment] {
    var values = values
    // Values mostly come in the order of the fields.
    var next = 0
    for index in values.indices {
      let name = values[index].field
      if !(next < model.fields.count && model.fields[next].storedName == name) {
        guard let place = model.fields.firstIndex(where: { $0.storedName == name }) else { continue }
        next = place
      }
      let field = model.fields[next]
      next += 1
      do { values[index].value = try checked(values[index].value, field, model) } catch {
        throw .mutation(.value(error.named(by: text(key, model))))
      }
    }
    return values
  }

  func checked(_ value: Value, _ field: Field, _ model: Model) throws(ValueError) -> Value {
    switch (value, field.type.scalar) {
    case (.null, _), (.bool, .boolean), (.int, .int), (.int, .awsTimestamp): return value
    case (.string(let text), .string) where text.utf8.count <= Limits.value: return value
    case (.string(let text), .id) where text.utf8.count <= Limits.value && !text.isUUIDShaped: return value
    case (.double(let number), .float) where number.isFinite: return value
    case (.double(let number), _) where !number.isFinite:
      throw ValueError(
        model: model.name, field: field.name, value: .string(number.description),
        rule: "a number that is neither infinite nor NaN")
    default: break
    }
    // Embedded values arrive as JSON text.
    guard field.type.scalar == nil, case .string(let text) = value else {
      return try schema.value(value.json, for: field, of: model.name)
    }
    let json: JSON
    do { json = try JSON.parse(text) } catch { json = .string(text) }
    return try schema.value(json, for: field, of: model.name)
  }
}
