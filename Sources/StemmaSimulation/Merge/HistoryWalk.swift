import StemmaEvents
import StemmaSchema

/// A violated merge law, with the history that shows it.
package struct LawFailure: Error, Sendable, CustomStringConvertible {
  package enum Law: String, Sendable {
    case order = "every order that keeps causes before effects gives the same state"
    case grouping = "a state that was stored in between goes on as if it had not been"
    case repetition = "an event that was applied before changes nothing"
    case fold = "all events at once, shuffled and duplicate, give the same state"
    case definition = "no update is lost and none survives: siblings and winners are those of the definition"
    case resolution = "a resolve removes exactly what it covers"
    case refusal = "no honest event is refused"
  }

  package var law: Law
  package var history: [Event]
  package var policy: String
  package var detail: String

  package var description: String {
    let events = history.map { event in
      let fields = event.assignments.map { "\($0.field)=\($0.value)" }.joined(separator: " ")
      let seen = event.context.entries.map { "\($0.origin.rawValue):\($0.sequence)" }.joined(separator: " ")
      return "  \(event.id.origin.rawValue):\(event.id.sequence) \(event.operation.name) \(fields)"
        + " after [\(seen)] v\(event.version) t\(event.timestamp.milliseconds)"
    }
    return ([law.rawValue, "  \(policy)"] + events + ["  " + detail]).joined(separator: "\n")
  }
}

/// The amounts of checked data.
package struct LawCounts: Sendable, Equatable {
  package var histories: UInt64 = 0
  /// Sets of events that a node can hold.
  package var closedSets: UInt64 = 0
  /// Single deliveries: an event to a closed set.
  package var deliveries: UInt64 = 0
  /// The delivery orders of whole histories that these deliveries cover.
  package var orders: UInt64 = 0

  package init() {}

  package static func += (a: inout LawCounts, b: LawCounts) {
    a.histories += b.histories
    a.closedSets += b.closedSets
    a.deliveries += b.deliveries
    a.orders += b.orders
  }
}

/// Extends a history event by event, and checks each law on every set of its events that a node can
/// hold.
///
/// These sets are closed: with an event they contain its causes and the earlier events of its
/// stream. Every delivery order is a path through them from the empty set to the full one. If every
/// step into a set gives the same state, so do all orders. Each state also equals its decoded
/// encoding, so every grouping into transactions gives it too. Thus n events need at most n·2^n
/// steps, not n! orders.
package struct HistoryWalk<Subject: MergeSubject> {
  package typealias Events = UInt32

  package struct ClosedSet {
    package var events: Events
    var state: Subject.State
    var orders: UInt64
  }

  package private(set) var events: [Event] = []
  /// For each event, the events that must be delivered before it.
  package private(set) var pasts: [Events] = []
  /// In ascending order of `events`.
  package private(set) var closed: [ClosedSet]
  package private(set) var counts = LawCounts()

  private let subject: Subject
  private let checksParts: Bool
  private let naive: [NaiveMerge]
  private var places: [Int]

  /// `checksParts`: whether sets without all events are checked for more than the law of order. A
  /// walk over all histories checks such a set, up to renaming, as a smaller history.
  package init(_ subject: Subject, limit: Int, checksParts: Bool) {
    self.subject = subject
    self.checksParts = checksParts
    naive = subject.policies.map(NaiveMerge.init)
    places = [Int](repeating: -1, count: 1 << limit)
    places[0] = 0
    closed = [ClosedSet(events: 0, state: subject.empty, orders: 1)]
  }

  /// Adds an event whose delivery follows `past`, and checks every closed set that contains it.
  package mutating func push(_ event: Event, past: Events) throws(LawFailure) {
    let bit: Events = 1 << Events(events.count)
    events.append(event)
    pasts.append(past)
    for index in closed.indices where closed[index].events & past == past {
      try add(closed[index].events | bit)
    }
  }

  package mutating func pop() {
    events.removeLast()
    pasts.removeLast()
    let bit: Events = 1 << Events(events.count)
    while let last = closed.last, last.events & bit != 0 {
      places[Int(last.events)] = -1
      closed.removeLast()
    }
  }

  /// Counts the current history as complete.
  package mutating func finish() {
    assert(holds(checkInvariants))
    counts.histories += 1
    counts.orders &+= closed.last?.orders ?? 0
  }

  /// Traps if a set of events is not found, or is not closed. Debug builds call it at each history.
  package func checkInvariants() {
    precondition(pasts.count == events.count, "each event has a past")
    precondition(places.count { $0 >= 0 } == closed.count, "each closed set has a place")
    for (place, set) in closed.enumerated() {
      precondition(places[Int(set.events)] == place, "a closed set is found by its events")
      for (index, past) in pasts.enumerated() where set.events & 1 << Events(index) != 0 {
        precondition(set.events & past == past, "what comes before an event is delivered with it")
      }
    }
    for (a, b) in zip(closed, closed.dropFirst()) { precondition(a.events < b.events, "they rise") }
  }

  private mutating func add(_ set: Events) throws(LawFailure) {
    let policy = Int(counts.closedSets % UInt64(subject.policies.count))
    var state: Subject.State?
    var orders: UInt64 = 0
    for last in events.indices where isLast(last, in: set) {
      let before = closed[places[Int(set & ~(1 << Events(last)))]]
      orders &+= before.orders
      counts.deliveries += 1
      let after = try delivered(events[last], to: before.state, set, policy)
      if state == nil { state = after }
      if state != after { throw failure(.order, set, policy, "the last event was \(events[last].id)") }
      if events[last].operation == .resolve { try checkResolution(events[last], before, after, set, policy) }
    }
    guard let state else { preconditionFailure("a closed set has a last event") }
    if checksParts || set == whole {
      try checkBytes(state, set, policy)
      try checkRepetition(state, set, policy)
      try checkFold(state, orders: orders, set, policy)
      try checkDefinition(state, set, policy)
    }
    counts.closedSets += 1
    places[Int(set)] = closed.count
    closed.append(ClosedSet(events: set, state: state, orders: orders))
  }

  private func isLast(_ index: Int, in set: Events) -> Bool {
    let bit: Events = 1 << Events(index)
    guard set & bit != 0 else { return false }
    return !events.indices.contains { set & (1 << Events($0)) != 0 && pasts[$0] & bit != 0 }
  }

  /// The set of all events.
  private var whole: Events { (1 << Events(events.count)) - 1 }

  private func members(_ set: Events) -> [Event] {
    // Most requested sets are whole, and copying events takes much of the time of the laws.
    if set == whole { return events }
    return events.indices.filter { set & (1 << Events($0)) != 0 }.map { events[$0] }
  }

  private func delivered(
    _ event: Event, to state: Subject.State, _ set: Events, _ policy: Int
  ) throws(LawFailure) -> Subject.State {
    do {
      var after = state
      guard try subject.apply(event, to: &after) else {
        throw failure(.refusal, set, policy, "\(event.id) was taken for a repetition")
      }
      return after
    } catch let failure as LawFailure {
      throw failure
    } catch {
      throw failure(.refusal, set, policy, "\(event.id): \(error)")
    }
  }

  /// A state that equals its decoded encoding also continues like it, because states are values.
  private func checkBytes(_ state: Subject.State, _ set: Events, _ policy: Int) throws(LawFailure) {
    do {
      if try subject.restored(state, policy: policy) != state {
        throw failure(.grouping, set, policy, "the bytes give another state, or are not canonical")
      }
    } catch let failure as LawFailure {
      throw failure
    } catch {
      throw failure(.grouping, set, policy, "\(error)")
    }
  }

  private func checkRepetition(_ state: Subject.State, _ set: Events, _ policy: Int) throws(LawFailure) {
    for event in members(set) {
      var again = state
      do {
        if try subject.apply(event, to: &again) || again != state {
          throw failure(.repetition, set, policy, "\(event.id) again")
        }
      } catch let failure as LawFailure {
        throw failure
      } catch {
        throw failure(.refusal, set, policy, "\(event.id) again: \(error)")
      }
    }
  }

  private func checkFold(
    _ state: Subject.State, orders: UInt64, _ set: Events, _ policy: Int
  ) throws(LawFailure) {
    let members = members(set)
    do {
      guard let folded = try subject.fold(members.reversed() + members) else { return }
      if folded != state { throw failure(.fold, set, policy, "reversed and duplicate") }
      // A history with only one order may be folded without sorting.
      if orders == 1, try subject.fold(members) != state {
        throw failure(.fold, set, policy, "in its only order")
      }
    } catch let failure as LawFailure {
      throw failure
    } catch {
      throw failure(.refusal, set, policy, "fold: \(error)")
    }
  }

  private func checkDefinition(_ state: Subject.State, _ set: Events, _ policy: Int) throws(LawFailure) {
    let outcome = subject.outcome(state, policy: policy)
    let expected = naive[policy].outcome(of: members(set))
    if outcome != expected {
      throw failure(.definition, set, policy, outcome.differences(from: expected))
    }
  }

  private func checkResolution(
    _ event: Event, _ before: ClosedSet, _ after: Subject.State, _ set: Events, _ policy: Int
  ) throws(LawFailure) {
    let fields = subject.outcome(after, policy: policy).fields
    for (old, new) in zip(subject.outcome(before.state, policy: policy).fields, fields)
    where new.siblings.contains(where: { $0.id == event.id }) {
      let unseen = members(set).filter { !event.hasSeen($0) }
      let kept = old.siblings.filter { sibling in unseen.contains { $0.id == sibling.id } }
      if kept != new.siblings.filter({ $0.id != event.id }) {
        throw failure(.resolution, set, policy, "\(event.id) on \(new.name)")
      }
    }
  }

  private func failure(_ law: LawFailure.Law, _ set: Events, _ policy: Int, _ detail: String) -> LawFailure {
    let model = subject.policies[policy]
    return LawFailure(
      law: law, history: members(set),
      policy: "\(model.conflictPolicy.rawValue), deletes \(model.deletePolicy.rawValue)", detail: detail)
  }
}
