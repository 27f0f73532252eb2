import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

/// The writes of one commit while they are being made.
///
/// Every change is checked against the state of its record as the tables show it (earlier changes of the same
/// commit included), becomes an event, and is applied to the tables at once, inside of a transaction that the
/// node commits after the log has synced the events, or rolls back. So an error anywhere leaves nothing behind.
package final class WriteTransaction {
  package let schema: Schema
  let tables: TablesTransaction
  let isInScope: (Partition) -> Bool
  /// The events of a record that the log holds, in arrival order; without those of this commit group.
  let history: (RecordKey) throws(NodeError) -> [Event]
  let random: any RandomSource
  let wallClock: any Clock
  /// Milliseconds since 1970 when the commit began.
  let wall: UInt64
  private(set) var clock: HybridClock
  var identifiers: UUIDv7
  /// The numbers for integer keys that this commit makes; nil until it needs one.
  var integers: IntegerIdentifiers?
  let commit: CommitID
  var origin: Origin { commit.origin }

  /// The author, reason and source of this commit.
  package var note: CommitNote
  /// Whether references to records that are not there are refused.
  package var refusesDangling = false
  /// If there is one, they are noted here instead.
  var dangling: [DanglingReference]?
  /// Whether a write of the shown value closes the conflict of its field. Otherwise it changes nothing.
  package var closesConflicts = true
  /// Whether a partition lost events to corruption: its records can only be read.
  var isDamaged: (Partition) -> Bool = { _ in false }
  package private(set) var events: [Event] = []
  package internal(set) var counts = WriteCounts()
  /// That of the tables that a reader or the body met, whatever became of the error.
  private(set) var tableDamage: TablesError?

  /// What the commit that is being made looks like from a record's side: the state before the next event.
  private var cause: EventName?

  init(
    schema: Schema, tables: TablesTransaction, commit: CommitID, clock: HybridClock, identifiers: UUIDv7,
    wall: any Clock, random: any RandomSource, note: CommitNote, isInScope: @escaping (Partition) -> Bool,
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
    self.note = note
    self.isInScope = isInScope
    self.history = history
  }

  // MARK: Reading

  func model(_ name: String) throws(NodeError) -> Model {
    guard let model = schema.model(named: name) else {
      throw .mutation(.unknownModel(name, known: schema.models.map(\.name)))
    }
    return model
  }

  func state(_ model: Model, _ key: Key) throws(NodeError) -> RecordState {
    do { return try tables.state(of: key, in: model) ?? RecordState() } catch { throw .tables(error) }
  }

  /// The state of a record that has to exist.
  func existing(_ model: Model, _ key: Key) throws(NodeError) -> RecordState {
    let state = try state(model, key)
    guard state.exists(rules(model)) else {
      throw .mutation(.notFound(model: model.name, key: text(key, model)))
    }
    return state
  }

  func rules(_ model: Model) -> MergeRules { tables.tableSet.rules(of: model) }

  func text(_ key: Key, _ model: Model) -> String { KeyWords.text(key, of: model) }

  /// Reads a key; a part named `id` that is absent is minted when `mints` is set.
  func key(_ json: JSON?, of model: Model, mints: Bool = false) throws(NodeError) -> Key {
    guard json != nil || mints else {
      throw .mutation(.missingKey(model: model.name, parts: model.keyFields.map { model.fields[$0].name }))
    }
    if mints { try prepareMinting(model) }
    do {
      return try schema.key(json, of: model, mint: mints ? { self.mintedPart(of: model) } : nil)
    } catch { throw .mutation(.value(error)) }
  }

  /// Says what the body, or who reads for it, met: damage of the tables is none that it could know how to go on from.
  package func note(_ error: any Error) {
    switch error {
    case let error as TablesError: if case .needsRebuild = error { tableDamage = error }
    case NodeError.tables(let error): note(error)
    default: break
    }
  }

  // MARK: Recording

  /// Appends one event to the commit and applies it to the tables.
  func record(
    _ operation: Operation, _ model: Model, _ key: Key, state: RecordState, relationship: String? = nil,
    assignments: [Assignment] = [], milliseconds: UInt64?
  ) throws(NodeError) {
    let partition = Partition(model: model, key: key)
    guard isInScope(partition) else {
      throw .mutation(.outsideScope(partition: partition.description))
    }
    guard !isDamaged(partition) else { throw .damagedPartition(partition.description) }
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
        dot: Dot(origin, try tables.head(partition, origin).sequence.next), context: state.context,
        version: state.version.next, timestamp: timestamp ?? clock.now(wall: wall, above: state.latest),
        commit: commit, cause: cause)
      try tables.apply(event)
      events.append(event)
    } catch { throw .tables(error) }
  }

  /// Sets `createdAt` and `updatedAt` where the model declares them and the change does not.
  private func maintainTimes(
    _ assignments: inout [Assignment], _ operation: Operation, _ model: Model, _ milliseconds: UInt64
  ) {
    guard operation != .delete else { return }
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

  /// Makes the events that follow carry `event` as the one that caused them.
  func causing<Result>(
    _ event: EventName?, _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    let outer = cause
    cause = event
    defer { cause = outer }
    return try body()
  }

  /// Traps if the commit contradicts itself. For tests, between two changes; in debug builds at the end of every commit.
  ///
  /// - All events are of this commit and in its scope, and each is in the partition of its key.
  /// - Of each stream they are a run: what was taken back left no number out and none behind.
  package func checkInvariants() {
    precondition(cause == nil, "an event causes others while they are made")
    let models = Dictionary(uniqueKeysWithValues: schema.models.map { ($0.storedName, $0) })
    var last: [Partition: Sequence] = [:]
    for event in events {
      precondition(
        event.commit == commit && event.dot.origin == origin, "a commit has one name and one writer")
      precondition(isInScope(event.partition) && !isDamaged(event.partition), "what is written is held whole")
      let model = models[event.model]
      precondition(
        model.map { Partition(model: $0, key: event.key) } == event.partition, "a key has one partition")
      precondition(
        last[event.partition]?.next ?? event.dot.sequence == event.dot.sequence, "events are a run")
      last[event.partition] = event.dot.sequence
    }
  }

  /// Forgets the events so far, which are rehearsed and not stored. The tables keep what they did.
  func forgetEvents() { events = [] }

  /// Runs `body` as a commit of its own inside of this one: if it throws, what it did is taken back.
  package func separately(_ body: (WriteTransaction) throws(NodeError) -> Void) throws(NodeError) {
    _ = try nested { transaction throws(NodeError) in
      try body(transaction)
      return transaction.events.count
    }
  }

  /// As `separately`. Returns how many events there are more than before; `body` returns how many there are.
  func nested(_ body: (WriteTransaction) throws(NodeError) -> Int) throws(NodeError) -> Int {
    let before = events.count
    let countsBefore = counts
    do throws(NodeError) {
      return try tables.savepoint(NodeError.tables) { () throws(NodeError) in try body(self) } - before
    } catch {
      events.removeSubrange(before...)
      counts = countsBefore
      throw error
    }
  }
}

/// Effects of a commit that differ from the request of its source.
package struct WriteCounts: Equatable, Sendable {
  /// Events whose requested time was before the last event of the record: each is just after that one.
  package private(set) var early = 0
  /// Events whose requested time was in the future: each has the time of the import.
  package private(set) var future = 0
  /// Records that were deleted under one key and made under another one.
  package internal(set) var moved = 0
  package init() {}

  mutating func note(requested: UInt64, given: Timestamp?) {
    guard let given else { return future += 1 }
    if given.milliseconds != requested { early += 1 }
  }

  package static func + (a: WriteCounts, b: WriteCounts) -> WriteCounts { a.adding(b, 1) }
  static func - (a: WriteCounts, b: WriteCounts) -> WriteCounts { a.adding(b, -1) }

  private func adding(_ other: WriteCounts, _ sign: Int) -> WriteCounts {
    var sum = self
    sum.early += sign * other.early
    sum.future += sign * other.future
    sum.moved += sign * other.moved
    return sum
  }
}
