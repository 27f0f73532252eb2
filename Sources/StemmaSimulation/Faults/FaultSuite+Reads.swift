import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// The ways in which a log is read; each opens its files anew.
  private enum Reading: CaseIterable { case inOrder, aroundDamage, byRecord, verifying }

  /// Each operation of opening a log and of reading it fails with each error, once and for ever: reading ends with that error
  /// or gives everything, it never takes a file that could not be read for one that is damaged or empty, and leaves nothing
  /// open. The same log, asked again, gives everything.
  package static func failedReads(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> FaultSuite {
    let specimen = try Specimen(shape, seed: seed)
    var places: [(mode: Log.Mode, reading: Reading, operation: Int)] = []
    for mode in [Log.Mode.readOnly, .readWrite] {
      for reading in Reading.allCases {
        let disk = specimen.disk.copy()
        guard let log = try specimen.workload.reopen(disk, mode) else {
          throw .noLog(path: LogWorkload.directory)
        }
        let found = try violations(of: reading, log, specimen)
        precondition(found.isEmpty, "a disk that does not fail: \(found)")
        log.close()
        places += (1...disk.operations.count).map { (mode, reading, $0) }
      }
    }
    let ways = errors.count * 2
    return FaultSuite("an operation of reading fails, once or for ever", cases: places.count * ways) {
      [places] (index) throws(LogError) in
      let (mode, reading, operation) = places[index / ways]
      let errno = errors[index % ways / 2]
      let disk = specimen.disk.copy(seed: seed &+ UInt64(index))
      disk.inject([.init(operation: operation, errno: errno, isLasting: index % 2 == 1, pages: pages(errno))])
      return try violations(of: reading, mode, specimen, on: disk, failing: errno)
    }
  }

  private static func violations(
    of reading: Reading, _ mode: Log.Mode, _ specimen: Specimen, on disk: SimulatedFileSystem,
    failing errno: Int32
  ) throws(LogError) -> [String] {
    var violations: [String] = []
    func check(_ body: () throws(LogError) -> [String]) {
      do throws(LogError) { violations += try body() } catch {
        if error.cause != errno {
          violations.append("an error that the disk has not made: \(error)")
        }
      }
    }
    var log: Log?
    check { () throws(LogError) in
      log = try specimen.workload.reopen(disk, mode)
      return log.map { $0.recovery.damage.map { "damage where none is: \($0)" } } ?? ["the log is gone"]
    }
    if let log {
      check { () throws(LogError) in try self.violations(of: reading, log, specimen) }
      disk.inject([])
      violations += try self.violations(of: reading, log, specimen).map { "asked again: \($0)" }
      log.checkInvariants()
      log.close()
    }
    disk.inject([])
    if disk.openFiles != 0 { violations.append("\(disk.openFiles) files are left open") }
    guard let after = try specimen.workload.reopen(disk, .readOnly) else {
      return violations + ["the log is gone"]
    }
    for reading in Reading.allCases {
      violations += try self.violations(of: reading, after, specimen).map { "opened again: \($0)" }
    }
    return violations
  }

  private static func compare(_ events: [Event], _ specimen: Specimen) -> [String] {
    events == specimen.events.map(\.event)
      ? [] : ["\(events.count) events instead of \(specimen.events.count), or others"]
  }

  private static func violations(
    of reading: Reading, _ log: Log, _ specimen: Specimen
  ) throws(LogError) -> [String] {
    switch reading {
    case .inOrder:
      return compare(try log.allEvents(), specimen)
    case .aroundDamage:
      let omissions = Omissions()
      let (events, error) = read(log.events(around: omissions))
      if let error { throw error }
      return compare(events.map(\.event), specimen)
        + (omissions.isEmpty ? [] : ["what is whole is read around"])
    case .byRecord:
      let events = try log.eventsByRecord()
      return events.count == specimen.events.count && Set(events) == Set(specimen.events.map(\.event))
        ? [] : ["\(events.count) events by record instead of \(specimen.events.count), or others"]
    case .verifying:
      return try log.verify().map { "damage where none is: \($0)" }
    }
  }
}

extension LogError {
  /// The error of the operating system that it tells of.
  fileprivate var cause: Int32? { if case .system(_, _, let errno) = self { errno } else { nil } }
}
