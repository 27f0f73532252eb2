import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// Which events of a log are wanted. All conditions have to hold.
package struct LogFilter: Sendable {
  /// Whose partitions are read; empty: all.
  package var models: [Model] = []
  /// With one of `models`: then only the blocks in which that record may stand are read.
  package var key: Key?
  /// Stored names of models, also of ones that the schema does not know; empty: all.
  package var modelNames: Set<String> = []
  package var scope: Scope = .everything
  package var origins: Set<Origin>?
  package var operations: Set<Operation>?
  package var commits: Set<CommitID>?
  /// Stored names, of which an event writes at least one; empty: whatever it writes.
  package var fields: Set<String> = []
  /// One of them has to occur in the note, in the author or source of the commit, in the key or in a value. Empty: any
  /// event.
  package var texts: [String] = []
  /// One of them has to have made the commit. Empty: any author.
  package var authors: Set<String> = []
  /// The first and the last one, both included.
  package var since: Moment?
  package var until: Moment?

  package init() {}

  /// The only one of `models`; nil: there are none, or several.
  package var model: Model? {
    get { models.count == 1 ? models[0] : nil }
    set { models = newValue.map { [$0] } ?? [] }
  }

  package func contains(_ stored: StoredEvent, _ note: @autoclosure () -> CommitNote) -> Bool {
    let event = stored.event
    if !modelNames.isEmpty, !modelNames.contains(event.model) { return false }
    if let key, event.key != key { return false }
    if let origins, !origins.contains(event.dot.origin) { return false }
    if let operations, !operations.contains(event.operation) { return false }
    if let commits, !commits.contains(event.commit) { return false }
    if !fields.isEmpty, !event.assignments.contains(where: { fields.contains($0.field) }) { return false }
    if let since, !isSince(since, event.timestamp, stored.position) { return false }
    if let until, !until.includes(stored) { return false }
    if !scope.isEverything, !scope.contains(event.partition) { return false }
    if readsNoNotes { return true }
    let note = note()
    if !authors.isEmpty, !(note.by.map(authors.contains) ?? false) { return false }
    return texts.isEmpty || texts.contains { contains(event, note, $0) }
  }

  private var readsNoNotes: Bool { texts.isEmpty && authors.isEmpty }

  private func isSince(_ moment: Moment, _ timestamp: Timestamp, _ position: Position) -> Bool {
    switch moment {
    case .now: false
    case .time(let first): timestamp.milliseconds >= first.milliseconds
    case .position(let first): position >= first
    }
  }

  /// Whether of a partition's events on one record some may pass and others not.
  package var dividesRecords: Bool {
    origins != nil || operations != nil || commits != nil || !fields.isEmpty || !readsNoNotes || since != nil
      || until != nil
  }

  /// Whether the filter can decide without making events: it asks nothing of key, fields and notes.
  package var needsNoEvents: Bool { key == nil && fields.isEmpty && readsNoNotes }

  /// As `contains`, of a filter that `needsNoEvents`. The scope is left to the reader.
  func contains(_ event: ScannedEvent) -> Bool {
    let (block, index) = (event.block, event.index)
    if !modelNames.isEmpty, !modelNames.contains(block.reader.model(ofKey: block.key(index))) { return false }
    if let origins, !origins.contains(block.dot(index).origin) { return false }
    if let operations, !operations.contains(block.operation(index)) { return false }
    if let commits, !commits.contains(block.commit(index)) { return false }
    if let since, !isSince(since, block.timestamp(index), event.position) { return false }
    if let until { return until.includes(block.timestamp(index), event.position) }
    return true
  }

  private func contains(_ event: Event, _ note: CommitNote, _ text: String) -> Bool {
    for part in [note.note, note.by, note.source] { if part?.contains(text) ?? false { return true } }
    if event.key.parts.contains(where: { $0.text.contains(text) }) { return true }
    return event.assignments.contains { assignment in
      if assignment.field == Event.existenceField, FieldDecision.existence.contains(text) { return true }
      return switch assignment.value {
      case .string(let value), .json(let value): value.contains(text)
      case .null: false
      default: assignment.value.json.text.contains(text)
      }
    }
  }

  /// The partitions of which events can pass; nil: all.
  var partitions: PartitionFilter? {
    let scope = scope
    let ofModels = models.map(Self.partitions)
    if ofModels.isEmpty, scope.isEverything { return nil }
    return { partition in
      (ofModels.isEmpty || ofModels.contains { $0(partition) }) && scope.contains(partition)
    }
  }

  /// Those in which events of a model can be, and perhaps of others.
  static func partitions(of model: Model) -> PartitionFilter {
    if model.partitionDepth == 0 {
      let whole = Partition(model.storedName)
      return { $0 == whole }
    }
    let prefix = Array("\(model.fields[model.keyFields[0]].storedName)=".utf8)
    return { $0.bytes.starts(with: prefix) }
  }

  /// The positions between which events can pass.
  var positions: Range<Position> {
    let start = Position(file: 0, index: 0)
    var range = start..<Position(file: .max, index: .max)
    if case .position(let first) = since { range = first..<range.upperBound }
    if let end = until?.end { range = range.lowerBound..<max(range.lowerBound, end) }
    return range
  }
}

extension Node {
  /// Gives the events that pass a filter, until `body` says false. Memory: the blocks of one segment at most;
  /// with a key, the events of that record.
  ///
  /// - Throws: `.missing` if damage was met; all that can be read was given then.
  package func forEachEvent(
    _ filter: LogFilter, newestFirst: Bool, _ body: (StoredEvent, CommitNote) throws -> Bool
  ) throws(NodeError) {
    try readingAround(partitions: filter.partitions) { omissions in
      if let model = filter.model, let key = filter.key {
        try forEachEvent(of: key, in: model, filter, newestFirst: newestFirst, omissions, body)
        return
      }
      let positions = filter.positions
      let end = filter.until?.end
      var reader =
        newestFirst
        ? log.eventsNewestFirst(
          from: positions.lowerBound, to: end, partitions: filter.partitions, around: omissions)
        : log.events(from: positions.lowerBound, to: end, partitions: filter.partitions, around: omissions)
      while let stored = try reader.next() {
        guard filter.contains(stored, reader.note ?? CommitNote()) else { continue }
        if try !body(stored, reader.note ?? CommitNote()) { return }
      }
    }
  }

  /// As `forEachEvent` for a filter that `needsNoEvents`, without making the events.
  package func scan(
    _ filter: LogFilter, newestFirst: Bool, _ body: (ScannedEvent) throws -> Bool
  ) throws(NodeError) {
    try readingAround(partitions: filter.partitions) { omissions in
      var scan = log.scan(
        from: filter.positions.lowerBound, to: filter.until?.end, partitions: filter.partitions,
        newestFirst: newestFirst, around: omissions)
      try scan.forEach { event in try !filter.contains(event) || body(event) }
    }
  }

  /// Where the first event of each origin stands, in the partitions of a filter and whatever else it asks for. Reads
  /// footers, and the files in which an origin comes first. An origin of which damage may have taken the first event
  /// is left out.
  package func firstPositions(_ filter: LogFilter) throws(NodeError) -> [Origin: Position] {
    let partitions = filter.partitions
    let omissions = Omissions()
    return try Self.wrapping {
      var first: [Origin: Position] = [:]
      for file in try log.files() {
        guard let content = try log.content(of: file, around: omissions), omissions.isEmpty else { break }
        var new = Set<Origin>()
        for run in content.partitions where partitions?(run.partition) ?? true {
          for stream in run.streams where first[stream.origin] == nil { new.insert(stream.origin) }
        }
        if new.isEmpty { continue }
        var scan = log.scan(
          from: Position(file: file.place, index: 0), to: Position(file: file.place, index: file.end),
          partitions: partitions, around: omissions)
        try scan.forEach { event in
          let origin = event.block.dot(event.index).origin
          if new.remove(origin) != nil { first[origin] = event.position }
          return !new.isEmpty
        }
      }
      return first
    }
  }

  private func forEachEvent(
    of key: Key, in model: Model, _ filter: LogFilter, newestFirst: Bool, _ omissions: Omissions,
    _ body: (StoredEvent, CommitNote) throws -> Bool
  ) throws {
    let record = RecordKey(partition: Partition(model: model, key: key), model: model.storedName, key: key)
    var reader = log.events(of: record, to: filter.until?.end, around: omissions)
    var events: [NotedEvent] = []
    while let stored = try reader.next() {
      let note = reader.note ?? CommitNote()
      guard filter.contains(stored, note) else { continue }
      if newestFirst {
        events.append(NotedEvent(stored: stored, note: note))
      } else if try !body(stored, note) {
        return
      }
    }
    for noted in events.reversed() where try !body(noted.stored, noted.note) { return }
  }

  /// Takes in what was appended since this node was opened or last asked; true if there was anything.
  package func refreshLog() throws(NodeError) -> Bool {
    let isChanged: Bool
    do throws(LogError) {
      isChanged = try log.refresh()
      guard log.lacksWatermark else { return isChanged }
    } catch { throw .log(error) }
    // Nothing tells how much of the log is durable, and its writer may be gone. Who opens a node finds that out, and writes
    // it down; where that cannot be, it is not known before somebody writes.
    do throws(NodeError) { try bringUpToDate() } catch {
      guard error.isInUse || error.isRefusalToWrite else { throw error }
      return isChanged
    }
    do throws(LogError) { return try log.refresh() || isChanged } catch { throw .log(error) }
  }

  /// The position that the next event of this log gets.
  package var logEnd: Position { log.end }
}
