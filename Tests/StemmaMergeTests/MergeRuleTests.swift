import StemmaEvents
import StemmaMerge
import StemmaSchema
import StemmaSimulation
import Testing

/// The rules of the merge, each with the history that refutes the simpler rule.
@Suite struct MergeRuleTests {
  /// With "the last write by clock wins", an update from a machine that runs a year ahead would
  /// beat all later ones.
  @Test func longerHistoryBeatsAFastClock() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("draft")])
    record.add(2, .update, ["a": .string("from the future")], seen: [create], at: 1_800_000_000_000)
    let second = record.add(1, .update, ["a": .string("better")], seen: [create])
    record.add(1, .update, ["a": .string("final")], seen: [second])
    let state = try record.state()
    #expect(state.text("a", automerge) == "final")
    #expect(state.conflictTexts(automerge) == ["a: final, from the future"])
    // LATEST is the policy for users who trust their clocks.
    #expect(try record.state(latest).text("a", latest) == "from the future")
  }

  /// Superseding by version would discard the short branch here, although no writer had seen it.
  @Test func shorterBranchIsNoLoser() throws {
    var record = Record()
    let create = record.add(1, .create)
    let one = record.add(1, .update, ["a": .string("x")], seen: [create])
    record.add(1, .update, ["a": .string("y")], seen: [one])
    record.add(2, .update, ["a": .string("z")], seen: [create])
    #expect(try record.state().conflictTexts(automerge) == ["a: y, z"])
  }

  @Test func ordinaryLaterWriteResolves() throws {
    var record = Record()
    let create = record.add(1, .create)
    let x = record.add(1, .update, ["a": .string("x")], seen: [create])
    let y = record.add(2, .update, ["a": .string("y")], seen: [create])
    #expect(try record.state().conflictTexts(automerge) == ["a: y, x"])
    record.add(1, .update, ["a": .string("x")], seen: [x, y])
    #expect(try record.state().conflictTexts(automerge) == [])
  }

  @Test func differentFieldsAndEqualValuesMergeSilently() throws {
    var record = Record()
    let create = record.add(1, .create)
    record.add(1, .update, ["a": .string("x"), "b": .string("same")], seen: [create])
    record.add(2, .update, ["b": .string("same")], seen: [create])
    let state = try record.state()
    #expect(state.conflicts(automerge).isEmpty)
    #expect(state.siblings(of: "b", automerge).count == 2)
    #expect(state.values(automerge) == [Assignment("a", .string("x")), Assignment("b", .string("same"))])
  }

  /// Bytes, not characters: a composed and a decomposed é are different values.
  @Test func valuesThatDifferInBytesAreInConflict() throws {
    var record = Record()
    let create = record.add(1, .create)
    record.add(1, .update, ["a": .string("\u{e9}")], seen: [create])
    record.add(2, .update, ["a": .string("e\u{301}")], seen: [create])
    #expect(try record.state().conflicts(automerge).count == 1)
  }

  /// If the create wrote only the fields that its writer knows, the deleted record's unknown field
  /// would reappear in the new one.
  @Test func createWritesFieldsItsWriterDoesNotKnow() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x"), "unknown": .int(7)])
    let delete = record.add(1, .delete, seen: [create])
    record.add(2, .create, ["b": .string("y")], seen: [delete])
    let state = try record.state()
    #expect(state.exists(automerge))
    #expect(state.values(automerge) == [Assignment("b", .string("y"))])
    #expect(state.knownFields(automerge) == ["b"])
  }

  /// A concurrent create writes null to fields that the other one sets. Both values are candidates.
  @Test func concurrentCreatesAreInConflictInEveryFieldThatDiffers() throws {
    var record = Record()
    record.add(1, .create, ["a": .string("x"), "unknown": .int(1)])
    record.add(2, .create, ["a": .string("x"), "b": .string("y")])
    #expect(try record.state().conflictTexts(automerge) == ["b: y, null", "unknown: null, 1"])
  }

  /// The update's writer saw a record in conflict and changed another field of it.
  @Test func ordinaryUpdateDoesNotBuryADeletion() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x")])
    let delete = record.add(1, .delete, seen: [create])
    let change = record.add(2, .update, ["a": .string("y")], seen: [create])
    let later = record.add(3, .update, ["b": .string("z")], seen: [delete, change])
    var state = try record.state()
    #expect(state.exists(automerge))
    #expect(state.conflictTexts(automerge) == ["exists: kept, deleted"])

    // Linking it, or resolving a field, does not decide it either.
    let link = record.add(3, .link, ["r1": .string("p"), "r2": .string("q")], seen: [later])
    let field = record.add(3, .resolve, ["a": .string("x")], seen: [link])
    state = try record.state()
    #expect(state.conflictTexts(automerge) == ["exists: kept, deleted"])

    var kept = record
    kept.add(2, .resolve, [Event.existenceField: .bool(true)], seen: [field])
    #expect(try kept.state().conflictTexts(automerge) == [])
    #expect(try kept.state().exists(automerge))

    var deleted = record
    deleted.add(2, .delete, seen: [field])
    #expect(try deleted.state().conflictTexts(automerge) == [])
    #expect(try deleted.state().exists(automerge) == false)

    var created = record
    created.add(2, .create, seen: [field])
    #expect(try created.state().conflictTexts(automerge) == [])
    #expect(try created.state().exists(automerge))
  }

  @Test func deletePolicyDecidesWhatIsShown() throws {
    var record = Record()
    let create = record.add(1, .create)
    let one = record.add(1, .update, ["a": .string("1")], seen: [create])
    record.add(1, .update, ["a": .string("2")], seen: [one])
    record.add(2, .delete, seen: [create])
    for (policy, exists) in [(DeletePolicy.byVersion, true), (.deleteWins, false), (.updateWins, true)] {
      let rules = MergeRules(LawModel.model(.automerge, policy))
      let state = try record.state(rules)
      #expect(state.exists(rules) == exists)
      #expect(state.existenceIsInConflict)
      #expect(state.conflictTexts(rules) == [exists ? "exists: kept, deleted" : "exists: deleted, kept"])
    }
    // Here the deletion has an equally long history, and is later.
    var even = Record()
    let start = even.add(1, .create)
    even.add(1, .update, ["a": .string("1")], seen: [start])
    even.add(2, .delete, seen: [start])
    #expect(try even.state().exists(automerge) == false)
    let updateWins = MergeRules(LawModel.model(.automerge, .updateWins))
    #expect(try even.state(updateWins).exists(updateWins))
  }

  @Test func fieldConflictsAreListedWhileTheRecordExistsOrMayExist() throws {
    var record = Record()
    let create = record.add(1, .create)
    let x = record.add(1, .update, ["a": .string("x")], seen: [create])
    let y = record.add(2, .update, ["a": .string("y")], seen: [create])
    #expect(try record.state().conflictTexts(automerge) == ["a: y, x"])

    var gone = record
    gone.add(1, .delete, seen: [x, y])
    #expect(try gone.state().conflictTexts(automerge) == [])

    let deleteWins = MergeRules(LawModel.model(.automerge, .deleteWins))
    var open = record
    open.add(3, .delete, seen: [create])
    #expect(try open.state(deleteWins).exists(deleteWins) == false)
    #expect(
      try open.state(deleteWins).conflictTexts(deleteWins) == ["exists: deleted, kept, kept", "a: y, x"])
  }

  @Test func createAfterADeletionIsOrdinary() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x")])
    let delete = record.add(1, .delete, seen: [create])
    #expect(try record.state().exists(automerge) == false)
    record.add(2, .create, ["a": .string("y")], seen: [delete])
    let state = try record.state()
    #expect(state.exists(automerge))
    #expect(state.version == Version(3))
    #expect(state.conflicts(automerge).isEmpty)
  }

  /// Merged field by field, the reference would point to (p, 2), a record that no writer linked.
  @Test func referenceFieldsAreOneRegister() throws {
    var record = Record()
    let create = record.add(1, .create)
    record.add(1, .link, ["r1": .string("p"), "r2": .string("1")], seen: [create])
    record.add(2, .link, ["r1": .string("p"), "r2": .string("2")], seen: [create])
    let state = try record.state()
    #expect(state.text("r1", automerge) + state.text("r2", automerge) == "p2")
    #expect(state.conflictTexts(automerge) == ["r2: 2, 1"])
    #expect(state.conflicts(automerge)[0].fields == ["r1", "r2"])
  }

  /// An unlink and a link elsewhere are two candidates, even if one of them does not change a field
  /// of the reference.
  @Test func halfAReferenceWritesAllOfIt() throws {
    var record = Record()
    let create = record.add(1, .create, ["r1": .string("p"), "r2": .string("1")])
    record.add(1, .update, ["r2": .string("2")], seen: [create])
    let state = try record.state()
    #expect(state.text("r1", automerge) == "null")
    // The node completes such an event before it is written.
    var before = Record()
    before.add(1, .create, ["r1": .string("p"), "r2": .string("1")])
    #expect(
      try before.state().completed([Assignment("r2", .string("2"))], automerge)
        == [Assignment("r1", .string("p")), Assignment("r2", .string("2"))])
  }

  /// As plain fields they would be in conflict after every two concurrent changes.
  @Test func timesOfARecordAreNeverAConflict() throws {
    var record = Record()
    let create = record.add(
      1, .create,
      ["createdAt": .string("2024-01-01T00:30:00+01:00"), "updatedAt": .string("2024-01-01T00:30:00+01:00")])
    let created = Value.string("2024-01-01T00:30:00+01:00")
    record.add(
      1, .update, ["a": .string("x"), "createdAt": created, "updatedAt": .string("2024-06-01T12:00:00Z")],
      seen: [create])
    // Later as text, earlier as a time.
    record.add(
      2, .update,
      ["b": .string("y"), "createdAt": created, "updatedAt": .string("2024-06-01T12:30:00+02:00")],
      seen: [create])
    // A second create: its text sorts lower, its time is later.
    record.add(3, .create, ["a": .string("x"), "createdAt": .string("2024-01-01T00:00:00Z")])
    for rules in [automerge, optimistic] {
      let state = try record.state(rules)
      #expect(state.text("updatedAt", rules) == "2024-06-01T12:00:00Z")
      #expect(state.text("createdAt", rules) == "2024-01-01T00:30:00+01:00")
      #expect(state.conflicts(rules).allSatisfy { !$0.differing.contains { $0.hasSuffix("At") } })
    }
  }

  /// Per field, the two changes would merge silently into a row that neither writer has seen.
  @Test func optimisticRecordIsOneRegister() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x"), "b": .string("x")])
    record.add(1, .update, ["a": .string("y"), "b": .string("x")], seen: [create])
    record.add(2, .update, ["a": .string("x"), "b": .string("y")], seen: [create])
    let state = try record.state(optimistic)
    #expect(state.conflictTexts(optimistic) == ["a+b: x+y, y+x"])
    #expect(try record.state().conflicts(automerge).map(\.differing) == [["a"], ["b"]])
  }

  /// Each event of an optimistic record contains all fields, including those unknown to its
  /// writer's schema.
  @Test func optimisticEventRecordsAllFields() throws {
    var record = Record()
    record.add(1, .create, ["a": .string("x"), "b": .string("y"), "unknown": .int(1)])
    let completed = try record.state(optimistic).completed([Assignment("a", .string("z"))], optimistic)
    #expect(
      completed == [
        Assignment("a", .string("z")), Assignment("b", .string("y")), Assignment("createdAt", .null),
        Assignment("r1", .null), Assignment("r2", .null), Assignment("unknown", .int(1)),
        Assignment("updatedAt", .null),
      ])
    #expect(try record.state(optimistic).completed([], optimistic) == [])
  }

  /// Two processes of one node read version 1. If contexts implied the writer's own stream, the
  /// second would overwrite the first without having seen it.
  @Test func twoWritersOnOneNodeAreConcurrent() throws {
    var record = Record()
    let create = record.add(1, .create)
    record.add(1, .update, ["a": .string("x")], seen: [create])
    record.add(1, .update, ["a": .string("y")], seen: [create])
    #expect(try record.state().conflictTexts(automerge) == ["a: y, x"])
  }

  /// A copy that was loaded before a sync and saved after it does not overwrite the synced values.
  @Test func contextIsThatOfTheValueRead() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x")])
    let loaded = try record.state().heads
    record.add(2, .update, ["a": .string("synced")], seen: [create])
    record.add(1, .update, ["a": .string("saved")], seen: [create])
    #expect(record.events[2].context == loaded.context)
    #expect(record.events[2].version == loaded.version)
    #expect(try record.state().conflictTexts(automerge) == ["a: saved, synced"])
  }

  /// Two nodes could resolve each other's resolutions forever. Candidates show that they are
  /// resolutions, so a resolver can skip them.
  @Test func decisionsThatDifferAreAConflictWhoseCandidatesAreDecisions() throws {
    var record = Record()
    func candidates() throws -> [[EventOperation]] {
      try record.state().conflicts(automerge).map { $0.candidates.map(\.operation) }
    }
    let create = record.add(1, .create)
    let x = record.add(1, .update, ["a": .string("x")], seen: [create])
    let y = record.add(2, .update, ["a": .string("y")], seen: [create])
    #expect(try candidates() == [[.update, .update]])
    record.add(1, .resolve, ["a": .string("x")], seen: [x, y])
    record.add(2, .resolve, ["a": .string("y")], seen: [x, y])
    #expect(try candidates() == [[.resolve, .resolve]])
    #expect(record.events.map(\.isDecision) == [false, false, false, true, true])
  }

  @Test func deletionThatWasDecidedForIsADecisionAndMergesLikeAnother() throws {
    let marks: [KeyValuePairs<String, Value>] = [[:], [Event.existenceField: .bool(false)]]
    let records = marks.map { mark in
      var record = Record()
      let create = record.add(1, .create, ["a": .string("x")])
      let update = record.add(1, .update, ["a": .string("y")], seen: [create])
      let delete = record.add(2, .delete, seen: [create])
      record.add(1, .resolve, [Event.existenceField: .bool(true)], seen: [update, delete])
      record.add(2, .delete, mark, seen: [update, delete])
      return record
    }
    #expect(records.map { $0.events.map(\.isDecision).suffix(2) } == [[true, false], [true, true]])
    #expect(try records[0].state() == records[1].state())
  }

  @Test func resolutionOfEachConflictClosesIt() throws {
    var record = Record()
    let create = record.add(
      1, .create, ["r1": .string("p"), "r2": .string("1"), "updatedAt": .string("2024-01-01T00:00:00Z")])
    record.add(1, .update, ["a": .string("x"), "r1": .string("p"), "r2": .string("2")], seen: [create])
    record.add(2, .update, ["a": .string("y"), "r1": .string("q"), "r2": .string("3")], seen: [create])
    record.add(3, .delete, seen: [create])
    for rules in [automerge, optimistic] {
      var state = try record.state(rules)
      for turn in 0..<10 {
        guard let conflict = state.conflicts(rules).first, let last = conflict.candidates.last else { break }
        let resolution = state.resolution(of: conflict, taking: last, rules)
        let heads = state.heads
        let event = Event(
          partition: Partition("Law"), model: "Law", key: Key(.string("k")), operation: resolution.operation,
          assignments: resolution.assignments, id: EventID(Origin(9), SequenceNumber(UInt64(turn) + 1)),
          context: heads.context, version: heads.version, timestamp: heads.latest.tick,
          commit: CommitID(Origin(9), 1))
        #expect(try state.apply(event, rules))
        #expect(!state.conflicts(rules).contains { $0.kind == conflict.kind && $0.fields == conflict.fields })
      }
      #expect(state.conflicts(rules).isEmpty)
    }
  }

  /// A model that the schema does not know merges field by field, and nothing is lost.
  @Test func recordOfAnUnknownModelIsKept() throws {
    let rules = MergeRules(nil)
    var record = Record()
    let create = record.add(1, .create, ["title": .string("x"), "pages": .int(3)])
    record.add(1, .update, ["pages": .int(4)], seen: [create])
    record.add(2, .update, ["pages": .int(5)], seen: [create])
    let state = try record.state(rules)
    #expect(state.values(rules) == [Assignment("pages", .int(5)), Assignment("title", .string("x"))])
    #expect(state.conflictTexts(rules) == ["pages: 5, 4"])
    #expect(try RecordState(decoding: state.encoded(rules, omitsShown: true), rules) == state)
  }
}
