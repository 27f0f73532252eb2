import Foundation
import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// Whether a partition lost events to damage of the log, or may have.
  package var isDamaged: (Partition) -> Bool {
    guard let damage = mark.damage else { return { _ in false } }
    if damage.isVague { return { _ in true } }
    let partitions = damage.partitions
    return { partitions.contains($0) }
  }

  /// Records damage that was found, and works out what it took. The writer lock must be held.
  func recordDamage(_ found: [Damage]) throws(NodeError) {
    guard !found.isEmpty else { return }
    if let known = mark.damage, known.contains(found) {
      // What it took is known, and better than tables could tell now that were made anew since.
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
    var survey = try survey(found)
    survey.vague = survey.vague(after: try Self.wrapping { try log.salvage(survey) })
    var damage = RecordedDamage(survey)
    damage.areTablesPartial = areTablesPartial
    return damage
  }

  /// Has damage count that was found when this node was opened for reading, and is not recorded. Where it cannot be, it counts
  /// for this instance: nobody takes what is left of the log for all that there was.
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

  /// Records damage that a reader met, so that from then on nobody builds on what is lost.
  func recordMetDamage(_ found: [Damage]) throws(NodeError) {
    guard options.recordsDamage, mark.damage?.contains(found) != true else { return }
    try recordIfWritable(found)
  }

  /// Takes the lock to record damage. Where nothing can be written, or somebody else is writing, the next one who meets it
  /// does so.
  func recordIfWritable(_ found: [Damage]) throws(NodeError) {
    do throws(NodeError) {
      try Self.wrapping {
        let lock = try WriterLock(
          Self.path(directory, Self.lockFileName), fileSystem: ports.fileSystem, wait: 0)
        defer { lock.release() }
        // Who changed the mark meanwhile knows more than this node.
        guard try Self.readMark(directory, ports) == mark else { return }
        hasUntoldDamage = true
        try recordDamage(found)
      }
    } catch { guard error.isRefusalToWrite || error.isInUse else { throw error } }
  }

  /// Where journals got their names back, less may be damaged than is recorded, or nothing. Reads the log. The writer lock must
  /// be held.
  func lookAgainAtDamage() throws(NodeError) {
    guard mark.damage != nil, mark.pendingGivingUp == nil, !log.recovery.renamed.isEmpty else { return }
    let left = try Self.wrapping { try log.verify() }
    guard log.isHarmless(left) else { return _ = try keepDamage(left, isVague: false) }
    do throws(NodeError) { try finishRepair(wasVague: false, options.progress) } catch {
      guard error.logDamage?.flaw.isDoubled == true else { throw error }
    }
  }

  /// Whether the tables were made around damage of the log, and lack what it took.
  var areTablesPartial: Bool { !tablesRemember || mark.damage?.areTablesPartial == true }

  /// Throws `.missing` if the tables lack records that damage took, or changes of them. `key`: if they may lack some
  /// of this record. What was read of them is right as far as it goes.
  package func checkTablesAreWhole(for key: (key: Key, model: Model)? = nil) throws(NodeError) {
    guard areTablesPartial else { return }
    // Of temporary ones nothing is recorded.
    if temporary == nil, let key, !isDamaged(Partition(model: key.model, key: key.key)) { return }
    throw missingEvents
  }

  /// Throws `.missing` if the log has lost events of these partitions that the tables remember.
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

  /// What `found`, and all damage that is known already, has taken.
  /// Not `withKnown`: `found` is all that there is.
  func survey(
    _ found: [Damage], withKnown: Bool = true, seenBy offered: [Event] = []
  ) throws(NodeError) -> Survey {
    try Self.wrapping {
      let known = (withKnown ? mark.damage?.places ?? [] : []).map { place in
        Damage(
          path: Self.path(directory, Self.logDirectoryName) + "/" + place.file, offset: place.offset,
          flaw: .disagreement(place.what))
      }
      let all = found + known.filter { old in !found.contains { $0.path == old.path } }
      if areTablesPartial { return try log.survey(all, held: nil, seenBy: offered) }
      let (held, token) = (try reading { try $0.knowledge() }, try reading { try $0.token() })
      // Tables that have followed around damage stand behind it, whatever they had taken in before: the record tells whether
      // that was all.
      let end: Position? =
        if let damage = mark.damage { damage.isVague ? Position(file: 0, index: 0) : nil } else {
          token.position
        }
      return try log.survey(all, held: held, upTo: end, seenBy: offered)
    }
  }

  /// What damage took, and what of that can be rescued. Reads the damaged files.
  func toll(of found: [Damage]) throws(NodeError) -> DamageToll {
    let survey = try survey(found)
    return DamageToll(survey, try Self.wrapping { try log.salvage(survey) })
  }

  // MARK: Following around damage

  /// Applies what can be read of the partitions that lost nothing. The writer lock must be held. `fromStart`: files
  /// were mended, and have events that the tables may lack.
  func followAroundDamage(fromStart: Bool = false) throws {
    let token = try tables.read { reader throws(TablesError) in try reader.token() }
    let end = log.token
    if token != end || fromStart {
      let fits: Bool
      do throws(LogError) { fits = fromStart ? false : try log.matches(token) } catch {
        guard error.damage != nil else { throw error }
        fits = false
      }
      let start = fits ? token.position : Position(file: 0, index: 0)
      var recorded: Set<Damage> = []
      while true {
        do {
          try recordDamage(try follow(from: start, to: end, knowing: recorded))
          break
        } catch let met as MetDamage {
          // It may have hidden events of other partitions.
          recorded.formUnion(met.damage)
          try recordDamage(met.damage)
        }
      }
    }
    try finishFollowing(end)
  }

  /// Does something that reads the tables. Where these are damaged, and the log is, they are made anew around what `found` says,
  /// as if they had been lost, and it is done again with these: they are no reason to leave the log as it is. The writer lock
  /// must be held.
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

  /// The same for who changes no file: the tables are made in a temporary place.
  func replacingDamagedTables<Result>(
    _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    do throws(NodeError) { return try body() } catch .tables(.needsRebuild(tablesPath, let reason)) {
      let folder = try TemporaryFolder()
      let (made, isAroundDamage) = try Self.makeTables(
        in: folder, schema, log, mark, options, mode: .readOnly)
      (tables, temporary) = (made, folder)
      tablesRemember = !isAroundDamage
      notices.append(Self.rebuiltAroundDamage(reason))
      return try body()
    }
  }

  private static func rebuiltAroundDamage(_ reason: RebuildReason) -> String {
    "the tables were rebuilt from what can be read of a damaged log (\(Explanations.text(of: reason)))"
  }

  /// Damage that nobody knew of when the tables began to follow.
  private struct MetDamage: Error { let damage: [Damage] }

  /// Returns the damage on the way.
  ///
  /// - Throws: `MetDamage`, with the tables as they were: nothing is taken in of partitions that may have lost events.
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

  /// Makes tables from a damaged log where there are none: of each partition what the events before the damage
  /// say, and nothing that builds on what is lost.
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
  /// How far each stream can be read without a hole, and without an event that builds on what is lost.
  fileprivate func prefixAroundDamage() throws(LogError) -> Knowledge {
    var knowledge = Knowledge()
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
