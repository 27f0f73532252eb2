import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema

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
}

extension Node {
  /// Counts over the readable part of the log. `top` limits the lists of models, records,
  /// partitions and fields. `progress` receives the number of finished events and the total.
  package func statistics(
    top: Int, _ filter: LogFilter = LogFilter(), progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(NodeError) -> LogStatistics {
    let open = try openFields(filter)
    let omissions = Omissions()
    var statistics = try Self.wrapping {
      let total = try LogExtent(self).events
      var count = LogCount(description, top: top)
      var reader = try log.eventsByKey(partitions: filter.partitions, around: omissions)
      var done: UInt64 = 0
      while let stored = try reader.next() {
        done += 1
        if filter.contains(stored, reader.message ?? CommitMessage()) { count.add(stored.event) }
        if done % 4096 == 0 { progress(done, total) }
      }
      return count.finish(open)
    }
    statistics.missing = try missingEvents(omissions, partitions: filter.partitions)
    return statistics
  }

  /// The number of open conflicts by model and field. Fields that are written together count one by
  /// one, as resolved conflicts do.
  private func openFields(_ filter: LogFilter) throws(NodeError) -> [ContestedField: UInt64] {
    var wanted = ConflictFilter()
    wanted.kinds = [.value, .delete]
    wanted.model = filter.model
    wanted.scope = filter.scope
    var open: [ContestedField: UInt64] = [:]
    try openConflicts(wanted) { conflict in
      let fields: [String?] = conflict.kind == .delete ? [nil] : conflict.fields
      for field in fields { open[ContestedField(model: conflict.model, field: field), default: 0] += 1 }
    }
    return open
  }
}

extension Node {
  /// The files of the log in order, including corrupt ones. Reads the footers of segments and
  /// decodes the journal.
  package func logFiles() throws(NodeError) -> [LogFileDescription] {
    try Self.wrapping {
      try log.files().map { file in
        do throws(LogError) {
          return describe(
            file, try log.content(of: file, acceptsDuplicates: true), corruption: recordedCorruption(of: file)
          )
        } catch {
          guard case .corrupt(_, let offset, let flaw) = error else { throw error }
          return describe(file, nil, corruption: "corrupt at byte \(offset): \(flaw)")
        }
      }
    }
  }

  /// This listing reads no blocks, but an earlier reader may have recorded a corrupt one.
  private func recordedCorruption(of file: LogFile) -> String? {
    metadata.corruption?.places.first { file.path.hasSuffix("/" + $0.file) }
      .map { "corrupt at byte \($0.offset): \($0.what)" }
  }

  private func describe(
    _ file: LogFile, _ content: LogFileContent?, corruption: String?
  ) -> LogFileDescription {
    let description = self.description
    // The lookup of a name is linear, and there may be many streams.
    var names: [Origin: String] = [:]
    for run in content?.partitions ?? [] {
      for stream in run.streams where names[stream.origin] == nil {
        names[stream.origin] = metadata.displayName(of: stream.origin)
      }
    }
    let shares = content?.partitions.map { run in
      LogFileDescription.PartitionShare(
        partition: run.partition.description, events: run.events,
        blocks: run.blocks.isEmpty ? nil : run.blocks.lowerBound + 1...run.blocks.upperBound,
        streams: run.streams.map { stream in
          (names[stream.origin] ?? stream.origin.description, stream.from.rawValue, stream.to.rawValue)
        })
    }
    return LogFileDescription(
      number: file.number, kind: "\(file.kind)",
      file: file.path.fileName, events: file.events,
      positions: file.positions.isEmpty
        ? nil
        : (
          file.positions.lowerBound.description, Position(file.positions.upperBound.rawValue - 1).description
        ),
      times: content?.times.map { (description.time($0.lowerBound), description.time($0.upperBound)) },
      rawBytes: file.rawBytes, storedBytes: file.storedBytes, partitions: shares,
      blocks: content?.blocks,
      digest: file.digest?.description, corruption: corruption)
  }
}
