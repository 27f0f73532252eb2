import StemmaEvents

/// The states that the writers of a record's events had read, found for one event after the other.
///
/// What a writer had read is the state after an event that it had seen, and what else it had seen: on a branch that is
/// the event before, and nothing; at a join the rest of the other branches. So the states after the latest events are
/// kept, and each event goes on from the one that leaves least to merge. That one is among the latest: a version is one
/// above the highest that its writer had seen, and the order of a history is that of the versions. Where it is not
/// (there are more branches than states are kept, or tables lost a row and versions began again), the state is folded
/// from the beginning. With few branches that makes O(n) merges.
package struct SeenStates {
  /// The events of one origin, in the order of their sequences.
  private struct Stream {
    var sequences: [Sequence] = []
    /// Where they stand in the history.
    var places: [Int] = []
    /// The highest version up to each of them.
    var highest: [Version] = []
  }

  /// The state after an event that has seen all that its context covers.
  private struct Tip {
    var place: Int
    /// How many events of each stream its context covers.
    var covered: [Int]
    var state: RecordState
  }

  /// States that are kept at most: as many branches may be written in turn before what their events build on has to be
  /// folded from the beginning, which makes O(n²) merges.
  package static let keptStates = 256

  private let history: RecordHistory
  private var streams: [Stream] = []
  private var numbers: [Origin: Int] = [:]
  private var tips: [Tip] = []
  private var place = 0
  /// How often an event was merged into a state: what all of it costs.
  package private(set) var merges = 0

  /// O(n log n).
  package init(_ history: RecordHistory) {
    self.history = history
    let events = history.events
    for place in events.indices.sorted(by: { events[$0].dot < events[$1].dot }) {
      let event = events[place]
      let number = numbers[event.dot.origin] ?? streams.count
      if number == streams.count {
        numbers[event.dot.origin] = number
        streams.append(Stream())
      }
      let highest = max(streams[number].highest.last ?? .zero, event.version)
      streams[number].sequences.append(event.dot.sequence)
      streams[number].places.append(place)
      streams[number].highest.append(highest)
    }
  }

  /// The state that the writer of the next event of the history had read.
  package mutating func next() throws(MergeError) -> RecordState {
    defer { place += 1 }
    let event = history.events[place]
    let covered = covered(by: event.context)
    guard hasSeenAll(event, covered), let tip = nearestTip(event, covered),
      let rest = rest(of: covered, beyond: tip)
    else {
      merges += place
      let state = try history.stateSeen(by: place)
      if hasSeenAll(event, covered) { keep(state, covered) }
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

  /// Traps if an event stands in no stream, or in two, or a kept state is of one that is still to come. For tests. O(n).
  package func checkInvariants() {
    precondition(numbers.count == streams.count, "each origin has one stream")
    precondition(
      streams.flatMap(\.places).sorted().elementsEqual(history.events.indices), "each event is in a stream")
    for stream in streams {
      precondition(stream.sequences.count == stream.places.count, "each event has a sequence")
      precondition(stream.highest.count == stream.places.count, "each event has a highest version")
      for (a, b) in zip(stream.sequences, stream.sequences.dropFirst()) { precondition(a < b, "they rise") }
      for (a, b) in zip(stream.highest, stream.highest.dropFirst()) { precondition(a <= b, "they rise") }
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
      let sequences = streams[number].sequences
      var low = 0
      var high = sequences.count
      while low < high {
        let middle = (low + high) / 2
        if sequences[middle] <= entry.sequence { low = middle + 1 } else { high = middle }
      }
      covered[number] = low
    }
    return covered
  }

  /// Whether an event has seen all that its context covers, as it is where no table lost a row (`Event.hasSeen`).
  private func hasSeenAll(_ event: Event, _ covered: [Int]) -> Bool {
    zip(streams, covered).allSatisfy { stream, count in
      count == 0 || stream.highest[count - 1] < event.version
    }
  }

  /// The kept state of which an event has seen everything, and the least beyond it.
  private func nearestTip(_ event: Event, _ covered: [Int]) -> Tip? {
    var nearest: Int?
    var least = Int.max
    for index in tips.indices.reversed() {
      let tip = tips[index]
      guard event.hasSeen(history.events[tip.place]) else { continue }
      // The tip's own event is one that its context does not cover.
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

  /// The places of what is covered and not in a kept state, causes before effects. Nil if that is no history that `fold`
  /// takes.
  private func rest(of covered: [Int], beyond tip: Tip) -> [Int]? {
    var rest: [Int] = []
    for number in covered.indices {
      let places = streams[number].places[tip.covered[number]..<covered[number]]
      rest.append(contentsOf: places.filter { $0 != tip.place })
    }
    let context = history.events[place].context
    for place in rest {
      let event = history.events[place]
      guard context.covers(event.context), !event.context.covers(event.dot) else { return nil }
    }
    return rest.sorted()
  }
}
