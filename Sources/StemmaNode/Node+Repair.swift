import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaTables

/// What a repair did.
package struct RepairReport: Sendable {
  /// Files of the log that were written anew, in `log/`.
  package var files: [String] = []
  /// Events that were fetched and put back, or pulled where nobody could tell what was lost.
  package var events: UInt64 = 0
  /// What is still missing.
  package var missing: [RecordedDamage.Loss] = []
  /// Partitions of which the peer holds other events than were lost.
  package var refused: [String] = []
  /// Whether the damaged files may have held more than anybody here could tell.
  package var isVague = false

  package var isWhole: Bool { missing.isEmpty }
}

extension Node {
  /// Fetches the events that damage of the log has taken from a peer, checks them against the hashes of their
  /// streams, and writes the damaged files anew. The tables are rebuilt then, and equal to what they were.
  ///
  /// A file for which the peer has not all events stays as it is, and is named in the report. Repeating is
  /// harmless, after a crash too. Where nobody here can tell what a file held, all that the peer has and this node lacks
  /// is pulled then.
  /// - Throws: `.notAPeer`, or `.log` if a file cannot be read or written.
  package func repair(
    from remote: RemotePeer, progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RepairReport {
    let peer = try peerForReading(remote)
    var report = try locked { () throws(NodeError) in
      let found = try Self.wrapping { try log.verify() }
      guard !found.isEmpty || mark.damage != nil else { return RepairReport() }
      let survey = try self.survey(found)
      let (events, notes) = try peer.events(of: survey.lost)
      let mended = try Self.wrapping { try log.mend(survey, with: events, notes: notes) }
      var report = RepairReport()
      report.files = mended.files.map { String($0.split(separator: "/").last ?? "") }
      report.events = mended.events
      // Tables that were made again around the damage no longer tell that there was more.
      report.isVague = !survey.vague.isEmpty || mark.damage?.isVague == true
      report.refused = Set(mended.forged.map { $0.partition.description }).sorted()
      let left = try Self.wrapping { try log.verify() }
      if left.isEmpty, mended.missing.isEmpty {
        try finishRepair(wasVague: report.isVague, progress)
      } else {
        let damage = RecordedDamage(try self.survey(left))
        mark.damage = damage
        try saveMark()
        report.missing = damage.losses
      }
      return report
    }
    if report.isVague, report.isWhole {
      let pulled = try exchange(with: remote, pulls: true, pushes: false, partitions: [], progress: progress)
      report.events += pulled.pulled?.events ?? 0
    }
    return report
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
    var options = options
    options.mode = .read
    do throws(NodeError) { return try Self.open(at: remote.address, options) } catch .noNode {
      throw .notAPeer(path: remote.address, reason: "there is no node in that directory")
    }
  }

  /// The events of some ranges, as far as this node has them, with the notes of their commits.
  private func events(
    of ranges: [LostRange]
  ) throws(NodeError) -> (events: [Event], notes: [CommitID: CommitNote]) {
    guard !ranges.isEmpty else { return ([], [:]) }
    var wanted: [EventName: [LostRange]] = [:]
    for range in ranges {
      wanted[EventName(stream: range.partition, range.origin), default: []].append(range)
    }
    let partitions = Set(ranges.map(\.partition))
    return try Self.wrapping {
      var events: [Event] = []
      var notes: [CommitID: CommitNote] = [:]
      var reader = log.events(partitions: { partitions.contains($0) }, around: Omissions())
      while let event = try reader.next()?.event {
        let isWanted = (wanted[EventName(streamOf: event)] ?? []).contains {
          ($0.from...$0.to).contains(event.dot.sequence)
        }
        guard isWanted else { continue }
        events.append(event)
        if let note = reader.note { notes[event.commit] = note }
      }
      return (events, notes)
    }
  }
}
