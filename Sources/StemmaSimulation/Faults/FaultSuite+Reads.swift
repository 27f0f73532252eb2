import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// The ways to read a log; each reopens its files.
  private enum Reading: CaseIterable {
    case inOrder, newestFirst, byKey, ofOneRecord, ofOnePartition
    case aroundCorruption, byRecord, streams, files, verifying
  }

  /// The findings of an opening.
  private struct Finding: Equatable {
    let corruption: [Corruption]
    let watermarkCorruption: [Corruption]
    let cuts: [Recovery.Cut]

    init(_ log: Log) {
      corruption = log.recovery.corruption
      watermarkCorruption = log.recovery.watermarkCorruption
      cuts = log.recovery.cuts
    }
  }

  /// A log before it is opened, and its content on a disk without faults.
  private struct Readable: Sendable {
    let disk: SimulatedFileSystem
    let workload: LogWorkload
    let mode: Log.Mode
    /// The ways to test.
    let readings: [Reading]
    let finding: Finding
    let events: [StoredEvent]
    let streams: VersionVector
    /// The bytes of all files afterwards.
    let files: [String: [UInt8]]

    init(
      _ disk: SimulatedFileSystem, _ workload: LogWorkload, _ mode: Log.Mode,
      _ readings: [Reading] = Reading.allCases
    ) throws(LogError) {
      (self.disk, self.workload, self.mode, self.readings) = (disk, workload, mode, readings)
      let copy = disk.copy()
      guard let log = try workload.reopen(copy, mode) else { throw .noLog(path: LogWorkload.directory) }
      var reader = log.events()
      (finding, events, streams) = (Finding(log), try reader.rest(), try log.streams())
      log.close()
      files = try Self.files(of: copy)
    }

    static func files(of disk: SimulatedFileSystem) throws(LogError) -> [String: [UInt8]] {
      var files: [String: [UInt8]] = [:]
      for name in try disk.list(LogWorkload.directory) {
        files[name] = disk.contents(LogWorkload.directory + "/" + name) ?? []
      }
      return files
    }

    /// How many operations the opening takes, and how many the opening and one way of reading.
    func operations(_ reading: Reading) throws(LogError) -> (opening: Int, all: Int) {
      let copy = disk.copy()
      guard let log = try workload.reopen(copy, mode) else { throw .noLog(path: LogWorkload.directory) }
      let opening = copy.operations.count
      let found = try violations(of: reading, log)
      precondition(found.isEmpty, "a disk that does not fail: \(found)")
      log.close()
      return (opening, copy.operations.count)
    }

    /// The violations in the data that a log returns, up to the error that ends it.
    func violations(of reading: Reading, _ log: Log) throws(LogError) -> [String] {
      let record = RecordKey(events[0].event)
      return switch reading {
      case .inOrder: try check(log.events(), is: events)
      case .newestFirst: try check(log.eventsNewestFirst(), is: events.reversed())
      case .byKey: try check(try log.eventsByKey(), has: events)
      case .ofOneRecord:
        try check(log.events(of: record), is: events.filter { RecordKey($0.event) == record })
      case .ofOnePartition:
        try check(
          log.events(partitions: PartitionFilter(named: [record.partition])),
          is: events.filter { $0.event.partition == record.partition })
      case .aroundCorruption:
        try violations(around: log)
      case .byRecord: try log.violationsByRecord(events.map(\.event))
      case .streams: try log.streams() == streams ? [] : ["other streams"]
      case .files:
        try log.files().reduce(0) { $0 + Int($1.events) } == events.count ? [] : ["other files"]
      case .verifying: try log.verify().map { "corruption where none is: \($0)" }
      }
    }

    private func violations(around log: Log) throws(LogError) -> [String] {
      let omissions = Omissions()
      let violations = try check(log.events(around: omissions), is: events)
      return violations + (omissions.isEmpty ? [] : ["what is whole is read around"])
    }

    /// Compares events in this order; all must be there unless an error ends the reading.
    private func check(_ reader: EventReader, is expected: [StoredEvent]) throws(LogError) -> [String] {
      let (found, error) = read(reader)
      if !expected.starts(with: found) { return ["a wrong event, or one out of its place"] }
      if let error { throw error }
      return found.count == expected.count ? [] : ["\(found.count) events instead of \(expected.count)"]
    }

    /// Compares events in any order.
    private func check(_ reader: EventReader, has expected: [StoredEvent]) throws(LogError) -> [String] {
      let (found, error) = read(reader)
      let distinct = Set(found)
      if distinct.count != found.count || !distinct.isSubset(of: expected) {
        return ["a wrong event, or one twice"]
      }
      if let error { throw error }
      return found.count == expected.count ? [] : ["\(found.count) events instead of \(expected.count)"]
    }

    /// Whether a torn tail was cut again although its copy exists.
    private func isKeptTwice(_ name: String, _ left: [String: [UInt8]]) -> Bool {
      name.contains(".cut") && files[name] == nil
        && files.contains { $0.key.contains(".cut") && $0.value == left[name] }
    }

    /// The violations of one way of reading on a disk that fails with this error, and afterwards.
    func violations(
      of reading: Reading, on disk: SimulatedFileSystem, failing errno: Int32
    ) throws(LogError) -> [String] {
      var violations: [String] = []
      func check(_ body: () throws(LogError) -> [String]) {
        do throws(LogError) { violations += try body() } catch {
          if error.cause != errno { violations.append("an error that the disk has not made: \(error)") }
        }
      }
      var log: Log?
      check { () throws(LogError) in
        log = try workload.reopen(disk, mode)
        guard let log else { return ["the log is gone"] }
        return Finding(log) == finding ? [] : ["opening finds \(Finding(log)), not \(finding)"]
      }
      if let log {
        check { () throws(LogError) in try self.violations(of: reading, log) }
        disk.inject([])
        violations += try self.violations(of: reading, log).map { "asked again: \($0)" }
        log.checkInvariants()
        log.close()
      }
      disk.inject([])
      if disk.openFiles != 0 { violations.append("\(disk.openFiles) files are left open") }
      guard let after = try workload.reopen(disk, mode) else { return violations + ["the log is gone"] }
      for reading in Reading.allCases {
        violations += try self.violations(of: reading, after).map { "opened again: \($0)" }
      }
      after.close()
      let left = try Self.files(of: disk)
      // A manifest counts its replacements, and the watermark stores that count.
      let others = Set(left.keys).union(files.keys).filter {
        left[$0] != files[$0] && !isKeptTwice($0, left) && !$0.hasPrefix("manifest") && $0 != "watermark"
      }
      if !others.isEmpty { violations.append("not as without the error: \(others.sorted())") }
      return violations
    }
  }

  /// Logs in four conditions: closed cleanly, with a torn tail, with a sealed but remaining
  /// journal, and with more segments than a reader keeps open.
  private static func readable(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [Readable] {
    let specimen = try Specimen(shape, seed: seed)
    let tails = try TornTails(shape, seed: seed)
    let sealed = try SealedTwice(shape, seed: seed)
    var logs: [Readable] = []
    for mode in [Log.Mode.readOnly, .readWrite] {
      logs += [
        try Readable(specimen.disk, specimen.workload, mode),
        try Readable(tails.disk(tails.count / 2), tails.workload, mode),
        try Readable(sealed.disk, sealed.workload, mode),
      ]
    }
    // Readers of all files then reopen them repeatedly.
    var sparing = specimen.workload
    sparing.openSegments = 1
    return try logs + [Readable(specimen.disk, sparing, .readOnly, [.byKey, .byRecord])]
  }

  /// Each operation of opening and reading a log fails with each error, once and permanently.
  /// Reading must end with that error or return everything, and close all files. An unreadable file
  /// is never torn, corrupt or empty. A second reading must return everything, with the same
  /// resulting files.
  package static func failedReads(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> FaultSuite {
    var places: [(log: Readable, reading: Reading, operation: Int)] = []
    for log in try readable(shape, seed: seed) {
      for reading in log.readings {
        let operations = try log.operations(reading)
        // The opening is the same for each.
        let first = reading == .inOrder ? 1 : operations.opening + 1
        places += (first..<operations.all + 1).map { (log, reading, $0) }
      }
    }
    let ways = errors.count * 2
    return FaultSuite("an operation of reading fails, once or for ever", cases: places.count * ways) {
      [places] (index) throws(LogError) in
      let (log, reading, operation) = places[index / ways]
      let errno = errors[index % ways / 2]
      let disk = log.disk.copy(seed: seed &+ UInt64(index))
      disk.inject([.init(operation: operation, errno: errno, isLasting: index % 2 == 1, pages: pages(errno))])
      return try log.violations(of: reading, on: disk, failing: errno)
    }
  }
}

extension LogError {
  /// The error number of the operating system, if it is one.
  var cause: Int32? { if case .system(_, _, let errno) = self { errno } else { nil } }
}
