import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// A change by another writer while the log is open.
  private enum Change: CaseIterable {
    case nothing, appending, sealing, sealingAndAppending, purging
    /// Part of a last frame is written.
    case dying
  }

  /// An open log that another writer has changed.
  private struct Shared {
    let disk: SimulatedFileSystem
    let log: Log
    /// The events that the open log holds before a refresh.
    let before: [Event]
    /// The events on the disk.
    let after: [Event]

    init(
      _ disk: SimulatedFileSystem, _ workload: LogWorkload, _ mode: Log.Mode, _ change: Change
    ) throws(LogError) {
      func opened(_ mode: Log.Mode) throws(LogError) -> Log {
        guard let log = try workload.reopen(disk, mode) else { throw .noLog(path: LogWorkload.directory) }
        return log
      }
      self.disk = disk
      log = try opened(mode)
      before = try log.allEvents()
      let other = try opened(.readWrite)
      defer { other.close() }
      var maker = EventMaker(seed: 555)
      func append() throws(LogError) {
        let events = maker.commit(2, origin: LogWorkload.laterOrigin, textLength: workload.shape.textLength)
        _ = try other.append([Commit(events)])
        try other.sync()
      }
      switch change {
      case .nothing: break
      case .appending: try append()
      case .sealing: try other.seal()
      case .sealingAndAppending:
        try append()
        try other.seal()
        try append()
      case .purging:
        try append()
        try other.purge { $0 == LogWorkload.purged }
      case .dying:
        try append()
        let path = LogWorkload.directory + "/00000001.journal"
        let whole = disk.contents(path) ?? []
        disk.plant(whole + whole.suffix(40).dropLast(7), at: path)
      }
      after = try other.allEvents()
    }

    /// Compares the events of the log, also by record.
    func violations(_ when: String) throws(LogError) -> [String] {
      let violations = try log.allEvents() == after ? [] : ["other events"]
      return try (violations + log.violationsByRecord(after)).map { "\(when): \($0)" }
    }
  }

  /// Each operation of a refresh fails with each error, once and permanently. The refresh must end
  /// with that error or apply everything. In between, the log holds its earlier events or more,
  /// without corruption. A second refresh must apply everything. A log that a failed sync has
  /// poisoned is reopened.
  package static func failedRefreshes(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> FaultSuite {
    let base = SimulatedFileSystem(seed: seed)
    let workload = LogWorkload(shape)
    var maker = EventMaker(seed: seed)
    let log = try workload.create(on: base)
    _ = try workload.grow(log, with: &maker)
    log.close()
    var places: [(mode: Log.Mode, change: Change, operation: Int)] = []
    for mode in [Log.Mode.readOnly, .readWrite] {
      for change in Change.allCases {
        let shared = try Shared(base.copy(), workload, mode, change)
        let first = shared.disk.operations.count + 1
        let isNew = try shared.log.refresh()
        precondition(isNew == (shared.before != shared.after), "\(change): whether there was anything")
        let found = try shared.violations("without an error")
        precondition(found.isEmpty, "\(found)")
        places += (first..<shared.disk.operations.count + 1).map { (mode, change, $0) }
        shared.log.close()
      }
    }
    let ways = errors.count * 2
    return FaultSuite("an operation of taking in others' work fails", cases: places.count * ways) {
      [places] (index) throws(LogError) in
      let (mode, change, operation) = places[index / ways]
      let errno = errors[index % ways / 2]
      let shared = try Shared(base.copy(), workload, mode, change)
      var violations: [String] = []
      shared.disk.inject([
        .init(operation: operation, errno: errno, isLasting: index % 2 == 1, pages: pages(errno))
      ])
      func ends(_ error: LogError) {
        if error.cause != errno { violations.append("an error that the disk has not made: \(error)") }
      }
      var isTaken = false
      do throws(LogError) {
        _ = try shared.log.refresh()
        isTaken = true
      } catch { ends(error) }
      do throws(LogError) {
        let events = try shared.log.allEvents()
        let isWhole = events == shared.after
        if !isWhole, isTaken || events != shared.before {
          violations.append("what there is no point in time of")
        }
      } catch { ends(error) }
      shared.disk.inject([])
      var last: Log? = shared.log
      if shared.log.isPoisoned {
        shared.log.close()
        last = try workload.reopen(shared.disk, mode)
      } else {
        _ = try shared.log.refresh()
        violations += try shared.violations("asked again")
      }
      guard let last else { return violations + ["the log is gone"] }
      if !last.recovery.corruption.isEmpty { violations.append("corruption: \(last.recovery.corruption)") }
      if try last.allEvents() != shared.after { violations.append("in the end other events") }
      last.checkInvariants()
      last.close()
      if shared.disk.openFiles != 0 { violations.append("\(shared.disk.openFiles) files are left open") }
      return violations
    }
  }
}
