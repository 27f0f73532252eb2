import StemmaEvents

extension Log {
  /// Makes a log in a directory that has none; makes the directory too, but not the one above it. When this
  /// returns, an empty log is durable. A creation that did not come to its end leaves at most a first journal without
  /// a frame, and a watermark that tells of no more, which go.
  /// Throws `.logExists`, `.system`.
  package static func create(
    in directory: String, id: LogID, fileSystem: any FileSystem, options: Options = Options()
  ) throws(LogError) -> Log {
    do throws(LogError) { try fileSystem.createDirectory(directory) } catch {
      guard case .system(_, _, System.alreadyExists) = error else { throw error }
    }
    var leftBehind: [String] = []
    for name in try fileSystem.list(directory) {
      switch LogFileName(name) {
      case .journal(1):
        let path = LogFileName.journal(1, in: directory)
        guard try isUnused(try fileSystem.open(path, .read)) else { throw .logExists(path: directory) }
        leftBehind.append(path)
      case .segment, .journal: throw .logExists(path: directory)
      case .watermark:
        let path = LogFileName.watermark(in: directory)
        if try isOfUnusedLog(path, fileSystem) { leftBehind.append(path) }
      case .cut, .partial, .aside, .other: break
      }
    }
    for path in leftBehind { try fileSystem.remove(path) }
    let log = Log(directory, id, fileSystem, options)
    try log.makeWatermark()
    try log.makeJournal(after: .start)
    try fileSystem.syncDirectory(parent(of: directory))
    log.recovery.watermarkIdentity = try log.watermarkFile?.identity()
    return log
  }

  /// Whether nothing was ever written behind a journal's header.
  private static func isUnused(_ journal: any File) throws(LogError) -> Bool {
    defer { journal.close() }
    var offset = UInt64(JournalHeader.size)
    while true {
      let bytes = try journal.read(at: offset, count: LogLimits.scanChunk)
      if bytes.isEmpty { return true }
      guard bytes.allSatisfy({ $0 == 0 }) else { return false }
      offset += UInt64(bytes.count)
    }
  }

  /// Whether a watermark tells of nothing but a first journal without a frame.
  private static func isOfUnusedLog(_ path: String, _ fileSystem: any FileSystem) throws(LogError) -> Bool {
    let file: any File
    do throws(LogError) { file = try fileSystem.open(path, .read) } catch {
      // What is no file is moved aside.
      guard error.damage != nil else { throw error }
      return false
    }
    defer { file.close() }
    return Watermark.isOfUnusedLog(try file.read(at: 0, count: 2 * Watermark.slotSize), path: path)
  }

  /// The log that most files of a directory name; nil if none do.
  package static func id(in directory: String, fileSystem: any FileSystem) throws(LogError) -> LogID? {
    var counts: [LogID: Int] = [:]
    for name in try fileSystem.list(directory) {
      let magic: [UInt8]
      switch LogFileName(name) {
      case .segment: magic = FilePreamble.segment
      case .journal: magic = FilePreamble.journal
      case .watermark: magic = FilePreamble.watermark
      case .cut, .partial, .aside, .other: continue
      }
      let path = directory + "/" + name
      do throws(LogError) {
        let file = try fileSystem.open(path, .read)
        defer { file.close() }
        let bytes = try file.read(at: 0, count: FilePreamble.size + 8)
        try FilePreamble.check(bytes, magic, path: path)
        let id = try locating(path, UInt64(FilePreamble.size)) { () throws(Flaw) in
          var reader = FieldReader(bytes, at: FilePreamble.size)
          return LogID(try reader.uint64())
        }
        counts[id, default: 0] += 1
      } catch {
        // What cannot be read names nothing.
        guard error.damage != nil else { throw error }
      }
    }
    let all = counts.values.reduce(0, +)
    return counts.first { 2 * $0.value > all }?.key
  }

  /// The directory that a path is in, which may be relative and end with slashes.
  package static func parent(of directory: String) -> String {
    var directory = directory[...]
    while directory.count > 1, directory.hasSuffix("/") { directory = directory.dropLast() }
    guard let slash = directory.lastIndex(of: "/") else { return "." }
    return slash == directory.startIndex ? "/" : String(directory[..<slash])
  }

  /// Opens a log; cuts a torn tail and cleans up if the mode allows it. Cost: the names, one header for each
  /// sealed file, and a scan of the open journal.
  ///
  /// Damage of files is not an error here: it stands in `recovery`, reading throws where it is met, and
  /// appending is refused.
  /// Throws `.noLog`, `.newerFormat`, `.foreignLog`, `.overLimit` if more files are missing than can be told of (nothing was
  /// written then), `.system`.
  package static func open(
    in directory: String, id: LogID, fileSystem: any FileSystem, options: Options = Options()
  ) throws(LogError) -> Log {
    let log = Log(directory, id, fileSystem, options)
    try log.load()
    return log
  }

  /// Takes in what other processes appended, sealed or rewrote; true if there was anything. Costs a listing
  /// of the directory when there was not. A writer calls it after it has taken the lock; what a process
  /// left half written when it died is cut then, as at open.
  package func refresh() throws(LogError) -> Bool {
    if isPoisoned { throw .poisoned(path: directory) }
    let names = try fileSystem.list(directory)
    if names == listing.names, let open = journals.last, open.flaw == nil,
      options.mode == .readWrite || open.durable == open.size, try open.isAtEnd()
    {
      return false
    }
    let before = token
    try load()
    return before != token
  }

  /// How often a reader without the lock looks again when a file vanished between listing and opening.
  private static let attempts = 5

  /// Reads the directory anew and recovers what the mode allows.
  func load() throws(LogError) {
    // Others may have appended, or taken events away.
    appended = [:]
    for attempt in 1... {
      do throws(LogError) {
        try loadOnce()
        break
      } catch {
        guard error.isNotFound, options.mode == .readOnly, attempt < Self.attempts else { throw error }
      }
    }
    guard options.mode == .readWrite else { return }
    if try restoreJournalNames() { try loadOnce() }
    try recover()
  }

  /// Reads the directory and the journals; writes nothing.
  private func loadOnce() throws(LogError) {
    var listing = try LogDirectory(
      reading: directory, log: id, known: self.listing.headers, journals: self.journals,
      fileSystem: fileSystem)
    // Before the journals: what it calls durable must be found in them.
    try readWatermark(isPresent: listing.hasWatermark)
    var journals: [Journal] = []
    for number in listing.journalNumbers {
      let path = listing.renamedJournals[number] ?? LogFileName.journal(number, in: directory)
      do throws(LogError) {
        journals.append(try loadJournal(number, path))
      } catch .damaged(_, let offset, let flaw) {
        listing.damage.append((number, Damage(path: path, offset: offset, flaw: flaw)))
      }
    }
    // Without a watermark nobody knows whether the log has come to the numbers of what cannot be read.
    let reached = watermark?.journal ?? listing.highestNoise(in: directory)
    if reached > listing.highestNumber { try listing.noteMissing(upToJournal: reached, in: directory) }
    self.journals = journals
    self.listing = listing
    recovery.keptTails = listing.keptTails
    confirm()
    try settleJournals()
    let holes = self.journals.flatMap { journal in
      journal.holes.map { Damage(path: journal.path, offset: $0.offset, flaw: $0.flaw) }
    }
    recovery.damage = Set(self.listing.damage.map(\.1) + holes).sorted()
  }

  private func loadJournal(_ number: UInt64, _ path: String) throws(LogError) -> Journal {
    // Bytes that were not known durable are read again: after a sync that failed, others may have written there.
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

  /// All journals but the last are complete and durable, or damaged: the next file was made only after a sync
  /// of them, and says where they ended. The last is so up to its durable end.
  private func settleJournals() throws(LogError) {
    let places = listing.headers.values.map(\.place)
    for index in journals.indices {
      let next = index + 1 < journals.count ? journals[index + 1] : nil
      let number = journals[index].number
      var limit = UInt64.max
      if let next, next.header.predecessor.position.file == number, next.header.damagedBelow > 0 {
        limit = next.header.damagedBelow
        journals[index].confirm(limit)
      }
      // That is so also where the next file is gone, and only the watermark tells of it.
      let isClosed = next != nil || places.contains { $0 > number } || watermark?.journal ?? 0 > number
      do throws(LogError) { try journals[index].settle(isClosed: isClosed, upTo: limit) } catch {
        guard let damage = error.damage else { throw error }
        listing.damage.append((number, damage))
      }
      let journal = journals[index]
      guard let next, journal.holes.isEmpty else { continue }
      // Another file stands between, or did.
      if next.header.predecessor.position.file > number { continue }
      if next.header.predecessor != journal.token(frames: journal.marks.count) {
        let what = "\(next.path) says that this file ends at @\(next.header.predecessor.position)"
        // The valid frames stay readable in their place; the damage follows them.
        listing.damage.append(
          (number, Damage(path: journal.path, offset: journal.size, flaw: .disagreement(what))))
      }
    }
  }

  // MARK: Watermark

  private func readWatermark(isPresent: Bool = true) throws(LogError) {
    guard isPresent else {
      watermark = nil
      watermarkFile = nil
      recovery.watermarkIdentity = nil
      return
    }
    let path = LogFileName.watermark(in: directory)
    let file: any File
    if let watermarkFile {
      file = watermarkFile
    } else {
      do throws(LogError) {
        file = try fileSystem.open(path, options.mode == .readWrite ? .write : .read)
      } catch {
        guard let damage = error.damage else { throw error }
        (watermark, recovery.watermarkIdentity) = (nil, nil)
        recovery.watermarkDamage = [damage]
        return
      }
      recovery.watermarkIdentity = try file.identity()
    }
    (watermark, recovery.watermarkDamage) = try Watermark.read(file, path: path, log: id)
    watermarkFile = file
  }

  /// Tells the open journal what the watermark says.
  private func confirm() {
    guard let watermark, let open = journals.last, watermark.journal == open.number else { return }
    journals[journals.count - 1].confirm(watermark.durable)
  }

  private func makeWatermark() throws(LogError) {
    let first = Watermark(turn: 0, journal: 0, durable: 0)
    let path = LogFileName.watermark(in: directory)
    try install(path) { (file) throws(LogError) in
      try file.write(first.encoded(id) + [UInt8](repeating: 0, count: Watermark.slotSize), at: 0)
      try file.sync()
    }
    watermark = first
    let file = try fileSystem.open(path, .write)
    watermarkFile = file
    recovery.watermarkIdentity = try file.identity()
  }

  /// Writes how far the open journal is durable. Not synced: an older watermark is as true, and one that cannot be
  /// written now is written after the next sync.
  /// `evenIfSame`: to fill a slot that is not as it was written.
  func writeWatermark(evenIfSame: Bool = false) throws(LogError) {
    guard let file = watermarkFile, let open = journals.last else { return }
    if !evenIfSame, let watermark, watermark.journal == open.number, watermark.durable == open.durable {
      return
    }
    let turn = watermark.map { $0.turn + 1 } ?? 0
    let next = Watermark(turn: turn, journal: open.number, durable: open.durable)
    try file.write(next.encoded(id), at: next.offset)
    watermark = next
  }

  /// After a sync: what is durable is so whether or not this can be written.
  func noteWatermark() {
    do throws(LogError) { try writeWatermark() } catch { recovery.watermarkError = error }
  }

  // MARK: Making files

  /// Writes a file aside, gives it its name and makes the name durable. `body` writes and syncs.
  /// A directory that cannot be synced poisons the log. Nothing is written over: what has the name is moved aside, unless
  /// it is a file that only has the name of another.
  func install<Result>(
    _ path: String, _ body: (any File) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    for (number, header) in listing.misnamed where LogFileName.segment(number, in: directory) == path {
      throw header.misnamed(path).error
    }
    let aside = path + LogFileName.partialSuffix
    do throws(LogError) { try fileSystem.remove(aside) } catch {
      guard error.isNotFound else { throw error }
    }
    let file = try fileSystem.open(aside, .create)
    let result = try body(file)
    file.close()
    try moveAside(path)
    try fileSystem.rename(aside, to: path)
    try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
    return result
  }

  /// Moves what has a name aside, if there is anything: a copy that somebody put there, or what is no file. Durable with
  /// the next name.
  func moveAside(_ path: String) throws(LogError) {
    let names = Set(try fileSystem.list(directory))
    let name = path.dropFirst(directory.count + 1)
    guard names.contains(String(name)) else { return }
    var count = 0
    while names.contains("\(name)\(LogFileName.asideSuffix)\(count)") { count += 1 }
    try fileSystem.rename(path, to: "\(path)\(LogFileName.asideSuffix)\(count)")
  }

  /// Makes the next journal and appends to it from now on.
  func makeJournal(after predecessor: LogToken) throws(LogError) {
    let number = listing.highestNumber + 1
    if number > LogLimits.fileNumber {
      throw .overLimit(subject: "file number", found: number, limit: LogLimits.fileNumber)
    }
    let damaged = journals.last { !$0.holes.isEmpty && $0.number == predecessor.position.file }
    let header = JournalHeader(
      log: id, number: number, predecessor: predecessor,
      damagedBelow: damaged.map { max($0.durable, $0.size) } ?? 0)
    let path = LogFileName.journal(number, in: directory)
    try install(path) { (file) throws(LogError) in
      try file.write(header.encoded(), at: 0)
      try file.sync()
    }
    let file = try fileSystem.open(path, .write)
    journals.append(try Journal(path: path, number: number, log: id, file: file))
    listing.highestNumber = number
    try relist()
    noteWatermark()
  }

  /// Notes the names after this log itself has changed them.
  func relist() throws(LogError) { listing.names = try fileSystem.list(directory) }

  // MARK: Recovery

  /// Cuts a torn tail, makes sure that what is kept is on disk, and removes what is no longer needed.
  ///
  /// A damaged log is recovered as far as it is whole. What tells of the damage stays: the files themselves, the
  /// gap in the numbers, and in the header of the journal that follows a damaged one how long that was.
  private func recover() throws(LogError) {
    if watermarkFile == nil { try makeWatermark() }
    // Whoever renamed a file may have died before the name was durable. The watermark names a journal only
    // after that, and obsolete files are removed only after that.
    if !listing.obsolete.isEmpty || watermark?.journal != journals.last?.number {
      try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
    }
    for path in listing.obsolete where try isFile(path) {
      if path.hasSuffix(LogFileName.partialSuffix), try isBeingWritten(path) { continue }
      try fileSystem.remove(path)
    }
    listing.obsolete = []
    if let open = journals.last, isAppendable(open) {
      try recoverTail()
    } else {
      try makeJournal(after: try lastToken())
    }
    try relist()
    // The slot to be written next is never the newer valid one.
    for _ in recovery.watermarkDamage { try writeWatermark(evenIfSame: true) }
    try writeWatermark()
  }

  private func isAppendable(_ open: Journal) -> Bool {
    open.holes.isEmpty
      && !listing.headers.values.contains { $0.place > open.number }
      && !listing.damage.contains { $0.place >= open.number }
  }

  /// The end of what can be read.
  private func lastToken() throws(LogError) -> LogToken {
    if let last = journals.last, !listing.headers.values.contains(where: { $0.place > last.number }) {
      return last.token(frames: last.marks.count)
    }
    do throws(LogError) { return try sealedToken() } catch {
      guard error.damage != nil else { throw error }
      // Tables that were as far as the damaged file must not take this for the place where they stand.
      return LogToken(position: Position(file: listing.highestNumber, index: 0), chain: 0)
    }
  }

  private func recoverTail() throws(LogError) {
    guard let open = journals.last else { return }
    let total = try open.file.size()
    if open.flaw != nil {
      let path = LogFileName.digits(open.number) + LogFileName.cutSuffix + String(listing.keptTails.count)
      let bytes = try copyTail(of: open, to: total, aside: directory + "/" + path)
      try open.file.truncate(to: open.size)
      try poisoning { () throws(LogError) in try open.file.sync() }
      recovery.cuts.append(
        Recovery.Cut(
          path: open.path, offset: open.size, bytes: bytes, keptAt: directory + "/" + path))
      recovery.keptTails.append(path)
      journals[journals.count - 1].forgetFlaw()
      journals[journals.count - 1].allocated = open.size
    }
    guard open.durable < open.size else { return }
    // After a sync that failed, readers may see bytes that the disk does not have, and that the next sync leaves alone.
    // Only bytes that are written again are sure to be synced: see `File.sync`.
    var offset = open.durable
    while offset < open.size {
      let bytes = try open.file.read(
        at: offset, count: Int(min(open.size - offset, UInt64(LogLimits.scanChunk))))
      guard !bytes.isEmpty else {
        throw .damaged(
          path: open.path, offset: offset, .cutShort(expected: open.size, found: offset))
      }
      try open.file.write(bytes, at: offset)
      offset += UInt64(bytes.count)
    }
    try poisoning { () throws(LogError) in try open.file.sync() }
    journals[journals.count - 1].confirm(open.size)
  }

  /// Copies what stands behind the last valid frame, without the zeros at its end. Returns how much that is.
  private func copyTail(of open: Journal, to end: UInt64, aside path: String) throws(LogError) -> UInt64 {
    try install(path) { (file) throws(LogError) in
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
