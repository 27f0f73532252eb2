import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

/// A conflict as people and programs see it.
package struct ConflictDescription: Sendable {
  package struct Candidate: Sendable {
    /// What `resolve --take` uses.
    package var number: Int
    package var value: JSON
    package var event: String
    package var version: UInt64
    package var timestamp: Timestamp
    package var time: String
    package var origin: String
    package var by: String?

    package var json: JSON {
      .object([
        ("n", .int(Int64(number))), ("value", value), ("event", .string(event)),
        ("version", .int(Int64(clamping: version))),
        ("timestamp", Value.int(Int64(bitPattern: timestamp.rawValue)).json), ("origin", .string(origin)),
        ("by", by.map { .string($0) } ?? .null),
      ])
    }
  }

  package var kind: OpenConflict.Kind
  package var model: String
  package var key: JSON
  package var keyText: String
  package var field: String?
  /// The one that is shown first.
  package var candidates: [Candidate]

  package var json: JSON {
    .object([
      ("model", .string(model)), ("key", key), ("field", field.map { .string($0) } ?? .null),
      ("kind", .string(kind.rawValue)),
      ("candidates", .array(candidates.map(\.json))),
    ])
  }
}

extension Node {
  /// How many conflicts wait for a decision: of values, of deletions and of cardinality. A dangling reference
  /// may be one to a record that is on its way, so it is none of these.
  package func openConflicts(_ model: Model? = nil) throws(NodeError) -> UInt64 {
    try reading { reader in
      var cursor = try reader.conflicts(model.map { [$0.name] }, isInScope: nil)
      var count: UInt64 = 0
      while try cursor.next() != nil { count += 1 }
      return count
    }
  }

  /// Gives the open conflicts of a model, or of all, one after the other.
  package func conflicts(_ model: Model?, _ body: (ConflictDescription) throws -> Void) throws(NodeError) {
    let scope = mark.scope
    try reading { reader in
      var cursor = try reader.conflicts(model.map { [$0.name] }, isInScope: { scope.contains($0) })
      while let conflict = try cursor.next() { try body(try describe(conflict)) }
    }
  }

  private func describe(_ conflict: OpenConflict) throws -> ConflictDescription {
    guard let model = schema.model(named: conflict.model) else {
      throw MutationError.unknownModel(conflict.model, known: [])
    }
    let authors = try authors(of: conflict, model)
    let description = description
    let candidates = conflict.choices.enumerated().map { index, choice in
      ConflictDescription.Candidate(
        number: index + 1, value: json(choice.value), event: description.name(choice.event.dot),
        version: choice.version.rawValue, timestamp: choice.timestamp,
        time: description.time(choice.timestamp), origin: mark.displayName(of: choice.event.dot.origin),
        by: authors[choice.event])
    }
    return ConflictDescription(
      kind: conflict.kind, model: conflict.model, key: schema.json(of: conflict.key, model: model),
      keyText: description.keyText(conflict.key, model), field: conflict.field, candidates: candidates)
  }

  private func json(_ value: OpenConflict.Choice.Value) -> JSON {
    switch value {
    case .field(let value): value.json
    case .fields(let assignments): .object(assignments.map { ($0.field, $0.value.json) })
    case .exists(let exists): .bool(exists)
    case .record(let model, let key):
      schema.model(named: model).map { schema.json(of: key, model: $0) } ?? .null
    }
  }

  /// Who made the commits of the candidates. Reads the blocks of the log in which the records stand.
  private func authors(of conflict: OpenConflict, _ model: Model) throws -> [EventName: String] {
    guard log.recovery.damage.isEmpty else { return [:] }
    var authors: [EventName: String] = [:]
    let wanted = Set(conflict.choices.map(\.event))
    for record in records(of: conflict, model) {
      var reader = log.events(of: record)
      while let stored = try reader.next() {
        guard wanted.contains(stored.event.name), let by = reader.note?.by else { continue }
        authors[stored.event.name] = by
      }
    }
    return authors
  }

  /// The records that wrote the candidates: the record itself, or its children.
  private func records(of conflict: OpenConflict, _ model: Model) -> [RecordKey] {
    func record(_ model: Model, _ key: Key) -> RecordKey {
      RecordKey(partition: Partition(model: model, key: key), model: model.storedName, key: key)
    }
    guard conflict.kind == .cardinality else { return [record(model, conflict.key)] }
    return conflict.choices.compactMap { choice in
      guard case .record(let name, let key) = choice.value, let child = schema.model(named: name) else {
        return nil
      }
      return record(child, key)
    }
  }

  // MARK: Resolve

  package func resolve(
    _ model: Model, _ key: JSON, field: String?, _ resolution: Resolution, _ note: CommitNote
  ) throws(NodeError) {
    try write(note) { transaction throws(NodeError) in
      try transaction.resolve(model.name, key, field: field, resolution)
    }
  }

  /// Ends every value and delete conflict, in one commit.
  package func resolveAll(
    _ model: Model?, _ resolution: Resolution, _ note: CommitNote
  ) throws(NodeError) -> Int {
    var records: [(Model, Key)] = []
    try reading { reader in
      var cursor = try reader.conflicts(model.map { [$0.name] }, isInScope: nil)
      while let conflict = try cursor.next() {
        guard conflict.kind == .value || conflict.kind == .delete,
          let model = schema.model(named: conflict.model)
        else { continue }
        if let last = records.last, last.0.name == model.name, last.1 == conflict.key { continue }
        records.append((model, conflict.key))
      }
    }
    return try write(note) { transaction throws(NodeError) in
      var count = 0
      for (model, key) in records { count += try transaction.resolveAll(model, key, resolution) }
      return count
    }
  }
}
