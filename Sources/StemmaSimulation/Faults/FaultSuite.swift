import StemmaEvents
import StemmaLog

/// One kind of fault, at every place where it can affect a log.
///
/// Cases are independent of each other and of their order: any number of threads may share them.
package struct FaultSuite: Sendable {
  package let name: String
  package let cases: Int
  private let body: @Sendable (Int) throws(LogError) -> [String]

  init(_ name: String, cases: Int, _ body: @escaping @Sendable (Int) throws(LogError) -> [String]) {
    self.name = name
    self.cases = cases
    self.body = body
  }

  /// The violations in one case, below `cases`; empty if there are none.
  package func violations(_ index: Int) -> [String] {
    do throws(LogError) { return try body(index) } catch { return ["an error that was not to be: \(error)"] }
  }

  /// The size of the corrupted log in bytes, and the number of blocks of each segment.
  package static func measures(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> (bytes: Int, blocks: [Int]) {
    let specimen = try Specimen(shape, seed: seed)
    var counts: [Int] = []
    for file in specimen.files where file.path.hasSuffix(".segment") {
      var count = 0
      try inspect(try InspectedFile(path: file.path, fileSystem: specimen.disk), as: .segment) { part in
        if part.kind == .block { count += 1 }
      }
      counts.append(count)
    }
    return (specimen.files.reduce(0) { $0 + $1.end }, counts)
  }

  /// A disk's false promise on which the suites are run: with one of them they must fail.
  package typealias Lie = SimulatedFileSystem.Lie

  /// All suites. `bits`: how many bits of each byte are flipped, one at a time.
  package static func all(
    _ shape: LogWorkload.Shape, seed: UInt64, bits: Int
  ) throws(LogError) -> [FaultSuite] {
    [
      try crashes(shape, seed: seed), try failures(shape, seed: seed), try secondCrashes(shape, seed: seed),
      try tornTails(shape, seed: seed), try tornSeals(shape, seed: seed),
      try tornWatermarks(shape, seed: seed), try failedReads(shape, seed: seed),
      try failedRefreshes(shape, seed: seed),
    ] + (try interruptedRecoveries(shape, seed: seed)) + (try repairs(shape, seed: seed))
      + (try flips(shape, seed: seed, bits: bits))
      + [try flipsWithoutWatermark(shape, seed: seed)]
      + (try cuts(shape, seed: seed))
  }

  /// How many operations the workload takes without a fault.
  static func operations(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> Int {
    let disk = SimulatedFileSystem(seed: seed)
    var workload = LogWorkload(shape)
    try workload.run(on: disk, seed: seed)
    return disk.operations.count
  }

  /// Runs the workload into a fault, and reports it if it caused no error. A lazy write may fail
  /// unnoticed, as of the watermark and preallocated zeros. The oracle detects any other loss.
  static func run(
    _ workload: inout LogWorkload, into operation: Int, on disk: SimulatedFileSystem, seed: UInt64,
    goesOn: Bool = false
  ) -> [String] {
    do throws(LogError) {
      try workload.run(on: disk, seed: seed, goesOn: goesOn)
    } catch { return [] }
    let failed = disk.operations[operation - 1]
    return failed.hasPrefix("pwrite ") ? [] : ["\(failed) failed, and no error was thrown"]
  }
}

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
