import StemmaEvents

extension Survey {
  /// Gives each lost event that no file tells the first place, of those that may have held it, behind all that it has seen,
  /// as far as `offers` tell it. No later one is needed, since what it stood in cannot have been an earlier one, and what has
  /// seen it stands behind that. Where there is none, it stood in a file of which nothing is left that tells: it has no place.
  func placing(_ offers: [Offer], besides salvage: Salvage = Salvage()) -> Survey {
    let told = Set(salvage.offer.events.map(EventName.init))
    var guessed: [LostRange] = []
    var known: [LostRange] = []
    for range in lost {
      if isGuessed(range, told) { guessed.append(range) } else { known.append(range) }
    }
    if guessed.isEmpty { return self }
    guessed.sort { $0.precedes($1) }
    var events: [EventName: Event] = [:]
    let streams = Set(guessed.map(\.stream))
    for event in offers.flatMap(\.events)
    where streams.contains(StreamName(event)) {
      events[EventName(event)] = event
    }
    var runs = standing
    for range in known { runs[range.stream, default: []].append(StandingRun(range)) }
    let candidates = files.filter { !$0.value.tellsAll }.keys.sorted()
    var placed = guessed
    // Each turn moves something to a later place, or is the last.
    for _ in 0...(candidates.count + 1) * streams.count {
      var all = runs
      for range in placed { all[range.stream, default: []].append(StandingRun(range)) }
      let next = guessed.flatMap { $0.split(candidates, events, all, told) }
      if next == placed { break }
      placed = next
    }
    var survey = self
    survey.lost = known + placed
    survey.lost.sort { $0.precedes($1) }
    return survey
  }

  /// Whether a range has its place only because no other file can have held it, or several can.
  private func isGuessed(_ range: LostRange, _ told: Set<EventName>) -> Bool {
    guard let place = range.place, let file = files[place] else { return false }
    if !range.isPlaceSure { return true }
    return !file.tellsAll && file.claims[range.stream] == nil && !told.contains(range.name(range.from))
  }
}

extension StandingRun {
  /// What has no place stood behind everything.
  fileprivate init(_ range: LostRange) {
    self.init(from: range.from.rawValue, to: range.to.rawValue, place: range.place ?? .max)
  }
}

extension LostRange {
  fileprivate func name(_ sequence: Sequence) -> EventName {
    EventName(partition: partition, dot: Dot(origin, sequence))
  }

  /// The parts of it that have different places. `told`: what damaged files tell goes into one of them in any case.
  fileprivate func split(
    _ candidates: [UInt64], _ events: [EventName: Event], _ runs: [StreamName: [StandingRun]],
    _ told: Set<EventName>
  ) -> [LostRange] {
    let first = place ?? 0
    guard count <= UInt64(events.count) else { return [self] }
    var parts: [LostRange] = []
    // A stream rises over the places.
    var lowest = max(first, (runs[stream] ?? []).filter { $0.to < from.rawValue }.map(\.place).max() ?? 0)
    for number in from.rawValue...to.rawValue {
      let name = name(Sequence(number))
      for cause in events[name]?.context.entries ?? [] where cause.origin != origin {
        let stream = StreamName(partition: partition, origin: cause.origin)
        for run in runs[stream] ?? [] where run.from <= cause.sequence.rawValue {
          lowest = max(lowest, run.place)
        }
      }
      if lowest > first {
        lowest = candidates.first { $0 >= lowest } ?? (told.contains(name) ? first : .max)
      }
      let place = lowest == .max ? nil : lowest
      if let last = parts.last, last.place == place {
        parts[parts.count - 1].to = Sequence(number)
      } else {
        var next = part(Sequence(number), Sequence(number))
        next.place = place
        parts.append(next)
      }
    }
    return parts
  }
}
