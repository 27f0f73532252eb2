import StemmaEvents
import StemmaMerge
import StemmaSimulation
import Testing

/// Relations between the events of one record.
@Suite struct RecordHistoryTests {
  private struct Story {
    var record = Record()
    let create, left, right, join: Event

    init() {
      create = record.add(1, .create, ["a": .string("draft"), "b": .string("b")])
      left = record.add(1, .update, ["a": .string("left")], seen: [create])
      right = record.add(2, .update, ["a": .string("right"), "b": .string("bb")], seen: [create])
      join = record.add(2, .update, ["b": .string("joined")], seen: [left, right])
    }
  }

  @Test func parentsAreTheBranchesThatAnEventJoins() throws {
    let story = Story()
    let history = RecordHistory(story.record.events.reversed(), automerge)
    #expect(history.events == [story.create, story.left, story.right, story.join])
    #expect(history.events.indices.map(history.parents) == [[], [0], [0], [2, 1]])
  }

  @Test func changesGoFromWhatTheWriterHadRead() throws {
    let story = Story()
    let history = RecordHistory(story.record.events, automerge)
    var seen: [String] = []
    try history.forEachStep({ $0 }) { (index, state) throws(MergeError) in
      for change in history.changes(of: index, from: state) {
        seen.append("\(index) \(change.field): \(change.from.json.text) → \(change.to.json.text)")
      }
    }
    #expect(
      seen == [
        #"0 a: null → "draft""#, #"0 b: null → "b""#, #"1 a: "draft" → "left""#, #"2 a: "draft" → "right""#,
        #"2 b: "b" → "bb""#, #"3 b: "bb" → "joined""#,
      ])
  }

  @Test func aDeletionTakesEveryValue() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x"), "b": .string("y")])
    record.add(1, .delete, seen: [create])
    let history = RecordHistory(record.events, automerge)
    let changes = history.changes(of: 1, from: try history.stateSeen(by: 1))
    #expect(changes.map(\.field) == ["a", "b"])
    #expect(changes.allSatisfy { $0.to.isNull })
  }

  @Test func fateOfEveryWrite() throws {
    let story = Story()
    let history = RecordHistory(story.record.events, automerge)
    let state = try history.state()
    func fate(_ index: Int, _ field: String?) -> Fate? { history.fate(of: index, field: field, in: state) }
    #expect(fate(0, "a") == .superseded(by: story.left.id))
    #expect(fate(1, "a") == .outdone(by: story.right.id, .timestamp))
    #expect(fate(2, "a") == .shown)
    #expect(fate(2, "b") == .superseded(by: story.join.id))
    #expect(fate(3, "b") == .shown)
    #expect(fate(3, "a") == nil)
    #expect(fate(3, nil) == .shown)
  }

  /// An update made while a deletion is in conflict does not supersede it.
  @Test func aDeletionInConflictIsSupersededOnlyByADecision() throws {
    var record = Record()
    let create = record.add(1, .create)
    let delete = record.add(1, .delete, seen: [create])
    let update = record.add(2, .update, ["a": .string("x")], seen: [create])
    record.add(2, .update, ["a": .string("y")], seen: [delete, update])
    var history = RecordHistory(record.events, automerge)
    let fate = history.fate(of: 1, field: nil, in: try history.state())
    guard case .outdone = fate else {
      Issue.record("\(String(describing: fate))")
      return
    }
    let resolve = record.add(
      2, .resolve, [Event.existenceField: .bool(true)], seen: record.events)
    history = RecordHistory(record.events, automerge)
    #expect(history.fate(of: 1, field: nil, in: try history.state()) == .superseded(by: resolve.id))
  }

  /// A view at a time may lack a cause whose clock was ahead.
  @Test func anEventWithoutItsCauseIsLeftOut() throws {
    let story = Story()
    let history = RecordHistory([story.create, story.join, story.right], automerge)
    #expect(history.events == [story.create, story.right])
    #expect(try history.state().text("b", automerge) == "bb")
  }

  @Test func decisionsNameTheRule() throws {
    func rule(_ first: UInt64?, _ second: UInt64?, _ rules: MergeRules, longer: Bool = false) throws
      -> Decision.Rule
    {
      var record = Record()
      let create = record.add(1, .create)
      var last = record.add(1, .update, ["a": .string("x")], seen: [create], at: first)
      if longer { last = record.add(1, .update, ["a": .string("xx")], seen: [last], at: first) }
      record.add(2, .update, ["a": .string("y")], seen: [create], at: second)
      return try record.state(rules).decision(on: "a", rules).rule
    }
    #expect(try rule(1000, 2000, automerge, longer: true) == .version)
    #expect(try rule(1000, 2000, latest, longer: true) == .timestamp)
    #expect(try rule(1000, 2000, automerge) == .timestamp)
    #expect(try rule(1000, 1000, automerge) == .origin)
    let story = Story()
    let state = try story.record.state()
    #expect(state.decision(on: "b", automerge).rule == .only)
    #expect(state.decision(on: "nothing", automerge).shown == .null)
    var twins = Record()
    let create = twins.add(1, .create)
    twins.add(1, .update, ["a": .string("same")], seen: [create])
    twins.add(2, .update, ["a": .string("same")], seen: [create])
    #expect(try twins.state().decision(on: "a", automerge).rule == .agree)
  }

  /// For random histories, parents and fates agree with the siblings of the state.
  @Test func fatesEqualTheSiblingsOfTheState() throws {
    let seed: UInt64 = 20_260_105
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    for _ in 0..<300 {
      var record = Record()
      record.add(1, .create, ["a": .int(0)])
      for step in 1..<Int(3 + random.next() % 6) {
        let seen = record.events.readable { _ in random.next() % 3 == 0 }
        let operations: [EventOperation] = [.update, .update, .update, .create, .delete]
        let operation = operations[Int(random.next() % 5)]
        let field = random.next() % 2 == 0 ? "a" : "b"
        record.add(
          1 + random.next() % 3, operation, operation == .delete ? [:] : [field: .int(Int64(step))],
          seen: seen)
      }
      let history = RecordHistory(record.events, automerge)
      let state = try history.state()
      for field in [nil, "a", "b"] as [String?] {
        let siblings = Set(state.decision(on: field, automerge).candidates.map(\.id))
        for (index, event) in history.events.enumerated() {
          let fate = history.fate(of: index, field: field, in: state)
          switch fate {
          case nil: #expect(field != nil && !siblings.contains(event.id))
          case .shown, .outdone: #expect(siblings.contains(event.id))
          case .superseded(let later):
            let other = try #require(record.events.first { $0.id == later })
            #expect(other.context.covers(event.id) && !siblings.contains(event.id))
          }
        }
      }
      for index in history.events.indices {
        var covered = Context.empty
        for parent in history.parents(of: index) {
          covered.formUnion(history.events[parent].context)
          covered.insert(history.events[parent].id)
        }
        #expect(covered == history.events[index].context)
      }
    }
  }
}
