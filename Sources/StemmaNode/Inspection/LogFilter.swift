import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// Selects events of a log. All conditions must hold.
package struct LogFilter: Sendable {
  /// The models whose partitions are read; empty: all.
  package var models: [Model] = []
  /// With one of `models`: reads only the blocks that may contain that record.
  package var key: Key?
  /// Stored names of models, including those outside of the schema; empty: all.
  package var modelNames: Set<String> = []
  package var scope: Scope = .everything
  package var origins: Set<Origin>?
  package var operations: Set<EventOperation>?
  package var commits: Set<CommitID>?
  /// Stored field names, at least one of which the event writes; empty: any event.
  package var fields: Set<String> = []
  /// Texts, one of which occurs in the message, author or source of the commit, in the key or in a
  /// value. Empty: any event.
  package var texts: [String] = []
  /// Authors, one of whom made the commit. Empty: any author.
  package var authors: Set<String> = []
  /// The first and the last point in time, both included.
  package var since: PointInTime?
  package var until: PointInTime?

  package init() {}

  /// The only element of `models`; nil if there are none or several.
  package var model: Model? {
    get { models.count == 1 ? models[0] : nil }
    set { models = newValue.map { [$0] } ?? [] }
  }

  package func contains(_ stored: StoredEvent, _ message: @autoclosure () -> CommitMessage) -> Bool {
    let event = stored.event
    if !modelNames.isEmpty, !modelNames.contains(event.model) { return false }
    if let key, event.key != key { return false }
    if let origins, !origins.contains(event.id.origin) { return false }
    if let operations, !operations.contains(event.operation) { return false }
    if let commits, !commits.contains(event.commit) { return false }
    if !fields.isEmpty, !event.assignments.contains(where: { fields.contains($0.field) }) { return false }
    if let since, !isSince(since, event.timestamp, stored.position) { return false }
    if let until, !until.includes(stored) { return false }
    if !scope.isEverything, !scope.contains(event.partition) { return false }
    if readsNoMessages { return true }
    let message = message()
    if !authors.isEmpty, !(message.author.map(authors.contains) ?? false) { return false }
    return texts.isEmpty || texts.contains { contains(event, message, $0) }
  }

  private var readsNoMessages: Bool { texts.isEmpty && authors.isEmpty }

  private func isSince(_ pointInTime: PointInTime, _ timestamp: Timestamp, _ position: Position) -> Bool {
    switch pointInTime {
    case .now: false
    case .time(let first): timestamp.milliseconds >= first.milliseconds
    case .position(let first): position >= first
    }
  }

  /// Whether the filter may select only some events of a record.
  package var dividesRecords: Bool {
    origins != nil || operations != nil || commits != nil || !fields.isEmpty || !readsNoMessages
      || since != nil
      || until != nil
  }

  /// Whether the filter can decide without decoding events: it tests no key, field or commit note.
  package var needsNoEvents: Bool { key == nil && fields.isEmpty && readsNoMessages }

  /// As `contains`, for a filter that `needsNoEvents`. The reader applies the scope.
  func contains(_ event: ScannedEvent) -> Bool {
    let (block, index) = (event.block, event.index)
    if !modelNames.isEmpty, !modelNames.contains(block.reader.model(ofKey: block.key(index))) { return false }
    if let origins, !origins.contains(block.id(index).origin) { return false }
    if let operations, !operations.contains(block.operation(index)) { return false }
    if let commits, !commits.contains(block.commit(index)) { return false }
    if let since, !isSince(since, block.timestamp(index), event.position) { return false }
    if let until { return until.includes(block.timestamp(index), event.position) }
    return true
  }

  private func contains(_ event: Event, _ message: CommitMessage, _ text: String) -> Bool {
    for part in [message.text, message.author, message.source] {
      if part?.contains(text) ?? false { return true }
    }
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

  /// The partitions with events that may pass; nil: all.
  var partitions: PartitionFilter? {
    let scope = scope
    let ofModels = models.map(Self.partitions)
    if ofModels.isEmpty, scope.isEverything { return nil }
    if scope.isEverything, ofModels.count == 1 { return ofModels[0] }
    if let named = scope.named, ofModels.isEmpty { return PartitionFilter(named: named) }
    return PartitionFilter { partition in
      (ofModels.isEmpty || ofModels.contains { $0(partition) }) && scope.contains(partition)
    }
  }

  /// The partitions that may hold events of a model, and perhaps of others.
  static func partitions(of model: Model) -> PartitionFilter {
    if model.partitionDepth == 0 {
      return PartitionFilter(named: [Partition(model.storedName)])
    }
    let prefix = Array("\(model.fields[model.keyFields[0]].storedName)=".utf8)
    return PartitionFilter { $0.bytes.starts(with: prefix) }
  }

  /// The range of positions whose events may pass.
  var positions: Range<Position> {
    var range = Position.first..<Position.end
    if case .position(let first) = since { range = first..<range.upperBound }
    if let end = until?.end { range = range.lowerBound..<max(range.lowerBound, end) }
    return range
  }
}

extension Node {
  /// Calls `body` with the events that pass a filter until it returns false. Memory: the blocks of
  /// one segment at most; with a key, the events of that record.
  ///
  /// - Throws: `.missing` after all readable events, if the reader met corruption.
  package func forEachEvent(
    _ filter: LogFilter, newestFirst: Bool, _ body: (StoredEvent, CommitMessage) throws -> Bool
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
        guard filter.contains(stored, reader.message ?? CommitMessage()) else { continue }
        if try !body(stored, reader.message ?? CommitMessage()) { return }
      }
    }
  }

  /// As `forEachEvent`, for a filter that `needsNoEvents`, without decoding the events.
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

  /// The position of the first event of each origin that passes a filter. Reads footers, and the
  /// files in which an origin appears first. Stops at the first corrupt file and omits the origins
  /// that may begin there.
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
          from: file.positions.lowerBound, to: file.positions.upperBound,
          partitions: partitions, around: omissions)
        try scan.forEach { event in
          let origin = event.block.id(event.index).origin
          if new.remove(origin) != nil { first[origin] = event.position }
          return !new.isEmpty
        }
      }
      return first
    }
  }

  private func forEachEvent(
    of key: Key, in model: Model, _ filter: LogFilter, newestFirst: Bool, _ omissions: Omissions,
    _ body: (StoredEvent, CommitMessage) throws -> Bool
  ) throws {
    let record = RecordKey(partition: Partition(model: model, key: key), model: model.storedName, key: key)
    var reader = log.events(of: record, to: filter.until?.end, around: omissions)
    var events: [LoggedEvent] = []
    while let stored = try reader.next() {
      let message = reader.message ?? CommitMessage()
      guard filter.contains(stored, message) else { continue }
      if newestFirst {
        events.append(LoggedEvent(stored: stored, message: message))
      } else if try !body(stored, message) {
        return
      }
    }
    for noted in events.reversed() where try !body(noted.stored, noted.message) { return }
  }

  /// Applies the events appended since the last refresh or open. Returns true if there were any.
  package func refreshLog() throws(NodeError) -> Bool {
    let isChanged: Bool
    do throws(LogError) {
      isChanged = try log.refresh()
      guard log.lacksWatermark else { return isChanged }
    } catch { throw .log(error) }
    // The log does not show how much of it is durable, and its writer may be gone. Opening the node
    // records that; if it cannot be written, the next writer does.
    do throws(NodeError) { try bringUpToDate() } catch {
      guard error.isInUse || error.isRefusalToWrite else { throw error }
      return isChanged
    }
    do throws(LogError) { return try log.refresh() || isChanged } catch { throw .log(error) }
  }

  /// The log position of the next event.
  package var logEnd: Position { log.end }
}
