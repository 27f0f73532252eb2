import StemmaEvents
import StemmaLog
import StemmaSimulation
import Testing

/// A segment is written without the writer lock: meanwhile others open the log, append to it, and seal it themselves.
@Suite struct SealingTests {
  private let disk = SimulatedFileSystem()
  private let log: Log
  private let events: [Event]

  init() throws {
    log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 1)
    events = maker.commit(20)
    _ = try log.append([Commit(events)])
    try log.sync()
  }

  private func open() throws -> Log { try Log.open(in: "/log", id: testLog, fileSystem: disk) }

  private func check() throws {
    let again = try open()
    #expect(try again.allEvents() == events && again.verify() == [])
    again.checkInvariants()
    again.close()
  }

  @Test func whoOpensTheLogLeavesWhatIsBeingWritten() throws {
    let sealing = try #require(try log.beginSealing())
    let other = try open()
    #expect(try other.beginSealing() == nil)
    try log.finish(sealing, sealing.write())
    #expect(try disk.list("/log").contains("00000001.segment"))
    #expect(disk.contents("/log/00000001.journal") == nil)
    try check()
  }

  @Test func whoDiesLeavesNothingForEver() throws {
    do {
      let sealing = try #require(try log.beginSealing())
      _ = try sealing.write()
    }
    #expect(disk.contents("/log/00000001.segment.partial") != nil)
    let other = try open()
    #expect(disk.contents("/log/00000001.segment.partial") == nil)
    try other.seal()
    #expect(disk.contents("/log/00000001.segment") != nil)
    try check()
  }

  /// It would name a file before it that is not there any more.
  @Test func whatWasWrittenBehindAFileThatIsMadeAnewComesToNothing() throws {
    try log.seal()
    var maker = EventMaker(seed: 2)
    let more = maker.commit(5, origin: Origin(55))
    _ = try log.append([Commit(more)])
    try log.sync()
    let sealing = try #require(try log.beginSealing())
    let written = try sealing.write()
    var bytes = try #require(disk.contents("/log/00000001.segment"))
    bytes[30] ^= 1
    disk.plant(bytes, at: "/log/00000001.segment")
    let other = try open()
    #expect(try other.mend(other.survey(other.verify(), held: nil), with: [Offer(events)]).missing == [])
    _ = try log.refresh()
    try log.finish(sealing, written)
    #expect(disk.contents("/log/00000002.segment") == nil)
    let again = try open()
    #expect(try again.verify() == [])
    #expect(try Set(again.allEvents()) == Set(events + more))
    try again.seal()
    #expect(try again.verify() == [])
  }

  /// The first one must not give a name to what the second one has not written yet.
  @Test(arguments: [false, true]) func whatIsTakenOverComesToNothing(isFinished: Bool) throws {
    let sealing = try #require(try log.beginSealing())
    let written = try sealing.write()
    let other = try open()
    let second = try #require(try other.beginSealing(takingOver: true))
    if isFinished { try other.finish(second, second.write()) }
    try log.finish(sealing, written)
    #expect((disk.contents("/log/00000001.segment") != nil) == isFinished)
    try check()
    if !isFinished { try other.finish(second, second.write()) }
    #expect(disk.contents("/log/00000001.journal") == nil)
    try check()
  }
}
