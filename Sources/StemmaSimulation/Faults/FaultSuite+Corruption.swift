import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// A log with a journal and several segments, some of them rewritten, and its events.
  struct Specimen: Sendable {
    struct File: Sendable {
      let path: String
      let bytes: [UInt8]
      /// The positions of its events; nil if it has none.
      let positions: Range<Position>?
      /// The end of the written data; preallocated zeros may follow.
      let end: Int
    }

    let disk: SimulatedFileSystem
    let workload: LogWorkload
    let events: [StoredEvent]
    let files: [File]
    /// The size of all files in bytes.
    let size: Int

    init(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) {
      disk = SimulatedFileSystem(seed: seed)
      var workload = LogWorkload(shape)
      try workload.run(on: disk, seed: seed)
      self.workload = workload
      guard let log = try workload.reopen(disk, .readOnly) else {
        throw .noLog(path: LogWorkload.directory)
      }
      var reader = log.events()
      events = try reader.rest()
      let listed = try log.files()
      var files: [File] = []
      for name in try disk.list(LogWorkload.directory) {
        let path = LogWorkload.directory + "/" + name
        let bytes = disk.contents(path) ?? []
        let file = listed.first { $0.path == path }
        files.append(
          File(
            path: path, bytes: bytes, positions: file?.positions,
            end: file.map { Int($0.storedBytes) } ?? bytes.count
          ))
      }
      self.files = files
      size = files.reduce(0) { $0 + $1.bytes.count }
    }

    /// The log with other bytes in one file.
    func with(_ bytes: [UInt8], at path: String) -> SimulatedFileSystem {
      let copy = disk.copy()
      copy.plant(bytes, at: path)
      return copy
    }

    /// The events in a range of positions; all for nil.
    func events(in range: Range<Position>?) -> [StoredEvent] {
      guard let range else { return events }
      return events.filter { range.contains($0.position) }
    }
  }

  /// One file with wrong bytes from `offset` on.
  struct Spoilt: Sendable {
    let file: Specimen.File
    let bytes: [UInt8]
    let offset: Int
    let mode: Log.Mode
    /// Whether both slots of the watermark are corrupt too.
    var isUnmarked = false

    /// Whether written data is affected, and not only preallocated zeros.
    var isLoss: Bool { offset < file.end }

    /// Whether events may stay invisible: the older slot of the watermark confirms fewer events,
    /// and a reader shows only confirmed ones.
    var mayHide: Bool { (file.positions == nil || isUnmarked) && mode == .readOnly }
  }

  /// Every event that a reader returns, and the error that ended it.
  static func read(_ reader: EventReader) -> ([StoredEvent], LogError?) {
    var reader = reader
    var events: [StoredEvent] = []
    do throws(LogError) {
      try reader.forEach { events.append($0) }
      return (events, nil)
    } catch { return (events, error) }
  }

  /// The violations when a log with a corrupt file is opened and read. The parameter `isThorough`
  /// also reads the other files, which are unchanged. With `isByRecord`, it also reads everything
  /// as a rebuild does.
  private static func violations(
    _ specimen: Specimen, _ spoilt: Spoilt, isThorough: Bool, isByRecord: Bool
  ) throws(LogError) -> [String] {
    let path = spoilt.file.path
    let disk = specimen.with(spoilt.bytes, at: path)
    if spoilt.isUnmarked {
      let watermark = LogWorkload.directory + "/watermark"
      disk.plant((disk.contents(watermark) ?? []).map { ~$0 }, at: watermark)
    }
    var violations: [String] = []
    let log: Log
    do throws(LogError) {
      guard let opened = try specimen.workload.reopen(disk, spoilt.mode) else { return ["the log is gone"] }
      log = opened
    } catch {
      // Only a foreign or newer file, or a bad manifest, may prevent the opening.
      return error.isRefusal && error.names(path, upTo: spoilt.offset) ? [] : ["it does not open: \(error)"]
    }
    if log.recovery.corruption.contains(where: { !$0.error.names(path, upTo: spoilt.offset) }) {
      violations.append("corruption elsewhere: \(log.recovery.corruption)")
    }
    if spoilt.isLoss, !log.recovery.cuts.isEmpty { violations.append("what was durable is cut") }
    let range = isThorough ? nil : spoilt.file.positions
    violations += self.violations(in: log, specimen.events(in: range), range, spoilt)
    if isByRecord { violations += self.violationsByRecord(in: log, specimen.events, spoilt) }
    let isFound = try log.verify().contains { $0.error.names(path, upTo: spoilt.offset) }
    // A writer has rewritten the watermark.
    if spoilt.isLoss, !isFound, spoilt.mode == .readOnly || spoilt.file.positions != nil {
      violations.append("verify finds nothing")
    }
    if log.bytesRead > 16 * specimen.size { violations.append("\(log.bytesRead) bytes were read") }
    log.checkInvariants()
    log.close()
    let leaked = disk.openFiles
    if leaked != 0 { violations.append("\(leaked) files are left open") }
    if isThorough, spoilt.mode == .readWrite {
      violations += try self.violations(afterWritingTo: disk, specimen, log.recovery.corruption)
    }
    return violations
  }

  /// The violations when the log is read, up to the corruption and around it.
  private static func violations(
    in log: Log, _ expected: [StoredEvent], _ range: Range<Position>?, _ spoilt: Spoilt
  ) -> [String] {
    var violations: [String] = []
    let from = range?.lowerBound ?? .first
    let (found, error) = read(log.events(from: from, to: range?.upperBound))
    if !expected.starts(with: found) { violations.append("a wrong event, or one out of its place") }
    if let error {
      if !error.names(spoilt.file.path, upTo: spoilt.offset) {
        violations.append("reading ended with \(error)")
      }
    } else if found.count < expected.count, !spoilt.mayHide {
      violations.append("\(expected.count - found.count) events are lost without a word")
    }
    let omissions = Omissions()
    let (around, blocked) = read(log.events(from: from, to: range?.upperBound, around: omissions))
    if let blocked { violations.append("reading around the corruption ended with \(blocked)") }
    var left = expected[...]
    for event in around {
      guard let index = left.firstIndex(where: { $0.position == event.position }), left[index] == event else {
        violations.append("a wrong event around the corruption")
        break
      }
      if left[..<index].contains(where: { spoilt.file.positions?.contains($0.position) != true }),
        !spoilt.mayHide
      {
        violations.append("an event of a whole file is left out")
      }
      left = left[(index + 1)...]
    }
    if (error != nil) == omissions.isEmpty {
      violations.append("readers do not agree whether there is corruption")
    }
    return violations
  }

  /// The violations of reading by record: an event missing, changed or repeated without an error.
  static func violationsByRecord(
    in log: Log, _ expected: [StoredEvent], _ spoilt: Spoilt
  ) -> [String] {
    do throws(LogError) {
      return try log.violationsByRecord(expected.map(\.event), mayLack: spoilt.mayHide)
    } catch {
      return error.names(spoilt.file.path, upTo: spoilt.offset)
        ? [] : ["reading by record ended with \(error)"]
    }
  }

  /// The violations after a write to the corrupt log, which must still report the corruption.
  private static func violations(
    afterWritingTo disk: SimulatedFileSystem, _ specimen: Specimen, _ corruption: [Corruption]
  ) throws(LogError) -> [String] {
    guard let log = try specimen.workload.reopen(disk) else { return ["the log is gone"] }
    var maker = EventMaker(seed: 555)
    maker.partitions = ["new"]
    let events = maker.commit(1, origin: LogWorkload.laterOrigin)
    _ = try log.append([Commit(events)])
    try log.sync()
    log.close()
    disk.crash()
    guard let again = try specimen.workload.reopen(disk) else { return ["the log is gone"] }
    var violations: [String] = []
    if again.recovery.corruption.map(\.offset) != corruption.map(\.offset) {
      violations.append("corruption was \(corruption), then \(again.recovery.corruption)")
    }
    if read(again.events(around: Omissions())).0.last?.event != events[0] {
      violations.append("what was written to the corrupt log is gone")
    }
    again.checkInvariants()
    return violations
  }

  /// One byte in this many also reads and writes the whole log. Odd, so that it covers both modes.
  private static let thoroughness = 31

  /// One case in this many also reads by record, which reads all files. Odd, as above; if all bits
  /// are flipped, it covers each byte.
  private static let byRecord = 3

  /// Flips a bit in every byte of every file: an error must name the file, or nothing may be lost.
  package static func flips(
    _ shape: LogWorkload.Shape, seed: UInt64, bits: Int
  ) throws(LogError) -> [FaultSuite] {
    let specimen = try Specimen(shape, seed: seed)
    return specimen.files.map { (file) -> FaultSuite in
      FaultSuite("a bit flips in each byte of \(file.path)", cases: file.bytes.count * bits) {
        (index) throws(LogError) in
        let offset = index / bits
        var flipped = file.bytes
        flipped[offset] ^= 1 << UInt8((index % bits + offset) % 8)
        let mode = (offset / 8 + index) % 2 == 0 ? Log.Mode.readWrite : .readOnly
        let spoilt = Spoilt(file: file, bytes: flipped, offset: offset, mode: mode)
        return try violations(
          specimen, spoilt, isThorough: offset % thoroughness == 0, isByRecord: index % byRecord == 0)
      }
    }
  }

  /// One byte in this many of the segments has a flipped bit while the watermark is corrupt.
  private static let unmarkedStep = 61

  /// Flips a bit in a segment while both watermark slots are corrupt: the result must not differ.
  package static func flipsWithoutWatermark(
    _ shape: LogWorkload.Shape, seed: UInt64
  ) throws(LogError) -> FaultSuite {
    let specimen = try Specimen(shape, seed: seed)
    let places = specimen.files.filter { $0.path.hasSuffix(".segment") }.flatMap { file in
      stride(from: 0, to: file.bytes.count, by: unmarkedStep).map { (file, $0) }
    }
    return FaultSuite("a bit flips in a sealed file, and the watermark is bad", cases: places.count * 2) {
      (index) throws(LogError) in
      let (file, offset) = places[index / 2]
      var flipped = file.bytes
      flipped[offset] ^= 1 << UInt8(offset % 8)
      let spoilt = Spoilt(
        file: file, bytes: flipped, offset: offset, mode: index % 2 == 0 ? .readWrite : .readOnly,
        isUnmarked: true)
      return try violations(
        specimen, spoilt, isThorough: index % thoroughness == 0, isByRecord: index % byRecord == 0)
    }
  }

  /// Truncates every durable file at every byte: this is corruption, never a shorter log.
  package static func cuts(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [FaultSuite] {
    let specimen = try Specimen(shape, seed: seed)
    return specimen.files.map { (file) -> FaultSuite in
      FaultSuite("\(file.path) is cut at each byte", cases: file.bytes.count) { (index) throws(LogError) in
        let mode = index % 2 == 0 ? Log.Mode.readWrite : .readOnly
        let spoilt = Spoilt(file: file, bytes: Array(file.bytes[..<index]), offset: index, mode: mode)
        return try violations(
          specimen, spoilt, isThorough: index % thoroughness == 0, isByRecord: index % byRecord == 0)
      }
    }
  }
}

extension LogError {
  /// Whether the error reports a foreign file, a newer version or a missing manifest.
  fileprivate var isRefusal: Bool {
    switch self {
    case .newerFormat, .foreignLog, .noManifest: true
    default: false
    }
  }

  /// Whether the error names the file, at or before the wrong byte.
  fileprivate func names(_ path: String, upTo offset: Int) -> Bool {
    switch self {
    case .corrupt(let found, let place, _): found == path && place <= offset
    case .newerFormat(let found, _, _), .foreignLog(let found, _, _), .noManifest(let found, _): found == path
    default: false
    }
  }
}

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
