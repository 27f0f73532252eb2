import StemmaEvents
import StemmaSchema

/// The content of an event; the walk determines its place in the history.
package struct Content: Hashable, Sendable {
  package var operation: EventOperation
  package var assignments: [Assignment]

  package init(_ operation: EventOperation, _ fields: KeyValuePairs<String, Value> = [:]) {
    self.operation = operation
    assignments = fields.map { Assignment($0.key, $0.value) }
  }

  /// Every operation, on one field with two values, a second field, and the reference.
  package static let everyOperation = [
    Content(.create, ["a": .string("1")]), Content(.create), Content(.update, ["a": .string("1")]),
    Content(.update, ["a": .string("2")]), Content(.update, ["b": .string("1")]), Content(.delete),
    Content(.link, ["r1": .string("1"), "r2": .string("1")]), Content(.unlink, ["r1": .null, "r2": .null]),
    Content(.resolve, [Event.existenceField: .bool(true)]), Content(.resolve, ["a": .string("2")]),
  ]

  package static let updates = [
    Content(.update, ["a": .string("1")]), Content(.update, ["a": .string("2")]),
    Content(.update, ["b": .string("1")]),
  ]

  /// For samples: more values, several fields at once, incomplete references, times, a field that
  /// no schema has, and values of other types than the schema's.
  package static let varied: [Content] =
    everyOperation + [
      Content(.create, ["a": .string("2"), "b": .string("1"), "unknown": .int(1)]),
      Content(.create, ["a": .null, "createdAt": .string("2024-01-01T00:00:00Z")]),
      Content(
        .create,
        [
          "createdAt": .string("2024-01-01T00:30:00+01:00"), "r1": .string("2"), "r2": .string("1"),
          "updatedAt": .string("2024-01-01T00:30:00+01:00"),
        ]),
      Content(.create, ["createdAt": .string("2024-01-01T01:00:00+01:00")]),
      Content(.update, ["a": .null]), Content(.update, ["a": .int(1), "b": .double(0.5)]),
      Content(.update, ["a": .string("1"), "b": .string("1")]),
      Content(.update, ["b": .bool(true), "updatedAt": .string("2024-01-01T00:00:00Z")]),
      Content(.update, ["updatedAt": .string("2024-01-01T01:00:00+01:00")]),
      Content(.update, ["updatedAt": .string("2024-01-01T00:00:00.25Z")]),
      Content(.update, ["unknown": .json("[1]")]), Content(.update, ["unknown": .null]),
      Content(.update), Content(.update, ["r1": .string("3")]),
      Content(.link, ["r1": .string("2"), "r2": .string("2")]), Content(.resolve, ["unknown": .int(1)]),
      Content(.resolve, [Event.existenceField: .bool(true), "b": .string("2")]),
      Content(.delete, [Event.existenceField: .bool(false)]),
    ]
}

/// The merge laws over many histories.
package struct MergeLaws<Subject: MergeSubject> {
  package private(set) var failures: [LawFailure] = []
  package private(set) var failed: UInt64 = 0
  package var counts: LawCounts { walk.counts }

  private var walk: HistoryWalk<Subject>
  private var shape = Shape()
  private let contents: [Content]
  private let lowersVersions: Bool
  /// Stops at the first failure, if one is enough.
  private let stopsAtFailure: Bool

  /// How many failures are kept completely.
  private static var keptFailures: Int { 3 }

  /// `limit`: the maximum length of a history. `checksParts`: see `HistoryWalk`. `lowersVersions`:
  /// versions may be lower than the context implies, as from writers that read partial tables.
  package init(
    _ subject: Subject, contents: [Content], limit: Int, checksParts: Bool = true,
    lowersVersions: Bool = false, stopsAtFailure: Bool = false
  ) {
    walk = HistoryWalk(subject, limit: limit, checksParts: checksParts)
    self.contents = contents
    self.lowersVersions = lowersVersions
    self.stopsAtFailure = stopsAtFailure
  }

  /// Every history of this number of events, up to renaming: each content, each origin, old or new,
  /// and each context. A context is a closed set of earlier events, so one origin may have two
  /// branches. The share takes every n-th history of two events with all its extensions.
  ///
  /// An order removes most renamings: events are sorted by the height of their causes (contexts and
  /// streams), then by context, content and origin. Every history has such a list, and few have
  /// two. `visit` receives every complete history.
  package mutating func checkAll(
    events: Int, share: Int = 0, of shares: Int = 1, visit: ([Event]) -> Void = { _ in }
  ) {
    var turn = 0
    let takes = {
      turn += 1
      return turn % shares == share
    }
    grow(to: events, after: nil, takes: takes, visit: visit)
  }

  /// `takes` decides on each history of two events.
  private mutating func grow(
    to limit: Int, after last: Shape.Place?, takes: () -> Bool, visit: ([Event]) -> Void
  ) {
    for context in walk.closed.map(\.events) {
      for origin in 0...shape.originCount {
        for content in contents.indices {
          if stopsAtFailure, failed > 0 { return }
          let place = shape.place(context: context, content: content, origin: origin, walk.pasts)
          if let last, place < last { continue }
          if shape.depth + 1 == min(2, limit), !takes() { continue }
          let hash = UInt64(context) &* 31 &+ UInt64(content) &* 7 &+ UInt64(origin)
          guard push(place, hash: hash) else { continue }
          if shape.depth == limit {
            walk.finish()
            visit(walk.events)
          } else {
            grow(to: limit, after: place, takes: takes, visit: visit)
          }
          pop()
        }
      }
    }
  }

  /// Random histories of two events up to the limit.
  package mutating func checkSample(of count: Int, upTo limit: Int, seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for _ in 0..<count {
      if stopsAtFailure, failed > 0 { return }
      let events = 2 + random.below(limit - 1)
      let originLimit = 1 + random.below(4)
      // Some histories are nearly linear, others almost entirely concurrent.
      let reach = random.below(2)
      var isWhole = true
      while isWhole, shape.depth < events {
        let sets = walk.closed.map(\.events)
        let context = sets[max(random.below(sets.count), reach > 0 ? random.below(sets.count) : 0)]
        let origin = random.below(min(shape.originCount + 1, originLimit))
        let place = shape.place(
          context: context, content: random.below(contents.count), origin: origin, walk.pasts)
        isWhole = push(place, hash: random.next())
      }
      if isWhole { walk.finish() }
      while shape.depth > 0 { pop() }
    }
  }

  /// False if a law was violated; then the event is removed again.
  private mutating func push(_ place: Shape.Place, hash: UInt64) -> Bool {
    var event = shape.event(place, contents[place.content], hash: hash)
    if lowersVersions, event.version > Version(2) {
      event.version = Version(2 + (hash >> 17) % (event.version.rawValue - 1))
    }
    do {
      try walk.push(event, past: place.past)
      shape.push(event, place)
      return true
    } catch {
      failed += 1
      if failures.count < Self.keptFailures { failures.append(error) }
      walk.pop()
      return false
    }
  }

  private mutating func pop() {
    walk.pop()
    shape.pop()
  }
}

/// The places of the events in a growing history.
private struct Shape {
  struct Place: Comparable {
    var height: Int
    var context: UInt32
    var content: Int
    var origin: Int
    var past: UInt32

    static func < (a: Place, b: Place) -> Bool {
      (a.height, a.context, a.content, a.origin) < (b.height, b.context, b.content, b.origin)
    }
  }

  private var events: [Event] = []
  private var places: [Place] = []

  /// Not in ascending order, so that the first origin does not win every tie.
  private static let origins = [5, 3, 9, 1, 7, 2, 8, 4, 6].map { Origin($0) }
  private static let key = Key(.string("k"))
  private static let partition = Partition("Law")

  var depth: Int { places.count }
  var originCount: Int { (places.map(\.origin).max() ?? -1) + 1 }

  func place(context: UInt32, content: Int, origin: Int, _ pasts: [UInt32]) -> Place {
    var past = context
    if let previous = places.lastIndex(where: { $0.origin == origin }) {
      past |= pasts[previous] | 1 << UInt32(previous)
    }
    var height = 0
    for index in places.indices where past & (1 << UInt32(index)) != 0 {
      height = max(height, places[index].height + 1)
    }
    return Place(height: height, context: context, content: content, origin: origin, past: past)
  }

  /// Sequences have gaps, because a stream also has events of other records. Timestamps are close
  /// and often wrong: only the winner of a tie may depend on them.
  func event(_ place: Place, _ content: Content, hash: UInt64) -> Event {
    var context = Context.empty
    var version = Version.zero
    for index in places.indices where place.context & (1 << UInt32(index)) != 0 {
      context.insert(events[index].id)
      version = max(version, events[index].version)
    }
    let origin = Self.origins[place.origin]
    let earlier = places.count { $0.origin == place.origin }
    let id = EventID(origin, SequenceNumber(UInt64(earlier) * 2 + 1))
    return Event(
      partition: Self.partition, model: "Law", key: Self.key, operation: content.operation,
      assignments: content.assignments, id: id, context: context, version: version.next,
      timestamp: Timestamp(milliseconds: 1_700_000_000_000 + (hash ^ hash >> 7) % 4),
      commit: CommitID(origin, UInt64(earlier) + 1))
  }

  mutating func push(_ event: Event, _ place: Place) {
    events.append(event)
    places.append(place)
  }

  mutating func pop() {
    events.removeLast()
    places.removeLast()
  }
}
