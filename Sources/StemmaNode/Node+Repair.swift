import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaTables

/// What a repair did.
package struct RepairReport: Sendable {
  /// Files of the log that were written anew, in `log/`.
  package var files: [String] = []
  /// Names that files had which got their own back when this node was opened.
  package var renamed: [String] = []
  /// Events that were fetched and put back, or pulled where nobody could tell what was lost.
  package var events: UInt64 = 0
  /// Events that the damaged files told themselves.
  package var rescued: UInt64 = 0
  /// Commits of such events whose notes nothing proves, and no peer has: these are left out, or, where that was not
  /// asked for, the events are `rescuable` still.
  package var unnoted: Int { unnotedCommits.count }
  fileprivate var unnotedCommits: Set<CommitID> = []
  /// What is still missing.
  package var missing: [RecordedDamage.Loss] = []
  /// Those that no damaged file can have held.
  fileprivate var unplaced: [RecordedDamage.Loss] = []
  /// Events among `missing` that a peer has offered: they wait for the others that the same file lost of their partition.
  package var waiting: UInt64 = 0
  /// What is missing no more than that the damaged files tell it, and were left as they are.
  package var rescuable: [RecordedDamage.Loss] = []
  /// Partitions of which a peer holds other events than were lost.
  package var refused: [String] = []
  /// Whether the damaged files may have held more than anybody here could tell.
  package var isVague = false
  /// Names of the peers that have none of the lost events; of these, those whose scope leaves all their partitions out.
  package var strangers: [String] = []
  package var unconcerned: Set<String> = []
  /// Names of the peers that had events that were put back.
  package var givers: Set<String> = []

  /// Names of the files that stay damaged, in `log/`.
  package var damaged: [String] = []

  package var isWhole: Bool { missing.isEmpty && damaged.isEmpty }
}

extension Node {
  /// Takes the events that ordinary reading of a damaged log misses from what can be made out of the damaged files,
  /// fetches the others from peers, checks them against the hashes of their streams, and writes the files anew. The
  /// tables are rebuilt then, and equal to what they were.
  ///
  /// What one peer lacks another may have. Where they all together lack events, those partitions that a file lost and
  /// of which they have everything are put back, and the rest stays lost, and is named in the report. Repeating is
  /// harmless, after a crash too. Where nobody here can tell what a file held, all that the peers have and this node
  /// lacks is pulled then.
  /// - Parameter takesUnnoted: puts events back also where nothing proves the notes of their commits, and no peer has them:
  ///   without these notes, which nobody fetches again. Otherwise such a file stays as it is.
  /// - Throws: `.notAPeer`, or `.log` if a file cannot be read or written.
  package func repair(
    from remotes: [RemotePeer], takesUnnoted: Bool = false, progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RepairReport {
    var peers: [(name: String, node: Node)] = []
    for remote in remotes { peers.append((remote.name, try peerForReading(remote))) }
    var report = try locked { () throws(NodeError) in
      var report = RepairReport()
      report.renamed = log.recovery.renamed.map { $0.from.fileName }
      // A file that was mended may tell of more that another one has lost: as long as there are such, it goes on.
      while try mend(from: peers, takesUnnoted: takesUnnoted, &report, progress) {}
      return report
    }
    guard report.isVague, report.isWhole else { return report }
    for remote in remotes {
      let pulled = try exchange(with: remote, pulls: true, pushes: false, partitions: [], progress: progress)
      let events = pulled.pulled?.events ?? 0
      report.events += events
      if events > 0 { report.givers.insert(remote.name) }
    }
    if !report.unplaced.isEmpty {
      let held = try reading { try $0.knowledge() }
      report.missing = report.unplaced.compactMap { $0.part(behind: held) }
    }
    return report
  }

  /// Mends what the damaged files tell themselves, without notes that nothing proves, before the rest is given up. The
  /// writer lock must be held.
  func rescue(_ progress: @escaping (UInt64, UInt64) -> Void) throws(NodeError) {
    var report = RepairReport()
    while try mend(from: [], takesUnnoted: true, &report, progress) {}
  }

  /// Mends what the peers have of all that is lost now, and adds to `report`. True if something was mended and
  /// something is left.
  private func mend(
    from peers: [(name: String, node: Node)], takesUnnoted: Bool, _ report: inout RepairReport,
    _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> Bool {
    let renamed = try Self.wrapping { try log.restoreNames() }
    report.files += renamed
    let found = try Self.wrapping { try log.verify() }
    guard !found.isEmpty || mark.damage != nil || !renamed.isEmpty else { return false }
    // What was known of files under other names is not true of them any more.
    let areNamesSettled = renamed.isEmpty && log.recovery.renamed.isEmpty
    var survey = try self.survey(found, withKnown: areNamesSettled)
    var salvage = try Self.wrapping { try log.salvage(survey) }
    let unwitnessed = survey.unwitnessedLikenesses(salvage)
    var offers: [Offer] = []
    while true {
      let wanted = salvage.missing + salvage.told + salvage.unnoted
      offers = []
      for (_, peer) in peers { offers.append(try peer.offer(of: wanted, like: unwitnessed)) }
      // What is to be put back may have seen more than anybody here remembers.
      let told = (offers + [salvage.checkedOffer]).flatMap(\.events)
      let wider = try self.survey(found, withKnown: areNamesSettled, seenBy: told)
      if wider.lost == survey.lost { break }
      survey = wider
      salvage = try Self.wrapping { try log.salvage(wider) }
    }
    let wanted = salvage.missing + salvage.told + salvage.unnoted
    var strangers: [String] = []
    var unconcerned: Set<String> = []
    for ((name, peer), offer) in zip(peers, offers) where !wanted.isEmpty && offer.events.isEmpty {
      strangers.append(name)
      let scope = peer.mark.scope
      if !wanted.contains(where: { scope.contains($0.partition) }) { unconcerned.insert(name) }
    }
    let own = try offer(of: [], like: unwitnessed)
    let read = survey.withoutMisread(salvage, knowing: (offers + [own]).flatMap(\.events))
    if read.lost != survey.lost {
      // What was misread may be more than what is known to be lost.
      report.isVague = true
      survey = read
      salvage = try Self.wrapping { try log.salvage(read) }
    }
    if report.files.isEmpty { (report.strangers, report.unconcerned) = (strangers, unconcerned) }
    var mended = try Self.wrapping {
      try log.mend(survey, with: offers, and: salvage, takesUnnoted: takesUnnoted)
    }
    report.files += mended.files.map(\.fileName)
    report.rescued += mended.rescued
    report.unnotedCommits.formUnion(mended.unnotedCommits)
    report.events += mended.events - mended.rescued
    if mended.events > mended.rescued {
      report.givers.formUnion(Set(peers.map(\.name)).subtracting(strangers))
    }
    // Tables that were made again around the damage no longer tell that there was more.
    report.isVague = report.isVague || !survey.vague(after: salvage).isEmpty || mark.damage?.isVague == true
    report.refused = Set(mended.forged.map { $0.partition.description }).sorted()
    let left = try Self.wrapping { try log.verify() }
    let offered = Set(offers.flatMap { $0.events.map { EventName($0) } })
    if left.isEmpty, !peers.isEmpty, !mended.missing.isEmpty, mended.missing.allSatisfy({ $0.place == nil }) {
      // No file is left that could have held it: it comes as what others have written, as far as they have it.
      report.isVague = true
      survey.lost = mended.missing
      report.unplaced = RecordedDamage(survey).losses
      mended.missing = []
    }
    if left.isEmpty, mended.missing.isEmpty {
      report.missing = []
      report.waiting = 0
      report.rescuable = []
      report.damaged = []
      try finishRepair(wasVague: report.isVague, progress)
      return false
    }
    let (toll, missing) = try keepDamage(left, isVague: report.isVague)
    report.missing = toll.missing
    let stillMissing = LostNames(missing.filter { !report.refused.contains($0.partition.description) })
    report.waiting = stillMissing.count(in: offered)
    report.rescuable = toll.rescuable
    report.damaged = Set(left.map(\.path.fileName)).sorted()
    return mended.events > 0
  }

  /// Notes what is still damaged after a mending, and takes into the tables what it brought.
  @discardableResult func keepDamage(
    _ left: [Damage], isVague: Bool
  ) throws(NodeError) -> (toll: DamageToll, missing: [LostRange]) {
    let areTablesPartial = areTablesPartial
    let survey = try survey(left, withKnown: false)
    let salvage = try Self.wrapping { try log.salvage(survey) }
    var damage = RecordedDamage(survey)
    damage.isVague = damage.isVague || isVague
    damage.areTablesPartial = areTablesPartial
    mark.damage = damage
    try saveMark()
    try remakingDamagedTables {
      left
    } _: { () throws(NodeError) in
      try Self.wrapping { try followAroundDamage(fromStart: true) }
    }
    return (DamageToll(survey, salvage), salvage.missing)
  }

  /// The log is whole again; the record of the damage goes only when the tables follow it. `givenUp`: what was given
  /// up for that, which is noted then.
  func finishRepair(
    wasVague: Bool, givenUp: GivenUp? = nil, _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) {
    _ = try Self.rebuild(
      tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: progress)
    try reopenTables()
    tablesRemember = true
    mark.damage = nil
    if let givenUp {
      mark.givenUp.append(givenUp)
      mark.pendingGivingUp = nil
    }
    if wasVague {
      // This node may have written more than anybody can tell; what a peer got of it comes with the next pull.
      try beginOrigin(because: "events of this node may be lost")
    } else {
      try saveMark()
    }
    do { try finishFollowing(log.token) } catch { try Self.wrapping { throw error } }
  }

  func peerForReading(_ remote: RemotePeer) throws(NodeError) -> Node {
    let peer: Node
    do throws(NodeError) {
      peer = try Self.open(at: remote.address, options.ofPeer(writes: false))
    } catch .noNode {
      throw .notAPeer(path: remote.address, reason: "there is no node in that directory")
    }
    // A copy has the same log id, and may have what this one has lost.
    if peer.mark.logID == mark.logID, peer.log.recovery.watermarkIdentity == log.recovery.watermarkIdentity {
      throw .notAPeer(path: remote.address, reason: "it is this node itself")
    }
    return peer
  }

  /// The events of some ranges, and others that are alike, as far as this node has them, with the notes of their commits.
  private func offer(
    of ranges: [LostRange], like likenesses: Set<EventLikeness>
  ) throws(NodeError) -> Offer {
    if ranges.isEmpty, likenesses.isEmpty { return Offer([]) }
    let wanted = LostNames(ranges)
    let partitions = Set(ranges.map(\.partition))
    return try Self.wrapping {
      var events: [Event] = []
      var notes: [CommitID: CommitNote] = [:]
      var reader = log.events(
        partitions: { !likenesses.isEmpty || partitions.contains($0) }, around: Omissions())
      while let event = try reader.next()?.event {
        let isLike = !likenesses.isEmpty && likenesses.contains(EventLikeness(event))
        guard isLike || wanted.contains(EventName(event)) else { continue }
        events.append(event)
        if let note = reader.note { notes[event.commit] = note }
      }
      return Offer(events, notes: notes)
    }
  }
}

extension RecordedDamage.Loss {
  /// What of it is not held; nil: nothing.
  fileprivate func part(behind held: Knowledge) -> Self? {
    guard let origin = UInt64(origin, radix: 16) else { return self }
    let head = held[Partition(partition), Origin(origin)].sequence.rawValue
    if head >= to { return nil }
    var part = self
    part.from = max(from, head + 1)
    return part
  }
}

/// Tells whether an event is of some ranges.
private struct LostNames {
  private var ranges: [EventName: [LostRange]] = [:]

  init(_ lost: [LostRange]) {
    for range in lost { ranges[EventName(stream: range.partition, range.origin), default: []].append(range) }
  }

  func count(in names: Set<EventName>) -> UInt64 { UInt64(names.count { contains($0) }) }

  func contains(_ name: EventName) -> Bool {
    (ranges[EventName(stream: name.partition, name.dot.origin)] ?? []).contains {
      ($0.from...$0.to).contains(name.dot.sequence)
    }
  }
}
