import StemmaEvents

extension NumberedEvents {
  /// Puts events that were lost back into `slots`, indices that none has, so that causes come before effects:
  /// each stream in its order, and no event before one that its context covers.
  ///
  /// Every such event has a first index, behind what it depends on, and a last one, before what depends on it.
  /// Filling the slots from the lowest, each with the event that is ready and whose last index is the lowest,
  /// finds an order if there is one (Jackson's rule), and there is: the lost one.
  ///
  /// Unless events of other partitions were put back into it before, and took the indices: then all are numbered anew.
  ///
  /// Throws `.damaged` with `path` if the events do not fit.
  mutating func insert(_ lost: [Event], into slots: [Range<UInt64>], path: String) throws(LogError) {
    if lost.isEmpty || fill(slots, with: lost) { return }
    let step = UInt64(lost.count) + 1
    var next: UInt64 = 0
    var between: [Range<UInt64>] = []
    for index in events.indices {
      events[index].arrival = next + step - 1
      between.append(next..<next + step - 1)
      next += step
    }
    guard fill(between + [next..<next + step], with: lost) else {
      throw .damaged(path: path, offset: 0, .disagreement("the order of the events that were put back"))
    }
    for index in events.indices { events[index].arrival = UInt64(index) }
  }

  /// False, and nothing is changed, if they do not fit.
  private mutating func fill(_ slots: [Range<UInt64>], with lost: [Event]) -> Bool {
    var schedule = InsertionSchedule(lost, around: events)
    var added: [BlockEvent] = []
    for slot in slots {
      var index = slot.lowerBound
      while index < slot.upperBound, !schedule.isDone {
        guard let event = schedule.take(at: index) else {
          guard let next = schedule.nextRelease(after: index), next < slot.upperBound else { break }
          index = next
          continue
        }
        added.append(BlockEvent(arrival: index, event: event))
        index += 1
      }
    }
    assert(holds(schedule.checkInvariants))
    guard schedule.isDone else { return false }
    events += added
    events.sort { $0.arrival < $1.arrival }
    return true
  }
}

private struct InsertionSchedule {
  /// An event that could be placed now.
  private struct Ready: Comparable, Sendable {
    var deadline: UInt64
    var timestamp: Timestamp
    var number: Int

    static func < (a: Ready, b: Ready) -> Bool {
      (a.deadline, a.timestamp.rawValue, a.number) < (b.deadline, b.timestamp.rawValue, b.number)
    }
  }

  /// An event whose causes are placed, and that must wait for an index.
  private struct Waiting: Comparable, Sendable {
    var release: UInt64
    var number: Int

    static func < (a: Waiting, b: Waiting) -> Bool { (a.release, a.number) < (b.release, b.number) }
  }

  private let events: [Event]
  /// By event: the lowest index that it may have, the highest one, how many lost events must come first, and
  /// which come later.
  private var releases: [UInt64]
  private var deadlines: [UInt64]
  private var open: [Int]
  private var followers: [[Int]]
  private var waiting = MergeHeap<Waiting>()
  private var ready = MergeHeap<Ready>()
  private var left: Int

  var isDone: Bool { left == 0 }

  init(_ lost: [Event], around known: [BlockEvent]) {
    events = lost
    left = lost.count
    releases = Array(repeating: 0, count: lost.count)
    deadlines = Array(repeating: .max, count: lost.count)
    open = Array(repeating: 0, count: lost.count)
    followers = Array(repeating: [], count: lost.count)
    let lostIndex = StreamIndex(lost.enumerated().map { ($0.element, UInt64($0.offset)) })
    let knownIndex = StreamIndex(known.map { ($0.event, $0.arrival) })
    for (number, event) in lost.enumerated() {
      for cause in event.causes {
        if let index = knownIndex.last(cause) { releases[number] = max(releases[number], index + 1) }
        guard let before = lostIndex.last(cause) else { continue }
        followers[Int(before)].append(number)
        open[number] += 1
      }
    }
    for item in known {
      for cause in item.event.causes {
        guard let before = lostIndex.last(cause) else { continue }
        deadlines[Int(before)] = min(deadlines[Int(before)], item.arrival)
      }
    }
    inheritDeadlines()
    for number in lost.indices where open[number] == 0 {
      waiting.insert(Waiting(release: releases[number], number: number))
    }
  }

  /// What comes before an event must come before that one's deadline.
  private mutating func inheritDeadlines() {
    var open = open
    var order = events.indices.filter { open[$0] == 0 }
    var next = 0
    while next < order.count {
      for follower in followers[order[next]] {
        open[follower] -= 1
        if open[follower] == 0 { order.append(follower) }
      }
      next += 1
    }
    for number in order.reversed() {
      for follower in followers[number] where deadlines[follower] > 0 {
        deadlines[number] = min(deadlines[number], deadlines[follower] - 1)
      }
    }
  }

  /// The event for an index, nil if none may have it.
  mutating func take(at index: UInt64) -> Event? {
    while let first = waiting.first, first.release <= index {
      waiting.replaceFirst(with: nil)
      ready.insert(
        Ready(
          deadline: deadlines[first.number], timestamp: events[first.number].timestamp, number: first.number))
    }
    guard let first = ready.first, first.deadline > index else { return nil }
    ready.replaceFirst(with: nil)
    left -= 1
    for follower in followers[first.number] {
      open[follower] -= 1
      if open[follower] == 0 { waiting.insert(Waiting(release: releases[follower], number: follower)) }
    }
    return events[first.number]
  }

  /// Traps if an event could be placed before one that must come first. In debug builds behind the last one.
  func checkInvariants() {
    waiting.checkInvariants()
    ready.checkInvariants()
    precondition(open.allSatisfy { $0 >= 0 }, "an event is placed once")
    precondition((0...events.count).contains(left), "an event is placed once")
    precondition(left > 0 || waiting.first == nil && ready.first == nil, "nothing waits behind the last one")
    precondition(waiting.first.map { open[$0.number] == 0 } ?? true, "who waits has all that comes before")
    precondition(ready.first.map { open[$0.number] == 0 } ?? true, "who is ready has all that comes before")
  }

  /// The next index that some event waits for.
  func nextRelease(after index: UInt64) -> UInt64? {
    guard let release = waiting.first?.release, release > index else { return nil }
    return release
  }
}

/// Where the events of streams stand, by sequence.
private struct StreamIndex {
  private var items: [StreamName: [(sequence: UInt64, value: UInt64)]] = [:]

  init(_ events: [(Event, UInt64)]) {
    for (event, value) in events {
      let name = StreamName(event)
      items[name, default: []].append((event.dot.sequence.rawValue, value))
    }
    for name in Array(items.keys) { items[name]?.sort { $0.sequence < $1.sequence } }
  }

  /// The value of the last event of a stream up to a sequence.
  func last(_ cause: (name: StreamName, sequence: UInt64)) -> UInt64? {
    guard let stream = items[cause.name] else { return nil }
    var low = 0
    var high = stream.count
    while low < high {
      let middle = (low + high) / 2
      if stream[middle].sequence > cause.sequence { high = middle } else { low = middle + 1 }
    }
    return low > 0 ? stream[low - 1].value : nil
  }
}

extension Event {
  /// What must come before it: its stream up to it, and what its context covers.
  fileprivate var causes: [(name: StreamName, sequence: UInt64)] {
    var causes = [(StreamName(partition: partition, origin: dot.origin), dot.sequence.rawValue - 1)]
    for entry in context.entries where entry.origin != dot.origin {
      causes.append((StreamName(partition: partition, origin: entry.origin), entry.sequence.rawValue))
    }
    return causes
  }
}
