import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// The history of one record with the data that only this node has: positions and commit notes.
package struct RecordLife: Sendable {
  package let model: Model
  package let key: Key
  package let rules: MergeRules
  /// The events whose causes are all present.
  package let history: RecordHistory
  /// The losses that may concern this record.
  package internal(set) var missing: MissingEvents?
  private let noted: [EventID: LoggedEvent]

  init(_ model: Model, _ key: Key, _ events: [LoggedEvent]) {
    self.model = model
    self.key = key
    rules = MergeRules(model)
    history = RecordHistory(events.map(\.event), rules)
    noted = Dictionary(events.map { ($0.event.id, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package var isEmpty: Bool { noted.isEmpty }

  /// The events with a missing cause, in the order of the others. Their effects are unknown.
  package var unexplained: [LoggedEvent] {
    let explained = Set(history.events.map(\.id))
    return noted.values.filter { !explained.contains($0.event.id) }.sorted {
      ($0.event.version, $0.event.id) < ($1.event.version, $1.event.id)
    }
  }

  package func event(_ id: EventID) -> LoggedEvent? { noted[id] }

  package func state() throws(NodeError) -> RecordState {
    do throws(MergeError) { return try history.state() } catch { throw .merge(error, model, key) }
  }

  /// The fields outside of the key, in schema order.
  package var fields: [Field] {
    model.fields.indices.filter { !model.isKeyField($0) }.map { model.fields[$0] }
  }
}

extension NodeError {
  /// An impossible history is corruption that no checksum detects.
  static func merge(_ error: MergeError, _ model: Model, _ key: Key) -> NodeError {
    .tables(.merge(model: model.name, key, error))
  }
}

extension Node {
  /// The revision of a record at a causal context; nil: the present one.
  ///
  /// - Throws: `notFound`; `.missing` if its events may be lost.
  package func revision(of key: Key, in model: Model, readAt read: Context?) throws(NodeError) -> String {
    guard let current = try state(of: key, in: model) else {
      throw .mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
    }
    guard let read, read != current.context else { return current.revision }
    let life = try life(of: key, in: model)
    let known = life.history.events.filter { read.covers($0.id) }
    do throws(MergeError) { return try RecordState.fold(known, life.rules).revision } catch {
      throw .merge(error, model, key)
    }
  }

  /// The events of one record that this node held at a point in time. Reads the blocks that may
  /// have any.
  ///
  /// - Throws: `.missing` if some of them may be lost.
  package func life(
    of key: Key, in model: Model, asOf pointInTime: PointInTime = .now
  ) throws(NodeError) -> RecordLife {
    let life = try readableLife(of: key, in: model, asOf: pointInTime)
    if let missing = life.missing { throw .missing(missing) }
    return life
  }

  /// As `life`, for the readable events. `missing` lists the losses.
  package func readableLife(
    of key: Key, in model: Model, asOf pointInTime: PointInTime = .now
  ) throws(NodeError) -> RecordLife {
    let record = RecordKey(
      partition: Partition(model: model, key: key), model: model.storedName, key: key)
    let omissions = Omissions()
    var life = try Self.wrapping {
      var events: [LoggedEvent] = []
      var reader = log.events(of: record, to: pointInTime.end, around: omissions)
      while let stored = try reader.next() {
        guard pointInTime.includes(stored) else { continue }
        events.append(LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
      }
      return RecordLife(model, key, events)
    }
    var doubt = Doubt(self, omissions)
    if try doubt.concerns(record) {
      life.missing = try missing(omissions, of: life, in: record.partition)
    }
    return life
  }

  /// Calls `body` with the readable lives of records in the schema, in no particular order. Reads
  /// each block once for all records. Memory: their events.
  func forEachReadableLife(
    of records: [RecordKey], _ body: (RecordKey, RecordLife) throws(NodeError) -> Void
  ) throws(NodeError) {
    let omissions = Omissions()
    let found = try Self.wrapping {
      var found: [RecordKey: [LoggedEvent]] = [:]
      var reader = log.events(of: records, around: omissions)
      while let stored = try reader.next() {
        found[RecordKey(stored.event), default: []].append(
          LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
      }
      return found
    }
    var doubt = Doubt(self, omissions)
    for record in records {
      guard let model = description.model(storedName: record.model) else { continue }
      var life = RecordLife(model, record.key, found[record] ?? [])
      if try doubt.concerns(record) {
        life.missing = try missing(omissions, of: life, in: record.partition)
      }
      try body(record, life)
    }
  }

  private func missing(
    _ omissions: Omissions, of life: RecordLife, in partition: Partition
  ) throws(NodeError) -> MissingEvents? {
    var missing = try missingEvents(omissions, partitions: PartitionFilter(named: [partition]))
    missing?.record = "\(life.model.name) \(description.keyText(life.key, life.model))"
    return missing
  }

  /// The readable life of a record with at least one event.
  package func existingLife(of key: Key, in model: Model) throws(NodeError) -> RecordLife {
    let life = try readableLife(of: key, in: model)
    if life.isEmpty {
      if let missing = life.missing { throw .missing(missing) }
      throw .mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
    }
    return life
  }
}
