import StemmaEvents
import StemmaLog

/// Gives the events of branches, and of what builds on them, their new names. Memory: the names of all events, and
/// those that are renamed.
struct Renaming {
  /// An event of a record, and what it is called now.
  private struct Known {
    var dot: Dot
    var renamed: Dot?
  }

  /// By stream; those that build on others are found on the way.
  private(set) var branches: [EventName: ForkedBranch] = [:]
  private var records: [RecordKey: [Known]] = [:]
  private var digester = EventDigester()
  /// From old names to new ones.
  private var renamed: [EventName: EventName] = [:]
  /// Events that have the new names already.
  private var present: Set<EventName> = []
  private var made: [Commit] = []

  init(_ branches: [ForkedBranch]) {
    for branch in branches where branch.from < self.branches[branch.stream]?.from ?? .max {
      self.branches[branch.stream] = branch
    }
  }

  /// How many events are renamed.
  var count: Int { renamed.count }

  /// What is to be written: what is not there yet under its new name.
  var commits: [Commit] {
    made.compactMap { commit in
      var commit = commit
      commit.events.removeAll { present.contains($0.name) }
      return commit.events.isEmpty ? nil : commit
    }
  }

  /// The next event of the log, in arrival order.
  mutating func take(_ event: Event, _ note: CommitNote?) {
    let record = RecordKey(event)
    let stream = EventName(streamOf: event)
    let covered = (records[record] ?? []).filter { event.context.covers($0.dot) }
    let from = branches[stream]?.from ?? .max
    if event.dot.sequence.rawValue < from, covered.contains(where: { $0.renamed != nil }) {
      branches[stream] = ForkedBranch(event.name, digester.digest(of: event).hash)
    }
    guard let branch = branches[stream], branch.from <= event.dot.sequence.rawValue else {
      records[record, default: []].append(Known(dot: event.dot, renamed: nil))
      present.insert(event.name)
      return
    }
    let name = branch.newName(of: event)
    renamed[event.name] = name
    records[record, default: []].append(Known(dot: event.dot, renamed: name.dot))
    var copy = event
    copy.dot = name.dot
    // Of another partition, not every node that does this can know what it is called now.
    copy.cause = event.cause.flatMap { $0.partition == event.partition ? renamed[$0] ?? $0 : nil }
    copy.context = .empty
    for known in covered { copy.context.insert(known.renamed ?? known.dot) }
    copy.commit = CommitID(name.dot.origin, event.commit.number)
    if made.last?.events.last?.commit == copy.commit {
      made[made.count - 1].events.append(copy)
    } else {
      made.append(Commit([copy], note: note ?? CommitNote()))
    }
  }
}
