import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// How many ways of losing unsynced writes each case tries.
  static let losses = 3

  /// Power fails at every operation: unsynced writes are lost, torn or reordered, names are lost.
  package static func crashes(
    _ shape: LogWorkload.Shape, seed: UInt64, on lie: Lie? = nil
  ) throws(LogError) -> FaultSuite {
    let operations = try operations(shape, seed: seed)
    return FaultSuite("power fails at each operation", cases: operations * losses) {
      (index) throws(LogError) in
      let operation = index / losses + 1
      let disk = SimulatedFileSystem(seed: seed &+ UInt64(index) &* 31, lie: lie)
      disk.inject([.init(operation: operation, errno: System.inputOutput, isLasting: true)])
      var workload = LogWorkload(shape)
      let violations = run(&workload, into: operation, on: disk, seed: seed)
      disk.crash()
      disk.checkInvariants()
      return try violations + workload.violationsAfterRecovery(disk, writesMore: index % 2 == 0)
    }
  }

  /// The errors that operations fail with.
  package static let errors = [
    System.inputOutput, System.noSpace, System.interrupted, System.tooManyFiles, System.noAccess,
  ]

  /// The fate of the pages after a failed sync; the errors cover both.
  static func pages(_ errno: Int32) -> SimulatedFileSystem.DroppedPages {
    [System.noSpace, System.tooManyFiles].contains(errno) ? .kept : .forgotten
  }

  /// Every operation fails with every error, once and permanently. Lazy writes may fail unnoticed.
  /// After a single failure, the workload continues with the same log.
  package static func failures(
    _ shape: LogWorkload.Shape, seed: UInt64, on lie: Lie? = nil
  ) throws(LogError) -> FaultSuite {
    let operations = try operations(shape, seed: seed)
    return FaultSuite("an operation fails, once or for ever", cases: operations * errors.count * 2) {
      (index) throws(LogError) in
      let operation = index / (errors.count * 2) + 1
      let isLasting = index % 2 == 1
      let errno = errors[index / 2 % errors.count]
      let disk = SimulatedFileSystem(seed: seed &+ UInt64(index), lie: lie)
      disk.inject([
        .init(operation: operation, errno: errno, isLasting: isLasting, pages: pages(errno))
      ])
      var workload = LogWorkload(shape)
      var violations = run(&workload, into: operation, on: disk, seed: seed, goesOn: !isLasting)
      let leaked = disk.openFiles
      if leaked != 0 { violations.append("\(leaked) files are left open") }
      disk.inject([])
      disk.checkInvariants()
      return try violations + workload.violationsAfterRecovery(disk, writesMore: operation % 2 == 0)
    }
  }
}
