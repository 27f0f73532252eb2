import StemmaEvents

/// The sealed part of a log directory: what the names and the headers of the segments say.
struct LogDirectory {
  /// All names, as listed.
  var names: [String] = []
  /// Headers of the segments that count, by number.
  var headers: [UInt64: SegmentHeader] = [:]
  /// Journals that count, by number; rising.
  var journalNumbers: [UInt64] = []
  /// By number: paths of journals that have the names of others, while no other file has theirs. They are read where
  /// they are.
  var renamedJournals: [UInt64: String] = [:]
  /// Paths of journals that claim the number of one of these, and hold what it does not.
  private var rivals: Set<String> = []
  /// Paths of segments that stand beside the journal of their number, which counts, and whose headers cannot be read: each may
  /// be a file that is gone.
  private(set) var shadowed: [String] = []
  /// Files that are no longer needed: partial, replaced, or sealed.
  var obsolete: [String] = []
  var damage: [(place: UInt64, Damage)] = []
  /// By number of a file that is not there: the path of one with a header that cannot be read, and which may stand in
  /// its place.
  var standIns: [UInt64: String] = [:]
  /// By the number of their names: segments that have the names of others, and whose own are free, or will be when
  /// all of these have theirs.
  var misnamed: [UInt64: SegmentHeader] = [:]
  /// By the number of their names: segments that have the names of others, and whose own belong to others, too. Such
  /// a file tells nothing of the one that it has the name of.
  var strays: [UInt64: SegmentHeader] = [:]
  /// Files with the names of others that the log never had, as their numbers are above all that it has given, or another
  /// file has the number: what they are. They count for nothing. Neither does a file above all numbers that the others
  /// prove, if nothing in it is of a log; unless it follows them, and one of them is missing.
  var outsiders: [Damage] = []
  /// Paths of those of them that may hold events, under numbers which the log cannot have given.
  private(set) var unreached: Set<String> = []
  /// Of the files that count, and of those that are missing. Misnamed files count by their own numbers.
  var highestNumber: UInt64 = 0

  /// Sealed and damaged files.
  func views(in directory: String) -> [FileView] {
    headers.values.map { .segment($0, path: LogFileName.segment($0.number, in: directory)) }
      + damage.map { .damaged($0.1, place: $0.place) }
  }

  var hasWatermark: Bool { names.contains(LogFileName.watermarkName) }

  /// Names of torn tails that were cut off.
  private(set) var keptTails: [String] = []

  init() {}

  /// Reads a directory; writes nothing. `known`, `journals`: what was read before. A segment that has a
  /// journal of its number, or that replaces a file that is still there, is read as a whole to see whether
  /// its digest holds.
  ///
  /// Throws `.newerFormat`, `.foreignLog`, `.noLog`, `.system`; `.overLimit` if more files are missing than can be told of;
  /// other damage is collected.
  init(
    reading directory: String, log: LogID, known: [UInt64: SegmentHeader], journals: [Journal],
    fileSystem: any FileSystem
  ) throws(LogError) {
    do throws(LogError) { names = try fileSystem.list(directory) } catch {
      throw error.isNotFound ? .noLog(path: directory) : error
    }
    var segments: [UInt64] = []
    var notFiles: [Damage] = []
    var headless: [Damage] = []
    for name in names {
      let file = LogFileName(name)
      // Whose header tells nothing is not of the log: it has never given that number.
      if file.number == 0, try LogFileName(inHeaderOf: directory + "/" + name, log: log, fileSystem) == nil {
        let path = directory + "/" + name
        unreached.insert(path)
        outsiders.append(
          try Damage(notAFileAt: path, fileSystem) ?? Damage(path: path, offset: 0, flaw: .notThisFormat))
        continue
      }
      switch file {
      case .segment(let number): segments.append(number)
      case .journal(let number): journalNumbers.append(number)
      case .partial: obsolete.append(directory + "/" + name)
      case .aside: outsiders.append(.aside(directory + "/" + name))
      case .cut:
        if let other = try Damage(notAFileAt: directory + "/" + name, fileSystem) {
          outsiders.append(other)
        } else {
          keptTails.append(name)
        }
      case .watermark, .other: break
      }
    }
    if segments.isEmpty, journalNumbers.isEmpty, !hasWatermark { throw .noLog(path: directory) }
    for number in segments {
      let path = LogFileName.segment(number, in: directory)
      do throws(LogError) {
        if let header = known[number] {
          headers[number] = header
        } else {
          let file = try fileSystem.open(path, .read)
          let header = try SegmentHeader(of: file, path: path, log: log)
          if header.number == number { headers[number] = header } else { strays[number] = header }
        }
      } catch .damaged(_, let offset, let flaw) {
        var found = Damage(path: path, offset: offset, flaw: flaw)
        if flaw == .notThisFormat, let own = try LogFileName(inHeaderOf: path, log: log, fileSystem) {
          found = own.misnamed(path)
        }
        damage.append((number, found))
        if flaw.isNotAFile || found.isMisnamed { notFiles.append(found) } else { headless.append(found) }
      }
    }
    let copies = try settleJournals(segments, journals, &notFiles, &headless, directory, log, fileSystem)
    settleNames(segments)
    try settleNumbers(segments, copies, notFiles, headless, directory) { (path) throws(LogError) in
      try Noise.fills(path, log: log, fileSystem)
    }
    for (number, header) in strays {
      damage.append((number, header.misnamed(LogFileName.segment(number, in: directory))))
    }
    try settlePairs(directory, fileSystem)
    try settleReplaced(directory, fileSystem)
  }

  /// Those of files whose events other files hold now, without what was purged.
  var replacedNumbers: Set<UInt64> { Set(headers.values.flatMap { $0.replaced.map(\.number) }) }

  private func isWhole(
    _ header: SegmentHeader, _ directory: String, _ fileSystem: any FileSystem
  ) throws(LogError) -> Bool {
    let path = LogFileName.segment(header.number, in: directory)
    do throws(LogError) {
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem)
      return try segment.digestOfBytes() == segment.trailer.digest
    } catch {
      if case .damaged = error { return false }
      throw error
    }
  }

  /// Finds those among the strays that can have their own names without writing over any other file. Where two are
  /// the same file, the first can.
  private mutating func settleNames(_ segments: [UInt64]) {
    var claimed = Set(journalNumbers).union(replacedNumbers)
    for (number, header) in strays.sorted(by: { $0.key < $1.key })
    where claimed.insert(header.number).inserted {
      misnamed[number] = header
    }
    // Whoever stays where it is keeps others from their names.
    let taken = Set(segments)
    while let stuck = misnamed.first(where: {
      taken.contains($0.value.number) && misnamed[$0.value.number] == nil
    }) {
      misnamed[stuck.key] = nil
    }
    strays = strays.filter { misnamed[$0.key] == nil }
  }

  /// Tells the journals by the numbers in their headers. Returns those that have the names of others and must stay there,
  /// by the number of their names: copies of others. Adds what is no file, and what has no header.
  private mutating func settleJournals(
    _ segments: [UInt64], _ known: [Journal], _ notFiles: inout [Damage], _ headless: inout [Damage],
    _ directory: String, _ log: LogID, _ fileSystem: any FileSystem
  ) throws(LogError) -> [UInt64: UInt64] {
    var copies: [UInt64: UInt64] = [:]
    let replaced = replacedNumbers
    var comeBack: [UInt64] = []
    for number in journalNumbers {
      let path = LogFileName.journal(number, in: directory)
      if known.contains(where: { $0.path == path && $0.number == number }) { continue }
      do throws(LogError) {
        let file = try fileSystem.open(path, .read)
        let own = try JournalHeader.number(of: file, log: log)
        if let own, own != number { copies[number] = own }
        if own == nil, let other = try LogFileName(inHeaderOf: path, log: log, fileSystem) {
          notFiles.append(other.misnamed(path))
        } else if own == nil, try JournalHeader.whole(of: file) != nil {
          // Of another log.
          notFiles.append(Damage(path: path, offset: 0, flaw: .notThisFormat))
        } else if own == nil {
          let flaw = try file.size() == 0 ? Flaw.empty : .notThisFormat
          headless.append(Damage(path: path, offset: 0, flaw: flaw))
        }
        if own ?? number == number, replaced.contains(number) { comeBack.append(number) }
      } catch .damaged(_, let offset, let flaw) {
        notFiles.append(Damage(path: path, offset: offset, flaw: flaw))
      }
    }
    for number in comeBack {
      let path = LogFileName.journal(number, in: directory)
      if try isSealed(number, path, directory, log, fileSystem) {
        obsolete.append(path)
      } else {
        outsiders.append(.comeBack(path))
      }
      journalNumbers.removeAll { $0 == number }
    }
    var claimed = Set(segments).union(replaced).union(journalNumbers.filter { copies[$0] == nil })
    for (own, names) in Dictionary(grouping: copies.keys.sorted(), by: { copies[$0] ?? 0 })
    where claimed.insert(own).inserted {
      let paths = names.map { LogFileName.journal($0, in: directory) }
      let choice =
        paths.count == 1
        ? (path: paths[0], different: [])
        : try RivalJournals(paths, number: own, in: directory, log: log, fileSystem).choice
      guard let choice, let index = paths.firstIndex(of: choice.path) else { continue }
      copies[names[index]] = nil
      renamedJournals[own] = choice.path
      rivals.formUnion(choice.different)
      journalNumbers.removeAll { $0 == names[index] }
    }
    journalNumbers = (journalNumbers + renamedJournals.keys).sorted()
    return copies
  }

  /// Whether a whole segment of another number stands in the place of a journal, and ends as that does: who made it died before
  /// the journal was removed.
  private func isSealed(
    _ number: UInt64, _ path: String, _ directory: String, _ log: LogID, _ fileSystem: any FileSystem
  ) throws(LogError) -> Bool {
    let file = try fileSystem.open(path, .read)
    guard try JournalHeader.number(of: file, log: log) == number else { return false }
    var journal = try Journal(path: path, number: number, log: log, file: file)
    try journal.scan(isThorough: true)
    for header in headers.values where header.place == number {
      guard try isWhole(header, directory, fileSystem) else { continue }
      let segment = try Segment(
        path: LogFileName.segment(header.number, in: directory), header: header, fileSystem: fileSystem)
      if journal.end == segment.trailer.end, journal.chain == segment.trailer.chain { return true }
    }
    return false
  }

  /// Tells files that have numbers above all those of the log, or those of other files, and none of their own, from those
  /// that count. `isNoise` is asked of files without a header that are above all others.
  private mutating func settleNumbers(
    _ segments: [UInt64], _ copies: [UInt64: UInt64], _ notFiles: [Damage], _ headless: [Damage],
    _ directory: String, isNoise: (_ path: String) throws(LogError) -> Bool
  ) throws(LogError) {
    func counted(without others: [Damage]) -> (files: [UInt64], journals: [UInt64], highest: UInt64?) {
      let others = Set(others.map(\.path))
      let journals = journalNumbers.filter {
        copies[$0] == nil && !others.contains(LogFileName.journal($0, in: directory))
      }
      let files = segments.filter {
        misnamed[$0] == nil && strays[$0] == nil && !others.contains(LogFileName.segment($0, in: directory))
      }
      return (files, journals, (files + misnamed.values.map(\.number) + journals).max())
    }
    let replaced = replacedNumbers
    var noise: [Damage] = []
    let proven = counted(without: notFiles + headless).highest ?? 0
    var unproven: [Damage] = []
    for found in headless where Self.number(of: found, in: directory) > proven {
      if try isNoise(found.path) { noise.append(found) } else { unproven.append(found) }
    }
    let reached = Self.reached(
      by: unproven.map { Self.number(of: $0, in: directory) }, from: replaced.reduce(proven, max))
    for found in unproven where Self.number(of: found, in: directory) > reached {
      noise.append(found)
      unreached.insert(found.path)
    }
    var nothing = notFiles + noise
    let others = counted(without: nothing)
    let accounted = Set(others.files + others.journals).union(replaced).union(
      misnamed.values.flatMap { [$0.number] + $0.replaced.map(\.number) })
    // Where a file is missing, those that follow may be what is left of the ones that replaced it.
    if var last = others.highest, last > 0, (1...last).contains(where: { !accounted.contains($0) }) {
      while let next = noise.first(where: { Self.number(of: $0, in: directory) == last + 1 }) {
        nothing.removeAll { $0 == next }
        last += 1
      }
    }
    let (files, journals, highest) = counted(without: nothing)
    highestNumber = highest ?? Self.reached(by: segments + journalNumbers, from: 0)
    func isOutside(_ number: UInt64, _ others: [UInt64]) -> Bool {
      number == 0 || number > highestNumber || others.contains(number) || replaced.contains(number)
    }
    for (number, header) in strays where isOutside(number, journals) {
      let path = LogFileName.segment(number, in: directory)
      outsiders.append(
        replaced.contains(header.number)
          ? .comeBack(path) : .outsider(path, named: LogFileName.digits(header.number) + ".segment"))
      strays[number] = nil
    }
    for (number, own) in copies where isOutside(number, segments) {
      let (path, name) = (LogFileName.journal(number, in: directory), LogFileName.digits(own) + ".journal")
      outsiders.append(
        replaced.contains(own)
          ? .comeBack(path) : rivals.contains(path) ? .rival(path, of: name) : .outsider(path, named: name))
      journalNumbers.removeAll { $0 == number }
    }
    for found in nothing {
      switch LogFileName(String(found.path.dropFirst(directory.count + 1))) {
      case .segment(let number) where isOutside(number, journals): damage.removeAll { $0.1 == found }
      case .journal(let number) where isOutside(number, files): journalNumbers.removeAll { $0 == number }
      default: continue
      }
      outsiders.append(found)
    }
    outsiders.sort()
  }

  /// How far the log may have come from a number on, by those of files that may be its own: not over more than one file can
  /// stand for. Each number up to there is looked for.
  private static func reached(by numbers: [UInt64], from start: UInt64) -> UInt64 {
    numbers.sorted().reduce(start) { last, number in
      number <= last + UInt64(LogLimits.replaced) ? max(last, number) : last
    }
  }

  /// The number in the name of a damaged file.
  private static func number(of damage: Damage, in directory: String) -> UInt64 {
    switch LogFileName(String(damage.path.dropFirst(directory.count + 1))) {
    case .segment(let number), .journal(let number): number
    default: 0
    }
  }

  /// The highest number of a file that has nothing in it and is above all that count; 0 if there is none.
  func highestNoise(in directory: String) -> UInt64 {
    outsiders.filter { $0.isUnread && !$0.flaw.isNotAFile }.map { Self.number(of: $0, in: directory) }
      .filter { $0 <= highestNumber + UInt64(LogLimits.replaced) }.max() ?? 0
  }

  /// Where a segment and a journal have the same number, the segment wins if its digest holds.
  private mutating func settlePairs(_ directory: String, _ fileSystem: any FileSystem) throws(LogError) {
    for number in journalNumbers
    where names.contains(LogFileName.digits(number) + ".segment") && misnamed[number] == nil {
      let path = LogFileName.segment(number, in: directory)
      if let header = headers[number], try isWhole(header, directory, fileSystem) {
        obsolete.append(LogFileName.journal(number, in: directory))
        journalNumbers.removeAll { $0 == number }
      } else {
        // The journal has all that the segment had: sealing makes the segment anew, over this one.
        if headers[number] == nil { shadowed.append(path) }
        headers[number] = nil
        damage.removeAll { $0.1.path == path }
      }
    }
  }

  /// Files that a whole file replaces do not count; numbers that nobody accounts for are missing.
  private mutating func settleReplaced(_ directory: String, _ fileSystem: any FileSystem) throws(LogError) {
    var accounted = Set(journalNumbers)
    for (_, damage) in damage {
      if case .segment(let number) = LogFileName(String(damage.path.dropFirst(directory.count + 1))) {
        accounted.insert(number)
      }
    }
    for header in misnamed.values {
      accounted.insert(header.number)
      accounted.formUnion(header.replaced.map(\.number))
    }
    // Latest first: a file that was replaced itself must not be asked for what it replaced.
    for number in headers.keys.sorted(by: >) {
      guard let header = headers[number] else { continue }
      accounted.insert(number)
      let present = header.replaced.map(\.number).filter { headers[$0] != nil || isDamaged($0, directory) }
      if !present.isEmpty, !(try isWhole(header, directory, fileSystem)) {
        // The file to be replaced is still whole, or both are damaged: either way this one does not count.
        let path = LogFileName.segment(number, in: directory)
        headers[number] = nil
        damage.append((header.place, Damage(path: path, offset: 0, flaw: .digest)))
        continue
      }
      for replaced in header.replaced {
        accounted.insert(replaced.number)
        guard present.contains(replaced.number) else { continue }
        headers[replaced.number] = nil
        let path = LogFileName.segment(replaced.number, in: directory)
        damage.removeAll { $0.1.path == path }
        obsolete.append(path)
      }
    }
    if highestNumber == 0 { return }
    let known = accounted.filter { (1...highestNumber).contains($0) }.count
    try Self.checkMissing(highestNumber - UInt64(known), before: highestPath(in: directory))
    let unreadable = damage.filter { strays[$0.place] == nil && !$0.1.flaw.isNotAFile && !$0.1.isMisnamed }
      .sorted { $0.place < $1.place }
    for (number, header) in misnamed {
      damage.append((header.place, header.misnamed(LogFileName.segment(number, in: directory))))
    }
    for number in 1...highestNumber where !accounted.contains(number) {
      guard let (_, other) = unreadable.first(where: { $0.place > number }) else {
        let path = LogFileName.segment(number, in: directory)
        damage.append((number, Damage(path: path, offset: 0, flaw: .missing)))
        continue
      }
      // A segment with a header that cannot be read may be the one that stands in this place.
      standIns[number] = other.path
      damage.append((number, other))
    }
  }

  /// Of the file that has the highest number.
  private func highestPath(in directory: String) -> String {
    if let path = renamedJournals[highestNumber] { return path }
    if let (name, _) = misnamed.first(where: { $0.value.number == highestNumber }) {
      return LogFileName.segment(name, in: directory)
    }
    let name = names.first { LogFileName($0).number == highestNumber }
    return directory + "/" + (name ?? LogFileName.digits(highestNumber))
  }

  /// Each number that is missing is told of: a file that has, or names, one far above all others must not make them without
  /// end.
  private static func checkMissing(_ count: UInt64, before path: String) throws(LogError) {
    if count > LogLimits.missing {
      throw .overLimit(subject: "files missing before \(path)", found: count, limit: LogLimits.missing)
    }
  }

  /// Notes that all files behind the highest number up to an open journal are gone. Throws `.overLimit`.
  mutating func noteMissing(upToJournal last: UInt64, in directory: String) throws(LogError) {
    try Self.checkMissing(last - highestNumber, before: LogFileName.journal(last, in: directory))
    for number in highestNumber + 1...last {
      let names = [LogFileName.segment(number, in: directory), LogFileName.journal(number, in: directory)]
      // What is no file, or has nothing in it, stands where it was.
      let other = outsiders.firstIndex { names.contains($0.path) && $0.isUnread }
      let found = other.map { outsiders.remove(at: $0) }
      damage.append(
        (number, found ?? Damage(path: names[number == last ? 1 : 0], offset: 0, flaw: .missing)))
    }
    highestNumber = last
  }

  /// Whether a file that has the name of another one stands for its own place.
  func isCountedByHeader(_ damage: Damage) -> Bool {
    misnamed.contains { name, header in
      damage.path.hasSuffix("/" + LogFileName.segment(name).text) && header.misnamed(damage.path) == damage
    }
  }

  private func isDamaged(_ number: UInt64, _ directory: String) -> Bool {
    let path = LogFileName.segment(number, in: directory)
    return damage.contains { $0.1.path == path }
  }
}
