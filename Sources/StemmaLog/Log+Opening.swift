import StemmaEvents

extension Log {
  /// Creates a log, durable on return, and its directory if only that is missing. Replaces a log
  /// without an event whose manifest is its first one: an interrupted creation of a node leaves it.
  /// Throws `.logExists`, `.system`.
  package static func create(
    in directory: String, id: LogID, fileSystem: any FileSystem, options: Options = Options()
  ) throws(LogError) -> Log {
    do throws(LogError) { try fileSystem.createDirectory(directory) } catch {
      guard case .system(_, _, System.alreadyExists) = error else { throw error }
    }
    let log = Log(directory, id, fileSystem, options)
    guard try !holdsFiles(directory, fileSystem), try isUnused(directory, fileSystem) else {
      throw .logExists(path: directory)
    }
    try log.makeWatermark()
    try log.makeJournal(number: 1, after: .start)
    log.manifestFlaw = Corruption(path: directory + "/" + Manifest.name, offset: 0, flaw: .missing)
    try log.replaceManifest { _ in }
    try fileSystem.syncDirectory(parent(of: directory))
    log.recovery.watermarkIdentity = try log.watermarkFile?.identity()
    return log
  }

  /// Whether a directory has no manifest, or the first one of a log.
  private static func isUnused(_ directory: String, _ fileSystem: any FileSystem) throws(LogError) -> Bool {
    guard try fileSystem.list(directory).contains(Manifest.name) else { return true }
    guard let id = try id(in: directory, fileSystem: fileSystem) else { return false }
    do throws(LogError) {
      return try Manifest.read(directory + "/" + Manifest.name, log: id, fileSystem).turn == 1
    } catch {
      guard error.corruption != nil else { throw error }
      return false
    }
  }

  /// Whether nothing was ever written behind a journal's header.
  static func isUnused(_ journal: any File) throws(LogError) -> Bool {
    defer { journal.close() }
    let bytes = try journal.read(at: UInt64(JournalHeader.size), count: LogLimits.scanChunk)
    return bytes.allSatisfy { $0 == 0 } && bytes.count < LogLimits.scanChunk
  }

  /// The id of the log in a directory, by the manifest or any other file; nil if none is readable.
  package static func id(in directory: String, fileSystem: any FileSystem) throws(LogError) -> LogID? {
    let listed = try fileSystem.list(directory)
    for name in [Manifest.name, Manifest.previousName, LogFileName.watermarkName] + listed
    where listed.contains(name) {
      let magic: [UInt8]
      switch LogFileName(name) {
      case .manifest: magic = FilePreamble.manifest
      case .segment: magic = FilePreamble.segment
      case .journal: magic = FilePreamble.journal
      case .watermark: magic = FilePreamble.watermark
      case .cut, .partial, .other: continue
      }
      let path = directory + "/" + name
      do throws(LogError) {
        let file = try fileSystem.open(path, .read)
        defer { file.close() }
        let bytes = try file.read(at: 0, count: FilePreamble.size + 8)
        try FilePreamble.check(bytes, magic, path: path)
        return try locating(path, UInt64(FilePreamble.size)) { () throws(Flaw) in
          try bytes.read(from: FilePreamble.size) { (reader) throws(Flaw) in LogID(try reader.fixed("header"))
          }
        }
      } catch {
        // An unreadable file identifies no log.
        guard error.corruption != nil else { throw error }
      }
    }
    return nil
  }

  /// The parent directory of a path, which may be relative and end with slashes.
  package static func parent(of directory: String) -> String {
    var directory = directory[...]
    while directory.count > 1, directory.hasSuffix("/") { directory = directory.dropLast() }
    guard let slash = directory.lastIndex(of: "/") else { return "." }
    return slash == directory.startIndex ? "/" : String(directory[..<slash])
  }

  /// Opens a log. A writer also cuts a torn tail and removes what an interrupted writer left. Reads
  /// the manifest and scans the live journals. Segments are opened when they are read.
  ///
  /// Corruption of journals is not an error: `recovery` lists it, reads throw it, and appends
  /// continue. Throws `.noLog`, `.noManifest`, `.newerFormat`, `.foreignLog`, `.system`.
  package static func open(
    in directory: String, id: LogID, fileSystem: any FileSystem, options: Options = Options()
  ) throws(LogError) -> Log {
    let log = Log(directory, id, fileSystem, options)
    try log.load()
    return log
  }

  /// Reads what other processes appended, sealed or rewrote. Returns whether anything changed. If
  /// not, the cost is a read of the manifest. A writer calls it with the lock, to cut torn tails.
  package func refresh() throws(LogError) -> Bool {
    if isPoisoned { throw .poisoned(path: directory) }
    if let open = journals.last, open.flaw == nil, manifestFlaw == nil,
      options.mode == .readWrite || open.durable == open.size, try open.isAtEnd(),
      try Manifest.find(in: directory, log: id, fileSystem: fileSystem).manifest.turn == manifest.turn,
      try !isThere(path(.journal(open.number + 1)))
    {
      return false
    }
    let before = token
    try load()
    return before != token
  }

  private func isThere(_ path: String) throws(LogError) -> Bool {
    do throws(LogError) {
      try fileSystem.open(path, .read).close()
      return true
    } catch {
      guard error.isNoFile else { throw error }
      return false
    }
  }

  /// How often a reader without the lock retries when a listed file has vanished.
  private static let attempts = 5

  /// Reads the manifest and the journals again, and recovers what the mode allows.
  func load() throws(LogError) {
    // Other processes may have appended or removed events.
    appended = [:]
    kept = nil
    for attempt in 1... {
      let turn = try loadOnce()
      // Without the lock, a journal that was sealed during loading looks lost.
      if recovery.corruption.isEmpty || options.mode == .readWrite || attempt == Self.attempts { break }
      if try Manifest.find(in: directory, log: id, fileSystem: fileSystem).manifest.turn == turn { break }
    }
    if options.mode == .readWrite { try recover() }
  }

  /// Writes nothing. Returns the turn of the manifest.
  private func loadOnce() throws(LogError) -> UInt64 {
    let found = try Manifest.find(in: directory, log: id, fileSystem: fileSystem)
    // Read before the journals, which must contain the bytes that it calls durable.
    try readWatermark()
    if let named = watermark?.journal, named > found.manifest.firstJournal + LogLimits.journals {
      let path = LogFileName.watermark(in: directory)
      recovery.watermarkCorruption.append(Corruption(path: path, offset: 0, flaw: .malformed("journal")))
      watermark = nil
    }
    var journals: [Journal] = []
    var unread: [(number: UInt64, corruption: Corruption)] = []
    var number = found.manifest.firstJournal
    while true {
      let path = path(.journal(number))
      do throws(LogError) {
        journals.append(try loadJournal(number, path))
      } catch {
        if error.isNotFound {
          // A writer names a journal in the watermark only after its name is durable.
          guard let watermark, number <= watermark.journal,
            number < watermark.journal || watermark.durable > UInt64(JournalHeader.size)
          else { break }
          unread.append((number, Corruption(path: path, offset: 0, flaw: .missing)))
        } else {
          guard let corruption = error.corruption else { throw error }
          unread.append((number, corruption))
        }
      }
      number += 1
    }
    (manifest, manifestFlaw) = (found.manifest, found.flaw)
    (self.journals, unreadJournals) = (journals, unread)
    recovery.cutCount = manifest.cuts
    confirm()
    try settleJournals()
    let gaps = self.journals.flatMap { journal in
      journal.gaps.map { Corruption(path: journal.path, offset: $0.offset, flaw: $0.flaw) }
    }
    recovery.corruption = Set(unread.map(\.corruption) + gaps).sorted()
    return manifest.turn
  }

  private func loadJournal(_ number: UInt64, _ path: String) throws(LogError) -> Journal {
    // Bytes not known durable are read again: others may have overwritten them.
    if var known = journals.first(where: { $0.number == number && $0.path == path })?.durablePart,
      try known.file.size() >= known.size
    {
      try known.scan(isThorough: false)
      return known
    }
    let file = try fileSystem.open(path, options.mode == .readWrite ? .write : .read)
    var journal = try Journal(
      path: path, number: number, log: id, file: file, keepsBytes: options.keepsJournals)
    try journal.scan(isThorough: true)
    return journal
  }

  /// Every journal but the last is durable to its end, or corrupt. The next one is created after a
  /// sync, and states where its predecessor ends.
  private func settleJournals() throws(LogError) {
    for index in journals.indices {
      let number = journals[index].number
      let isClosed =
        index + 1 < journals.count || unreadJournals.contains { $0.number > number }
        || watermark?.journal ?? 0 > number
      do throws(LogError) { try journals[index].settle(isClosed: isClosed) } catch {
        guard let corruption = error.corruption else { throw error }
        journals[index].noteLostEnd(corruption.flaw)
      }
      guard index + 1 < journals.count, journals[index].gaps.isEmpty else { continue }
      let next = journals[index + 1]
      if next.number == number + 1, !journals[index].isFollowed(by: next.header.start) {
        let what = "\(next.path) says that this file ends before @\(next.base)"
        journals[index].noteLostEnd(.disagreement(what))
      }
    }
  }

  // MARK: Watermark

  private func readWatermark() throws(LogError) {
    let path = LogFileName.watermark(in: directory)
    // A removed file is still readable for a process that has it open.
    if watermarkFile != nil, try !isThere(path) { watermarkFile = nil }
    let file: any File
    if let watermarkFile {
      file = watermarkFile
    } else {
      do throws(LogError) {
        file = try fileSystem.open(path, options.mode == .readWrite ? .write : .read)
      } catch {
        (watermark, recovery.watermarkIdentity) = (nil, nil)
        if error.isNotFound { return }
        guard let corruption = error.corruption else { throw error }
        recovery.watermarkCorruption = [corruption]
        return
      }
      recovery.watermarkIdentity = try file.identity()
    }
    (watermark, recovery.watermarkCorruption) = try Watermark.read(file, path: path, log: id)
    watermarkFile = file
  }

  /// Applies the watermark to the open journal.
  private func confirm() {
    guard let watermark, let open = journals.last, watermark.journal == open.number else { return }
    journals[journals.count - 1].confirm(watermark.durable)
  }

  private func makeWatermark() throws(LogError) {
    let first = Watermark(turn: 0, journal: 0, durable: 0)
    let path = LogFileName.watermark(in: directory)
    try makeFile(path) { (file) throws(LogError) in
      try file.write(first.encoded(id) + [UInt8](repeating: 0, count: Watermark.slotSize), at: 0)
      try file.sync()
    }
    try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
    watermark = first
    let file = try fileSystem.open(path, .write)
    watermarkFile = file
    recovery.watermarkIdentity = try file.identity()
  }

  /// Writes how far the open journal is durable, without a sync. An older watermark is also true. A
  /// failed write is repeated after the next sync. `evenIfSame`: replaces a corrupt slot.
  func writeWatermark(evenIfSame: Bool = false) throws(LogError) {
    guard let file = watermarkFile, let open = journals.last else { return }
    if !evenIfSame, let watermark, watermark.journal == open.number, watermark.durable == open.durable,
      watermark.manifest == durableManifest
    {
      return
    }
    let turn = watermark.map { $0.turn + 1 } ?? 0
    let next = Watermark(turn: turn, journal: open.number, durable: open.durable, manifest: durableManifest)
    try file.write(next.encoded(id), at: next.offset)
    watermark = next
  }

  /// Updates the watermark after a sync. Records a failure, which leaves the synced bytes durable.
  func noteWatermark() {
    do throws(LogError) { try writeWatermark() } catch { recovery.watermarkError = error }
  }

  // MARK: Making files

  /// Writes a file as `.partial`, in place of what an interrupted writer left, and renames it.
  /// `body` writes and syncs. The name is durable after the next sync of the directory.
  func makeFile<Result>(
    _ path: String, _ body: (any File) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    let aside = path + LogFileName.partialSuffix
    try removeIfThere(aside)
    let file = try fileSystem.open(aside, .create)
    defer { file.close() }
    let result = try body(file)
    try fileSystem.rename(aside, to: path)
    return result
  }

  /// Creates the next journal, which becomes the open one.
  func makeJournal(number: UInt64, after start: LogToken) throws(LogError) {
    if number > LogLimits.fileNumber {
      throw .overLimit(subject: "file number", found: number, limit: LogLimits.fileNumber)
    }
    let header = JournalHeader(log: id, number: number, start: start)
    let path = path(.journal(number))
    try makeFile(path) { (file) throws(LogError) in
      try file.write(header.encoded(), at: 0)
      try file.sync()
    }
    try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
    let file = try fileSystem.open(path, .write)
    journals.append(try Journal(path: path, number: number, log: id, file: file))
    noteWatermark()
  }

  // MARK: Recovery

  /// Cuts a torn tail, syncs what remains, and removes what an interrupted writer left.
  ///
  /// A corrupt log is recovered as far as it is whole. Corrupt files stay unchanged.
  private func recover() throws(LogError) {
    if watermarkFile == nil { try makeWatermark() }
    // A writer may have died before the name of its manifest or journal was durable.
    if manifestFlaw != nil {
      try replaceManifest { _ in }
    } else if watermark?.manifest != manifest.turn || watermark?.journal != journals.last?.number {
      try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
    }
    durableManifest = manifest.turn
    try clearObsolete()
    if let open = journals.last, isAppendable(open) {
      try recoverTail()
    } else {
      let last = max(journals.last?.number ?? 0, unreadJournals.last?.number ?? 0)
      try makeJournal(number: last > 0 ? last + 1 : manifest.firstJournal, after: startBehindCorruption)
    }
    // The slot to be written next is never the newer valid one.
    for _ in recovery.watermarkCorruption { try writeWatermark(evenIfSame: true) }
    try writeWatermark()
  }

  private func isAppendable(_ open: Journal) -> Bool {
    open.gaps.isEmpty && unreadJournals.allSatisfy { $0.number < open.number }
  }

  /// The start of the next journal: behind readable events and the positions of lost ones.
  private var startBehindCorruption: LogToken {
    let last = journals.last
    let end = last.map { $0.token(frames: $0.marks.count) } ?? manifest.start
    let isEndLost = last?.lacksEnd == true || unreadJournals.contains { $0.number > last?.number ?? 0 }
    return isEndLost
      ? LogToken(position: end.position.advanced(by: LogLimits.gap), chain: end.chain) : end
  }

  private func recoverTail() throws(LogError) {
    guard let open = journals.last else { return }
    let total = try open.file.size()
    if open.flaw != nil {
      let path = LogFileName.digits(open.number) + LogFileName.cutSuffix + String(manifest.cuts)
      let bytes = try copyTail(of: open, to: total, aside: directory + "/" + path)
      try replaceManifest { $0.cuts += 1 }
      recovery.cutCount = manifest.cuts
      try open.file.truncate(to: open.size)
      try poisoning { () throws(LogError) in try open.file.sync() }
      recovery.cuts.append(
        Recovery.Cut(
          path: open.path, offset: open.size, bytes: bytes, keptAt: directory + "/" + path))
      journals[journals.count - 1].forgetFlaw()
      journals[journals.count - 1].allocated = open.size
    }
    guard open.durable < open.size else { return }
    // After a failed sync, reads may return bytes that the disk lacks and the next sync skips. Only
    // bytes that are written again are certain to be synced: see `File.sync`.
    var offset = open.durable
    while offset < open.size {
      let bytes = try open.file.read(
        at: offset, count: Int(min(open.size - offset, UInt64(LogLimits.scanChunk))))
      guard !bytes.isEmpty else {
        throw .corrupt(
          path: open.path, offset: offset, .cutShort(expected: open.size, found: offset))
      }
      try open.file.write(bytes, at: offset)
      offset += UInt64(bytes.count)
    }
    try poisoning { () throws(LogError) in try open.file.sync() }
    journals[journals.count - 1].confirm(open.size)
  }

  /// Copies the bytes behind the last valid frame, without trailing zeros. Returns their number.
  private func copyTail(of open: Journal, to end: UInt64, aside path: String) throws(LogError) -> UInt64 {
    try makeFile(path) { (file) throws(LogError) in
      var offset = open.size
      var kept: UInt64 = 0
      while offset < end {
        let bytes = try open.file.read(at: offset, count: Int(min(end - offset, UInt64(LogLimits.scanChunk))))
        if bytes.isEmpty { break }
        try file.write(bytes, at: offset - open.size)
        if let last = bytes.lastIndex(where: { $0 != 0 }) { kept = offset - open.size + UInt64(last) + 1 }
        offset += UInt64(bytes.count)
      }
      try file.truncate(to: kept)
      try file.sync()
      return kept
    }
  }
}
