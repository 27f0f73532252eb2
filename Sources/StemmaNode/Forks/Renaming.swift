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
  /// Those of branches whose names others have too.
  private var doubles: [RecordKey: [Known]] = [:]
  /// The first event outside of such a branch whose context covers an event of one: it may mean either that has the name.
  private(set) var ambiguous: EventName?
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
    if ambiguous == nil, (doubles[record] ?? []).contains(where: { event.context.covers($0.dot) }) {
      ambiguous = event.name
    }
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
    records[record, default: []].append(Known(dot: event.dot, renamed: name.dot))
    var context = Context.empty
    for known in covered { context.insert(known.renamed ?? known.dot) }
    rename(event, name, context, note)
  }

  /// The next event, which belongs to a branch although the log has another one of its name. It has seen what came
  /// before it in the branch, and nothing of what has the same names.
  mutating func take(_ event: Event, _ note: CommitNote?, double branch: ForkedBranch) {
    let record = RecordKey(event)
    let name = branch.newName(of: event)
    var context = Context.empty
    for known in records[record] ?? [] where event.context.covers(known.dot) {
      let isRival = known.dot.origin == event.dot.origin && known.dot.sequence.rawValue >= branch.from
      if !isRival { context.insert(known.dot) }
    }
    for known in doubles[record] ?? [] where event.context.covers(known.dot) {
      if let dot = known.renamed, dot.origin == branch.newOrigin { context.insert(dot) }
    }
    doubles[record, default: []].append(Known(dot: event.dot, renamed: name.dot))
    rename(event, name, context, note)
  }

  private mutating func rename(
    _ event: Event, _ name: EventName, _ context: Context, _ note: CommitNote?
  ) {
    renamed[event.name] = name
    var copy = event
    copy.dot = name.dot
    // Of another partition, not every node that does this can know what it is called now.
    copy.cause = event.cause.flatMap { $0.partition == event.partition ? renamed[$0] ?? $0 : nil }
    copy.context = context
    copy.commit = CommitID(name.dot.origin, event.commit.number)
    if made.last?.events.last?.commit == copy.commit {
      made[made.count - 1].events.append(copy)
    } else {
      made.append(Commit([copy], note: note ?? CommitNote()))
    }
  }
}
