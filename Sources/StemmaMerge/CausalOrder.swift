import StemmaEvents

/// Orders the events of one record so that each follows all events that it has seen.
///
/// Visits the events in the given order, and before each the events that its context covers. The
/// order by version stays as it is if every version exceeds those of the seen events. A peer may
/// send other versions. O(n log n); each context entry is examined once.
struct CausalOrder {
  /// The events of one origin, ordered by sequence.
  private struct Stream {
    var sequences: [SequenceNumber] = []
    /// Their indexes among the events.
    var places: [Int] = []
    /// How many of them were visited, counted from the first.
    var visited = 0
  }

  private enum Progress { case waits, isOpen, isDone }

  private let events: [Event]
  private var streams: [Origin: Stream] = [:]
  private var progress: [Progress]
  /// Indexes of the events, causes before effects.
  private(set) var places: [Int] = []
  /// Two events that cover each other, directly or indirectly. No node can receive such events.
  private(set) var circle: (EventID, EventID)?

  /// `order`: indexes of the events, each event id once.
  init(_ events: [Event], _ order: [Int]) {
    self.events = events
    progress = Array(repeating: .waits, count: events.count)
    for place in order.sorted(by: { events[$0].id < events[$1].id }) {
      streams[events[place].id.origin, default: Stream()].sequences.append(events[place].id.sequence)
      streams[events[place].id.origin, default: Stream()].places.append(place)
    }
    places.reserveCapacity(order.count)
    for place in order { visit(place) }
  }

  private mutating func visit(_ first: Int) {
    guard progress[first] == .waits else { return }
    // Each open event with its current context entry. A stack, because a history may be long.
    var open = [(place: first, entry: 0)]
    progress[first] = .isOpen
    while let (place, entry) = open.last {
      let context = events[place].context.entries
      guard entry < context.count else {
        open.removeLast()
        progress[place] = .isDone
        places.append(place)
        continue
      }
      guard let next = nextUnvisited(context[entry]) else {
        open[open.count - 1].entry += 1
        continue
      }
      if progress[next] == .isOpen {
        if circle == nil { circle = (events[place].id, events[next].id) }
        open[open.count - 1].entry += 1
      } else {
        progress[next] = .isOpen
        open.append((next, 0))
      }
    }
  }

  /// The first event that a context entry covers and that is not yet in `places`.
  private mutating func nextUnvisited(_ entry: Context.Entry) -> Int? {
    guard var stream = streams[entry.origin] else { return nil }
    defer { streams[entry.origin] = stream }
    while stream.visited < stream.places.count, stream.sequences[stream.visited] <= entry.sequence {
      let place = stream.places[stream.visited]
      if progress[place] != .isDone { return place }
      stream.visited += 1
    }
    return nil
  }
}
