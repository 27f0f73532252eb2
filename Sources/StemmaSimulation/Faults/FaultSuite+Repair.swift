import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// A log with one corrupt file, and the data to repair it.
  private struct Patient: Sendable {
    let workload: LogWorkload
    let disk: SimulatedFileSystem
    let events: [Event]
    let held: VersionVector
    private let corrupt: Set<String>
    private let losses: Losses
    /// The events to append: all in partitions with lost events, from the first lost position on.
    private let suffix: [Event]

    init(_ shape: LogWorkload.Shape, seed: UInt64, file number: Int) throws(LogError) {
      let specimen = try Specimen(shape, seed: seed)
      workload = specimen.workload
      events = specimen.events.map(\.event)
      guard let whole = try workload.reopen(specimen.disk, .readOnly) else { throw .noLog(path: "") }
      held = try whole.streams()
      let files = specimen.files.filter { $0.positions != nil && $0.end > 200 }
      let file = files[number % files.count]
      var bytes = file.bytes
      bytes[150] ^= 1
      disk = specimen.with(bytes, at: file.path)
      guard let log = try workload.reopen(disk) else { throw .noLog(path: LogWorkload.directory) }
      let found = try log.verify()
      corrupt = Set(found.map(\.path))
      let losses = try log.losses(of: found, held: held, upTo: .end)
      log.close()
      self.losses = losses
      suffix = specimen.events.filter {
        $0.position >= losses.start && losses.partitions.contains($0.event.partition)
      }.map(\.event)
    }

    /// Repairs the log, unless it is intact.
    func treat(_ disk: SimulatedFileSystem) throws(LogError) {
      guard let log = try workload.reopen(disk) else { throw .noLog(path: LogWorkload.directory) }
      defer { log.close() }
      if try log.verify().isEmpty { return }
      var parts = [suffix].filter { !$0.isEmpty }
      try log.repair(corrupt, removing: losses.partitions.contains) {
        $0.position >= losses.start
      } appending: {
        parts.popLast().map { AdoptedEvents($0) }
      }
      log.checkInvariants()
    }

    /// The violations after a power failure in a repair: the log must be unchanged or repaired.
    func violationsBetween(_ disk: SimulatedFileSystem) throws(LogError) -> [String] {
      guard let log = try workload.reopen(disk) else { return ["the log is gone"] }
      defer { log.close() }
      let omissions = Omissions()
      let found = FaultSuite.read(log.events(around: omissions)).0.map(\.event)
      let lost = losses.ranges.reduce(0) { $0 + Int($1.count) }
      let isRight = omissions.isEmpty ? Set(found) == Set(events) : found.count == events.count - lost
      return isRight ? [] : ["\(found.count) of \(events.count) events, of which \(lost) were lost"]
    }

    /// The violations after the repair.
    func violations(_ disk: SimulatedFileSystem) throws(LogError) -> [String] {
      guard let log = try workload.reopen(disk) else { return ["the log is gone"] }
      let corruption = try log.verify()
      if !corruption.isEmpty { return ["verify finds \(corruption)"] }
      var violations: [String] = []
      let found = try log.allEvents()
      if Set(found) != Set(events) || found.count != events.count {
        violations.append("\(found.count) events instead of \(events.count)")
      }
      violations += try log.violationsByRecord(found)
      if try log.streams() != held { violations.append("other streams") }
      if try !log.unrecognizedFiles().isEmpty { violations.append("files are left behind") }
      log.checkInvariants()
      return violations
    }
  }

  /// Repairs a corrupt file. Each operation fails with each error, once and permanently, or power
  /// fails: the log must be unchanged or repaired. A second repair must survive a power failure.
  package static func repairs(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [FaultSuite] {
    var suites: [FaultSuite] = []
    for file in 0..<2 {
      let patient = try Patient(shape, seed: seed, file: file)
      let first = patient.disk.copy()
      try patient.treat(first)
      let ways = errors.count * 2 + losses
      suites.append(
        FaultSuite(
          "an operation that repairs file \(file) fails, or power does", cases: first.operations.count * ways
        ) { (index) throws(LogError) in
          let way = index % ways
          let disk = patient.disk.copy(seed: seed &+ UInt64(index))
          let isCrash = way >= errors.count * 2
          let errno = isCrash ? System.inputOutput : errors[way / 2]
          disk.inject([
            .init(
              operation: index / ways + 1, errno: errno, isLasting: isCrash || way % 2 == 1,
              pages: pages(errno))
          ])
          do throws(LogError) { try patient.treat(disk) } catch {}
          disk.inject([])
          if isCrash { disk.crash() }
          disk.checkInvariants()
          let violations = try patient.violationsBetween(disk)
          try patient.treat(disk)
          disk.crash()
          return try violations + patient.violations(disk)
        })
    }
    return suites
  }
}
