import StemmaEvents
import StemmaMerge
import StemmaSchema
import StemmaSimulation
import Testing

@Suite struct RecordStateApplyTests {
  @Test func eventOfAnUnknownCauseIsRefused() throws {
    var record = Record()
    let create = record.add(1, .create)
    let update = record.add(2, .update, ["a": .string("x")], seen: [create])
    var state = RecordState()
    #expect(throws: MergeError.gap(update.id, missing: create.id)) { try state.apply(update, automerge) }
    #expect(state == RecordState())
    #expect(throws: MergeError.gap(update.id, missing: create.id)) {
      try RecordState.fold([update], automerge)
    }
  }

  @Test func repeatedEventChangesNothing() throws {
    var record = Record()
    let create = record.add(1, .create)
    record.add(1, .update, ["a": .string("x")], seen: [create])
    var state = try record.state()
    let before = state
    for event in record.events {
      #expect(try state.apply(event, automerge) == false)
    }
    #expect(state == before)
  }

  @Test func contextThatCoversItsOwnEventIsRefused() throws {
    var record = Record()
    var create = record.add(1, .create)
    create.context = Context(create.id)
    var state = RecordState()
    #expect(throws: MergeError.coversItself(create.id)) { try state.apply(create, automerge) }
    #expect(throws: MergeError.coversItself(create.id)) { try RecordState.fold([create], automerge) }
  }

  @Test(arguments: [1, 4, 1 << 53, UInt64.max]) func wrongVersionIsRefused(version: UInt64) throws {
    var record = Record()
    let create = record.add(1, .create)
    let update = record.add(1, .update, seen: [create])
    var hostile = record.add(2, .update, ["a": .string("x")], seen: [update])
    hostile.version = Version(version)
    let expected = MergeError.wrongVersion(
      hostile.id, found: hostile.version, expected: Version(2)...Version(3))
    var state = RecordState()
    _ = try state.apply(create, automerge)
    _ = try state.apply(update, automerge)
    let before = state
    #expect(throws: expected) { try state.apply(hostile, automerge) }
    #expect(state == before)
  }

  /// Here the state has forgotten the version of the seen event. An event that it accepts must be
  /// accepted in every other order, too.
  @Test(arguments: 2...5) func versionInsideTheBoundsFoldsAsItWasApplied(version: UInt64) throws {
    var record = Record()
    let create = record.add(1, .create)
    let one = record.add(1, .update, ["a": .string("1")], seen: [create])
    let two = record.add(1, .update, ["a": .string("2")], seen: [one])
    let three = record.add(1, .update, ["a": .string("3")], seen: [two])
    var hostile = record.add(2, .update, ["a": .string("x")], seen: [one])
    #expect(hostile.version == Version(3))
    hostile.version = Version(version)
    var state = try RecordState.fold([create, one, two, three], automerge)
    #expect(try state.apply(hostile, automerge))
    state.checkInvariants()
    #expect(try RecordState.fold([create, one, two, three, hostile], automerge) == state)
    #expect(try RecordState.fold([hostile, three, create, two, one], automerge) == state)
    #expect(state.text("a", automerge) == (version >= 4 ? "x" : "3"))
    hostile.version = Version(6)
    var fresh = try RecordState.fold([create, one, two, three], automerge)
    #expect(throws: MergeError.self) { try fresh.apply(hostile, automerge) }
  }

  @Test func numberOfAnotherRecordInAContextFoldsAsItWasApplied() throws {
    var record = Record()
    let create = record.add(1, .create)
    record.add(1, .update, seen: [create])
    var third = record.add(1, .update, seen: [create])
    third.version = Version(2)
    var hostile = record.add(2, .update, ["a": .string("x")], seen: [create])
    hostile.context = Context(EventID(Origin(1), SequenceNumber(2)))
    var state = RecordState()
    for event in [create, third, hostile] { #expect(try state.apply(event, automerge)) }
    #expect(try RecordState.fold([hostile, third, create], automerge) == state)
    hostile.context = Context(EventID(Origin(1), SequenceNumber(4)))
    #expect(throws: MergeError.gap(hostile.id, missing: EventID(Origin(1), SequenceNumber(4)))) {
      try RecordState.fold([create, third, hostile], automerge)
    }
  }

  @Test func twoEventsWithOneIDAreAFork() throws {
    var record = Record()
    let create = record.add(1, .create)
    var other = create
    other.assignments = [Assignment("a", .string("x"))]
    #expect(throws: MergeError.fork(create.id)) { try RecordState.fold([create, other], automerge) }
    #expect(try RecordState.fold([create, create], automerge) == RecordState.fold([create], automerge))
  }

  /// In the order of versions, the third event of the stream precedes the second.
  @Test func branchesInsideOneOriginFoldInAnyOrder() throws {
    var record = Record()
    let create = record.add(1, .create)
    let remote = record.add(2, .update, ["b": .string("r")], seen: [create])
    record.add(1, .update, ["a": .string("long")], seen: [remote])
    record.add(1, .update, ["a": .string("short")], seen: [create])
    var applied = RecordState()
    for event in record.events { #expect(try applied.apply(event, automerge)) }
    #expect(try record.state() == applied)
    #expect(try RecordState.fold(record.events.reversed(), automerge) == applied)
    #expect(applied.conflictTexts(automerge) == ["a: long, short"])
  }

  /// All events up to a time are closed under causes, but are not always complete prefixes of
  /// streams.
  @Test func eventsUpToATimeNeedNotBeAPrefixOfAStream() throws {
    var record = Record()
    let create = record.add(1, .create, at: 1000)
    record.add(1, .update, ["a": .string("now")], seen: [create], at: 9000)
    let imported = record.add(1, .update, ["b": .string("then")], seen: [create], at: 2000)
    let state = try RecordState.fold([create, imported], automerge)
    #expect(state.values(automerge) == [Assignment("b", .string("then"))])
  }

  @Test func manySiblingsMerge() throws {
    var record = Record()
    let create = record.add(1, .create)
    for origin in 2...200 {
      record.add(UInt64(origin), .update, ["a": .int(Int64(origin))], seen: [create])
    }
    var state = try record.state()
    #expect(state.conflicts(automerge).map(\.candidates.count) == [199])
    #expect(state.text("a", automerge) == "200")
    #expect(try RecordState(decoding: state.encoded(automerge, omitsShown: false), automerge) == state)
    let resolve = record.add(1, .resolve, ["a": .int(0)], seen: record.events)
    #expect(try state.apply(resolve, automerge))
    #expect(state.conflicts(automerge).isEmpty)
    #expect(try record.state() == state)
  }

  @Test func keyPartsAndPseudoFieldsAreNoRegisters() throws {
    var record = Record()
    record.add(1, .create, ["a": .string("x"), "id": .string("k"), Event.existenceField: .bool(false)])
    let state = try record.state()
    #expect(state.knownFields(automerge) == ["a"])
    #expect(state.exists(automerge))
  }

  @Test func revisionNamesTheSetOfEvents() throws {
    // The numbers come from an independent computation.
    #expect(RecordState().revision == "0-d0bf8e")
    var record = Record()
    let create = record.add(1, .create)
    #expect(try record.state().revision == "1-d1bb66")
    record.add(1, .update, seen: [create])
    let two = try record.state().revision
    record.add(2, .update, seen: [create])
    let three = try record.state().revision
    #expect(two.hasPrefix("2-") && three.hasPrefix("2-") && two != three)
    #expect(two.utf8.count == 8)
  }
}
