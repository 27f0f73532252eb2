import StemmaEvents
import StemmaLog

/// A scripted history of one log (append, seal, adopt, purge), with an external oracle of the
/// events that must survive a fault.
package struct LogWorkload: Sendable {
  /// The amount of data.
  package struct Shape: Sendable {
    /// Events of the larger commits.
    package var events: Int
    /// Letters of each event's text, which deflate to about five bits each.
    package var textLength: Int
    /// Letters after these that deflate to almost nothing, to fill the blocks of a partition.
    package var filling: Int
    /// Bytes of raw events at which the log should be sealed; an eighth is adopted as a segment.
    package var segmentSize: Int

    package init(events: Int, textLength: Int, filling: Int = 0, segmentSize: Int) {
      self.events = events
      self.textLength = textLength
      self.filling = filling
      self.segmentSize = segmentSize
    }

    /// A few KiB: for a debug test run.
    package static let small = Shape(events: 3, textLength: 12, segmentSize: 3000)
    /// More than 64 KiB on the disk, in segments of several blocks.
    package static let large = Shape(events: 18, textLength: 900, filling: 6000, segmentSize: 600_000)
  }

  package static let directory = "/log"
  package static let logID = LogID(0x0123_4567_89ab_cdef)
  static let purged = Partition("tenant=b")
  /// The remaining partitions.
  private static let left = ["a", "c"]
  /// The origin of events that are appended after recovery.
  static let laterOrigin = Origin(55)

  package let shape: Shape
  /// As `Log.Options.openSegments`.
  var openSegments = LogLimits.openSegments
  /// Every event that was passed to the log, in order.
  package private(set) var attempted: [Event] = []
  /// The number of events in `attempted` that a sync has confirmed.
  package private(set) var acknowledged = 0
  /// Whether the purge of a partition was begun.
  private var mayBePurged = false

  package init(_ shape: Shape) { self.shape = shape }

  package var options: Log.Options {
    var options = Log.Options(segmentSize: shape.segmentSize, level: 1)
    options.openSegments = openSegments
    return options
  }

  /// Runs until the first error. If it `goesOn`, it continues with the same log, as a program may,
  /// until the log is poisoned. It then throws the first error at the end.
  package mutating func run(
    on disk: SimulatedFileSystem, seed: UInt64, goesOn: Bool = false
  ) throws(LogError) {
    var maker = EventMaker(seed: seed)
    let log = try create(on: disk)
    var failure: LogError?
    for step in 0..<11 {
      let before = (maker: maker, attempted: attempted.count)
      do throws(LogError) { try take(step, log, &maker) } catch {
        guard goesOn, !log.isPoisoned else { throw failure ?? error }
        failure = failure ?? error
        if try holdsNothing(of: attempted[before.attempted...], log) {
          attempted.removeSubrange(before.attempted...)
          maker = before.maker
        }
        if step == 7 { maker.partitions = Self.left }
      }
      log.checkInvariants()
    }
    if let failure { throw failure }
  }

  private mutating func take(_ step: Int, _ log: Log, _ maker: inout EventMaker) throws(LogError) {
    switch step {
    // Commits with relaxed durability: the next step makes them durable.
    case 1, 5, 8, 9: try append(to: log, &maker)
    case 2, 6: try log.seal()
    // As a segment of its own, and as a frame.
    case 3: try adopt(shape.events + 17, log, &maker)
    case 4: try adopt(1, log, &maker)
    case 7:
      mayBePurged = true
      maker.partitions = Self.left
      try log.purge { $0 == Self.purged }
    default:
      try append(to: log, &maker)
      try log.sync()
      acknowledged = attempted.count
    }
  }

  /// Whether a usable log holds none of the rejected events; otherwise it holds all of them.
  private func holdsNothing(of events: ArraySlice<Event>, _ log: Log) throws(LogError) -> Bool {
    let names = Set(events.map { QualifiedEventID(partition: $0.partition, id: $0.id) })
    let held = try log.allEvents().count {
      names.contains(QualifiedEventID(partition: $0.partition, id: $0.id))
    }
    precondition(held == 0 || held == events.count, "a commit is whole or not there")
    return held == 0
  }

  private mutating func adopt(_ count: Int, _ log: Log, _ maker: inout EventMaker) throws(LogError) {
    let events = maker.commit(
      count, origin: Origin(9), textLength: shape.textLength, filling: shape.filling)
    attempted += events
    _ = try log.adopt(AdoptedEvents(events))
    acknowledged = attempted.count
  }

  private mutating func append(to log: Log, _ maker: inout EventMaker) throws(LogError) {
    func events(_ count: Int) -> [Event] {
      maker.commit(count, textLength: shape.textLength, filling: shape.filling)
    }
    let commits = [
      Commit(events(shape.events), message: CommitMessage(author: "x")),
      Commit(events(max(1, shape.events - 1))),
    ]
    attempted += commits.flatMap(\.events)
    _ = try log.append(commits)
  }

  /// Traps if more events were acknowledged than written.
  func checkInvariants() {
    precondition(acknowledged <= attempted.count, "what is acknowledged was handed to the log")
  }

  /// Creates the empty log.
  func create(on disk: SimulatedFileSystem) throws(LogError) -> Log {
    try Log.create(in: Self.directory, id: Self.logID, fileSystem: disk, options: options)
  }

  /// Appends a commit, and syncs.
  func grow(_ log: Log, with maker: inout EventMaker) throws(LogError) -> [Event] {
    let events = maker.commit(shape.events, textLength: shape.textLength)
    _ = try log.append([Commit(events)])
    try log.sync()
    return events
  }

  /// Opens the log after a fault; nil if there is none, as after a failed creation.
  package func reopen(_ disk: SimulatedFileSystem, _ mode: Log.Mode = .readWrite) throws(LogError) -> Log? {
    var options = options
    options.mode = mode
    do throws(LogError) {
      return try Log.open(in: Self.directory, id: Self.logID, fileSystem: disk, options: options)
    } catch {
      if case .noLog = error { return nil }
      throw error
    }
  }

  /// The violated guarantees: the log is a prefix of the attempted events, with all acknowledged
  /// ones, whole commits and no corruption.
  package func violations(in log: Log) throws(LogError) -> [String] {
    checkInvariants()
    var found = try log.allEvents()
    var violations = log.recovery.corruption.isEmpty ? try log.violationsByRecord(found) : []
    var expected = attempted
    var least = acknowledged
    if mayBePurged {
      least = attempted[..<acknowledged].count { $0.partition != Self.purged }
      expected.removeAll { $0.partition == Self.purged }
      found.removeAll { $0.partition == Self.purged }
    }
    if !log.recovery.corruption.isEmpty {
      violations.append("corruption where none is: \(log.recovery.corruption)")
    }
    if !found.elementsEqual(expected.prefix(found.count)) { violations.append("events that no call wrote") }
    if found.count < least {
      violations.append("\(least) events were acknowledged, \(found.count) are there")
    }
    if !mayBePurged, found.count < expected.count, let last = found.last,
      last.commit == expected[found.count].commit
    {
      violations.append("half a commit")
    }
    let corruption = try log.verify()
    if !corruption.isEmpty { violations.append("verify finds \(corruption)") }
    log.checkInvariants()
    return violations
  }

  /// The violations of a recovered log after reading, another write and another power failure.
  package func violationsAfterRecovery(
    _ disk: SimulatedFileSystem, writesMore: Bool
  ) throws(LogError) -> [String] {
    guard let log = try reopen(disk) else { return nothing() }
    var violations = try violations(in: log)
    var shown = try log.allEvents()
    if writesMore {
      var maker = EventMaker(seed: 555)
      let events = maker.commit(1, origin: Self.laterOrigin)
      _ = try log.append([Commit(events)])
      try log.sync()
      shown += events
      if try reopen(disk, .readOnly)?.allEvents() != shown { violations.append("a reader sees other events") }
    }
    log.close()
    disk.crash()
    guard let after = try reopen(disk) else { return violations + nothing() }
    // Recovery must have made all visible events durable.
    if try after.allEvents() != shown { violations.append("what was shown is gone after a crash") }
    if !after.recovery.corruption.isEmpty {
      violations.append("recovery left corruption: \(after.recovery.corruption)")
    }
    return violations
  }

  /// A log may be missing only while nothing was acknowledged.
  func nothing() -> [String] { acknowledged == 0 ? [] : ["the log is gone"] }
}
