import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

@Suite struct ClockTests {
  static let note = WritingTests.note
  static let wall = FixedClock.start / 1000

  // MARK: Imported times

  @Test func importedTimesNeverMoveTheClock() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    func time(_ line: String) throws -> Timestamp { try #require(try node.rawEvents(line).first).timestamp }
    let given = try time(#"{"op":"create","model":"Note","key":"n","ts":\#(Self.wall + 60)}"#)
    #expect(given == Timestamp(milliseconds: (Self.wall + 60) * 1000))
    // The given time is not above the event's context, so the event gets one tick above the
    // context.
    #expect(try time(#"{"op":"update","model":"Note","key":"n","fields":{"text":"1"},"ts":5}"#) == given.tick)
    // Beyond the tolerance, the event gets the node's clock, which the import above has not moved.
    let own = try time(#"{"op":"create","model":"Note","key":"m","ts":\#(Self.wall + 61)}"#)
    #expect(own.milliseconds == FixedClock.start)
    // A local event of that record is above its context, and does not move the clock.
    #expect(try time(#"{"op":"update","model":"Note","key":"n","fields":{"text":"2"}}"#) == given.tick.tick)
    #expect(try time(#"{"op":"create","model":"Note","key":"p"}"#).milliseconds == FixedClock.start)
  }

  /// Applying events to the tables does not move the clock either.
  @Test(arguments: ["reopened", "caught up", "rebuilt"])
  func importedTimesDoNotMoveTheClockOfOneWhoReadsThemLater(_ how: String) throws {
    let bench = try Bench()
    let other = try bench.node("a", Self.note)
    let before = try bench.open("a")
    try other.commit(#"{"op":"create","model":"Note","key":"n","ts":\#(Self.wall + 60)}"#)
    let node = how == "caught up" ? before : try bench.open("a")
    if how == "rebuilt" { _ = try node.rebuild { _, _ in } }
    let event = try #require(try node.rawEvents(#"{"op":"create","model":"Note","key":"o"}"#).first)
    #expect(event.timestamp.milliseconds == FixedClock.start)
  }

  @Test func theClockIsKeptForTheNextProcess() throws {
    let bench = try Bench()
    func time(_ key: String) throws -> Timestamp {
      let line = #"{"op":"create","model":"Note","key":"\#(key)"}"#
      return try #require(try bench.open("a").rawEvents(line).first).timestamp
    }
    _ = try bench.node("a", Self.note)
    let first = try time("1")
    bench.clock.set(FixedClock.start - 30_000)
    #expect(try time("2") == first.tick)
    #expect(try time("3") == first.tick.tick)
  }

  // MARK: Wrong clocks

  static let hour: UInt64 = 3_600_000
  static let century: UInt64 = 36_525 * 24 * hour

  /// One node's clock goes wrong in the middle of a history. Events that it writes after its own
  /// events or others' are still later than those.
  @Test(arguments: [
    FixedClock.start - hour, FixedClock.start - century / 10, 0, FixedClock.start + century, .max,
    FixedClock.start,
  ])
  func aWrongClockChangesNeitherOrderNorWinner(_ wrong: UInt64) throws {
    let bench = try Bench()
    let schema = Self.note
    let a = try bench.node("a", schema)
    let b = try bench.node("b", schema)
    func update(_ node: Node, _ text: String) throws -> Event {
      try #require(
        try node.rawEvents(#"{"op":"update","model":"Note","key":"n","fields":{"text":"\#(text)"}}"#).first)
    }
    var events = try a.rawEvents(#"{"op":"create","model":"Note","key":"n"}"#)
    events.append(try update(a, "1"))
    bench.clock.set(wrong)
    events.append(try update(a, "2"))
    events.append(try update(a, "3"))
    try a.sync(b)
    bench.clock.set(FixedClock.start)
    events.append(try update(b, "4"))
    try b.sync(a)
    #expect(events.map(\.version.rawValue) == [1, 2, 3, 4, 5])
    for (earlier, later) in zip(events, events.dropFirst()) {
      #expect(earlier.timestamp < later.timestamp)
    }
    #expect(try a.fields("Note", #""n""#) == #"{"text":"4","stars":3}"#)
    #expect(try a.digestTexts == (try b.digestTexts))
    #expect(try a.conflictTexts == [])

    // Two concurrent edits: the longer history wins, whatever the clocks show.
    bench.clock.set(wrong)
    _ = try update(a, "wrong")
    bench.clock.set(FixedClock.start)
    _ = try update(b, "right")
    _ = try update(b, "right again")
    try a.sync(b)
    #expect(try a.fields("Note", #""n""#) == #"{"text":"right again","stars":3}"#)
    #expect(try a.conflictTexts == ["value Note n text: \"right again\", \"wrong\""])
    #expect(try a.digestTexts == (try b.digestTexts))
  }

  @Test(arguments: [false, true])
  func aClockFarAheadIsReportedAndDragsNobodyAlong(isRebuilt: Bool) throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.note)
    let b = try bench.node("b", Self.note)
    bench.clock.set(FixedClock.start + Self.century)
    try b.commit(#"{"op":"create","model":"Note","key":"n"}"#)
    bench.clock.set(FixedClock.start)
    try a.sync(b)
    if isRebuilt { _ = try a.rebuild { _, _ in } }
    let node = try bench.open("a")
    var times: [Timestamp] = []
    for key in ["1", "2"] {
      let line = #"{"op":"create","model":"Note","key":"\#(key)"}"#
      times.append(try #require(try node.rawEvents(line).first).timestamp)
    }
    let ceiling = Timestamp(milliseconds: FixedClock.start + HybridClock.tolerance)
    #expect(times == [ceiling, ceiling.tick])
    let notices = try bench.open("a", .read).status().notices
    #expect(notices.count == 1 && notices[0].contains("100 years ahead"))
    // The node with the wrong clock is also notified, and recovers immediately.
    #expect(try b.status().notices.count == 1)
    let own = try #require(try b.rawEvents(#"{"op":"create","model":"Note","key":"own"}"#).first)
    #expect(own.timestamp.milliseconds == ceiling.milliseconds)
  }

  @Test func aClockThatIsRightIsNotReported() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    try node.commit(#"{"op":"create","model":"Note","key":"n"}"#)
    bench.clock.set(FixedClock.start - 59_000)
    #expect(try node.status().notices == [])
    bench.clock.set(FixedClock.start - Self.hour)
    #expect(try node.status().notices.count == 1)
  }
}
