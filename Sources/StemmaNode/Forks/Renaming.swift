import StemmaEvents
import StemmaLog

/// Assigns new ids to the events of branches and to the events that depend on them. Memory: the ids
/// of all events, and the renamed events.
struct Renaming {
  /// An event of a record, its new id, and its version under that id.
  private struct Known {
    var id: EventID
    var renamed: EventID?
    var version: Version
  }

  /// The branches by stream. `take` adds those that depend on others.
  private(set) var branches: [QualifiedEventID: ForkedBranch] = [:]
  private var records: [RecordKey: [Known]] = [:]
  private var digester = EventDigester()
  /// From old names to new ones.
  private var renamed: [QualifiedEventID: QualifiedEventID] = [:]
  /// Ids of events that keep their ids, and new ids that were assigned.
  private var present: Set<QualifiedEventID> = []
  private var given: Set<QualifiedEventID> = []
  private var made: [Commit] = []

  init(_ branches: [ForkedBranch]) {
    for branch in branches where branch.from < self.branches[branch.stream]?.from ?? .max {
      self.branches[branch.stream] = branch
    }
  }

  /// The number of renamed events.
  var count: Int { given.count }

  /// Traps if an event is written twice, or has an unassigned id. Runs in debug builds on request.
  func checkInvariants() {
    let names = made.flatMap { $0.events.map(\.name) }
    precondition(names.count == given.count && Set(names) == given, "each name is given to one event")
    precondition(made.allSatisfy { !$0.events.isEmpty }, "a commit has an event")
    precondition(renamed.values.allSatisfy(given.contains), "a new name was given")
    precondition(branches.allSatisfy { $0 == $1.stream }, "a branch is found by its stream")
  }

  /// The commits to append: renamed events that the log does not hold under their new ids.
  var commits: [Commit] {
    assert(holds(checkInvariants))
    return made.compactMap { commit in
      var commit = commit
      commit.events.removeAll { present.contains($0.name) }
      return commit.events.isEmpty ? nil : commit
    }
  }

  /// Processes the next event of the log, in position order.
  mutating func take(_ event: Event, _ message: CommitMessage?) {
    let record = RecordKey(event)
    let stream = QualifiedEventID(streamOf: event)
    let covered = (records[record] ?? []).filter { event.context.covers($0.id) }
    if event.id.sequence.rawValue < branches[stream]?.from ?? .max,
      covered.contains(where: { $0.renamed != nil })
    {
      branches[stream] = ForkedBranch(event.name, digester.digest(of: event).hash)
    }
    guard let branch = branches[stream], branch.from <= event.id.sequence.rawValue else {
      records[record, default: []].append(Known(id: event.id, renamed: nil, version: event.version))
      present.insert(event.name)
      return
    }
    records[record, default: []].append(rename(event, branch.newName(of: event), covered, message))
  }

  /// Returns the event with a causal context of exactly `seen`.
  private func restated(_ event: Event, _ seen: [Known]) -> Event {
    var copy = event
    copy.context = .empty
    for known in seen { copy.context.insert(known.renamed ?? known.id) }
    // Other nodes refuse a version higher than the causal context requires.
    copy.version = min(event.version, (seen.map(\.version).max() ?? .zero).next)
    return copy
  }

  private mutating func rename(
    _ event: Event, _ name: QualifiedEventID, _ seen: [Known], _ message: CommitMessage?
  ) -> Known {
    var copy = restated(event, seen)
    let known = Known(id: event.id, renamed: name.id, version: copy.version)
    renamed[event.name] = name
    copy.id = name.id
    // Nodes that rename this branch need not know the new id of an event in another partition.
    copy.cause = event.cause.flatMap { $0.partition == event.partition ? renamed[$0] ?? $0 : nil }
    copy.commit = CommitID(name.id.origin, event.commit.number)
    guard given.insert(name).inserted else { return known }
    if made.last?.events.last?.commit == copy.commit {
      made[made.count - 1].events.append(copy)
    } else {
      made.append(Commit([copy], message: message ?? CommitMessage()))
    }
    return known
  }
}
