import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// One case in this many also reads by record; it covers each `Rest`.
  private static let byRecordWhereTorn = 7

  /// The bytes that follow a torn write.
  private enum Rest: CaseIterable { case nothing, zeros, stale }

  private static func torn(_ whole: [UInt8], at place: Int, _ rest: Rest, stale: [UInt8]) -> [UInt8] {
    var bytes = Array(whole[..<place])
    switch rest {
    case .nothing: break
    case .zeros: bytes += [UInt8](repeating: 0, count: whole.count - place)
    case .stale: bytes += (place..<whole.count).map { stale.isEmpty ? 0 : stale[$0 % stale.count] }
    }
    return bytes
  }

  /// A log with a sealed journal, before its manifest lists the segment: the journal still exists.
  struct SealedTwice: Sendable {
    let disk: SimulatedFileSystem
    let workload: LogWorkload
    let events: [Event]
    let journal: [UInt8]
    let segment: [UInt8]
    static let path = LogWorkload.directory + "/00000001.segment"

    init(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) {
      disk = SimulatedFileSystem(seed: seed)
      workload = LogWorkload(shape)
      var maker = EventMaker(seed: seed)
      let log = try workload.create(on: disk)
      events = try workload.grow(log, with: &maker)
      let before = LogWorkload.directory + "/00000001.journal"
      let manifest = LogWorkload.directory + "/manifest"
      journal = disk.contents(before) ?? []
      let listing = disk.contents(manifest) ?? []
      try log.seal()
      log.close()
      guard let segment = disk.contents(Self.path), disk.contents(before) == nil else {
        throw .noLog(path: Self.path)
      }
      self.segment = segment
      disk.plant(journal, at: before)
      disk.plant(listing, at: manifest)
    }
  }

  /// A segment is torn at each byte while its journal exists. It has its temporary name or, on a
  /// disk that reorders operations, its final one.
  package static func tornSeals(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> FaultSuite {
    let log = try SealedTwice(shape, seed: seed)
    let (path, events, workload) = (SealedTwice.path, log.events, log.workload)
    let rests = Rest.allCases
    return FaultSuite("a segment is torn at each byte", cases: log.segment.count * rests.count * 2) {
      (index) throws(LogError) in
      let place = index / (rests.count * 2)
      let bytes = torn(log.segment, at: place, rests[index / 2 % rests.count], stale: log.journal)
      let copy = log.disk.copy(seed: UInt64(index))
      try copy.remove(path)
      copy.plant(bytes, at: index % 2 == 0 ? path + ".partial" : path)
      guard let log = try workload.reopen(copy) else { return ["the log is gone"] }
      var violations: [String] = []
      if try log.allEvents() != events { violations.append("other events") }
      if index % byRecordWhereTorn == 0 { violations += try log.violationsByRecord(events) }
      if !log.recovery.corruption.isEmpty { violations.append("corruption: \(log.recovery.corruption)") }
      let corruption = try log.verify()
      if !corruption.isEmpty { violations.append("verify finds \(corruption)") }
      log.checkInvariants()
      copy.checkInvariants()
      return violations
    }
  }

  /// The watermark slot written after a sync is torn at each byte: the other slot must apply.
  package static func tornWatermarks(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> FaultSuite {
    let disk = SimulatedFileSystem(seed: seed)
    let workload = LogWorkload(shape)
    let log = try workload.create(on: disk)
    var maker = EventMaker(seed: seed)
    let path = LogWorkload.directory + "/watermark"
    var images: [[UInt8]] = []
    var written: [Event] = []
    for _ in 0..<3 {
      written += try workload.grow(log, with: &maker)
      images.append(disk.contents(path) ?? [])
    }
    log.close()
    let events = written
    let rests = Rest.allCases
    let size = images[2].count / 2
    let turns = images
    return FaultSuite("the watermark is torn at each byte", cases: 2 * size * rests.count) {
      (index) throws(LogError) in
      let turn = index % 2
      let place = index / 2 / rests.count
      let (old, new) = (turns[turn], turns[turn + 1])
      // Only the changed slot is written; the content of the other one may appear in it.
      let slot = zip(old, new).prefix { $0 == $1 }.count < size ? 0..<size : size..<2 * size
      let other = slot.lowerBound == 0 ? size..<2 * size : 0..<size
      let written = torn(
        Array(new[slot]), at: place, rests[index / 2 % rests.count], stale: Array(old[other]))
      var bytes = old
      bytes.replaceSubrange(slot.prefix(written.count), with: written)
      let copy = disk.copy(seed: UInt64(index))
      copy.plant(bytes, at: path)
      guard let log = try workload.reopen(copy) else { return ["the log is gone"] }
      var violations: [String] = []
      if try log.allEvents() != events { violations.append("other events") }
      if index % byRecordWhereTorn == 0 { violations += try log.violationsByRecord(events) }
      if !log.recovery.corruption.isEmpty { violations.append("corruption: \(log.recovery.corruption)") }
      log.checkInvariants()
      log.close()
      guard let again = try workload.reopen(copy, .readOnly) else { return ["the log is gone"] }
      let corruption = try again.verify()
      if !corruption.isEmpty { violations.append("verify finds \(corruption) after the next writer") }
      if try again.allEvents() != events { violations.append("a reader sees other events") }
      return violations
    }
  }

  /// The last group of a log was written but not synced, and is torn at each byte.
  struct TornTails: Sendable {
    let workload: LogWorkload
    /// The permitted results: whole commits.
    let stages: [[Event]]
    private let disk: SimulatedFileSystem
    private let path: String
    private let durable: [UInt8]
    private let whole: [UInt8]

    init(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) {
      disk = SimulatedFileSystem(seed: seed)
      workload = LogWorkload(shape)
      var maker = EventMaker(seed: seed)
      let log = try workload.create(on: disk)
      let first = try workload.grow(log, with: &maker)
      path = LogWorkload.directory + "/00000001.journal"
      durable = disk.contents(path) ?? []
      let groups = [maker.commit(shape.events, textLength: shape.textLength), maker.commit(1)]
      _ = try log.append(groups.map { Commit($0) })
      whole = disk.contents(path) ?? []
      log.close()
      stages = [first, first + groups[0], first + groups[0] + groups[1]]
    }

    var count: Int { (whole.count - durable.count) * Rest.allCases.count }

    /// The violations in the reported and kept tail: all bytes after the last whole commit, except
    /// trailing zeros.
    func violations(ofCut log: Log, _ disk: SimulatedFileSystem, before: [UInt8]) throws(LogError) -> [String]
    {
      let end = try log.files().last.map { Int($0.storedBytes) } ?? 0
      let rest = before[end...]
      let cut = Array(rest.prefix(through: rest.lastIndex { $0 != 0 } ?? rest.startIndex - 1))
      let cuts = log.recovery.cuts
      if cut.isEmpty { return cuts.isEmpty ? [] : ["what is no torn tail is cut: \(cuts)"] }
      guard cuts.count == 1, cuts[0].path == path, cuts[0].offset == UInt64(end),
        cuts[0].bytes == UInt64(cut.count)
      else { return ["\(cut.count) bytes are cut at \(end), and reported is \(cuts)"] }
      return disk.contents(cuts[0].keptAt) == cut ? [] : ["what was cut is not kept"]
    }

    func journal(on disk: SimulatedFileSystem) -> [UInt8] { disk.contents(path) ?? [] }

    func disk(_ index: Int) -> SimulatedFileSystem {
      let rests = Rest.allCases
      let place = durable.count + index / rests.count
      let copy = disk.copy()
      copy.plant(torn(whole, at: place, rests[index % rests.count], stale: durable), at: path)
      return copy
    }
  }

  /// Whole commits must remain, the rest must be cut.
  package static func tornTails(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> FaultSuite {
    let tails = try TornTails(shape, seed: seed)
    return FaultSuite("an unconfirmed tail is torn at each byte", cases: tails.count) {
      (index) throws(LogError) in
      let disk = tails.disk(index)
      let before = tails.journal(on: disk)
      guard let log = try tails.workload.reopen(disk) else { return ["the log is gone"] }
      let found = try log.allEvents()
      var violations = try tails.violations(ofCut: log, disk, before: before)
      log.checkInvariants()
      if !tails.stages.contains(found) { violations.append("cut to \(found.count) events") }
      if index % byRecordWhereTorn == 0 { violations += try log.violationsByRecord(found) }
      if !log.recovery.corruption.isEmpty {
        violations.append("taken for corruption: \(log.recovery.corruption)")
      }
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
