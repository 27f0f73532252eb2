import StemmaEvents
import StemmaLog

/// A scripted life of one log (append, seal, adopt, purge), and the oracle outside of it that knows which of its
/// events must outlive a fault.
package struct LogWorkload: Sendable {
  /// How much is written.
  package struct Shape: Sendable {
    /// Events of the larger commits.
    package var events: Int
    /// Letters of each event's text, which deflate to about five bits each.
    package var textLength: Int
    /// Bytes of raw events at which the log wants to be sealed.
    package var segmentSize: Int

    package init(events: Int, textLength: Int, segmentSize: Int) {
      self.events = events
      self.textLength = textLength
      self.segmentSize = segmentSize
    }

    /// A few KiB: for a debug test run.
    package static let small = Shape(events: 3, textLength: 12, segmentSize: 3000)
    /// More than 64 KiB on the disk.
    package static let large = Shape(events: 18, textLength: 900, segmentSize: 3 << 20)
  }

  package static let directory = "/log"
  package static let logID = LogID(0x0123_4567_89ab_cdef)
  static let purged = Partition("tenant=b")
  /// The origin of what is appended after recovery.
  static let laterOrigin = Origin(55)

  package let shape: Shape
  /// Everything that was handed to the log, in order.
  package private(set) var attempted: [Event] = []
  /// Events of `attempted` that a sync has confirmed.
  package private(set) var acknowledged = 0
  /// Whether the purge of a partition was begun.
  private var mayBePurged = false

  package init(_ shape: Shape) { self.shape = shape }

  package var options: Log.Options { Log.Options(segmentSize: shape.segmentSize, level: 1) }

  /// Runs until the first error.
  package mutating func run(on disk: SimulatedFileSystem, seed: UInt64) throws(LogError) {
    var maker = EventMaker(seed: seed)
    let log = try Log.create(in: Self.directory, id: Self.logID, fileSystem: disk, options: options)
    for step in 0..<8 {
      switch step {
      case 2, 5: try log.seal()
      case 3:
        let events = maker.commit(shape.events + 17, origin: Origin(9), textLength: shape.textLength)
        attempted += events
        _ = try log.adopt(AdoptedEvents(events))
        acknowledged = attempted.count
      case 6:
        mayBePurged = true
        maker.partitions = ["a", "c"]
        try log.purge { $0 == Self.purged }
      default: try append(to: log, &maker)
      }
      log.checkInvariants()
    }
  }

  private mutating func append(to log: Log, _ maker: inout EventMaker) throws(LogError) {
    let commits = [
      Commit(maker.commit(shape.events, textLength: shape.textLength), note: CommitNote(by: "x")),
      Commit(maker.commit(max(1, shape.events - 1), textLength: shape.textLength)),
    ]
    attempted += commits.flatMap(\.events)
    _ = try log.append(commits)
    try log.sync()
    acknowledged = attempted.count
  }

  /// Traps if more was acknowledged than was ever written.
  func checkInvariants() {
    precondition(acknowledged <= attempted.count, "what is acknowledged was handed to the log")
  }

  /// Opens the log after a fault; nil: there is none, as after a creation that failed.
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

  /// What of the promises does not hold: the log is a prefix of what was attempted, has all that was
  /// acknowledged, its commits are whole, and nothing in it is damaged.
  package func violations(in log: Log) throws(LogError) -> [String] {
    checkInvariants()
    var found = try log.allEvents()
    var violations = try violationsByRecord(in: log, events: found.count)
    var expected = attempted
    var least = acknowledged
    if mayBePurged {
      least = attempted[..<acknowledged].count { $0.partition != Self.purged }
      expected.removeAll { $0.partition == Self.purged }
      found.removeAll { $0.partition == Self.purged }
    }
    if !log.recovery.damage.isEmpty { violations.append("damage where none is: \(log.recovery.damage)") }
    if !found.elementsEqual(expected.prefix(found.count)) { violations.append("events that nobody wrote so") }
    if found.count < least {
      violations.append("\(least) events were acknowledged, \(found.count) are there")
    }
    if !mayBePurged, found.count < expected.count, let last = found.last,
      last.commit == expected[found.count].commit
    {
      violations.append("half a commit")
    }
    let damage = try log.verify()
    if !damage.isEmpty { violations.append("verify finds \(damage)") }
    log.checkInvariants()
    return violations
  }

  /// What is wrong with reading the same log record by record.
  private func violationsByRecord(in log: Log, events: Int) throws(LogError) -> [String] {
    guard log.recovery.damage.isEmpty else { return [] }
    let merge = try log.recordFiles.open()
    var count = 0
    while try merge.nextRecord() {
      merge.checkInvariants()
      while let source = merge.nextSource() { repeat { count += 1 } while try source.nextOfRecord() }
    }
    return count == events ? [] : ["\(events) events in arrival order, \(count) by record"]
  }

  /// What is wrong with a log that was recovered, shown, written to once more, and lost power again.
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
    // Recovery has made everything durable that it showed.
    if try after.allEvents() != shown { violations.append("what was shown is gone after a crash") }
    if !after.recovery.damage.isEmpty { violations.append("recovery left damage: \(after.recovery.damage)") }
    return violations
  }

  /// A log may be missing only as long as nothing was acknowledged.
  func nothing() -> [String] { acknowledged == 0 ? [] : ["the log is gone"] }
}
