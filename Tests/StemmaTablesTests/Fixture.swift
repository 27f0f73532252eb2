import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import Testing

@testable import StemmaTables
import StemmaSimulation

/// A schema with every kind of key and relationship that tables support.
func sampleSchema() throws -> Schema {
  try SDL.read(
    """
    type Team @model { id: ID! name: String members: [Member] @hasMany(references: ["teamId"]) captain: Captain @hasOne(references: ["teamId"]) }
    type Member @model {
      id: ID! name: String age: Int score: Float active: Boolean tags: [String] teamId: ID
      team: Team @belongsTo(references: ["teamId"])
    }
    type Captain @model { id: ID! teamId: ID team: Team @belongsTo(references: ["teamId"]) }
    type Counter @model { number: Int! @primaryKey value: Int updatedAt: AWSDateTime }
    type File @model {
      folder: String! @primaryKey(sortKeyFields: ["path"]) path: String! size: Int
      note: String @index(name: "authorAndMessage", sortKeyFields: ["size"])
    }
    type Reading @model { station: Int! @primaryKey(sortKeyFields: ["at"]) at: Float! ok: Boolean }
    """
  ).schema
}

/// A folder that is removed when the test ends.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/stemma-tables-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record(error) }
  }

  var tables: String { path + "/tables.sqlite" }
}

/// Writes events like nodes: each origin sees some of the events, and its context contains them.
struct Writers {
  private struct RecordName: Hashable {
    let model: String
    let key: Key
  }

  private struct Stream: Hashable {
    let origin: Origin
    let partition: Partition
  }

  let schema: Schema
  /// All events in the order of creation, which keeps causes before effects.
  private(set) var events: [Event] = []
  private var seen: [Origin: [RecordName: RecordState]] = [:]
  private var sequences: [Stream: SequenceNumber] = [:]
  private var synced: [Origin: Int] = [:]
  private var milliseconds: UInt64 = 1_000_000

  init(_ schema: Schema) { self.schema = schema }

  private func rules(_ stored: String) -> MergeRules {
    MergeRules(schema.models.first { $0.storedName == stored })
  }

  /// Makes an event that has seen the events of the record that its origin has seen.
  @discardableResult
  mutating func write(
    _ operation: EventOperation, _ model: String, _ key: Key, _ values: [String: Value] = [:],
    by origin: UInt64 = 1, partition: Partition? = nil, milliseconds: UInt64? = nil
  ) throws -> Event {
    let origin = Origin(origin)
    let name = RecordName(model: model, key: key)
    var state = seen[origin]?[name] ?? RecordState()
    let declared = schema.model(named: model)
    let partition = partition ?? declared.map { Partition(model: $0, key: key) } ?? Partition(model)
    let stream = Stream(origin: origin, partition: partition)
    let sequence = (sequences[stream] ?? .zero).next
    sequences[stream] = sequence
    self.milliseconds += 10
    let event = Event(
      partition: partition, model: model, key: key, operation: operation,
      assignments: values.map { Assignment($0, $1) }.sorted { $0.field.hasBytes(before: $1.field) },
      id: EventID(origin, sequence), context: state.context, version: state.version.next,
      timestamp: Timestamp(milliseconds: milliseconds ?? self.milliseconds),
      commit: CommitID(origin, UInt64(events.count + 1)))
    _ = try state.apply(event, rules(model))
    seen[origin, default: [:]][name] = state
    events.append(event)
    return event
  }

  /// Shows an origin all events so far.
  mutating func sync(_ origin: UInt64) throws {
    let origin = Origin(origin)
    for event in events[(synced[origin] ?? 0)...] {
      let name = RecordName(model: event.model, key: event.key)
      _ = try seen[origin, default: [:]][name, default: RecordState()].apply(event, rules(event.model))
    }
    synced[origin] = events.count
  }

  /// Another possible order of position: every stream in its own order, and causes before effects.
  func shuffled(_ generator: inout SplitMix64) -> [Event] {
    var waiting: [[Event]] = []
    var places: [Stream: Int] = [:]
    for event in events {
      let stream = Stream(origin: event.id.origin, partition: event.partition)
      if let place = places[stream] {
        waiting[place].append(event)
      } else {
        places[stream] = waiting.count
        waiting.append([event])
      }
    }
    var heads = Array(repeating: 0, count: waiting.count)
    var known: [RecordName: Context] = [:]
    var order: [Event] = []
    while order.count < events.count {
      let stream = Int.random(in: 0..<waiting.count, using: &generator)
      guard heads[stream] < waiting[stream].count else { continue }
      let event = waiting[stream][heads[stream]]
      let name = RecordName(model: event.model, key: event.key)
      guard known[name, default: .empty].covers(event.context) else { continue }
      heads[stream] += 1
      known[name, default: .empty].insert(event.id)
      order.append(event)
    }
    return order
  }
}

/// A random history of a few records of several models, with many concurrent changes and deletions.
/// With one origin, every event has seen all earlier ones.
func randomHistory(seed: UInt64, count: Int, origins: UInt64 = 3) throws -> Writers {
  var generator = SplitMix64(seed: seed)
  var writers = Writers(try sampleSchema())
  func pick<T>(_ values: [T]) -> T { values[Int.random(in: 0..<values.count, using: &generator)] }
  let texts: [Value] = [.null, .string(""), .string("a"), .string("é"), .string("e\u{301}"), .string("x\0y")]
  let numbers: [Value] = [.null, .int(0), .int(-1), .int(1 << 53 + 1), .int(.min), .int(.max)]
  for _ in 0..<count {
    let origin = UInt64.random(in: 1...origins, using: &generator)
    if Int.random(in: 0..<6, using: &generator) == 0 { try writers.sync(origin) }
    let (model, key, fields): (String, Key, [(String, [Value])]) = pick([
      ("Team", Key(.string(pick(["t1", "t2"]))), [("name", texts)]),
      (
        "Member", Key(.string(pick(["m1", "m2", "é", "e\u{301}"]))),
        [
          ("name", texts), ("age", numbers), ("score", [.null, .double(0.5), .double(-2e300)]),
          ("active", [.null, .bool(true), .bool(false)]), ("tags", [.null, .json("[\"a\",\"b\"]")]),
          ("teamId", [.null, .string("t1"), .string("t2"), .string("t3")]), ("later", texts),
        ]
      ),
      ("Captain", Key(.string(pick(["c1", "c2"]))), [("teamId", [.string("t1"), .string("t2")])]),
      (
        "Counter", Key(.int(pick([0, -5, 1 << 40]))),
        [("value", numbers + [.string("12")]), ("updatedAt", [.string("2024-01-01T00:00:00Z")])]
      ),
      (
        "File", Key(.string(pick(["a", "b%"])), .string(pick(["x", "y"]))),
        [("size", numbers), ("note", texts)]
      ),
      (
        "Reading", Key(.int(pick([9, 10])), .double(pick([0.5, -1]))), [("ok", [.bool(true), .bool(false)])]
      ),
      ("Unheard", Key(.string("u")), [("what", texts)]),
    ])
    let operation = pick([EventOperation.create, .update, .update, .update, .delete, .resolve])
    var values: [String: Value] = [:]
    if operation != .delete {
      for (field, choices) in fields where operation == .create || Bool.random(using: &generator) {
        values[field] = pick(choices)
      }
    }
    if operation == .resolve, Bool.random(using: &generator) { values[Event.existenceField] = .bool(true) }
    try writers.write(operation, model, key, values, by: origin)
  }
  return writers
}

extension Tables {
  /// Applies events in transactions of `batch` and records the new end of the log.
  func apply(_ events: [Event], batch: Int = 1000) throws {
    var rest = events[...]
    while !rest.isEmpty {
      try write { transaction throws(TablesError) in
        for event in rest.prefix(batch) { try transaction.apply(event) }
        transaction.advance(to: token(events.count - rest.count + min(batch, rest.count)))
      }
      rest = rest.dropFirst(batch)
    }
  }

  /// Rebuilds from events in any order, as a log would return them.
  @discardableResult
  static func rebuild(
    at path: String, _ schema: Schema, _ events: [Event], filter: RebuildFilter = .all
  ) throws -> RebuildProgress {
    let stored = events.enumerated().map {
      StoredEvent($1, at: Position(UInt64($0) + 1))
    }
    var byKey = stored.sorted {
      let (a, b) = ($0.event, $1.event)
      if a.partition != b.partition { return a.partition < b.partition }
      if a.model != b.model { return a.model < b.model }
      return a.key != b.key ? a.key < b.key : $0.position < $1.position
    }[...]
    return try rebuild(
      at: path, schema: schema, versionVector: nil, token: token(events.count), filter: filter,
      next: { byKey.popFirst() })
  }

  func exported() throws -> String {
    try read { reader throws(TablesError) in
      var cursor = try reader.export()
      var bytes: [UInt8] = []
      while try cursor.next(into: &bytes) {}
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  func digests() throws -> [TableDigest] {
    try read { reader throws(TablesError) in try reader.digests() }
  }

  /// All conflicts. Checks that they equal the conflicts found record by record.
  func conflicts(isInScope: @escaping (Partition) -> Bool = { _ in true }) throws -> [OpenConflict] {
    let all = try conflicts(nil, nil, isInScope)
    for conflict in all {
      let own = all.filter { $0.model == conflict.model && $0.key == conflict.key }
      #expect(try conflicts([conflict.model], conflict.key, isInScope) == own)
      let nobody = Key(conflict.key.parts.map { _ in .string("nobody") })
      #expect(try conflicts([conflict.model], nobody, isInScope).isEmpty)
    }
    return all
  }

  private func conflicts(
    _ models: [String]?, _ key: Key?, _ isInScope: @escaping (Partition) -> Bool
  ) throws -> [OpenConflict] {
    try read { reader throws(TablesError) in
      var cursor = try reader.conflicts(models, key: key, isInScope: isInScope)
      var all: [OpenConflict] = []
      while let conflict = try cursor.next() {
        cursor.checkInvariants()
        all.append(conflict)
      }
      return all
    }
  }

  func check() throws {
    try checkInvariants()
    try read { reader throws(TablesError) in try reader.checkInvariants() }
  }
}

func token(_ events: Int) -> LogToken {
  LogToken(position: Position(UInt64(events) + 1), chain: UInt32(events))
}
