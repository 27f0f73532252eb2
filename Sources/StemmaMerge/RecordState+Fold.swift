import StemmaEvents

extension RecordState {
  /// The state after a set of events of one record, in any order and with repetitions.
  ///
  /// Each event is merged after those that it has seen. This need not be the order of a stream: two
  /// concurrent writers of one node that read the same state share an origin.
  ///
  /// The set must include every event that a context names, but not whole streams: all events up to
  /// a time suffice. Accepts whatever `apply` accepts, in any order. Throws if a context exceeds
  /// the set or covers its own event, directly or indirectly, and on two different events with one
  /// id. O(n) for an ordered linear history, else O(n log n) comparisons.
  package static func fold(_ events: [Event], _ rules: MergeRules) throws(MergeError) -> RecordState {
    if let state = foldLinear(events, rules) { return state }
    let byID = try distinctByID(events)
    try check(events, byID)
    var state = RecordState()
    let order = CausalOrder(events, byID)
    if let (id, missing) = order.circle { throw .gap(id, missing: missing) }
    for index in order.places { state.merge(events[index], coversAll: false, rules) }
    return state
  }

  /// The common case: every event has seen exactly those before it. Nil otherwise.
  private static func foldLinear(_ events: [Event], _ rules: MergeRules) -> RecordState? {
    var known = Context.empty
    var version = Version.zero
    for event in events {
      guard event.context == known, !known.covers(event.id), event.version == version.next else {
        return nil
      }
      known.insert(event.id)
      version = event.version
    }
    var state = RecordState()
    for event in events { state.merge(event, coversAll: true, rules) }
    return state
  }

  /// The indexes of the events, ordered by event id, each id once.
  private static func distinctByID(_ events: [Event]) throws(MergeError) -> [Int] {
    var distinct: [Int] = []
    distinct.reserveCapacity(events.count)
    for index in events.indices.sorted(by: { events[$0].id < events[$1].id }) {
      guard let last = distinct.last, events[last].id == events[index].id else {
        distinct.append(index)
        continue
      }
      if events[last] != events[index] { throw .fork(events[index].id) }
    }
    return distinct
  }

  private static func check(_ events: [Event], _ byID: [Int]) throws(MergeError) {
    var all = Context.empty
    for index in byID { all.insert(events[index].id) }
    for index in byID {
      let event = events[index]
      if event.context.covers(event.id) { throw .coversItself(event.id) }
      for entry in event.context.entries where all[entry.origin] < entry.sequence {
        throw .gap(event.id, missing: EventID(entry.origin, entry.sequence))
      }
    }
  }
}
