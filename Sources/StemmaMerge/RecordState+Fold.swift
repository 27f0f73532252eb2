import StemmaEvents

extension RecordState {
  /// The state that a set of events of one record gives; they may come in any order, and repeatedly.
  ///
  /// Each is merged after those that its context covers: in the order of (version, origin, sequence), since
  /// every version is above those of its context. That need not be the order of a stream: two writers of
  /// one node that read the same state write concurrent events with one origin.
  ///
  /// The set must have every event that a context of it names, though not whole streams: all events up to a
  /// time are fine. Checks exactly what `apply` can only bound: each entry of a context is an event of this
  /// record, and each version is 1 + the highest of its context. Throws on that, and on two different
  /// events with one dot. O(n) for a history without concurrency in its order, else O(n log n) comparisons.
  package static func fold(_ events: [Event], _ rules: MergeRules) throws(MergeError) -> RecordState {
    if let state = foldLinear(events, rules) { return state }
    let byDot = try distinctByDot(events)
    try check(events, byDot)
    var state = RecordState()
    let ordered = byDot.sorted { a, b in
      events[a].version != events[b].version
        ? events[a].version < events[b].version : events[a].dot < events[b].dot
    }
    for index in ordered { state.merge(events[index], coversAll: false, rules) }
    return state
  }

  /// The common case: every event has seen exactly those before it. Nil if that is not so.
  private static func foldLinear(_ events: [Event], _ rules: MergeRules) -> RecordState? {
    var known = Context.empty
    var version = Version.zero
    for event in events {
      guard event.context == known, !known.covers(event.dot), event.version == version.next else {
        return nil
      }
      known.insert(event.dot)
      version = event.version
    }
    var state = RecordState()
    for event in events { state.merge(event, coversAll: true, rules) }
    return state
  }

  /// The places of the events in the order of their dots, each dot once.
  private static func distinctByDot(_ events: [Event]) throws(MergeError) -> [Int] {
    var distinct: [Int] = []
    distinct.reserveCapacity(events.count)
    for index in events.indices.sorted(by: { events[$0].dot < events[$1].dot }) {
      guard let last = distinct.last, events[last].dot == events[index].dot else {
        distinct.append(index)
        continue
      }
      if events[last] != events[index] { throw .fork(events[index].dot) }
    }
    return distinct
  }

  private static func check(_ events: [Event], _ byDot: [Int]) throws(MergeError) {
    // The highest version of the event's origin up to it.
    var highest: [Version] = []
    highest.reserveCapacity(byDot.count)
    for (place, index) in byDot.enumerated() {
      let continues = place > 0 && events[byDot[place - 1]].dot.origin == events[index].dot.origin
      highest.append(continues ? max(highest[place - 1], events[index].version) : events[index].version)
    }
    for index in byDot {
      let dot = events[index].dot
      if events[index].context.covers(dot) { throw .coversItself(dot) }
      var covered = Version.zero
      for entry in events[index].context.entries {
        let cause = Dot(entry.origin, entry.sequence)
        guard let place = place(of: cause, in: events, byDot) else { throw .gap(dot, missing: cause) }
        covered = max(covered, highest[place])
      }
      let version = events[index].version
      guard version > covered, version.rawValue - covered.rawValue == 1 else {
        let expected = Version(covered.rawValue &+ 1)
        throw .wrongVersion(dot, found: version, expected: expected...expected)
      }
    }
  }

  private static func place(of dot: Dot, in events: [Event], _ byDot: [Int]) -> Int? {
    var low = 0
    var high = byDot.count
    while low < high {
      let middle = (low + high) / 2
      if events[byDot[middle]].dot < dot { low = middle + 1 } else { high = middle }
    }
    return low < byDot.count && events[byDot[low]].dot == dot ? low : nil
  }
}
