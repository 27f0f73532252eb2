import StemmaEvents
import StemmaLog
import StemmaSimulation
import Testing

/// A segment is written without the writer lock. In parallel, other processes open the log, append
/// to it, and seal it themselves.
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
    try other.seal()
    #expect(disk.contents("/log/00000001.segment.partial") == nil)
    #expect(disk.contents("/log/00000001.segment") != nil)
    try check()
  }

  /// The canceled seal must not rename a file that the second one has not completed.
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
