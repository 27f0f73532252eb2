import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// A log of two segments, one of which replaces another, and a journal; and what is in it.
  struct Specimen: Sendable {
    let disk: SimulatedFileSystem
    let workload: LogWorkload
    let events: [Event]
    let files: [(path: String, bytes: [UInt8])]

    init(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) {
      disk = SimulatedFileSystem(seed: seed)
      var workload = LogWorkload(shape)
      try workload.run(on: disk, seed: seed)
      self.workload = workload
      events = try workload.reopen(disk, .readOnly)?.allEvents() ?? []
      var files: [(path: String, bytes: [UInt8])] = []
      for name in try disk.list(LogWorkload.directory) {
        let path = LogWorkload.directory + "/" + name
        files.append((path, disk.contents(path) ?? []))
      }
      self.files = files
    }

    /// The log with other bytes in one file.
    func with(_ bytes: [UInt8], at path: String) -> SimulatedFileSystem {
      let copy = disk.copy()
      copy.plant(bytes, at: path)
      return copy
    }
  }

  /// Every event that a reader gives, and the error that ended it.
  private static func read(_ reader: EventReader) -> ([Event], LogError?) {
    var reader = reader
    var events: [Event] = []
    do throws(LogError) {
      while let event = try reader.next() { events.append(event.event) }
      return (events, nil)
    } catch { return (events, error) }
  }

  /// What is wrong with the way in which a log with a damaged file is opened and read.
  private static func violations(
    _ specimen: Specimen, _ disk: SimulatedFileSystem, damaged path: String, _ mode: Log.Mode
  ) throws(LogError) -> [String] {
    var violations: [String] = []
    let log: Log
    do throws(LogError) {
      guard let opened = try specimen.workload.reopen(disk, mode) else { return ["the log is gone"] }
      log = opened
    } catch { return error.names(path) ? [] : ["an error that does not name the file: \(error)"] }
    let (found, error) = read(log.events())
    if !specimen.events.starts(with: found) { violations.append("a wrong event, or one out of its place") }
    if let error {
      if !error.names(path) { violations.append("an error that does not name the file: \(error)") }
    } else if found.count < specimen.events.count, mode == .readWrite, log.recovery.cuts.isEmpty {
      violations.append("\(specimen.events.count - found.count) events are lost without a word")
    }
    let omissions = Omissions()
    let (around, blocked) = read(log.events(around: omissions))
    if let blocked { violations.append("reading around the damage ended with \(blocked)") }
    if around.count < specimen.events.count, omissions.isEmpty, mode == .readWrite, log.recovery.cuts.isEmpty
    {
      violations.append("reading around the damage left out events without a word")
    }
    if !around.allSatisfy(Set(specimen.events).contains) {
      violations.append("a wrong event around the damage")
    }
    log.checkInvariants()
    return violations
  }

  /// A flipped bit in every byte of every file: an error that names the file, a reported cut, or nothing lost.
  package static func flips(
    _ shape: LogWorkload.Shape, seed: UInt64, bits: Int
  ) throws(LogError) -> [FaultSuite] {
    let specimen = try Specimen(shape, seed: seed)
    return specimen.files.map { (path, bytes) -> FaultSuite in
      FaultSuite("a bit flips in each byte of \(path)", cases: bytes.count * bits) {
        (index) throws(LogError) in
        var flipped = bytes
        flipped[index / bits] ^= 1 << UInt8((index + index / bits) % 8)
        let disk = specimen.with(flipped, at: path)
        return try violations(specimen, disk, damaged: path, index % 2 == 0 ? .readWrite : .readOnly)
      }
    }
  }

  /// Every file ends too early, at every byte, below what was durable: damage, never a shorter log.
  package static func cuts(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [FaultSuite] {
    let specimen = try Specimen(shape, seed: seed)
    return specimen.files.map { (path, bytes) -> FaultSuite in
      FaultSuite("\(path) is cut at each byte", cases: bytes.count) { (index) throws(LogError) in
        let disk = specimen.with(Array(bytes[..<index]), at: path)
        return try violations(specimen, disk, damaged: path, index % 2 == 0 ? .readWrite : .readOnly)
      }
    }
  }

  /// What follows the cut of a tail that was never confirmed.
  private enum Tail: CaseIterable { case nothing, zeros, stale }

  /// The last group was written but not synced, and is cut at each byte: whole commits stay, the rest is cut.
  package static func tornTails(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> FaultSuite {
    let disk = SimulatedFileSystem(seed: seed)
    let workload = LogWorkload(shape)
    let log = try Log.create(
      in: LogWorkload.directory, id: LogWorkload.logID, fileSystem: disk, options: workload.options)
    var maker = EventMaker(seed: seed)
    let first = maker.commit(shape.events, textLength: shape.textLength)
    _ = try log.append([Commit(first)])
    try log.sync()
    let path = LogWorkload.directory + "/00000001.journal"
    let durable = disk.contents(path) ?? []
    let groups = [maker.commit(shape.events, textLength: shape.textLength), maker.commit(1)]
    _ = try log.append(groups.map { Commit($0) })
    let whole = disk.contents(path) ?? []
    log.close()
    let stages = [first, first + groups[0], first + groups[0] + groups[1]]
    let tails = Tail.allCases
    return FaultSuite(
      "an unconfirmed tail is torn at each byte", cases: (whole.count - durable.count) * tails.count
    ) {
      (index) throws(LogError) in
      let end = durable.count + index / tails.count
      var bytes = Array(whole[..<end])
      switch tails[index % tails.count] {
      case .nothing: break
      case .zeros: bytes += [UInt8](repeating: 0, count: whole.count - end)
      case .stale: bytes += durable.prefix(whole.count - end)
      }
      let copy = disk.copy()
      copy.plant(bytes, at: path)
      guard let log = try workload.reopen(copy) else { return ["the log is gone"] }
      let found = try log.allEvents()
      var violations: [String] = []
      if !stages.contains(found) { violations.append("cut to \(found.count) events") }
      if !log.recovery.damage.isEmpty { violations.append("taken for damage: \(log.recovery.damage)") }
      log.close()
      guard let again = try workload.reopen(copy) else { return ["the log is gone"] }
      let twice = try again.allEvents()
      if !again.recovery.cuts.isEmpty || twice != found {
        violations.append("the second opening differs from the first")
      }
      return violations
    }
  }
}

extension LogError {
  /// Whether a person reads in it which file is meant.
  fileprivate func names(_ path: String) -> Bool {
    switch self {
    case .damaged(let found, _, _), .newerFormat(let found, _, _), .foreignLog(let found, _, _): found == path
    default: false
    }
  }
}
