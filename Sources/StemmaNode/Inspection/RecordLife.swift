import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// The history of one record with what only this node knows of it: positions and notes.
package struct RecordLife: Sendable {
  package let model: Model
  package let key: Key
  package let rules: MergeRules
  /// The events whose causes are all there.
  package let history: RecordHistory
  /// What damage may have taken of it.
  package internal(set) var missing: MissingEvents?
  private let noted: [Dot: NotedEvent]

  init(_ model: Model, _ key: Key, _ events: [NotedEvent]) {
    self.model = model
    self.key = key
    rules = MergeRules(model)
    history = RecordHistory(events.map(\.event), rules)
    noted = Dictionary(events.map { ($0.event.dot, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package var isEmpty: Bool { noted.isEmpty }

  /// The events of which a cause is missing, in the order of the others: what they met cannot be told.
  package var unexplained: [NotedEvent] {
    let explained = Set(history.events.map(\.dot))
    return noted.values.filter { !explained.contains($0.event.dot) }.sorted {
      ($0.event.version, $0.event.dot) < ($1.event.version, $1.event.dot)
    }
  }

  package func event(_ dot: Dot) -> NotedEvent? { noted[dot] }

  package func state() throws(NodeError) -> RecordState {
    do throws(MergeError) { return try history.state() } catch { throw .merge(error, model, key) }
  }

  /// The fields that are no part of the key, in the order of the schema; declared and stored names.
  package var fields: [Field] {
    model.fields.indices.filter { !model.isKeyField($0) }.map { model.fields[$0] }
  }
}

extension NodeError {
  /// A history that cannot be: damage that no checksum shows.
  static func merge(_ error: MergeError, _ model: Model, _ key: Key) -> NodeError {
    .tables(.merge(model: model.name, key, error))
  }
}

extension Node {
  /// The revision of a record as it was when its context was this one; nil: as it is.
  ///
  /// - Throws: `notFound`; `.missing` if damage may have taken some of its events.
  package func revision(of key: Key, in model: Model, readAt read: Context?) throws(NodeError) -> String {
    guard let current = try state(of: key, in: model) else {
      throw .mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
    }
    guard let read, read != current.context else { return current.revision }
    let life = try life(of: key, in: model)
    let known = life.history.events.filter { read.covers($0.dot) }
    do throws(MergeError) { return try RecordState.fold(known, life.rules).revision } catch {
      throw .merge(error, model, key)
    }
  }

  /// The events of one record that this node held at a moment. Reads the blocks in which the record may stand.
  ///
  /// - Throws: `.missing` if damage may have taken some of them.
  package func life(
    of key: Key, in model: Model, asOf moment: Moment = .now
  ) throws(NodeError) -> RecordLife {
    let life = try readableLife(of: key, in: model, asOf: moment)
    if let missing = life.missing { throw .missing(missing) }
    return life
  }

  /// As `life`, of what can be read: `missing` says whether that is all.
  package func readableLife(
    of key: Key, in model: Model, asOf moment: Moment = .now
  ) throws(NodeError) -> RecordLife {
    let record = RecordKey(
      partition: Partition(model: model, key: key), model: model.storedName, key: key)
    let omissions = Omissions()
    var life = try Self.wrapping {
      var events: [NotedEvent] = []
      var reader = log.events(of: record, to: moment.end, around: omissions)
      while let stored = try reader.next() {
        guard moment.includes(stored) else { continue }
        events.append(NotedEvent(stored: stored, note: reader.note ?? CommitNote()))
      }
      return RecordLife(model, key, events)
    }
    var doubt = Doubt(self, omissions)
    if try doubt.concerns(record) {
      life.missing = try missing(omissions, of: life, in: record.partition)
    }
    return life
  }

  /// Gives the readable lives of records that the schema knows, in no particular order. Reads each block in which any of
  /// them may stand once, so it is cheaper for many at once. Memory: their events.
  func forEachReadableLife(
    of records: [RecordKey], _ body: (RecordKey, RecordLife) throws(NodeError) -> Void
  ) throws(NodeError) {
    let omissions = Omissions()
    let found = try Self.wrapping {
      var found: [RecordKey: [NotedEvent]] = [:]
      var reader = log.events(of: records, around: omissions)
      while let stored = try reader.next() {
        found[RecordKey(stored.event), default: []].append(
          NotedEvent(stored: stored, note: reader.note ?? CommitNote()))
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
    var missing = try missingEvents(omissions) { $0 == partition }
    missing?.record = "\(life.model.name) \(description.keyText(life.key, life.model))"
    return missing
  }

  /// The readable life of a record of which there is at least one event.
  package func existingLife(of key: Key, in model: Model) throws(NodeError) -> RecordLife {
    let life = try readableLife(of: key, in: model)
    if life.isEmpty {
      if let missing = life.missing { throw .missing(missing) }
      throw .mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
    }
    return life
  }
}
