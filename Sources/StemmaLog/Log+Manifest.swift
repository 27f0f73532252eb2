import StemmaEvents

extension Manifest {
  /// A manifest as it was found.
  struct Found {
    var manifest: Manifest
    /// The corruption of the current manifest, if this is the previous one.
    var flaw: Corruption?
  }

  /// The manifest of a directory, or the previous one if that is unreadable and all files of the
  /// previous one exist. Throws `.noManifest` if neither counts, `.noLog` if there is no directory
  /// or no file of a log, `.newerFormat`, `.foreignLog`, `.system`.
  static func find(
    in directory: String, log: LogID, fileSystem: any FileSystem
  ) throws(LogError) -> Found {
    let path = directory + "/" + name
    let flaw: Flaw
    do throws(LogError) {
      return Found(manifest: try read(path, log: log, fileSystem))
    } catch {
      guard error.isNoFile || error.corruption != nil else { throw error }
      flaw = error.corruption?.flaw ?? .missing
    }
    let refusal = LogError.noManifest(path: path, flaw)
    do throws(LogError) {
      let previous = try read(directory + "/" + previousName, log: log, fileSystem)
      guard try previous.hasAllFiles(in: directory, fileSystem) else { throw refusal }
      return Found(manifest: previous, flaw: Corruption(path: path, offset: 0, flaw: flaw))
    } catch {
      guard error.isNoFile || error.corruption != nil else { throw error }
    }
    if flaw == .missing, try !Log.holdsFiles(directory, fileSystem) { throw .noLog(path: directory) }
    throw refusal
  }

  static func read(_ path: String, log: LogID, _ fileSystem: any FileSystem) throws(LogError) -> Manifest {
    let file = try fileSystem.open(path, .read)
    defer { file.close() }
    let size = try file.size()
    guard size <= UInt64(sizeLimit) else {
      throw .corrupt(path: path, offset: 0, .malformed("length"))
    }
    return try Manifest(decoding: try file.read(at: 0, count: Int(size)), path: path, log: log)
  }

  /// The first journal may not exist yet. Then no file of a later manifest exists either.
  private func hasAllFiles(in directory: String, _ fileSystem: any FileSystem) throws(LogError) -> Bool {
    func isThere(_ name: LogFileName) throws(LogError) -> Bool {
      do throws(LogError) {
        try fileSystem.open(name.path(in: directory), .read).close()
        return true
      } catch {
        guard error.isNoFile else { throw error }
        return false
      }
    }
    for segment in segments where try !isThere(.segment(segment.number)) { return false }
    if try isThere(.journal(firstJournal)) { return true }
    if try isThere(.journal(firstJournal + 1)) { return false }
    return try !isThere(.segment(nextSegment))
  }
}

extension Log {
  /// Whether a directory has log files beyond those that an interrupted creation leaves.
  static func holdsFiles(_ directory: String, _ fileSystem: any FileSystem) throws(LogError) -> Bool {
    let names: [String]
    do throws(LogError) { names = try fileSystem.list(directory) } catch {
      throw error.isNotFound ? .noLog(path: directory) : error
    }
    for name in names {
      switch LogFileName(name) {
      case .segment: return true
      case .journal(1):
        if try !isUnused(try fileSystem.open(directory + "/" + name, .read)) { return true }
      case .journal: return true
      case .watermark, .manifest, .cut, .partial, .other: continue
      }
    }
    return false
  }

  /// Replaces the manifest durably, then removes the files that it makes obsolete. The files that
  /// it lists are written and synced; their names need not be durable yet.
  ///
  /// An error while the new manifest is written leaves the log unchanged; a later one poisons it.
  func replaceManifest(_ change: (inout Manifest) -> Void) throws(LogError) {
    var next = manifest
    next.turn += 1
    next.obsolete = []
    change(&next)
    try LogLimits.check("segments", next.segments.count, LogLimits.segments)
    assert(holds(next.checkInvariants))
    let bytes = next.encoded()
    let path = directory + "/" + Manifest.name
    let aside = path + LogFileName.partialSuffix
    try removeIfThere(aside)
    let file = try fileSystem.open(aside, .create)
    defer { file.close() }
    try file.write(bytes, at: 0)
    try file.sync()
    // The written bytes are verified before they replace anything.
    guard try Manifest.read(aside, log: id, fileSystem) == next else {
      throw .corrupt(path: aside, offset: 0, .disagreement("it is not what was written"))
    }
    try poisoning { () throws(LogError) in
      // The names of the listed files must be durable first.
      try fileSystem.syncDirectory(directory)
      if manifestFlaw == nil {
        try fileSystem.rename(path, to: directory + "/" + Manifest.previousName)
      }
      try fileSystem.rename(aside, to: path)
      try fileSystem.syncDirectory(directory)
      (manifest, manifestFlaw, durableManifest) = (next, nil, next.turn)
      try clearObsolete()
    }
  }

  /// Removes the files that the last manifest made obsolete, or moves them to `corrupt/`.
  func clearObsolete() throws(LogError) {
    for file in manifest.obsolete {
      let path = file.name.path(in: directory)
      guard file.isKept else {
        try removeIfThere(path)
        continue
      }
      do throws(LogError) { try fileSystem.rename(path, to: try corruptPath(of: file.name)) } catch {
        guard error.isNoFile else { throw error }
      }
    }
  }

  /// The subdirectory for corrupt files that a repair has replaced.
  package static let corruptName = "corrupt"

  private func corruptPath(of name: LogFileName) throws(LogError) -> String {
    let folder = directory + "/" + Self.corruptName
    do throws(LogError) { try fileSystem.createDirectory(folder) } catch {
      guard case .system(_, _, System.alreadyExists) = error else { throw error }
    }
    return folder + "/" + name.text
  }

  func removeIfThere(_ path: String) throws(LogError) {
    do throws(LogError) { try fileSystem.remove(path) } catch {
      guard error.isNotFound else { throw error }
    }
  }

  /// Unrecognized files: names that are neither in the manifest nor known leftovers.
  package func unrecognizedFiles() throws(LogError) -> [String] {
    var known: Set<String> = [
      Manifest.name, Manifest.previousName, LogFileName.watermarkName, Self.corruptName,
    ]
    known.formUnion(manifest.segments.map { LogFileName.segment($0.number).text })
    known.formUnion(manifest.obsolete.map(\.name.text))
    known.formUnion(journals.map { LogFileName.journal($0.number).text })
    known.formUnion(unreadJournals.map { LogFileName.journal($0.number).text })
    let names = try fileSystem.list(directory)
    // The next writer overwrites the files that a dead writer left under the next numbers.
    var next = manifest.nextSegment
    while names.contains(LogFileName.segment(next).text) {
      known.insert(LogFileName.segment(next).text)
      next += 1
    }
    return names.filter { name in
      switch LogFileName(name) {
      case .partial, .cut: false
      default: !known.contains(name)
      }
    }
  }

  /// Rebuilds the manifest from the headers and trailers of the files, if both manifests are lost.
  /// Of two segments with the same positions, the higher number counts: it replaced the other one.
  /// An obsolete file that is not removed and has no replacement counts again. Positions that no
  /// file has were lost or purged with a file: a missing segment is listed for them.
  ///
  /// Returns the names of the listed files. Throws `.noLog` without any. The caller holds the lock.
  package static func remakeManifest(
    in directory: String, id: LogID, fileSystem: any FileSystem
  ) throws(LogError) -> (files: [String], missing: [String]) {
    let names = try fileSystem.list(directory).map { LogFileName($0) }
    var manifest = Manifest(log: id)
    var found: [SegmentEntry] = []
    var journals: [JournalHeader] = []
    for name in names {
      let path = name.path(in: directory)
      do throws(LogError) {
        switch name {
        case .segment(let number):
          manifest.nextSegment = max(manifest.nextSegment, number + 1)
          found.append(try SegmentEntry(readingFrom: path, number: number, log: id, fileSystem))
        case .journal(let number):
          let file = try fileSystem.open(path, .read)
          defer { file.close() }
          journals.append(
            try JournalHeader(
              decoding: try file.read(at: 0, count: JournalHeader.size), path: path, log: id, number: number))
        case .cut: manifest.cuts += 1
        case .manifest, .watermark, .partial, .other: break
        }
      } catch {
        // Files with an unreadable beginning are unrecognized.
        switch error {
        case .corrupt, .notAFile, .foreignLog: continue
        default: throw error
        }
      }
    }
    if found.isEmpty, journals.isEmpty { throw .noLog(path: directory) }
    for entry in found.sorted(by: { $0.number > $1.number }) {
      let isCovered = manifest.segments.contains { $0.base < entry.past && entry.base < $0.past }
      if !isCovered { manifest.segments.append(entry) }
    }
    manifest.segments.sort { $0.base < $1.base }
    let end = manifest.segments.last?.past ?? .first
    var missing: [String] = []
    // Journals follow each other. Sealed ones begin before the end of the segments.
    let live = journals.filter { $0.start.position >= end }.sorted { $0.number < $1.number }
    manifest.firstJournal = live.first?.number ?? (journals.map(\.number).max() ?? 0) + 1
    manifest.start = live.first?.start ?? LogToken(position: end, chain: 0)
    let files = manifest.segments.map { LogFileName.segment($0.number).text }
    for (position, gap) in manifest.gaps() {
      manifest.segments.insert(gap, at: position)
      manifest.nextSegment = max(manifest.nextSegment, gap.number + 1)
      missing.append(LogFileName.segment(gap.number).text)
    }
    let log = Log(directory, id, fileSystem, Options())
    log.manifest = manifest
    // There is no readable manifest to keep.
    try log.removeIfThere(directory + "/" + Manifest.previousName)
    log.manifestFlaw = Corruption(path: directory + "/" + Manifest.name, offset: 0, flaw: .missing)
    try log.replaceManifest { _ in }
    return (files + live.map { LogFileName.journal($0.number).text }, missing)
  }

  /// Whether the manifest was remade without a file of which only the positions are known.
  package var listsUnknownFiles: Bool { manifest.segments.contains { $0.size == 0 } }
}

extension Manifest {
  /// Entries for the positions that no file has, the last one first, with their places in the list.
  /// A gap gets the number behind that of the file before it, if no file has that.
  fileprivate func gaps() -> [(place: Int, entry: SegmentEntry)] {
    var gaps: [(place: Int, entry: SegmentEntry)] = []
    var used = Set(segments.map(\.number))
    var end = Position.first
    var last: UInt64 = 0
    for place in 0...segments.count {
      let next = place < segments.count ? segments[place].base : start.position
      if end < next {
        var number = last + 1
        if used.contains(number) { number = max(nextSegment, used.max().map { $0 + 1 } ?? 1) }
        used.insert(number)
        let entry = SegmentEntry(number: number, size: 0, base: end, past: next, digest: .none)
        gaps.insert((place, entry), at: 0)
      }
      if place < segments.count { (end, last) = (segments[place].past, segments[place].number) }
    }
    return gaps
  }
}

extension SegmentEntry {
  /// The entry by a file's header and trailer. Without a trailer it covers one position.
  fileprivate init(
    readingFrom path: String, number: UInt64, log: LogID, _ fileSystem: any FileSystem
  ) throws(LogError) {
    let file = try fileSystem.open(path, .read)
    defer { file.close() }
    let header = try SegmentHeader(of: file, path: path, log: log, number: number)
    self.init(number: number, size: try file.size(), base: header.base, past: header.base.next, digest: .none)
    do throws(LogError) {
      let segment = try Segment(path: path, header: header, file: file)
      past = header.base.advanced(by: segment.trailer.end)
      digest = segment.trailer.digest
    } catch { guard error.corruption != nil else { throw error } }
  }
}
