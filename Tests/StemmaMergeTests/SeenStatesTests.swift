import StemmaEvents
import StemmaMerge
import StemmaSimulation
import Testing

/// The states that the writers of events had read, computed incrementally from each other.
@Suite struct SeenStatesTests {
  /// By the definition: the fold of all events that an event has seen.
  private func folded(_ history: RecordHistory, _ index: Int, _ rules: MergeRules) throws(MergeError)
    -> RecordState
  {
    try RecordState.fold(history.events[..<index].filter(history.events[index].hasSeen), rules)
  }

  /// Compares every state, and the first error, with the definition. Returns the number of errors.
  private func check(_ events: [Event], _ rules: MergeRules) throws -> Int {
    let history = RecordHistory(events, rules)
    var states = SeenStates(history)
    for index in history.events.indices {
      let expected: RecordState
      do throws(MergeError) { expected = try folded(history, index, rules) } catch let expectedError {
        #expect(throws: expectedError) { try states.next() }
        return 1
      }
      try #require(try states.next() == expected, "event \(index) of \(history.events)")
      states.checkInvariants()
    }
    return 0
  }

  /// An event of a writer that has seen some events. `isOdd`: the writer may be faulty.
  private func event(
    _ step: Int, after events: [Event], _ record: inout Record, origins: Int, isOdd: Bool,
    _ random: inout SplitMix64
  ) -> Event {
    // Mostly recent events, so that long branches occur.
    let first = random.chance(80) ? events.count - 4 : 0
    var seen = events.indices.filter { $0 >= first && random.chance(40) }.map { events[$0] }
    if !isOdd {
      let chosen = Set((seen.isEmpty ? [events[0]] : seen).map(\.id))
      seen = events.readable { chosen.contains($0.id) }
    }
    let operation = random.element([EventOperation.update, .update, .update, .create, .delete, .resolve])
    let field = random.element(["a", "b", "unknown"])
    var event = record.add(
      1 + UInt64(random.below(origins)), operation, operation == .delete ? [:] : [field: .int(Int64(step))],
      seen: seen)
    guard isOdd else { return event }
    // Simulates lost rows: the writer knows only the versions that it saw.
    if random.chance(50) { event.version = (seen.map(\.version).max() ?? .zero).next }
    // No correct writer has seen an event without its causes.
    if random.chance(1) { event.context = seen.reduce(into: Context()) { $0.insert($1.id) } }
    return event
  }

  @Test(arguments: [false, true])
  func statesEqualThoseFolded(isOdd: Bool) throws {
    let seed: UInt64 = 20_261_122
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    var errors = 0
    for round in 0..<400 {
      var record = Record()
      var events = [record.add(1, .create, ["a": .int(0)])]
      let origins = 1 + random.below(5)
      for step in 0..<(3 + random.below(round % 20 == 0 ? 120 : 12)) {
        events.append(event(step, after: events, &record, origins: origins, isOdd: isOdd, &random))
      }
      errors += try check(events, random.element([automerge, latest, optimistic]))
    }
    #expect(isOdd ? errors > 0 : errors == 0)
  }

  /// Some of the states that events build on are then no longer cached.
  @Test func moreBranchesThanStatesAreKept() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .int(0)])
    var heads = [Event](repeating: create, count: SeenStates.keptStates + 6)
    for round in 0..<3 {
      for (branch, head) in heads.enumerated() {
        heads[branch] = record.add(
          2 + UInt64(branch), .update, [branch % 2 == 0 ? "a" : "b": .int(Int64(round))], seen: [head])
      }
    }
    record.add(1, .update, ["a": .int(9)], seen: heads)
    _ = try check(record.events, automerge)
  }

  /// With more branches than cached states, events must not be folded from the beginning.
  @Test func manyBranchesCostNoMoreMergesThanFew() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .int(0)])
    var heads = [Event](repeating: create, count: 100)
    for round in 0..<8 {
      for (branch, head) in heads.enumerated() {
        heads[branch] = record.add(2 + UInt64(branch), .update, ["a": .int(Int64(round))], seen: [head])
      }
    }
    let history = RecordHistory(record.events, automerge)
    var states = SeenStates(history)
    for _ in history.events { _ = try states.next() }
    #expect(states.merges < 3 * history.events.count)
  }

  /// An event that only one node has not seen must not cause a complete fold for each later event.
  @Test func costsGrowWithTheEventsAndNotWithTheirSquare() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .int(0)])
    let aside = record.add(1, .update, ["b": .string("aside")], seen: [create])
    var heads = [create, create]
    for step in 0..<1500 {
      // Two branches that merge each other's events from time to time.
      for branch in 0..<2 {
        let seen = step % 10 == 9 ? heads : [heads[branch]]
        heads[branch] = record.add(2 + UInt64(branch), .update, ["a": .int(Int64(step))], seen: seen)
      }
    }
    record.add(2, .update, ["a": .int(-1)], seen: heads + [aside])
    let history = RecordHistory(record.events, automerge)
    var states = SeenStates(history)
    for _ in history.events { _ = try states.next() }
    #expect(states.merges < 3 * history.events.count)
  }
}
