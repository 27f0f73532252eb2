import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
import StemmaSchema
import StemmaTables

/// A conflict in a form for people and programs.
package struct ConflictDescription: Sendable {
  package struct Candidate: Sendable {
    /// The number that `resolve --take` expects.
    package var number: Int
    package var value: JSON
    package var id: EventID
    /// Whether it is a resolution of an earlier conflict.
    package var isResolution: Bool
    package var event: String
    package var version: UInt64
    package var timestamp: Timestamp
    package var time: String
    package var origin: String
    package var author: String?
    /// For a change in conflict with deletions: those seen by its writer. An update undoes none.
    package var saw: [String] = []

    package var json: JSON {
      .object(
        [
          ("n", .int(Int64(number))), ("value", value), ("event", .string(event)),
          ("version", .int(Int64(clamping: version))),
          ("timestamp", Value.int(Int64(bitPattern: timestamp.rawValue)).json), ("origin", .string(origin)),
          ("author", author.map { .string($0) } ?? .null),
        ] + (saw.isEmpty ? [] : [("saw", .array(saw.map { .string($0) }))]))
    }
  }

  package var kind: OpenConflict.Kind
  package var model: String
  package var key: JSON
  package var keyText: String
  package var field: String?
  /// For value: the declared names of all fields that are written together.
  package var fields: [String] = []
  /// For cardinality: the relationship that stores the reference.
  package var reference: String?
  /// For cardinality and dangling: the model of the candidates' records.
  package var record: String?
  /// The candidates, the shown one first.
  package var candidates: [Candidate]

  /// Whether it concerns the whole record (policy OPTIMISTIC) and so has no field name.
  package var isOfWholeRecord: Bool { kind == .value && field == nil }

  /// - Parameter ancestor: the value that all candidates replace.
  package func json(ancestor: JSON?) -> JSON {
    ancestor.map { json.adding([("ancestor", $0)]) } ?? json
  }

  package var json: JSON {
    .object([
      ("model", .string(model)), ("key", key), ("field", field.map { .string($0) } ?? .null),
      ("kind", .string(kind.rawValue)),
      ("candidates", .array(candidates.map(\.json))),
    ])
  }
}

extension Node {
  /// The number of open value, delete and cardinality conflicts. Dangling references do not count,
  /// because their records may still arrive.
  package func openConflicts(_ model: Model? = nil) throws(NodeError) -> UInt64 {
    try reading { reader in
      var cursor = try reader.conflicts(model.map { [$0.name] }, isInScope: nil)
      var count: UInt64 = 0
      while try cursor.next() != nil { count += 1 }
      return count
    }
  }

  /// Calls `body` with the open conflicts that pass a filter. For each model, value and delete
  /// conflicts come first by key, then cardinality conflicts, then dangling references.
  ///
  /// Reads the candidates' events for a batch of conflicts at a time, so that the time is
  /// proportional to the number of conflicts. Memory: one batch.
  ///
  /// - Parameters:
  ///   - start: the first record whose value and delete conflicts are read.
  ///   - range: the conflicts to describe, by their number from 0. Those before it are only
  ///     counted.
  package func conflicts(
    _ filter: ConflictFilter = ConflictFilter(), from start: (model: String, key: Key)? = nil,
    in range: Range<Int> = 0..<Int.max, _ body: (ConflictDescription) throws -> Void
  ) throws(NodeError) {
    var batch = ConflictBatch()
    var number = 0
    let description = description
    try eachOpenConflict(filter, from: start) { conflict in
      defer { number += 1 }
      guard number >= range.lowerBound else { return true }
      guard number < range.upperBound else { return false }
      batch.append(conflict)
      if batch.isFull { try describe(&batch, description, body) }
      return true
    }
    try Self.wrapping { try describe(&batch, description, body) }
  }

  /// As `conflicts`, from the tables alone, without reading events. For counts.
  package func openConflicts(
    _ filter: ConflictFilter, _ body: (OpenConflict) throws -> Void
  ) throws(NodeError) {
    try eachOpenConflict(filter) {
      try body($0)
      return true
    }
  }

  /// As `openConflicts`, until `body` returns false.
  private func eachOpenConflict(
    _ filter: ConflictFilter, from start: (model: String, key: Key)? = nil,
    _ body: (OpenConflict) throws -> Bool
  ) throws(NodeError) {
    let scope = metadata.scope
    let isInScope: ((Partition) -> Bool)? =
      filter.kinds.contains(.dangling) ? { scope.contains($0) } : nil
    try reading { reader in
      var cursor = try reader.conflicts(
        filter.model.map { [$0.name] }, key: filter.model == nil ? nil : filter.key, from: start,
        kinds: filter.kinds, isInScope: isInScope)
      while let conflict = try cursor.next() {
        let model = schema.model(named: conflict.model)
        if filter.contains(conflict, of: model), try !body(conflict) { return }
      }
    }
  }

  /// All open conflicts of one record.
  package func conflicts(of key: Key, in model: Model) throws(NodeError) -> [ConflictDescription] {
    var filter = ConflictFilter(model: model)
    filter.key = key
    var found: [ConflictDescription] = []
    try conflicts(filter) { found.append($0) }
    return found
  }

  /// Calls `body` with the conflicts of a batch and empties it.
  private func describe(
    _ batch: inout ConflictBatch, _ description: EventDescription,
    _ body: (ConflictDescription) throws -> Void
  ) throws {
    let events = try events(of: batch)
    for conflict in batch.conflicts { try body(try describe(conflict, description, events)) }
    batch = ConflictBatch()
  }

  private func describe(
    _ conflict: OpenConflict, _ description: EventDescription, _ events: [QualifiedEventID: CandidateEvent?]
  ) throws -> ConflictDescription {
    guard let model = schema.model(named: conflict.model) else {
      throw MutationError.unknownModel(conflict.model, known: [])
    }
    let deletions = conflict.choices.filter(\.isDeletion).map { ($0.event.id, $0.version) }
    let candidates = conflict.choices.enumerated().map { index, choice in
      let event = events[choice.event] ?? nil
      return ConflictDescription.Candidate(
        number: index + 1, value: json(choice.value), id: choice.event.id,
        isResolution: event?.isDecision ?? (choice.operation == .resolve),
        event: description.name(choice.event.id),
        version: choice.version.rawValue, timestamp: choice.timestamp,
        time: description.time(choice.timestamp), origin: description.originName(choice.event.id.origin),
        author: event?.author,
        saw: choice.isDeletion
          ? [] : (event?.seen(of: deletions) ?? []).map(description.name))
    }
    return ConflictDescription(
      kind: conflict.kind, model: conflict.model, key: schema.json(of: conflict.key, model: model),
      keyText: description.keyText(conflict.key, model), field: conflict.field, fields: conflict.fields,
      reference: conflict.reference, record: record(of: conflict), candidates: candidates)
  }

  private func record(of conflict: OpenConflict) -> String? {
    if case .record(let model, _)? = conflict.choices.first?.value { model } else { nil }
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

  /// The events of the candidates. Reads each block that may contain them once.
  private func events(of batch: ConflictBatch) throws -> [QualifiedEventID: CandidateEvent?] {
    // Nil: not read yet.
    var events = [QualifiedEventID: CandidateEvent?](minimumCapacity: 2 * batch.conflicts.count)
    var records: [RecordKey] = []
    for conflict in batch.conflicts {
      for choice in conflict.choices { events.updateValue(nil, forKey: choice.event) }
      records += self.records(of: conflict)
    }
    guard !records.isEmpty else { return [:] }
    // The author of an unreadable event stays unknown.
    var reader = log.events(of: records, around: Omissions())
    while let stored = try reader.next() {
      guard let place = events.index(forKey: stored.event.name) else { continue }
      events.values[place] = CandidateEvent(stored.event, author: reader.message?.author)
    }
    return events
  }

  /// The records that wrote the candidates: the record itself or its children.
  private func records(of conflict: OpenConflict) -> [RecordKey] {
    func record(_ name: String, _ key: Key) -> RecordKey? {
      schema.model(named: name).map { model in
        RecordKey(partition: Partition(model: model, key: key), model: model.storedName, key: key)
      }
    }
    guard conflict.kind == .cardinality else {
      return record(conflict.model, conflict.key).map { [$0] } ?? []
    }
    return conflict.choices.compactMap { choice in
      if case .record(let name, let key) = choice.value { record(name, key) } else { nil }
    }
  }

  // MARK: Resolve

  /// Resolves one conflict. Without `field`, the record must have only one conflict, or only one of
  /// `kind`. Without `kind`, it must have only one conflict of that name.
  ///
  /// - Returns: the commit; nil if nothing had to be written.
  @discardableResult
  package func resolve(
    _ model: Model, _ key: JSON, field: String?, kind: ConflictFilter.Kind? = nil, _ resolution: Resolution,
    _ message: CommitMessage
  ) throws(NodeError) -> CommitID? {
    try resolve(model, key, [ConflictChoice(field: field, kind: kind, resolution: resolution)], message)
  }

  /// Resolves several conflicts of a record in one commit.
  ///
  /// - Parameter checking: called under the writer lock, before anything is written.
  package func resolve(
    _ model: Model, _ key: JSON, _ choices: [ConflictChoice], _ message: CommitMessage,
    checking: () throws(NodeError) -> Void = {}
  ) throws(NodeError) -> CommitID? {
    var settlements: [[Mutation]?] = []
    for choice in choices {
      settlements.append(
        try settlement(model, key, field: choice.field, choice.kind, choice.resolution))
    }
    return try write(message) { transaction throws(NodeError) in
      try checking()
      for (choice, settlement) in zip(choices, settlements) {
        if let settlement {
          for mutation in settlement { try transaction.perform(mutation) }
        } else {
          let kind = choice.kind.flatMap { RegisterConflict.Kind(rawValue: $0.rawValue) }
          try transaction.resolve(model.name, key, field: choice.field, kind: kind, choice.resolution)
        }
      }
      return transaction.madeCommit
    }
  }

  /// The mutations that resolve a conflict between records; nil if there is none of this type.
  private func settlement(
    _ model: Model, _ key: JSON, field: String?, _ kind: ConflictFilter.Kind?, _ resolution: Resolution
  ) throws(NodeError) -> [Mutation]? {
    var filter = ConflictFilter()
    if let kind { filter.kinds = [kind] }
    filter.model = model
    filter.key = try self.key(key, of: model)
    filter.fields = Set(field.map { [$0] } ?? [])
    var found: [ConflictDescription] = []
    try conflicts(filter) { found.append($0) }
    guard let conflict = found.first else {
      guard kind == .cardinality || kind == .dangling, let key = filter.key else { return nil }
      throw .mutation(
        .noConflict(
          model: model.name, key: description.keyText(key, model), field: field, kind: kind?.rawValue))
    }
    let kinds = Set(found.map(\.kind))
    // Deleting the record resolves a dangling reference, but not a value conflict of the record.
    var isUnclear = false
    if case .delete = resolution { isUnclear = kinds.contains(.dangling) && !kinds.contains(.delete) }
    if !kinds.isDisjoint(with: [.value, .delete]), !isUnclear { return nil }
    guard found.count == 1 else {
      let names = found.map { one in
        let isAlone = found.count { $0.field == one.field } == 1
        return (one.field ?? "") + (isAlone ? "" : " --kind \(one.kind.rawValue)")
      }
      throw .mutation(.severalConflicts(model: model.name, key: conflict.keyText, names: names))
    }
    return conflict.kind == .cardinality
      ? try unlinking(conflict, but: try kept(conflict, resolution)) : try settling(conflict, resolution)
  }

  /// The candidate of a cardinality conflict that keeps its link.
  private func kept(
    _ conflict: ConflictDescription, _ resolution: Resolution
  ) throws(NodeError) -> ConflictDescription.Candidate {
    let found: ConflictDescription.Candidate?
    let asked: String
    switch resolution {
    case .take(let number): (found, asked) = (conflict.candidates.first { $0.number == number }, "\(number)")
    case .takeEvent(let id):
      let name = description.name(id)
      (found, asked) = (conflict.candidates.first { $0.event == name }, name)
    case .shown: (found, asked) = (conflict.candidates.first, "shown")
    case .newest: (found, asked) = (conflict.candidates.max { $0.timestamp < $1.timestamp }, "newest")
    case .set, .keep, .delete:
      throw .mutation(.wrongShape("one of the records keeps its link: say which with --take N"))
    }
    guard let found else {
      throw .mutation(
        .noCandidate(
          model: conflict.model, key: conflict.keyText, field: conflict.field, asked: asked,
          count: conflict.candidates.count))
    }
    return found
  }

  private func unlinking(
    _ conflict: ConflictDescription, but kept: ConflictDescription.Candidate
  ) throws(NodeError) -> [Mutation] {
    guard let name = conflict.reference, let record = conflict.record, let child = schema.model(named: record)
    else { return [] }
    return conflict.candidates.filter { $0.number != kept.number }.map { other in
      reference(.unlink, name, of: child, other.value, to: conflict.model, conflict.key)
    }
  }

  /// A link or unlink in the direction that the model declares.
  private func reference(
    _ operation: Mutation.Operation, _ name: String, of child: Model, _ childKey: JSON, to parent: String,
    _ parentKey: JSON
  ) -> Mutation {
    child.relationship(named: name)?.storesReference ?? false
      ? Mutation(operation, model: child.name, key: childKey, fields: [(name, parentKey)])
      : Mutation(operation, model: parent, key: parentKey, fields: [(name, childKey)])
  }

  /// The mutations that resolve a reference to an absent record.
  private func settling(
    _ conflict: ConflictDescription, _ resolution: Resolution
  ) throws(NodeError) -> [Mutation] {
    guard let name = conflict.field, let child = schema.model(named: conflict.model),
      let parent = conflict.record, let missing = conflict.candidates.first?.value
    else { return [] }
    switch resolution {
    case .set(.null): return [reference(.unlink, name, of: child, conflict.key, to: parent, missing)]
    case .set(let target): return [reference(.link, name, of: child, conflict.key, to: parent, target)]
    case .delete: return [Mutation(.delete, model: conflict.model, key: conflict.key)]
    case .take, .takeEvent, .keep, .shown, .newest:
      throw .mutation(
        .wrongShape(
          "the record that `\(name)` of \(conflict.model) \(conflict.keyText) leads to is not there: create it, or use "
            + "--set KEY for another, --unlink, or --delete for the record that refers to it"))
    }
  }

  /// Resolves all value and delete conflicts in one commit. Returns their number before that:
  /// deleting a record resolves all of its conflicts, and perhaps some of others.
  package func resolveAll(
    _ model: Model?, _ resolution: Resolution, _ message: CommitMessage
  ) throws(NodeError) -> (count: Int, commit: CommitID?) {
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
    return try write(message) { transaction throws(NodeError) in
      var count = 0
      for (model, key) in records { count += try transaction.conflicts(model, key).count }
      for (model, key) in records { try transaction.resolveAll(model, key, resolution) }
      return (count, transaction.madeCommit)
    }
  }
}

/// The resolution of one of a record's conflicts.
package struct ConflictChoice: Sendable {
  /// Nil if the record has only one conflict, or only one of `kind`.
  package var field: String?
  package var kind: ConflictFilter.Kind?
  package var resolution: Resolution

  package init(field: String?, kind: ConflictFilter.Kind?, resolution: Resolution) {
    self.field = field
    self.kind = kind
    self.resolution = resolution
  }
}

extension ConflictDescription {
  /// Whether it is the same conflict between the same events.
  package func isSame(as other: ConflictDescription) -> Bool {
    kind == other.kind && field == other.field && candidates.map(\.id) == other.candidates.map(\.id)
  }
}

extension OpenConflict {
  /// The declared names of all fields in a value conflict.
  var fields: [String] {
    switch choices.first?.value {
    case .fields(let assignments): assignments.map(\.field)
    case .field: field.map { [$0] } ?? []
    case .exists, .record, nil: []
    }
  }
}

extension OpenConflict.Choice {
  fileprivate var isDeletion: Bool { if case .exists(false) = value { true } else { false } }
}

extension Event {
  /// The writes among `writes` to the same record that this event's writer had seen.
  func seen(of writes: [(id: EventID, version: Version)]) -> [EventID] {
    writes.map(\.id).filter(hasSeen)
  }
}
