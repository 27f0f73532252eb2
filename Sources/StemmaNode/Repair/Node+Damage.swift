import Foundation
import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// Whether a partition lost events to corruption of the log, or may have.
  package var isDamaged: (Partition) -> Bool {
    guard let damage = mark.damage else { return { _ in false } }
    if damage.isVague { return { _ in true } }
    let partitions = damage.partitions
    return { partitions.contains($0) }
  }

  /// Records corruption and determines the lost events. The caller holds the writer lock.
  func recordDamage(_ found: [Damage]) throws(NodeError) {
    guard !found.isEmpty else { return }
    if let known = mark.damage, known.contains(found) {
      // The recorded losses are more precise than what tables rebuilt after the corruption show.
      guard known.areTablesPartial != areTablesPartial else { return }
      mark.damage?.areTablesPartial = areTablesPartial
      return try saveMark()
    }
    let damage = try damage(of: found)
    mark.damage = damage
    try saveMark()
    notices += damage.sentences
  }

  private func damage(of found: [Damage]) throws(NodeError) -> RecordedDamage {
    var damage = RecordedDamage(found, try losses(of: found))
    damage.areTablesPartial = areTablesPartial
    return damage
  }

  /// Records corruption found on opening for reading. If it cannot be recorded, it is kept in
  /// memory, so that this instance never takes the readable rest for the whole log.
  func noteDamageOfOpening() throws(NodeError) {
    let found = log.recovery.damage
    try recordMetDamage(found)
    if mark.damage == nil {
      let damage = try damage(of: found)
      mark.damage = damage
      notices += damage.sentences
    }
    hasUntoldDamage = false
  }

  /// Records corruption that a reader met, so that no later write builds on lost events.
  func recordMetDamage(_ found: [Damage]) throws(NodeError) {
    guard options.recordsDamage, mark.damage?.contains(found) != true else { return }
    try recordIfWritable(found)
  }

  /// Takes the lock to record corruption. If the node is not writable or is in use, a later reader
  /// records it.
  func recordIfWritable(_ found: [Damage]) throws(NodeError) {
    do throws(NodeError) {
      try Self.wrapping {
        let lock = try WriterLock(
          Self.path(directory, Self.lockFileName), fileSystem: ports.fileSystem, wait: 0)
        defer { lock.release() }
        // Another process changed the metadata and has newer information.
        guard try Self.readMark(directory, ports) == mark else { return }
        hasUntoldDamage = true
        try recordDamage(found)
      }
    } catch { guard error.isRefusalToWrite || error.isInUse else { throw error } }
  }

  /// Whether the tables were built around corruption of the log and lack the lost events.
  var areTablesPartial: Bool { !tablesRemember || mark.damage?.areTablesPartial == true }

  /// Throws `.missing` if the tables lack changes because of corruption; with `key`, only if they
  /// may lack changes of that record. The values already read are correct but incomplete.
  package func checkTablesAreWhole(for key: (key: Key, model: Model)? = nil) throws(NodeError) {
    guard areTablesPartial else { return }
    // No losses are recorded for temporary tables.
    if temporary == nil, let key, !isDamaged(Partition(model: key.model, key: key.key)) { return }
    throw missingEvents
  }

  /// Throws `.missing` if the log lost events of these partitions that the tables remember.
  package func checkLogIsWhole(in partitions: Set<String>) throws(NodeError) {
    guard let damage = mark.damage, damage.losses.contains(where: { partitions.contains($0.partition) })
    else { return }
    throw missingEvents
  }

  private var missingEvents: NodeError {
    .missing(
      MissingEvents(
        record: nil, places: mark.damage?.places ?? [], losses: mark.damage?.losses ?? [],
        isVague: mark.damage?.isVague ?? true, isTold: true))
  }

  /// The events lost to `found` and to the corruption recorded before.
  func losses(of found: [Damage]) throws(NodeError) -> Losses {
    try Self.wrapping {
      let known = (mark.damage?.places ?? []).map { place in
        Damage(
          path: Self.path(directory, Self.logDirectoryName) + "/" + place.file, offset: place.offset,
          flaw: .disagreement(place.what))
      }
      let all = found + known
      if areTablesPartial { return try log.losses(of: all, held: nil, upTo: .first) }
      let (held, token) = (try reading { try $0.knowledge() }, try reading { try $0.token() })
      // Tables that followed around corruption have its end as position, whatever they had applied.
      // The recorded damage shows whether they had applied everything.
      let end = mark.damage.map { $0.isVague ? Position.first : .end } ?? token.position
      return try log.losses(of: all, held: held, upTo: end)
    }
  }

  // MARK: Refreshing around corruption

  /// Applies the readable events of partitions without losses. The caller holds the writer lock.
  /// - Parameter fromStart: files were repaired and may hold events that the tables lack.
  func followAroundDamage(fromStart: Bool = false) throws {
    let token = try tables.read { reader throws(TablesError) in try reader.token() }
    let end = log.token
    if token != end || fromStart {
      let fits: Bool
      do throws(LogError) { fits = fromStart ? false : try log.matches(token) } catch {
        guard error.damage != nil else { throw error }
        fits = false
      }
      let start = fits ? token.position : .first
      var recorded: Set<Damage> = []
      while true {
        do {
          try recordDamage(try follow(from: start, to: end, knowing: recorded))
          break
        } catch let met as MetDamage {
          // The corruption may hide events of other partitions.
          recorded.formUnion(met.damage)
          try recordDamage(met.damage)
        }
      }
    }
    try finishFollowing(end)
  }

  /// Runs `body`, which reads the tables. If tables and log are both corrupt, rebuilds the tables
  /// around the corruption that `found` returns, and runs `body` again. The caller holds the writer
  /// lock.
  func remakingDamagedTables<Result>(
    around found: () throws(NodeError) -> [Damage], _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    do throws(NodeError) { return try body() } catch .tables(.needsRebuild(tablesPath, let reason)) {
      let damage = try found()
      if log.isHarmless(damage) { throw .tables(.needsRebuild(path: tablesPath, reason)) }
      _ = try Self.rebuildAroundDamage(
        tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: options.progress)
      try reopenTables()
      tablesRemember = false
      applied = nil
      try recordDamage(damage)
      notices.append(Self.rebuiltAroundDamage(reason))
      return try body()
    }
  }

  private static func rebuiltAroundDamage(_ reason: RebuildReason) -> String {
    "the tables were rebuilt from what can be read of a damaged log (\(Explanations.text(of: reason)))"
  }

  /// Corruption that was not recorded when the refresh of the tables began.
  private struct MetDamage: Error { let damage: [Damage] }

  /// Returns the corruption that the reader met.
  ///
  /// - Throws: `MetDamage`, with the tables unchanged, so that no partition with losses is applied.
  private func follow(
    from start: Position, to end: LogToken, knowing recorded: Set<Damage>
  ) throws -> [Damage] {
    let isDamaged = isDamaged
    let omissions = Omissions()
    var reader = log.events(from: start, around: omissions)
    var count = 0
    try apply(
      upTo: end, isWanted: { event, head in event.dot.sequence > head && !isDamaged(event.partition) }
    ) {
      let event = try reader.next()
      let met = omissions.damage
      if met.count > count {
        let unknown = met.filter { mark.damage?.contains([$0]) != true && !recorded.contains($0) }
        guard unknown.isEmpty else { throw MetDamage(damage: met) }
        count = met.count
      }
      return event
    }
    return omissions.damage
  }

  /// Builds tables from a corrupt log. They hold each partition up to its first lost event, without
  /// events that depend on lost ones.
  static func rebuildAroundDamage(
    _ path: String, schema: Schema, log: Log, ownOrigins: [Origin], progress: (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RebuildReport {
    try wrapping {
      let knowledge = try log.prefixAroundDamage()
      let total = knowledge.eventCount
      var reader = try log.eventsByKey(around: Omissions())
      let made = try Tables.rebuild(
        at: path, schema: schema, knowledge: knowledge, token: log.token, ownOrigins: ownOrigins,
        progress: { progress($0.events, total) }
      ) {
        while let stored = try reader.next() {
          let event = stored.event
          if event.dot.sequence <= knowledge[event.partition, event.dot.origin].sequence { return stored }
        }
        return nil
      }
      return RebuildReport(events: made.events, records: made.rows)
    }
  }
}

extension Log {
  /// The prefix of each stream that has no gap and no event that depends on a lost one.
  fileprivate func prefixAroundDamage() throws(LogError) -> VersionVector {
    var knowledge = VersionVector()
    var digester = EventDigester()
    var reader = events(around: Omissions())
    while let event = try reader.next()?.event {
      let head = knowledge[event.partition, event.dot.origin]
      let isCovered = event.context.entries.allSatisfy {
        knowledge[event.partition, $0.origin].sequence >= $0.sequence
      }
      guard event.dot.sequence == head.sequence.next, isCovered else { continue }
      knowledge[event.partition, event.dot.origin] = StreamHead(
        sequence: event.dot.sequence, hash: head.hash + digester.digest(of: event).hash)
    }
    return knowledge
  }
}
