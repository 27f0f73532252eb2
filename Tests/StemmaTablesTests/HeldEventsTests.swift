import StemmaEvents
import StemmaMerge
import StemmaSimulation
import Testing

@testable import StemmaTables

/// Events of a record come stream by stream, in any order of streams. An event waits for the events
/// that it depends on.
@Suite struct HeldEventsTests {
  private static let rules = MergeRules(LawModel.perField[0])

  /// Every history of four events, also with two branches in one origin, in every order that keeps
  /// streams.
  @Test func anyOrderOfTheStreamsGivesOneState() throws {
    var histories: [[Event]] = []
    var laws = MergeLaws(
      RealMerge(LawModel.perField), contents: [Content(.update, ["a": .string("1")])], limit: 4)
    laws.checkAll(events: 4) { histories.append($0) }
    #expect(laws.failed == 0)
    var held = 0
    for history in histories {
      let expected = try RecordState.fold(history, Self.rules)
      for order in Self.orders(keepingStreamsOf: history) {
        var state = RecordState()
        var events = HeldEvents()
        for event in order { try events.apply(event, to: &state, Self.rules) }
        if !events.isEmpty { held += 1 }
        try events.applyAll(to: &state, Self.rules, leavesOut: false)
        #expect(events.isEmpty && state == expected, "\(order.map(\.id))")
      }
    }
    #expect(histories.count > 200 && held > 200)
  }

  /// A past state may lack a cause whose clock was ahead.
  @Test func whatLacksAnotherEventIsLeftOutOrRefused() throws {
    var histories: [[Event]] = []
    var laws = MergeLaws(
      RealMerge(LawModel.perField), contents: [Content(.update, ["a": .string("1")])], limit: 3)
    laws.checkAll(events: 3) { histories.append($0) }
    var lacking = 0
    for history in histories where history[2].context.covers(history[1].id) {
      guard history[1].id.origin != history[2].id.origin else { continue }
      lacking += 1
      for leavesOut in [true, false] {
        var state = RecordState()
        var events = HeldEvents()
        for event in [history[2], history[0]] { try events.apply(event, to: &state, Self.rules) }
        guard leavesOut else {
          #expect(throws: MergeError.self) { try events.applyAll(to: &state, Self.rules, leavesOut: false) }
          continue
        }
        try events.applyAll(to: &state, Self.rules, leavesOut: true)
        #expect(events.isEmpty && !state.context.covers(history[2].id))
      }
    }
    #expect(lacking > 3)
  }

  private static func orders(keepingStreamsOf events: [Event]) -> [[Event]] {
    guard !events.isEmpty else { return [[]] }
    return events.indices.flatMap { index -> [[Event]] in
      let event = events[index]
      if events[..<index].contains(where: { $0.id.origin == event.id.origin }) { return [] }
      var rest = events
      rest.remove(at: index)
      return orders(keepingStreamsOf: rest).map { [event] + $0 }
    }
  }
}
