import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// The ways in which a log is read; each opens its files anew.
  private enum Reading: CaseIterable {
    case inOrder, newestFirst, byKey, ofOneRecord, ofOnePartition
    case aroundDamage, byRecord, streams, files, verifying
  }

  /// What an opening says of the files that it has found.
  private struct Finding: Equatable {
    let damage: [Damage]
    let watermarkDamage: [Damage]
    let cuts: [Recovery.Cut]

    init(_ log: Log) {
      damage = log.recovery.damage
      watermarkDamage = log.recovery.watermarkDamage
      cuts = log.recovery.cuts
    }
  }

  /// A log before it is opened, and what a disk that does not fail shows of it.
  private struct Readable: Sendable {
    let disk: SimulatedFileSystem
    let workload: LogWorkload
    let mode: Log.Mode
    /// The ways that are of interest.
    let readings: [Reading]
    let finding: Finding
    let events: [StoredEvent]
    let streams: Knowledge
    /// The bytes of all files behind that.
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

    /// How many operations it takes to open it, and to read it in one way behind that.
    func operations(_ reading: Reading) throws(LogError) -> (opening: Int, all: Int) {
      let copy = disk.copy()
      guard let log = try workload.reopen(copy, mode) else { throw .noLog(path: LogWorkload.directory) }
      let opening = copy.operations.count
      let found = try violations(of: reading, log)
      precondition(found.isEmpty, "a disk that does not fail: \(found)")
      log.close()
      return (opening, copy.operations.count)
    }

    /// What is wrong with what a log gives, up to the error that ends it.
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
          log.events { $0 == record.partition }, is: events.filter { $0.event.partition == record.partition })
      case .aroundDamage:
        try violations(around: log)
      case .byRecord: try log.violationsByRecord(events.map(\.event))
      case .streams: try log.streams() == streams ? [] : ["other streams"]
      case .files:
        try log.files().reduce(0) { $0 + Int($1.events) } == events.count ? [] : ["other files"]
      case .verifying: try log.verify().map { "damage where none is: \($0)" }
      }
    }

    private func violations(around log: Log) throws(LogError) -> [String] {
      let omissions = Omissions()
      let violations = try check(log.events(around: omissions), is: events)
      return violations + (omissions.isEmpty ? [] : ["what is whole is read around"])
    }

    /// In this order, and all of them if no error ends it.
    private func check(_ reader: EventReader, is expected: [StoredEvent]) throws(LogError) -> [String] {
      let (found, error) = read(reader)
      if !expected.starts(with: found) { return ["a wrong event, or one out of its place"] }
      if let error { throw error }
      return found.count == expected.count ? [] : ["\(found.count) events instead of \(expected.count)"]
    }

    /// In any order.
    private func check(_ reader: EventReader, has expected: [StoredEvent]) throws(LogError) -> [String] {
      let (found, error) = read(reader)
      let distinct = Set(found)
      if distinct.count != found.count || !distinct.isSubset(of: expected) {
        return ["a wrong event, or one twice"]
      }
      if let error { throw error }
      return found.count == expected.count ? [] : ["\(found.count) events instead of \(expected.count)"]
    }

    /// A tail may be cut off again whose copy is there already.
    private func isKeptTwice(_ name: String, _ left: [String: [UInt8]]) -> Bool {
      name.contains(".cut") && files[name] == nil
        && files.contains { $0.key.contains(".cut") && $0.value == left[name] }
    }

    /// What is wrong with one way of reading it on a disk that fails with this error, and behind that.
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
      let others = Set(left.keys).union(files.keys).filter { left[$0] != files[$0] && !isKeptTwice($0, left) }
      if !others.isEmpty { violations.append("not as without the error: \(others.sorted())") }
      return violations
    }
  }

  /// Logs as one is found: closed in order; with a torn tail; sealed, and the journal is still there; of more segments than a
  /// reader keeps open.
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
    // Files are opened again and again by those that would have all of them open.
    var sparing = specimen.workload
    sparing.openSegments = 1
    return try logs + [Readable(specimen.disk, sparing, .readOnly, [.byKey, .byRecord])]
  }

  /// Each operation of opening a log and of reading it fails with each error, once and for ever: reading ends with that error
  /// or gives everything, it never takes a file that could not be read for one that is torn, damaged or empty, and leaves
  /// nothing open. The same log, asked again, gives everything, and its files become what they become without the error.
  package static func failedReads(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> FaultSuite {
    var places: [(log: Readable, reading: Reading, operation: Int)] = []
    for log in try readable(shape, seed: seed) {
      for reading in log.readings {
        let operations = try log.operations(reading)
        // Opening is the same before each.
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
  /// The error of the operating system that it tells of.
  var cause: Int32? { if case .system(_, _, let errno) = self { errno } else { nil } }
}
