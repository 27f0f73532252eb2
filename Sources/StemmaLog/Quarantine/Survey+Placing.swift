import StemmaEvents

extension Survey {
  /// Gives each lost event of which nobody knows which file held it the first place, of those that may have, behind all that
  /// it has seen, as far as `offers` tell it. No later one is needed, since what it stood in cannot have been an earlier one,
  /// and what has seen it stands behind that.
  func placing(_ offers: [Offer]) -> Survey {
    var unsure = lost.filter { !$0.isPlaceSure && $0.place != nil }
    if unsure.isEmpty { return self }
    unsure.sort { $0.precedes($1) }
    var events: [EventName: Event] = [:]
    let streams = Set(unsure.map(\.stream))
    for event in offers.flatMap(\.events)
    where streams.contains(StreamName(partition: event.partition, origin: event.dot.origin)) {
      events[EventName(event)] = event
    }
    let others = Dictionary(grouping: lost.filter { $0.isPlaceSure && $0.place != nil }, by: \.stream)
    var runs = standing
    for (name, ranges) in others {
      runs[name, default: []] += ranges.map {
        StandingRun(from: $0.from.rawValue, to: $0.to.rawValue, place: $0.place ?? 0)
      }
    }
    let candidates = files.filter { !$0.value.tellsAll }.keys.sorted()
    var placed: [LostRange] = []
    for _ in 0...candidates.count * streams.count {
      var all = runs
      for range in placed.isEmpty ? unsure : placed {
        all[range.stream, default: []].append(
          StandingRun(from: range.from.rawValue, to: range.to.rawValue, place: range.place ?? 0))
      }
      let next = unsure.flatMap { $0.split(candidates, events, all) }
      if next == placed { break }
      placed = next
    }
    var survey = self
    survey.lost = lost.filter { $0.isPlaceSure || $0.place == nil } + placed
    survey.lost.sort { $0.precedes($1) }
    return survey
  }
}

extension LostRange {
  /// The parts of it that have different places.
  fileprivate func split(
    _ candidates: [UInt64], _ events: [EventName: Event], _ runs: [StreamName: [StandingRun]]
  ) -> [LostRange] {
    let first = place ?? 0
    guard count <= UInt64(events.count) else { return [self] }
    var parts: [LostRange] = []
    // A stream rises over the places.
    var lowest = max(first, (runs[stream] ?? []).filter { $0.to < from.rawValue }.map(\.place).max() ?? 0)
    for number in from.rawValue...to.rawValue {
      let name = EventName(partition: partition, dot: Dot(origin, Sequence(number)))
      for cause in events[name]?.context.entries ?? [] where cause.origin != origin {
        let stream = StreamName(partition: partition, origin: cause.origin)
        for run in runs[stream] ?? [] where run.from <= cause.sequence.rawValue {
          lowest = max(lowest, run.place)
        }
      }
      if lowest > first { lowest = candidates.first { $0 >= lowest } ?? first }
      if let last = parts.last, last.place == lowest {
        parts[parts.count - 1].to = Sequence(number)
      } else {
        var next = part(Sequence(number), Sequence(number))
        next.place = lowest
        parts.append(next)
      }
    }
    return parts
  }
}
