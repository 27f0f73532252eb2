import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// The last group of a log was written but not synced, and is cut at each byte.
  struct TornTails: Sendable {
    /// What follows the cut.
    private enum Rest: CaseIterable { case nothing, zeros, stale }

    let workload: LogWorkload
    /// What may be left: whole commits.
    let stages: [[Event]]
    private let disk: SimulatedFileSystem
    private let path: String
    private let durable: [UInt8]
    private let whole: [UInt8]

    init(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) {
      disk = SimulatedFileSystem(seed: seed)
      workload = LogWorkload(shape)
      let log = try Log.create(
        in: LogWorkload.directory, id: LogWorkload.logID, fileSystem: disk, options: workload.options)
      var maker = EventMaker(seed: seed)
      let first = maker.commit(shape.events, textLength: shape.textLength)
      _ = try log.append([Commit(first)])
      try log.sync()
      path = LogWorkload.directory + "/00000001.journal"
      durable = disk.contents(path) ?? []
      let groups = [maker.commit(shape.events, textLength: shape.textLength), maker.commit(1)]
      _ = try log.append(groups.map { Commit($0) })
      whole = disk.contents(path) ?? []
      log.close()
      stages = [first, first + groups[0], first + groups[0] + groups[1]]
    }

    var count: Int { (whole.count - durable.count) * Rest.allCases.count }

    func disk(_ index: Int) -> SimulatedFileSystem {
      let rests = Rest.allCases
      let end = durable.count + index / rests.count
      var bytes = Array(whole[..<end])
      switch rests[index % rests.count] {
      case .nothing: break
      case .zeros: bytes += [UInt8](repeating: 0, count: whole.count - end)
      case .stale: bytes += durable.prefix(whole.count - end)
      }
      let copy = disk.copy()
      copy.plant(bytes, at: path)
      return copy
    }
  }

  /// Whole commits stay, the rest is cut.
  package static func tornTails(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> FaultSuite {
    let tails = try TornTails(shape, seed: seed)
    return FaultSuite("an unconfirmed tail is torn at each byte", cases: tails.count) {
      (index) throws(LogError) in
      let disk = tails.disk(index)
      guard let log = try tails.workload.reopen(disk) else { return ["the log is gone"] }
      let found = try log.allEvents()
      var violations: [String] = []
      if !tails.stages.contains(found) { violations.append("cut to \(found.count) events") }
      if !log.recovery.damage.isEmpty { violations.append("taken for damage: \(log.recovery.damage)") }
      log.close()
      guard let again = try tails.workload.reopen(disk) else { return ["the log is gone"] }
      let twice = try again.allEvents()
      if !again.recovery.cuts.isEmpty || twice != found {
        violations.append("the second opening differs from the first")
      }
      return violations
    }
  }
}
