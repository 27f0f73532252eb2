import StemmaEvents
import StemmaLog

// A machine that was set back may have left both of its histories in one log: the numbers of a stream rise to some
// point, and further on in the log lower ones come again, with other events or the same. Reading goes on, and the
// tables show what came first, but nothing can be rebuilt, sealed or sent from there on. It is a fork within one log, and
// is mended like one: what came later is the branch, and is written again under new names; what is there twice is there
// once then. Until that is done nothing is written: nobody could tell any more which of the two a new event has seen.

/// Tells the events of a log, taken in arrival order, whose names were given before. Memory: a digest for each event.
struct DoubledNumbers {
  enum Kind {
    /// Of the history that came first.
    case first
    /// An event that is there already.
    case copy
    case branch(ForkedBranch)
  }

  /// Events that follow each other from one on whose name was given before.
  struct Run {
    var first: EventName
    var last: Sequence
    /// Of its first event.
    var place: Position
    /// Of the event that has had that name before.
    var earlier: Position
    /// nil: they are the same events again.
    var branch: ForkedBranch?

    var count: UInt64 { last.rawValue - first.dot.sequence.rawValue + 1 }
  }

  private(set) var runs: [Run] = []
  /// The history that came first, by stream.
  private var known: [EventName: [Sequence: (digest: StreamHash, position: Position)]] = [:]
  /// By stream: the place in `runs` of the last one.
  private var open: [EventName: Int] = [:]
  private var digester = EventDigester()

  /// Traps if a run is not found by its stream, or has no events before it of whose names it makes use. For tests; in debug
  /// builds when the log is read. O(n).
  func checkInvariants() {
    func stream(of run: Run) -> EventName { EventName(stream: run.first.partition, run.first.dot.origin) }
    for (name, place) in open { precondition(stream(of: runs[place]) == name, "a run is of its stream") }
    for run in runs {
      precondition(run.first.dot.sequence <= run.last, "a run has an event")
      precondition(run.earlier < run.place, "what came first has the name")
      precondition(
        known[stream(of: run)]?[run.first.dot.sequence]?.position == run.earlier,
        "what came first has the name")
    }
  }

  mutating func kind(of stored: StoredEvent) -> Kind {
    let event = stored.event
    let stream = EventName(streamOf: event)
    let sequence = event.dot.sequence
    let digest = digester.digest(of: event).hash
    let current = open[stream].flatMap { runs[$0].last.next == sequence ? $0 : nil }
    if let current, let branch = runs[current].branch {
      runs[current].last = sequence
      return .branch(branch)
    }
    guard let earlier = known[stream]?[sequence] else {
      known[stream, default: [:]][sequence] = (digest, stored.position)
      return .first
    }
    let branch = earlier.digest == digest ? nil : ForkedBranch(event.name, digest)
    if let current, branch == nil {
      runs[current].last = sequence
    } else {
      open[stream] = runs.count
      runs.append(
        Run(
          first: event.name, last: sequence, place: stored.position, earlier: earlier.position, branch: branch
        ))
    }
    return branch.map { .branch($0) } ?? .copy
  }
}

extension Node {
  /// Throws `.doubledNames` if the log has names of events twice. Costs the trailers of the files; only where these tell of
  /// more events than the tables have names for, their footers, and the journals.
  func checkNames() throws(NodeError) {
    let events = try Self.wrapping { try log.files().reduce(0) { $0 + $1.events } }
    guard try events > reading({ try $0.eventCount() }) else { return }
    do throws(LogError) { _ = try log.streams() } catch {
      guard case .damaged(_, _, .doubled(let partition, let dot)) = error else { return }
      throw .doubledNames(
        node: mark.name, path: directory, partition: partition.description, event: description.name(dot))
    }
  }

  /// What a person should know of each run: where it begins, and where the first event of that name is.
  static func doubledDamage(in log: Log) throws(LogError) -> [VerificationReport.Damage] {
    var doubled = DoubledNumbers()
    var reader = log.events()
    while let stored = try reader.next() { _ = doubled.kind(of: stored) }
    assert(holds(doubled.checkInvariants))
    let files = try log.files()
    return doubled.runs.map { run in
      let events =
        "\(counted(run.count, "event")) of partition \(run.first.partition) from @\(run.place) on"
      let what =
        run.branch == nil
        ? "\(run.count == 1 ? "is" : "are") here for the second time (\(run.first.dot) is @\(run.earlier) too)"
        : "\(run.count == 1 ? "has" : "have") names that other events have had before (\(run.first.dot) is "
          + "@\(run.earlier) too)"
      return VerificationReport.Damage(
        file: files.first { $0.place == run.place.file }?.path ?? "", offset: nil,
        what: "\(events) \(what): a machine was set back and wrote again", remedy: .fork)
    }
  }

  /// Mends a fork within this node's log: what came later of it is written again under new names, and removed under its
  /// old ones; what is there twice stays once. Peers that hold the branch under its old names are refused with it then,
  /// and mend it with `repairFork`. The tables are rebuilt.
  ///
  /// An event of which nobody can tell which of the two histories it has seen counts as one that has seen what both
  /// share: it is written again too, beside what it may have overwritten.
  ///
  /// Interrupted, it goes on when it is repeated, and writes no event twice.
  /// - Throws: `.log(.damaged)` if the log is damaged besides. Nothing is changed then.
  package func repairDoubledNumbers(
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ForkReport {
    try locked { () throws(NodeError) in
      var report = ForkReport()
      let found = try Self.wrapping { try log.verify() }
      if !log.isHarmless(found), let damage = found.first { throw .log(damage.error) }
      var doubled = DoubledNumbers()
      var renaming = Renaming([])
      var removed: Set<Position> = []
      try Self.wrapping {
        var reader = log.events()
        while let stored = try reader.next() {
          switch doubled.kind(of: stored) {
          case .first:
            if !renaming.take(stored.event, reader.note) { continue }
            report.unsure += 1
          case .copy: report.copies += 1
          case .branch(let branch): renaming.take(stored.event, reader.note, double: branch)
          }
          removed.insert(stored.position)
        }
      }
      guard !removed.isEmpty else { return report }
      report.events = UInt64(renaming.count)
      let branches = doubled.runs.compactMap(\.branch)
      mark.retired = [ForkedBranch](merging: mark.retired + branches)
      let renamed = branches + [ForkedBranch](merging: renaming.branches.values)
      nameNewOrigins(of: renamed)
      if renamed.contains(where: { $0.origin == mark.origin.rawValue }) {
        try beginOrigin(because: "events of its origin were written again to mend a fork")
      } else {
        try saveMark()
      }
      let partitions = Set(doubled.runs.map(\.first.partition))
      try Self.wrapping {
        if !renaming.commits.isEmpty { _ = try log.append(renaming.commits) }
        try log.sync()
        try log.purge({ partitions.contains($0) }) { removed.contains($0.position) }
      }
      report.partitions = partitions.sorted().map(\.description)
      // What was recorded as damage was this, as the log has no other.
      try finishRepair(wasVague: false, progress)
      return report
    }
  }
}
