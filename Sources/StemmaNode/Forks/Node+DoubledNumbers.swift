import StemmaEvents
import StemmaLog

// A machine that was set back may have left both of its histories in one log: the numbers of a stream rise to some
// point, and further on in the log lower ones come again with other events. Reading goes on, and the tables show what
// came first, but nothing can be rebuilt, sealed or sent from there on. It is a fork within one log, and is mended like
// one: what came later is the branch, and is written again under new names.

/// Tells the events of a log, taken in arrival order, whose names were given before.
struct DoubledNumbers {
  /// Events that follow each other from the first one whose name was given before.
  struct Run {
    var branch: ForkedBranch
    var last: Sequence
    /// Of its first event.
    var place: Position
  }

  private(set) var runs: [Run] = []
  /// By stream: how far the history that came first goes, and the place in `runs` of the last one.
  private var heads: [EventName: Sequence] = [:]
  private var open: [EventName: Int] = [:]
  private var digester = EventDigester()

  /// The branch that an event belongs to; nil if it belongs to the history that came first.
  mutating func branch(of stored: StoredEvent) -> ForkedBranch? {
    let event = stored.event
    let stream = EventName(streamOf: event)
    let sequence = event.dot.sequence
    if let run = open[stream], runs[run].last.next == sequence {
      runs[run].last = sequence
      return runs[run].branch
    }
    guard sequence <= heads[stream] ?? .zero else {
      heads[stream] = sequence
      return nil
    }
    let branch = ForkedBranch(event.name, digester.digest(of: event).hash)
    open[stream] = runs.count
    runs.append(Run(branch: branch, last: sequence, place: stored.position))
    return branch
  }
}

extension Node {
  /// All runs of events whose names stand in the log before them.
  static func doubledRuns(in log: Log) throws(LogError) -> [DoubledNumbers.Run] {
    var doubled = DoubledNumbers()
    var reader = log.events()
    while let stored = try reader.next() { _ = doubled.branch(of: stored) }
    return doubled.runs
  }

  /// What a person should know of each run: where it begins, and where the first event of that name is.
  static func doubledDamage(in log: Log) throws(LogError) -> [VerificationReport.Damage] {
    let runs = try doubledRuns(in: log)
    var first: [EventName: Position] = [:]
    let names = Set(runs.map(\.branch.first))
    let partitions = Set(names.map(\.partition))
    var reader = log.events(partitions: { partitions.contains($0) })
    while let stored = try reader.next() {
      if names.contains(stored.event.name), first[stored.event.name] == nil {
        first[stored.event.name] = stored.position
      }
    }
    let files = try log.files()
    return runs.map { run in
      let name = run.branch.first
      let count = run.last.rawValue - name.dot.sequence.rawValue + 1
      return VerificationReport.Damage(
        file: files.first { $0.place == run.place.file }?.path ?? "", offset: nil,
        what:
          "\(counted(count, "event")) of partition \(name.partition) from @\(run.place) on \(count == 1 ? "has" : "have") "
          + "names that other events have had before (\(name.dot) is @\(first[name].map { "\($0)" } ?? "") too): "
          + "a machine was set back and wrote again",
        remedy: .fork)
    }
  }

  /// Mends a fork within this node's log: what came later of it is written again under new names, and removed under its
  /// old ones. Peers that hold it under these are refused with it then, and mend it with `repairFork`. The tables are
  /// rebuilt.
  ///
  /// Interrupted, it goes on when it is repeated, and writes no event twice.
  /// - Throws: `.log(.damaged)` if the log is damaged besides; `.damaged` if somebody has built on both histories, so
  ///   that what the event has seen cannot be told. Nothing is changed then.
  package func repairDoubledNumbers(
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ForkReport {
    try locked { () throws(NodeError) in
      let found = try Self.wrapping { try log.verify() }
      if !log.isHarmless(found), let damage = found.first { throw .log(damage.error) }
      let runs = try Self.wrapping { try Self.doubledRuns(in: log) }
      var report = ForkReport()
      guard !runs.isEmpty else { return report }
      let partitions = Set(runs.map(\.branch.first.partition))
      var doubled = DoubledNumbers()
      var renaming = Renaming([])
      var removed: Set<StreamHash> = []
      var digester = EventDigester()
      try Self.wrapping {
        var reader = log.events(partitions: { partitions.contains($0) })
        while let stored = try reader.next() {
          if let branch = doubled.branch(of: stored) {
            removed.insert(digester.digest(of: stored.event).hash)
            renaming.take(stored.event, reader.note, double: branch)
            report.events += 1
          } else {
            renaming.take(stored.event, reader.note)
          }
        }
      }
      if let name = renaming.ambiguous {
        throw .damaged(
          what: "event \(description.name(name.dot)) of partition \(name.partition) was written when the "
            + "log had names of events twice, and it cannot be told which of them it has seen; nothing was "
            + "changed: clone a peer that holds one of the two histories, and go on there")
      }
      let branches = [ForkedBranch](merging: runs.map(\.branch))
      let origins = Set(branches.map { Origin($0.origin) })
      mark.retired = [ForkedBranch](merging: mark.retired + branches)
      nameNewOrigins(of: branches)
      if origins.contains(mark.origin) {
        try beginOrigin(because: "events of its origin were written again to mend a fork")
      } else {
        try saveMark()
      }
      try Self.wrapping {
        if !renaming.commits.isEmpty { _ = try log.append(renaming.commits) }
        try log.sync()
        try log.purge({ partitions.contains($0) }) { event in
          guard origins.contains(event.dot.origin) else { return false }
          return removed.contains(digester.digest(of: event).hash)
        }
      }
      report.partitions = partitions.sorted().map(\.description)
      // What was recorded as damage was this, as the log has no other.
      try finishRepair(wasVague: false, progress)
      return report
    }
  }
}
