import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// What is done about a damaged log.
  private enum Remedy: String, CaseIterable { case mending, givingUp = "giving up", renaming }

  /// A log of which one file is damaged, and all that is needed to put it right.
  private struct Patient: Sendable {
    let workload: LogWorkload
    let disk: SimulatedFileSystem
    let events: [Event]
    let held: Knowledge
    /// The first lost event of each stream.
    private let cut: [EventName: Sequence]
    /// The bytes of all sealed files.
    private let sealed: Set<[UInt8]>

    init(_ shape: LogWorkload.Shape, seed: UInt64, _ remedy: Remedy, file number: Int) throws(LogError) {
      let specimen = try Specimen(shape, seed: seed)
      workload = specimen.workload
      events = specimen.events.map(\.event)
      guard let whole = try workload.reopen(specimen.disk, .readOnly) else { throw .noLog(path: "") }
      held = try whole.streams()
      disk =
        remedy == .renaming
        ? try Self.misnamed(specimen, number) : Self.damaged(specimen, number)
      sealed = try Self.sealedFiles(of: disk)
      guard let log = try workload.reopen(disk) else { throw .noLog(path: LogWorkload.directory) }
      var cut: [EventName: Sequence] = [:]
      for range in try log.survey(try log.verify(), held: held).lost {
        let stream = EventName(partition: range.partition, dot: Dot(range.origin, .zero))
        cut[stream] = min(cut[stream] ?? range.from, range.from)
      }
      log.close()
      self.cut = cut
    }

    private static func damaged(_ specimen: Specimen, _ number: Int) -> SimulatedFileSystem {
      let files = specimen.files.filter { $0.place != nil && $0.end > 200 }
      let file = files[number % files.count]
      var bytes = file.bytes
      bytes[150] ^= 1
      return specimen.with(bytes, at: file.path)
    }

    /// Two sealed files have each other's names, or one has a name that was never given.
    private static func misnamed(
      _ specimen: Specimen, _ number: Int
    ) throws(LogError) -> SimulatedFileSystem {
      let files = specimen.files.filter { $0.path.hasSuffix(".segment") }
      guard number == 0, files.count > 1 else {
        let disk = specimen.disk.copy()
        try disk.rename(files[0].path, to: LogWorkload.directory + "/00000099.segment")
        return disk.copy()
      }
      let disk = specimen.with(files[1].bytes, at: files[0].path)
      disk.plant(files[0].bytes, at: files[1].path)
      return disk
    }

    private static func sealedFiles(of disk: SimulatedFileSystem) throws(LogError) -> Set<[UInt8]> {
      let names = try disk.list(LogWorkload.directory).filter { $0.hasSuffix(".segment") }
      return Set(names.map { disk.contents(LogWorkload.directory + "/" + $0) ?? [] })
    }

    /// Of a disk on which renaming was interrupted: whatever names they have, all files are there.
    func violationsBetween(_ remedy: Remedy, on disk: SimulatedFileSystem) throws(LogError) -> [String] {
      guard remedy == .renaming else { return [] }
      return try Self.sealedFiles(of: disk) == sealed ? [] : ["a file was written over"]
    }

    func isCut(_ event: Event) -> Bool {
      cut[EventName(partition: event.partition, dot: Dot(event.dot.origin, .zero))]
        .map { $0 <= event.dot.sequence } ?? false
    }

    /// Does it from the beginning, or from where it was left.
    func treat(_ remedy: Remedy, on disk: SimulatedFileSystem) throws(LogError) {
      guard let log = try workload.reopen(disk) else { throw .noLog(path: LogWorkload.directory) }
      let damage = try log.verify()
      switch remedy {
      case .mending:
        let survey = try log.survey(damage, held: held)
        _ = try log.mend(survey, with: [Offer(events)])
      case .givingUp:
        if !damage.isEmpty {
          try log.giveUp(try log.survey(damage, held: held)) { isCut($0) }
        }
        try log.purge({ _ in true }) { isCut($0.event) }
      case .renaming: _ = try log.restoreNames()
      }
      log.checkInvariants()
      log.close()
    }

    /// Of a log that was treated. Opened for writing, since power may have failed while the watermark was written.
    func violations(_ remedy: Remedy, on disk: SimulatedFileSystem) throws(LogError) -> [String] {
      guard let log = try workload.reopen(disk) else { return ["the log is gone"] }
      var violations: [String] = []
      let damage = try log.verify()
      if !damage.isEmpty { return ["verify finds \(damage)"] }
      let expected = remedy == .givingUp ? events.filter { !isCut($0) } : events
      let found = try log.allEvents()
      if Set(found) != Set(expected) || found.count != expected.count {
        violations.append("\(found.count) events instead of \(expected.count)")
      }
      violations += try log.violationsByRecord(expected)
      if remedy != .givingUp, try log.streams() != held { violations.append("other streams") }
      log.checkInvariants()
      return violations
    }
  }

  /// A damaged file is mended, or given up, or files get their own names back. Each operation of that fails with each error, once and for ever, or power
  /// fails there: doing it again leads to the same log, which outlives another loss of power.
  package static func remedies(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [FaultSuite] {
    var suites: [FaultSuite] = []
    for remedy in Remedy.allCases {
      for file in 0..<2 {
        let patient = try Patient(shape, seed: seed, remedy, file: file)
        let first = patient.disk.copy()
        try patient.treat(remedy, on: first)
        let ways = errors.count * 2 + losses
        suites.append(
          FaultSuite(
            "an operation of \(remedy.rawValue) file \(file) fails, or power does",
            cases: first.operations.count * ways
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
            do throws(LogError) { try patient.treat(remedy, on: disk) } catch {}
            disk.inject([])
            if isCrash { disk.crash() }
            disk.checkInvariants()
            let violations = try patient.violationsBetween(remedy, on: disk)
            try patient.treat(remedy, on: disk)
            disk.crash()
            return try violations + patient.violations(remedy, on: disk)
          })
      }
    }
    return suites
  }
}
