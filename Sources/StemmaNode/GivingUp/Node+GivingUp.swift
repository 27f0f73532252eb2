import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaTables

/// What giving up did, or would do.
package struct GivingUpReport: Sendable {
  /// nil: the log is whole, and nothing was done. Of a giving up that was interrupted, and is finished now, too.
  package var record: GivenUp?
  /// Files of the log that are damaged, in `log/`.
  package var files: [String] = []
  /// Events that the damaged files told themselves: not given up.
  package var rescued: UInt64 = 0
  /// Commits of these events whose notes nothing proves: the notes are given up.
  package var unnoted = 0
}

extension Node {
  /// Declares the events lost that damage of the log has taken. The partitions that lost them can be written and
  /// exchanged again: what can be read behind the lost events, and what the tables still show of them, is written
  /// again under new origins; the damaged files are written anew. The tables are rebuilt then, and show what they
  /// showed. `Restatement` says how.
  ///
  /// What is to be done is decided durably first (`NodeMark.pendingGivingUp`); interrupted, it is finished by whoever
  /// writes to the node next. Memory: the events of the partitions that lost some.
  ///
  /// - Parameter isDryRun: reports what would be done; a node that was opened with `leavesFiles` changes no byte for it.
  package func giveUp(
    isDryRun: Bool, progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> GivingUpReport {
    if isDryRun {
      return try replacingDamagedTables { () throws(NodeError) in
        try planGivingUp()?.report ?? GivingUpReport()
      }
    }
    return try locked { () throws(NodeError) in
      try remakingDamagedTables { () throws(NodeError) in
        try Self.wrapping { try log.verify() }
      } _: { () throws(NodeError) in
        try giveUp(progress)
      }
    }
  }

  /// The writer lock must be held.
  private func giveUp(_ progress: @escaping (UInt64, UInt64) -> Void) throws(NodeError) -> GivingUpReport {
    let renamed = try Self.wrapping { try log.restoreNames() }
    if !renamed.isEmpty || !log.recovery.renamed.isEmpty {
      // What was known of files under other names is not true of them any more.
      let left = try Self.wrapping { try log.verify() }
      if !left.isEmpty { try keepDamage(left, isVague: false) }
    }
    guard var plan = try planGivingUp() else {
      // Somebody put a file back.
      if mark.damage != nil { try finishRepair(wasVague: false, progress) }
      defer { finishedGivingUp = nil }
      return GivingUpReport(record: finishedGivingUp)
    }
    let report = plan.report
    if report.rescued > 0 || report.record == nil {
      try rescue(progress)
      guard let rest = try planGivingUp() else { return report }
      plan = rest
    }
    try decide(plan.restatement, plan.survey)
    try finishGivingUp(progress, isOwn: true)
    guard mark.pendingGivingUp == nil else {
      throw .damaged(what: "more was lost meanwhile: `stemma repair --give-up` again")
    }
    return report
  }

  /// What is lost, and what else cannot be told, of which the damaged files tell nothing.
  private func surveyRest(_ found: [Damage]) throws(NodeError) -> (survey: Survey, salvage: Salvage) {
    var survey = try survey(found)
    let salvage = try Self.wrapping { try log.salvage(survey) }
    survey.lost = salvage.missing
    survey.vague = survey.vague(after: salvage)
    return (survey, salvage)
  }

  /// Nil if nothing is damaged. What the damaged files tell is not lost in this survey.
  private func planGivingUp() throws(NodeError) -> (
    report: GivingUpReport, restatement: Restatement, survey: Survey
  )? {
    let found = try Self.wrapping { try log.verify() }
    if log.isHarmless(found) { return nil }
    let (survey, salvage) = try surveyRest(found)
    let restatement = try restatement(of: survey, salvage)
    var report = GivingUpReport()
    report.files = Set(RecordedDamage(survey).places.map(\.file)).sorted()
    report.rescued = salvage.count
    report.unnoted = salvage.unnotedCommits.count
    if !survey.lost.isEmpty || !survey.vague.isEmpty { report.record = try record(of: survey, restatement) }
    return (report, restatement, survey)
  }

  /// Carries out a giving up that was decided. The writer lock must be held. `isOwn`: by who decided it; otherwise it is
  /// told that it was finished.
  func finishGivingUp(
    _ progress: @escaping (UInt64, UInt64) -> Void, isOwn: Bool = false
  ) throws(NodeError) {
    guard let pending = mark.pendingGivingUp else { return }
    do { _ = try log.refresh() } catch { throw .log(error) }
    let found = try Self.wrapping { try log.verify() }
    if !pending.isWritten {
      let (survey, salvage) = try surveyRest(found)
      try decide(try restatement(of: survey, salvage), survey)
    }
    guard let pending = mark.pendingGivingUp else { return }
    let cut = pending.cut.starts
    if !log.isHarmless(found) {
      // Also where nobody knows what else the files held: that is given up, and what they tell is not.
      let (survey, salvage) = try surveyRest(found)
      guard survey.lost.allSatisfy({ cut.covers($0.partition, $0.origin, $0.from) }) else {
        // More was lost since. It is for a person to decide again; what is written again is not lost by that.
        return try recordDamage(found)
      }
      try Self.wrapping { try log.giveUp(survey, keeping: salvage) { cut.contains($0) } }
    }
    let partitions = Set(cut.keys.map(\.partition))
    try Self.wrapping { try log.purge({ partitions.contains($0) }) { cut.contains($0.event) } }
    try finishRepair(wasVague: false, givenUp: pending.record, progress)
    if !isOwn {
      finishedGivingUp = pending.record
      notices.append("a giving up that was interrupted is finished: \(pending.record.sentence)")
    }
  }

  /// Decides durably what to do, and writes what is said again. The writer lock must be held.
  private func decide(_ restatement: Restatement, _ survey: Survey) throws(NodeError) {
    let fresh = restatement.newOrigins
    var damage = RecordedDamage(survey)
    damage.areTablesPartial = areTablesPartial
    mark.damage = damage
    mark.origins += fresh
    mark.pendingGivingUp = PendingGivingUp(
      record: try record(of: survey, restatement), origins: fresh.map(\.rawValue),
      cut: [StreamSuffix](restatement.cut))
    // What comes next has an origin of its own, and never stands in a stream that is said again.
    try beginOrigin(because: "events were given up")
    try Self.wrapping {
      _ = try log.append(restatement.commits)
      try log.sync()
    }
    mark.pendingGivingUp?.isWritten = true
    try saveMark()
  }

  private func record(of survey: Survey, _ restatement: Restatement) throws(NodeError) -> GivenUp {
    let held = try reading { try $0.knowledge() }
    let damage = RecordedDamage(survey)
    let unknown = survey.lost.reduce(UInt64(0)) { sum, range in
      let head = held[range.partition, range.origin].sequence
      return head >= range.to ? sum : sum + min(range.count, range.to.rawValue - head.rawValue)
    }
    return GivenUp(
      time: ports.clock.milliseconds(), losses: damage.losses, isVague: damage.isVague,
      again: restatement.again,
      standIns: restatement.standIns, fillers: restatement.fillers, unknown: unknown)
  }

  /// A random origin between `old` and the next one that is known; anywhere if there is too little room.
  private static func origin(behind old: Origin, among known: Set<Origin>, _ ports: Ports) -> Origin {
    let next = known.filter { $0 > old }.min()?.rawValue ?? .max
    let room = next - old.rawValue
    return Origin(room >> 32 == 0 ? ports.newID() : old.rawValue + 1 + ports.newID() % (room - 1))
  }

  /// What of the partitions that lost events is said again, and how. Reads all of them, and their records.
  private func restatement(
    of survey: Survey, _ salvage: Salvage = Salvage()
  ) throws(NodeError) -> Restatement {
    var cut: [EventName: Sequence] = [:]
    var lost: [EventName: [ClosedRange<Sequence>]] = [:]
    for range in survey.lost {
      let stream = EventName(stream: range.partition, range.origin)
      cut[stream] = min(cut[stream] ?? range.from, range.from)
      lost[stream, default: []].append(range.from...range.to)
    }
    let mark = mark
    let ports = ports
    var origins = Set(mark.origins + mark.names.keys + lost.keys.map(\.dot.origin))
    for streams in try reading({ try $0.knowledge() }).partitions.values { origins.formUnion(streams.keys) }
    let dropped = mark.pendingGivingUp?.dropped ?? [:]
    var restatement = Restatement(
      cut: cut, dropped: dropped, newOrigin: { [origins] in Self.origin(behind: $0, among: origins, ports) },
      name: { mark.displayName(of: $0) })
    let partitions = Set((Array(cut.keys) + dropped.keys).map(\.partition))
    try Self.wrapping {
      try reading { reader in
        try reader.forEachState(in: { partitions.contains($0) }) { model, key, partition, state in
          let record = RecordKey(partition: partition, model: model.storedName, key: key)
          restatement.remember(record, state, reader.tableSet.rules(of: model)) { dot in
            (lost[EventName(stream: partition, dot.origin)] ?? []).contains { $0.contains(dot.sequence) }
          }
        }
      }
      var reader = log.events(partitions: { partitions.contains($0) }, around: Omissions())
      // As if they stood in the log again, where they did.
      var rescued = salvage.events.filter { partitions.contains($0.event.event.partition) }[...]
      while let stored = try reader.next() {
        while let first = rescued.first, first.event.position < stored.position {
          try restatement.take(first.event.event, first.note)
          rescued.removeFirst()
        }
        try restatement.take(stored.event, reader.note)
      }
      for (stored, note) in rescued { try restatement.take(stored.event, note) }
      try restatement.finish(correcting: Origin(ports.newID()))
    }
    return restatement
  }
}
