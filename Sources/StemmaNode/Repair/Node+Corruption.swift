import Foundation
import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// Whether a partition lost events to corruption of the log, or may have.
  package var isCorrupt: (Partition) -> Bool {
    guard let corruption = metadata.corruption else { return { _ in false } }
    if corruption.isVague { return { _ in true } }
    let partitions = corruption.partitions
    return { partitions.contains($0) }
  }

  /// Records corruption and determines the lost events. The caller holds the writer lock.
  func recordCorruption(_ found: [Corruption]) throws(NodeError) {
    guard !found.isEmpty else { return }
    if let known = metadata.corruption, known.contains(found) {
      // The recorded losses are more precise than what tables rebuilt after the corruption show.
      guard known.areTablesPartial != areTablesPartial else { return }
      metadata.corruption?.areTablesPartial = areTablesPartial
      return try saveMetadata()
    }
    let corruption = try corruption(of: found)
    metadata.corruption = corruption
    try saveMetadata()
    notices += corruption.sentences
  }

  private func corruption(of found: [Corruption]) throws(NodeError) -> RecordedCorruption {
    var corruption = RecordedCorruption(found, try losses(of: found))
    corruption.areTablesPartial = areTablesPartial
    return corruption
  }

  /// Records corruption found on opening for reading. If it cannot be recorded, it is kept in
  /// memory, so that this instance never takes the readable rest for the whole log.
  func noteCorruptionOfOpening() throws(NodeError) {
    let found = log.recovery.corruption
    try recordMetCorruption(found)
    if metadata.corruption == nil {
      let corruption = try corruption(of: found)
      metadata.corruption = corruption
      notices += corruption.sentences
    }
    checks.hasUntoldCorruption = false
  }

  /// Records corruption that a reader met, so that no later write builds on lost events.
  func recordMetCorruption(_ found: [Corruption]) throws(NodeError) {
    guard options.recordsCorruption, metadata.corruption?.contains(found) != true else { return }
    try recordIfWritable(found)
  }

  /// Takes the lock to record corruption. If the node is not writable or is in use, a later reader
  /// records it.
  func recordIfWritable(_ found: [Corruption]) throws(NodeError) {
    do throws(NodeError) {
      try Self.wrapping {
        let lock = try WriterLock(
          Self.path(directory, Self.lockFileName), fileSystem: ports.fileSystem, wait: 0)
        defer { lock.release() }
        // Another process changed the metadata and has newer information.
        guard try Self.readMetadata(directory, ports) == metadata else { return }
        checks.hasUntoldCorruption = true
        try recordCorruption(found)
      }
    } catch { guard error.isRefusalToWrite || error.isInUse else { throw error } }
  }

  /// Runs `body`. Its readers skip corruption and note it in the omissions.
  ///
  /// - Throws: `.missing` after `body` has finished, if they noted any.
  package func readingAround<Result>(
    partitions filter: PartitionFilter? = nil, _ body: (Omissions) throws -> Result
  ) throws(NodeError) -> Result {
    let omissions = Omissions()
    let result = try Self.wrapping { try body(omissions) }
    if let missing = try missingEvents(omissions, partitions: filter) { throw .missing(missing) }
    return result
  }

  /// Records the corruption that readers skipped and returns it; nil if there is none.
  package func missingEvents(
    _ omissions: Omissions, partitions filter: PartitionFilter? = nil
  ) throws(NodeError) -> MissingEvents? {
    if omissions.isEmpty { return nil }
    let found = omissions.corruption
    try recordMetCorruption(found)
    let known = try knownCorruption(found)
    return MissingEvents(
      record: nil, places: found.map(RecordedCorruption.place),
      losses: known.losses.filter { filter?(Partition($0.partition)) ?? true }, isVague: known.isVague,
      isTold: !checks.hasUntoldCorruption && metadata.corruption?.contains(found) == true)
  }

  /// The recorded corruption if it includes `found`; otherwise the corrupt files are read.
  func knownCorruption(_ found: [Corruption]) throws(NodeError) -> RecordedCorruption {
    if let known = metadata.corruption, known.contains(found) { return known }
    return RecordedCorruption(found, try losses(of: found))
  }

  /// Whether the tables were built around corruption of the log and lack the lost events.
  package var areTablesPartial: Bool {
    !tablesState.rememberAll || metadata.corruption?.areTablesPartial == true
  }

  /// Throws `.missing` if the tables lack changes because of corruption; with `key`, only if they
  /// may lack changes of that record. The values already read are correct but incomplete.
  package func checkTablesAreWhole(for key: (key: Key, model: Model)? = nil) throws(NodeError) {
    guard areTablesPartial else { return }
    // No losses are recorded for temporary tables.
    if tablesState.temporary == nil, let key, !isCorrupt(Partition(model: key.model, key: key.key)) { return }
    throw missingRecorded
  }

  /// Throws `.missing` if the log lost events of these partitions that the tables remember.
  package func checkLogIsWhole(in partitions: Set<String>) throws(NodeError) {
    guard let corruption = metadata.corruption,
      corruption.losses.contains(where: { partitions.contains($0.partition) })
    else { return }
    throw missingRecorded
  }

  private var missingRecorded: NodeError {
    .missing(
      MissingEvents(
        record: nil, places: metadata.corruption?.places ?? [], losses: metadata.corruption?.losses ?? [],
        isVague: metadata.corruption?.isVague ?? true, isTold: true))
  }

  /// The events lost to `found` and to the corruption recorded before.
  func losses(of found: [Corruption]) throws(NodeError) -> Losses {
    try Self.wrapping {
      let known = (metadata.corruption?.places ?? []).map { place in
        Corruption(
          path: Self.path(directory, Self.logDirectoryName) + "/" + place.file, offset: place.offset,
          flaw: .disagreement(place.what))
      }
      let all = found + known
      if areTablesPartial { return try log.losses(of: all, held: nil, upTo: .first) }
      let (held, token) = (try reading { try $0.versionVector() }, try reading { try $0.token() })
      // Tables that followed around corruption have its end as position, whatever they had applied.
      // The recorded corruption shows whether they had applied everything.
      let end = metadata.corruption.map { $0.isVague ? Position.first : .end } ?? token.position
      return try log.losses(of: all, held: held, upTo: end)
    }
  }

  // MARK: Refreshing around corruption

  /// Applies the readable events of partitions without losses. The caller holds the writer lock.
  /// - Parameter fromStart: files were repaired and may hold events that the tables lack.
  func followAroundCorruption(fromStart: Bool = false) throws {
    let token = try tables.read { reader throws(TablesError) in try reader.token() }
    let end = log.token
    if token != end || fromStart {
      let fits: Bool
      do throws(LogError) { fits = fromStart ? false : try log.matches(token) } catch {
        guard error.corruption != nil else { throw error }
        fits = false
      }
      let start = fits ? token.position : .first
      var recorded: Set<Corruption> = []
      while true {
        do {
          try recordCorruption(try follow(from: start, to: end, knowing: recorded))
          break
        } catch let met as MetCorruption {
          // The corruption may hide events of other partitions.
          recorded.formUnion(met.corruption)
          try recordCorruption(met.corruption)
        }
      }
    }
    try finishFollowing(end)
  }

  /// Runs `body`, which reads the tables. If tables and log are both corrupt, rebuilds the tables
  /// around the corruption that `found` returns, and runs `body` again. The caller holds the writer
  /// lock.
  func remakingCorruptTables<Result>(
    around found: () throws(NodeError) -> [Corruption], _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    do throws(NodeError) { return try body() } catch .tables(.needsRebuild(tablesPath, let reason)) {
      let corruption = try found()
      if log.isHarmless(corruption) { throw .tables(.needsRebuild(path: tablesPath, reason)) }
      _ = try Self.rebuildAroundCorruption(
        tablesPath, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
      try reopenTables()
      tablesState.rememberAll = false
      tablesState.applied = nil
      try recordCorruption(corruption)
      notices.append(Self.rebuiltAroundCorruption(reason))
      return try body()
    }
  }

  private static func rebuiltAroundCorruption(_ reason: RebuildReason) -> Notice {
    "the tables were rebuilt from what can be read of a corrupt log (\(Explanations.text(of: reason)))"
  }

  /// Corruption that was not recorded when the refresh of the tables began.
  private struct MetCorruption: Error { let corruption: [Corruption] }

  /// Returns the corruption that the reader met.
  ///
  /// - Throws: `MetCorruption`, with the tables unchanged, so that no partition with losses is
  ///   applied.
  private func follow(
    from start: Position, to end: LogToken, knowing recorded: Set<Corruption>
  ) throws -> [Corruption] {
    let isCorrupt = isCorrupt
    let omissions = Omissions()
    var reader = log.events(from: start, around: omissions)
    var count = 0
    try apply(
      upTo: end, isWanted: { event, head in event.id.sequence > head && !isCorrupt(event.partition) }
    ) {
      let event = try reader.next()
      let met = omissions.corruption
      if met.count > count {
        let unknown = met.filter { metadata.corruption?.contains([$0]) != true && !recorded.contains($0) }
        guard unknown.isEmpty else { throw MetCorruption(corruption: met) }
        count = met.count
      }
      return event
    }
    return omissions.corruption
  }

  /// Builds tables from a corrupt log. They hold each partition up to its first lost event, without
  /// events that depend on lost ones.
  static func rebuildAroundCorruption(
    _ path: String, schema: Schema, log: Log, ownOrigins: [Origin], progress: (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RebuildReport {
    try wrapping {
      let versionVector = try log.prefixAroundCorruption()
      let total = versionVector.eventCount
      var reader = try log.eventsByKey(around: Omissions())
      let made = try Tables.rebuild(
        at: path, schema: schema, versionVector: versionVector, token: log.token, ownOrigins: ownOrigins,
        progress: { progress($0.events, total) }
      ) {
        while let stored = try reader.next() {
          let event = stored.event
          if event.id.sequence <= versionVector[event.partition, event.id.origin].sequence { return stored }
        }
        return nil
      }
      return RebuildReport(events: made.events, records: made.rows)
    }
  }
}

extension Log {
  /// The prefix of each stream that has no gap and no event that depends on a lost one.
  fileprivate func prefixAroundCorruption() throws(LogError) -> VersionVector {
    var versionVector = VersionVector()
    var digester = EventDigester()
    var reader = events(around: Omissions())
    while let event = try reader.next()?.event {
      let head = versionVector[event.partition, event.id.origin]
      let isCovered = event.context.entries.allSatisfy {
        versionVector[event.partition, $0.origin].sequence >= $0.sequence
      }
      guard event.id.sequence == head.sequence.next, isCovered else { continue }
      versionVector[event.partition, event.id.origin] = StreamHead(
        sequence: event.id.sequence, hash: head.hash + digester.digest(of: event).hash)
    }
    return versionVector
  }
}
