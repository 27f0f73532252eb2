import StemmaEvents
import StemmaLog

/// Recovery is interrupted, and a second recovery must have the same result.
extension FaultSuite {
  /// Power fails at each operation of opening a log. `body` checks the resulting disk, and may
  /// change it.
  private static func violationsOfCrashes(
    opening disk: SimulatedFileSystem, _ workload: LogWorkload,
    _ body: (_ disk: SimulatedFileSystem, _ operation: Int) throws(LogError) -> [String]
  ) throws(LogError) -> [String] {
    var operation = 1
    while true {
      let again = disk.copy(seed: UInt64(operation))
      again.inject([.init(operation: operation, errno: System.inputOutput, isLasting: true)])
      do throws(LogError) {
        _ = try workload.reopen(again)
        return []
      } catch {}
      // The opening fails for another reason than the fault.
      if again.operations.count < operation { return [] }
      again.crash()
      again.checkInvariants()
      let violations = try body(again, operation)
      if !violations.isEmpty { return ["crash at operation \(operation) of the recovery: \(violations)"] }
      operation += 1
    }
  }

  /// One operation in this many, and each file sync, also fails without a power failure.
  private static let byFailure = 7

  /// Power fails again at every operation of the recovery from every crash; some also just fail.
  package static func secondCrashes(
    _ shape: LogWorkload.Shape, seed: UInt64, on lie: Lie? = nil
  ) throws(LogError) -> FaultSuite {
    let operations = try operations(shape, seed: seed)
    return FaultSuite(
      "power fails again at each operation of the recovery", cases: operations * losses
    ) { (index) throws(LogError) in
      let operation = index / losses + 1
      let disk = SimulatedFileSystem(seed: seed &+ UInt64(index), lie: lie)
      disk.inject([.init(operation: operation, errno: System.inputOutput, isLasting: true)])
      var workload = LogWorkload(shape)
      let violations = run(&workload, into: operation, on: disk, seed: seed)
      if !violations.isEmpty { return violations }
      disk.crash()
      let crashed = workload
      return try violationsOfCrashes(opening: disk, crashed) { (again, second) throws(LogError) in
        var violations = crashed.nothing()
        if let log = try crashed.reopen(again) { violations = try crashed.violations(in: log) }
        guard violations.isEmpty, index % losses == 0 else { return violations }
        return try violationsOfFailure(
          second, opening: disk, crashed, isAsked: (operation + second) % byFailure == 0)
      }
    }
  }

  /// `isAsked`: also if the operation is not a file sync.
  private static func violationsOfFailure(
    _ operation: Int, opening disk: SimulatedFileSystem, _ workload: LogWorkload, isAsked: Bool
  ) throws(LogError) -> [String] {
    for pages in SimulatedFileSystem.DroppedPages.allCases {
      let again = disk.copy(seed: UInt64(operation))
      again.inject([.init(operation: operation, errno: System.inputOutput, pages: pages)])
      var isOpened = false
      do throws(LogError) {
        _ = try workload.reopen(again)
        isOpened = true
      } catch {}
      let failed = again.operations[operation - 1]
      let isSync = failed.hasPrefix("fdatasync ")
      guard isSync || isAsked else { return [] }
      if isSync, isOpened { return ["its sync failed, and no error was thrown"] }
      let violations = try workload.violationsAfterRecovery(again, writesMore: pages == .forgotten)
      if !violations.isEmpty { return ["\(failed) failed, pages \(pages): \(violations)"] }
      // Only a sync drops pages.
      if !isSync { return [] }
    }
    return []
  }

  /// The step between tails, and between bytes.
  private static let tailStep = 97
  private static let corruptionStep = 997

  /// Power fails at each operation of the recovery from a torn tail, and from corruption. The
  /// result must be the same as without the failure.
  package static func interruptedRecoveries(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> [FaultSuite] {
    let tails = try TornTails(shape, seed: seed)
    let specimen = try Specimen(shape, seed: seed)
    let places = specimen.files.flatMap { file in
      stride(from: 0, to: file.bytes.count, by: corruptionStep).map { (file, $0) }
    }
    return [
      FaultSuite("power fails while a torn tail is cut", cases: tails.count / tailStep + 1) {
        (index) throws(LogError) in
        try violationsOfInterruption(tails.disk(index * tailStep), tails.workload)
      },
      FaultSuite("power fails while a corrupt log is opened", cases: places.count * 2) {
        (index) throws(LogError) in
        let (file, offset) = places[index / 2]
        var bytes = file.bytes
        if index % 2 == 0 { bytes[offset] ^= 1 } else { bytes.removeSubrange(offset...) }
        return try violationsOfInterruption(specimen.with(bytes, at: file.path), specimen.workload)
      },
    ]
  }

  /// The observable state of an opened log.
  private struct Sight {
    var events: [StoredEvent] = []
    var corruption: [Corruption] = []
    /// Whether opening and reading find no corruption.
    var isWhole = false
    /// The violations of reading by record, or the error that ended it; empty for an intact log.
    var byRecord: [String] = []
    /// The tails that were cut off and kept.
    var tails: Set<[UInt8]> = []
    /// The error that prevented the opening.
    var refusal: LogError?

    init(_ workload: LogWorkload, _ disk: SimulatedFileSystem) {
      do throws(LogError) {
        guard let log = try workload.reopen(disk) else { throw .noLog(path: LogWorkload.directory) }
        defer { log.close() }
        let omissions = Omissions()
        (events, corruption) = (FaultSuite.read(log.events(around: omissions)).0, log.recovery.corruption)
        isWhole = corruption.isEmpty && omissions.isEmpty
        do throws(LogError) { byRecord = try log.violationsByRecord(events.map(\.event)) } catch {
          byRecord = [error.description]
        }
        let kept = try disk.list(LogWorkload.directory).filter { $0.contains(".cut") }
        tails = Set(kept.map { disk.contents(LogWorkload.directory + "/" + $0) ?? [] })
        log.checkInvariants()
      } catch { refusal = error }
    }
  }

  private static func violationsOfInterruption(
    _ disk: SimulatedFileSystem, _ workload: LogWorkload
  ) throws(LogError) -> [String] {
    let expected = Sight(workload, disk.copy())
    if expected.isWhole, !expected.byRecord.isEmpty { return expected.byRecord }
    return try violationsOfCrashes(opening: disk, workload) { (again, _) throws(LogError) in
      let found = Sight(workload, again)
      if found.corruption != expected.corruption {
        return ["corruption is \(found.corruption), not \(expected.corruption)"]
      }
      if found.refusal != expected.refusal {
        return ["\(String(describing: found.refusal)), not \(String(describing: expected.refusal))"]
      }
      if found.events != expected.events {
        return ["\(found.events.count) events, not \(expected.events.count)"]
      }
      if found.byRecord != expected.byRecord {
        return ["by record it is \(found.byRecord), not \(expected.byRecord)"]
      }
      // A tail may be kept twice.
      return expected.tails.isSubset(of: found.tails) ? [] : ["what was cut off is not kept"]
    }
  }
}
