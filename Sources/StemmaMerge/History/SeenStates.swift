import StemmaEvents

/// The states that the writers of a record's events had read, computed event by event.
///
/// A writer's state is the state after some seen event, plus the other seen events. On a branch,
/// that event is the previous one, and no others remain. At a join, the rest of the other branches
/// remains. So the states after the latest events are kept, and each event builds on the one that
/// leaves the least to merge. That one is usually among the latest, because a version is one above
/// the highest seen one. With more branches than kept states, the state is folded from the
/// beginning. With few branches, the cost is O(n) merges.
package struct SeenStates {
  /// The events of one origin, ordered by sequence.
  private struct Stream {
    var sequences: [SequenceNumber] = []
    /// Their indexes in the history.
    var places: [Int] = []
  }

  /// The state after an event and all events that its context covers.
  private struct Tip {
    var place: Int
    /// How many events of each stream its context covers.
    var covered: [Int]
    var state: RecordState
  }

  /// The limit of kept states. With more branches that are written in turn, states are folded from
  /// the beginning, which costs O(n²) merges.
  package static let keptStates = 256

  private let history: RecordHistory
  private var streams: [Stream] = []
  private var numbers: [Origin: Int] = [:]
  private var tips: [Tip] = []
  private var place = 0
  /// How often an event was merged into a state, which dominates the cost.
  package private(set) var merges = 0

  /// O(n log n).
  package init(_ history: RecordHistory) {
    self.history = history
    let events = history.events
    for place in events.indices.sorted(by: { events[$0].id < events[$1].id }) {
      let event = events[place]
      let number = numbers[event.id.origin] ?? streams.count
      if number == streams.count {
        numbers[event.id.origin] = number
        streams.append(Stream())
      }
      streams[number].sequences.append(event.id.sequence)
      streams[number].places.append(place)
    }
  }

  /// The state that the writer of the next event had read.
  package mutating func next() throws(MergeError) -> RecordState {
    defer { place += 1 }
    let event = history.events[place]
    let covered = covered(by: event.context)
    guard let tip = nearestTip(event, covered), let rest = rest(of: covered, beyond: tip) else {
      merges += place
      let state = try history.stateSeen(by: place)
      keep(state, covered)
      return state
    }
    var state = tip.state
    for place in rest { state.merge(history.events[place], coversAll: false, history.rules) }
    merges += rest.count
    keep(state, covered)
    return state
  }

  private mutating func keep(_ seen: RecordState, _ covered: [Int]) {
    if tips.count == Self.keptStates { tips.removeFirst() }
    var state = seen
    state.merge(history.events[place], coversAll: true, history.rules)
    merges += 1
    tips.append(Tip(place: place, covered: covered, state: state))
  }

  /// Traps if an event is in no stream or in two, or a kept state is of a later event. O(n).
  package func checkInvariants() {
    precondition(numbers.count == streams.count, "each origin has one stream")
    precondition(
      streams.flatMap(\.places).sorted().elementsEqual(history.events.indices), "each event is in a stream")
    for stream in streams {
      precondition(stream.sequences.count == stream.places.count, "each event has a sequence")
      for (a, b) in zip(stream.sequences, stream.sequences.dropFirst()) { precondition(a < b, "they rise") }
    }
    precondition(place <= history.events.count && tips.count <= Self.keptStates, "memory is bounded")
    for (a, b) in zip(tips, tips.dropFirst()) { precondition(a.place < b.place, "the latest is last") }
    for tip in tips {
      precondition(tip.place < place, "what is kept was come to")
      precondition(tip.covered.count == streams.count, "a state covers a part of each stream")
      precondition(
        zip(tip.covered, streams).allSatisfy { $0 <= $1.places.count }, "a state covers what there is")
      tip.state.checkInvariants()
    }
  }

  private func covered(by context: Context) -> [Int] {
    var covered = Array(repeating: 0, count: streams.count)
    for entry in context.entries {
      guard let number = numbers[entry.origin] else { continue }
      covered[number] = streams[number].sequences.partitioningIndex { $0 > entry.sequence }
    }
    return covered
  }

  /// The kept state that an event has seen completely and that leaves the fewest other seen events.
  private func nearestTip(_ event: Event, _ covered: [Int]) -> Tip? {
    var nearest: Int?
    var least = Int.max
    for index in tips.indices.reversed() {
      let tip = tips[index]
      guard event.hasSeen(history.events[tip.place]) else { continue }
      // The tip's context does not cover the tip's own event.
      var rest = -1
      var hasSeenTip = true
      for number in covered.indices {
        if covered[number] < tip.covered[number] { hasSeenTip = false }
        rest += covered[number] - tip.covered[number]
      }
      guard hasSeenTip, rest < least else { continue }
      nearest = index
      least = rest
      if rest == 0 { break }
    }
    return nearest.map { tips[$0] }
  }

  /// The indexes of the covered events that a kept state lacks, causes before effects. Nil if
  /// `fold` would reject the history.
  private func rest(of covered: [Int], beyond tip: Tip) -> [Int]? {
    var rest: [Int] = []
    for number in covered.indices {
      let places = streams[number].places[tip.covered[number]..<covered[number]]
      rest.append(contentsOf: places.filter { $0 != tip.place })
    }
    let context = history.events[place].context
    for place in rest {
      let event = history.events[place]
      guard context.covers(event.context), !event.context.covers(event.id) else { return nil }
    }
    return rest.sorted()
  }
}
