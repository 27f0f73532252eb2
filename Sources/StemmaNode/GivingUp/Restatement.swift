import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

// What giving up does to the partitions that lost events.
//
// A stream has no holes, so what stands in it behind a lost event cannot stay under its name; nor can what builds on
// such an event. All of that is *cut*: the suffixes of some streams. What is left is a state that this node once was
// in, or could have been, and so nothing in a log, a session or a merge has to know of holes. A peer that still has
// what was cut sends it with the next pull, under its old names.
//
// So that nothing is lost that need not be, what was cut is *restated*: under a new origin for each old one, which
// keeps the order of each stream, hence the meaning of version vectors. Three kinds of events are made:
//
//   - those that can be read, again, with their contexts translated;
//   - stand-ins for the lost ones: what the tables still show of them (`RecordState.remains`). A stand-in has seen
//     of each origin what came before its first rival or equal in version, as the lost one must have;
//   - updates of nothing before these, where the lost history was deeper, so that every version is what it was.
//
// At the end each record that lost events is compared with what the tables show. Where they still differ (a lost
// event may have settled what nothing tells of any more), one event sets it right.

/// Restates the events of damaged partitions; takes them in arrival order, in memory.
struct Restatement {
  /// An event of a record, and what it is called now.
  private struct Known {
    var old: Dot
    var now: Dot
    var version: Version
  }

  /// What the tables show of a record that lost events.
  struct Remembered {
    var rules: MergeRules
    var state: RecordState
  }

  /// An event that is to be restated.
  private struct Source {
    var record: RecordKey
    var operation: Operation
    var relationship: String?
    var assignments: [Assignment]
    var version: Version
    var timestamp: Timestamp
    var cause: EventName?
    /// nil: a stand-in.
    var commit: CommitID?
    var note: CommitNote
  }

  /// Suffixes of streams that go.
  private(set) var cut: [EventName: Sequence]
  /// Old origins and new ones.
  private var origins: [Origin: Origin] = [:]
  private(set) var commits: [Commit] = []
  /// Events that can be read and are said again.
  private(set) var again: UInt64 = 0
  /// Stand-ins for lost events.
  private(set) var standIns: UInt64 = 0
  /// Updates of nothing before these.
  private(set) var fillers: UInt64 = 0

  /// All new origins, in the order of their first commits.
  var newOrigins: [Origin] {
    var seen: Set<Origin> = []
    return commits.compactMap { $0.events.first?.dot.origin }.filter { seen.insert($0).inserted }
  }

  /// Suffixes of streams that go and are not said again.
  private let dropped: [EventName: Sequence]
  private let newOrigin: (Origin) -> Origin
  private let nameOf: (Origin) -> String
  private var known: [RecordKey: [Known]] = [:]
  /// Records that lost events, as the tables show them, and as they have become here.
  private var remembered: [RecordKey: Remembered] = [:]
  private var states: [RecordKey: RecordState] = [:]
  /// Of each record and origin, by sequence: what is not said yet.
  private var remains: [RecordKey: [[EventRemains]]] = [:]
  private var renamed: [EventName: EventName] = [:]
  private var sequences: [EventName: Sequence] = [:]
  private var commitNumbers: [Origin: UInt64] = [:]
  private var openCommit: (old: CommitID?, stream: EventName)?

  /// The most stand-ins of one commit.
  private static let commitSize = 1000

  /// `cut`: the first lost event of each stream. `dropped`: suffixes that go, and are not said again. `newOrigin`: what
  /// is said again of an origin goes by it; it follows the old one at once in the order of all known ones, because
  /// that order decides between equal versions and times. `name`: that of an origin, for notes.
  init(
    cut: [EventName: Sequence], dropped: [EventName: Sequence], newOrigin: @escaping (Origin) -> Origin,
    name: @escaping (Origin) -> String
  ) {
    self.cut = cut.merging(dropped) { min($0, $1) }
    self.dropped = dropped
    self.newOrigin = newOrigin
    nameOf = name
  }

  /// What the tables show of a record. To be called for each record before any event is taken.
  mutating func remember(
    _ record: RecordKey, _ state: RecordState, _ rules: MergeRules, isLost: (Dot) -> Bool
  ) {
    let lostSome = state.context.entries.contains { cut.covers(record.partition, $0.origin, $0.sequence) }
    guard lostSome else { return }
    remembered[record] = Remembered(rules: rules, state: state)
    let left = Dictionary(grouping: state.remains(of: isLost, rules)) { $0.dot.origin }
    if left.isEmpty { return }
    remains[record] = left.sorted { $0.key < $1.key }.map { $0.value.sorted { $0.dot < $1.dot } }
  }

  /// The next event that can be read.
  mutating func take(_ event: Event, _ note: CommitNote?) throws(MergeError) {
    if dropped.contains(event) { return }
    let record = RecordKey(event)
    try sayRemains(of: record) { lost in
      event.context.covers(lost) || lost.origin == event.dot.origin && lost.sequence < event.dot.sequence
    }
    let buildsOnCut = event.context.entries.contains { cut.covers(event.partition, $0.origin, $0.sequence) }
    guard buildsOnCut || cut.contains(event) else {
      known[record, default: []].append(Known(old: event.dot, now: event.dot, version: event.version))
      return try merge(event, of: record)
    }
    // What its origin wrote to the partition afterwards would stand behind a hole.
    if !cut.contains(event) { cut[EventName(streamOf: event)] = event.dot.sequence }
    again += 1
    let seen = (known[record] ?? []).filter { event.hasSeen($0.old, $0.version) }
    var note = note ?? CommitNote()
    note.note =
      note.note
      ?? "written again from \(nameOf(event.dot.origin)):\(event.dot.sequence) on, behind events that were lost"
    try say(
      Source(
        record: record, operation: event.operation, relationship: event.relationship,
        assignments: event.assignments, version: event.version, timestamp: event.timestamp,
        cause: event.cause,
        commit: event.commit, note: note),
      insteadOf: event.dot, having: seen)
  }

  /// All events were taken: says what is left to say.
  mutating func finish(correcting origin: Origin) throws(MergeError) {
    for record in remains.keys.sorted() { try sayRemains(of: record) { _ in true } }
    for (record, wanted) in remembered.sorted(by: { $0.key < $1.key }) {
      try correct(record, wanted, origin)
    }
    assert(holds(checkInvariants))
  }

  /// Traps if something is left unsaid, or a name or a number was left out or given twice. In debug builds at the end.
  func checkInvariants() {
    precondition(remains.isEmpty, "of what was lost all is said that is known")
    var streams: [EventName: Sequence] = [:]
    var numbers: [Origin: UInt64] = [:]
    for commit in commits {
      guard let first = commit.events.first else { preconditionFailure("a commit has an event") }
      numbers[first.dot.origin, default: 0] += 1
      precondition(first.commit.number == numbers[first.dot.origin], "commits count")
      for event in commit.events {
        precondition(event.commit == first.commit, "a commit has one name")
        let stream = EventName(streamOf: event)
        precondition(event.dot.sequence == (streams[stream] ?? .zero).next, "a stream has no holes")
        streams[stream] = event.dot.sequence
      }
    }
    precondition(streams == sequences && numbers == commitNumbers, "names are those of events")
    let events = commits.reduce(0) { $0 + UInt64($1.events.count) }
    precondition(events == again + standIns + fillers, "each event is said for one reason")
    precondition(states.keys.allSatisfy { remembered[$0] != nil }, "only what is compared is merged")
  }

  // MARK: Saying again

  /// Says what is due of a record's lost events: of each origin in its order, otherwise by version.
  private mutating func sayRemains(of record: RecordKey, while isDue: (Dot) -> Bool) throws(MergeError) {
    guard var waiting = remains[record] else { return }
    while true {
      var next: Int?
      for (index, list) in waiting.enumerated() {
        guard let first = list.first, isDue(first.dot) else { continue }
        if let next, waiting[next][0].version <= first.version { continue }
        next = index
      }
      guard let next else { break }
      try sayStandIn(waiting[next].removeFirst(), of: record)
    }
    waiting.removeAll { $0.isEmpty }
    remains[record] = waiting.isEmpty ? nil : waiting
  }

  private mutating func sayStandIn(_ lost: EventRemains, of record: RecordKey) throws(MergeError) {
    var seen: [Known] = []
    var unseen: Set<Origin> = []
    for other in known[record] ?? [] where !unseen.contains(other.old.origin) {
      if other.version >= lost.version || lost.rivals.contains(other.old) {
        unseen.insert(other.old.origin)
      } else {
        seen.append(other)
      }
    }
    standIns += 1
    let name = nameOf(lost.dot.origin)
    try say(
      Source(
        record: record, operation: lost.operation, assignments: lost.assignments, version: lost.version,
        timestamp: lost.timestamp,
        note: CommitNote(note: "in place of events of \(name) that were lost to damage and given up")),
      insteadOf: lost.dot, having: seen)
  }

  /// Says an event under its new name, after updates of nothing where its history was deeper.
  private mutating func say(
    _ source: Source, insteadOf old: Dot, having seen: [Known]
  ) throws(MergeError) {
    var context = Context.empty
    var version = Version(1)
    for other in seen {
      context.insert(other.now)
      version = max(version, other.version.next)
    }
    let origin = origin(insteadOf: old.origin)
    while version < source.version {
      let nothing = Source(
        record: source.record, operation: .update, assignments: [], version: version,
        timestamp: source.timestamp, commit: source.commit, note: source.note)
      context.insert(try append(nothing, origin, context, version))
      fillers += 1
      version = version.next
    }
    let dot = try append(source, origin, context, version)
    known[source.record, default: []].append(Known(old: old, now: dot, version: version))
    renamed[EventName(partition: source.record.partition, dot: old)] = EventName(
      partition: source.record.partition, dot: dot)
  }

  private mutating func origin(insteadOf old: Origin) -> Origin {
    if let known = origins[old] { return known }
    let fresh = newOrigin(old)
    origins[old] = fresh
    return fresh
  }

  private mutating func append(
    _ source: Source, _ origin: Origin, _ context: Context, _ version: Version
  ) throws(MergeError) -> Dot {
    let stream = EventName(stream: source.record.partition, origin)
    let sequence = (sequences[stream] ?? .zero).next
    sequences[stream] = sequence
    let isOpen =
      openCommit.map { $0.old == source.commit && $0.stream.dot.origin == origin } ?? false
      && (source.commit != nil
        || openCommit?.stream == stream
          && (commits.last?.events.count ?? 0) < Self.commitSize)
    if !isOpen { commitNumbers[origin, default: 0] += 1 }
    openCommit = (source.commit, stream)
    let event = Event(
      partition: source.record.partition, model: source.record.model, key: source.record.key,
      operation: source.operation, relationship: source.relationship, assignments: source.assignments,
      dot: Dot(origin, sequence), context: context, version: version, timestamp: source.timestamp,
      commit: CommitID(origin, commitNumbers[origin, default: 1]),
      cause: source.cause.flatMap(translated))
    if isOpen {
      commits[commits.count - 1].events.append(event)
    } else {
      commits.append(Commit([event], note: source.note))
    }
    try merge(event, of: source.record)
    return event.dot
  }

  /// The name of a cause now; nil if it is lost.
  private func translated(_ cause: EventName) -> EventName? {
    if let now = renamed[cause] { return now }
    return cut.covers(cause.partition, cause.dot.origin, cause.dot.sequence) ? nil : cause
  }

  // MARK: Comparing

  private mutating func merge(_ event: Event, of record: RecordKey) throws(MergeError) {
    guard let rules = remembered[record]?.rules else { return }
    _ = try states[record, default: RecordState()].apply(event, rules)
  }

  /// Makes a record what the tables show. Those of which they have not seen all that can be read stay as they are.
  private mutating func correct(
    _ record: RecordKey, _ wanted: Remembered, _ origin: Origin
  ) throws(MergeError) {
    guard (known[record] ?? []).allSatisfy({ wanted.state.context.covers($0.old) }) else { return }
    let state = states[record] ?? RecordState()
    let rules = wanted.rules
    let exists = wanted.state.exists(rules)
    let assignments = exists ? state.differences(from: wanted.state, rules) : []
    // A conflict is for people to settle, whatever is shown of it.
    let isExistenceRight = exists == state.exists(rules) || wanted.state.existenceIsInConflict
    if isExistenceRight, assignments.isEmpty { return }
    let operation: Operation = !exists ? .delete : state.isEmpty ? .create : .resolve
    let decision = [Assignment(Event.existenceField, .bool(true))]
    standIns += 1
    _ = try append(
      Source(
        record: record, operation: operation,
        assignments: operation == .resolve ? decision + assignments : assignments,
        version: state.version.next,
        timestamp: max(state.latest, wanted.state.latest),
        note: CommitNote(note: "as the tables showed it before events were lost to damage and given up")),
      origin, state.context, state.version.next)
  }
}
