import StemmaEvents

extension RecordState {
  /// The state that a set of events of one record gives; they may come in any order, and repeatedly.
  ///
  /// Each is merged after those that it has seen: in the order of (version, origin, sequence), since
  /// every version is above those of what it has seen. That need not be the order of a stream: two writers of
  /// one node that read the same state write concurrent events with one origin.
  ///
  /// The set must reach as far as every context of it, though it need not have whole streams: all events up to a
  /// time are fine. Takes what `apply` lets in, in whatever order that was; throws if a context reaches beyond the
  /// set or covers its own event, and on two different events with one dot. O(n) for a history without
  /// concurrency in its order, else O(n log n) comparisons.
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
    var all = Context.empty
    for index in byDot { all.insert(events[index].dot) }
    for index in byDot {
      let event = events[index]
      if event.context.covers(event.dot) { throw .coversItself(event.dot) }
      for entry in event.context.entries where all[entry.origin] < entry.sequence {
        throw .gap(event.dot, missing: Dot(entry.origin, entry.sequence))
      }
    }
  }
}
