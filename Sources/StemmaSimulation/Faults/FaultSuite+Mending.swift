import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// What is done about a damaged log.
  private enum Remedy: String, CaseIterable { case mending, givingUp = "giving up" }

  /// A log of which one file is damaged, and all that is needed to put it right.
  private struct Patient: Sendable {
    let workload: LogWorkload
    let disk: SimulatedFileSystem
    let events: [Event]
    let held: Knowledge
    /// The first lost event of each stream.
    private let cut: [EventName: Sequence]

    init(_ shape: LogWorkload.Shape, seed: UInt64, file number: Int) throws(LogError) {
      let specimen = try Specimen(shape, seed: seed)
      workload = specimen.workload
      events = specimen.events.map(\.event)
      guard let whole = try workload.reopen(specimen.disk, .readOnly) else { throw .noLog(path: "") }
      held = try whole.streams()
      let files = specimen.files.filter { $0.place != nil && $0.end > 200 }
      let file = files[number % files.count]
      var bytes = file.bytes
      bytes[150] ^= 1
      disk = specimen.with(bytes, at: file.path)
      guard let log = try workload.reopen(disk) else { throw .noLog(path: file.path) }
      var cut: [EventName: Sequence] = [:]
      for range in try log.survey(try log.verify(), held: held).lost {
        let stream = EventName(partition: range.partition, dot: Dot(range.origin, .zero))
        cut[stream] = min(cut[stream] ?? range.from, range.from)
      }
      log.close()
      self.cut = cut
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
      }
      log.checkInvariants()
      log.close()
    }

    /// Of a log that was treated.
    func violations(_ remedy: Remedy, on disk: SimulatedFileSystem) throws(LogError) -> [String] {
      guard let log = try workload.reopen(disk, .readOnly) else { return ["the log is gone"] }
      var violations: [String] = []
      let damage = try log.verify()
      if !damage.isEmpty { return ["verify finds \(damage)"] }
      let expected = remedy == .mending ? events : events.filter { !isCut($0) }
      let found = try log.allEvents()
      if Set(found) != Set(expected) || found.count != expected.count {
        violations.append("\(found.count) events instead of \(expected.count)")
      }
      if remedy == .mending, try log.streams() != held { violations.append("other streams") }
      log.checkInvariants()
      return violations
    }
  }

  /// A damaged file is mended, or given up. Each operation of that fails with each error, once and for ever, or power
  /// fails there: doing it again leads to the same log.
  package static func remedies(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [FaultSuite] {
    var suites: [FaultSuite] = []
    for remedy in Remedy.allCases {
      for file in 0..<2 {
        let patient = try Patient(shape, seed: seed, file: file)
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
            disk.inject([
              .init(
                operation: index / ways + 1, errno: isCrash ? System.inputOutput : errors[way / 2],
                isLasting: isCrash || way % 2 == 1)
            ])
            do throws(LogError) { try patient.treat(remedy, on: disk) } catch {}
            disk.inject([])
            if isCrash { disk.crash() }
            disk.checkInvariants()
            try patient.treat(remedy, on: disk)
            return try patient.violations(remedy, on: disk)
          })
      }
    }
    return suites
  }
}
