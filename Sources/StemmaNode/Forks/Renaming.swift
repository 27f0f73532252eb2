import StemmaEvents
import StemmaLog

/// Gives the events of branches, and of what builds on them, their new names. Memory: the names of all events, and
/// those that are renamed.
struct Renaming {
  /// An event of a record, what it is called now, and its version under that name.
  private struct Known {
    var dot: Dot
    var renamed: Dot?
    var version: Version
  }

  /// By stream; those that build on others are found on the way.
  private(set) var branches: [EventName: ForkedBranch] = [:]
  private var records: [RecordKey: [Known]] = [:]
  /// Those of branches whose names others have too.
  private var doubles: [RecordKey: [Known]] = [:]
  /// By origin of a partition: from where on two events have one name.
  private var forks: [EventName: Sequence] = [:]
  private var digester = EventDigester()
  /// From old names to new ones.
  private var renamed: [EventName: EventName] = [:]
  /// Events that have the new names already, and names that were given.
  private var present: Set<EventName> = []
  private var given: Set<EventName> = []
  private var made: [Commit] = []

  init(_ branches: [ForkedBranch]) {
    for branch in branches where branch.from < self.branches[branch.stream]?.from ?? .max {
      self.branches[branch.stream] = branch
    }
  }

  /// How many events have new names.
  var count: Int { given.count }

  /// Traps if an event is written twice, or one has a name that was not given. In debug builds when they are asked for.
  func checkInvariants() {
    let names = made.flatMap { $0.events.map(\.name) }
    precondition(names.count == given.count && Set(names) == given, "each name is given to one event")
    precondition(made.allSatisfy { !$0.events.isEmpty }, "a commit has an event")
    precondition(renamed.values.allSatisfy(given.contains), "a new name was given")
    precondition(branches.allSatisfy { $0 == $1.stream }, "a branch is found by its stream")
  }

  /// What is to be written: what is not there yet under its new name.
  var commits: [Commit] {
    assert(holds(checkInvariants))
    return made.compactMap { commit in
      var commit = commit
      commit.events.removeAll { present.contains($0.name) }
      return commit.events.isEmpty ? nil : commit
    }
  }

  /// The next event of the log, in arrival order. True if it gets a new name.
  ///
  /// Behind events of a branch whose names others have too, a context that covers such a name says nothing of which of
  /// them was seen. Then the event is taken to have seen what both pasts share, and is written again, so that nothing
  /// of either is overwritten. Its new name comes from what is written: nodes that know one of the pasts, and the event as
  /// it was, go on holding it under its own.
  @discardableResult
  mutating func take(_ event: Event, _ note: CommitNote?) -> Bool {
    let record = RecordKey(event)
    let stream = EventName(streamOf: event)
    let unsure = unsureOrigins(of: event)
    let covered = (records[record] ?? []).filter { known in
      event.context.covers(known.dot) && !(unsure.contains(known.dot.origin) && isBehindFork(known, event))
    }
    if event.dot.sequence.rawValue < branches[stream]?.from ?? .max,
      !unsure.isEmpty || covered.contains(where: { $0.renamed != nil })
    {
      let first = forks.isEmpty ? event : restated(event, covered)
      branches[stream] = ForkedBranch(event.name, digester.digest(of: first).hash)
    }
    guard let branch = branches[stream], branch.from <= event.dot.sequence.rawValue else {
      records[record, default: []].append(Known(dot: event.dot, renamed: nil, version: event.version))
      present.insert(event.name)
      return false
    }
    records[record, default: []].append(rename(event, branch.newName(of: event), covered, note))
    return true
  }

  /// The next event, which belongs to a branch although the log has another one of its name. It has seen what came
  /// before it in the branch, and nothing of what has the same names.
  mutating func take(_ event: Event, _ note: CommitNote?, double branch: ForkedBranch) {
    let record = RecordKey(event)
    let first = branch.first.dot.sequence
    forks[branch.stream] = min(forks[branch.stream] ?? first, first)
    let before = (records[record] ?? []).filter {
      event.context.covers($0.dot) && !isBehindFork($0, event)
    }
    let own = (doubles[record] ?? []).filter {
      event.context.covers($0.dot) && $0.renamed?.origin == branch.newOrigin
    }
    doubles[record, default: []].append(rename(event, branch.newName(of: event), before + own, note))
  }

  /// The origins of which an event may have seen either of two that have one name. Who goes on with the stream that came
  /// first has seen that one, as far as it is of the same record.
  private func unsureOrigins(of event: Event) -> Set<Origin> {
    guard let doubles = doubles[RecordKey(event)] else { return [] }
    var unsure: Set<Origin> = []
    for known in doubles where event.context.covers(known.dot) {
      let isOwn = known.dot.origin == event.dot.origin
      let isOfFirst =
        isOwn
        && (records[RecordKey(event)] ?? []).contains {
          $0.dot.origin == known.dot.origin && $0.dot >= known.dot && event.context.covers($0.dot)
        }
      if !isOfFirst { unsure.insert(known.dot.origin) }
    }
    return unsure
  }

  private func isBehindFork(_ known: Known, _ event: Event) -> Bool {
    let stream = EventName(stream: event.partition, known.dot.origin)
    return forks[stream].map { known.dot.sequence >= $0 } ?? false
  }

  /// The event as it is when it has seen these, and no others.
  private func restated(_ event: Event, _ seen: [Known]) -> Event {
    var copy = event
    copy.context = .empty
    for known in seen { copy.context.insert(known.renamed ?? known.dot) }
    // A version that is higher than what was seen demands is refused by every other node.
    copy.version = min(event.version, (seen.map(\.version).max() ?? .zero).next)
    return copy
  }

  private mutating func rename(
    _ event: Event, _ name: EventName, _ seen: [Known], _ note: CommitNote?
  ) -> Known {
    var copy = restated(event, seen)
    let known = Known(dot: event.dot, renamed: name.dot, version: copy.version)
    renamed[event.name] = name
    copy.dot = name.dot
    // Of another partition, not every node that does this can know what it is called now.
    copy.cause = event.cause.flatMap { $0.partition == event.partition ? renamed[$0] ?? $0 : nil }
    copy.commit = CommitID(name.dot.origin, event.commit.number)
    guard given.insert(name).inserted else { return known }
    if made.last?.events.last?.commit == copy.commit {
      made[made.count - 1].events.append(copy)
    } else {
      made.append(Commit([copy], note: note ?? CommitNote()))
    }
    return known
  }
}
