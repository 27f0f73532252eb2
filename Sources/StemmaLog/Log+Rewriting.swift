import StemmaEvents

extension Log {
  /// Removes events of some partitions by rewriting the files that contain them. Other files stay,
  /// and all other events keep their positions. Durable on return, and atomic. Memory: all events
  /// of one segment, or of the live journals.
  ///
  /// `events`: removes only the events for which it holds. The rest of each stream must have no gap
  /// in any file; otherwise `.gap` is thrown and nothing changes.
  package func purge(
    _ isPurged: (Partition) -> Bool, events isRemoved: (StoredEvent) -> Bool = { _ in true }
  ) throws(LogError) {
    try checkWhole()
    var rewriting = try Rewriting(self)
    try rewriting.remove(isPurged, isRemoved)
    try rewriting.finish()
  }

  /// Repairs a corrupt log. Rewrites files that are corrupt, or contain removed events, from their
  /// readable events. Appends other events behind all files. Durable on return, and atomic. Corrupt
  /// files move to `corrupt/`. Tables that follow the log no longer match it.
  ///
  /// - Parameters:
  ///   - corrupt: paths of the corrupt files.
  ///   - partitions: partitions from which the events that satisfy `isRemoved` are removed.
  ///   - next: the next events to append, by position, each part as a segment; nil at the end.
  package func repair(
    _ corrupt: Set<String>, removing partitions: (Partition) -> Bool, _ isRemoved: (StoredEvent) -> Bool,
    appending next: () throws(LogError) -> AdoptedEvents?
  ) throws(LogError) {
    var rewriting = try Rewriting(self, repairing: corrupt)
    try rewriting.remove(partitions, isRemoved)
    while let part = try next() { try rewriting.append(part) }
    try rewriting.finish()
    recovery.corruption = []
  }
}

/// New files of a log and the old files that they replace, with one manifest.
private struct Rewriting {
  private let log: Log
  /// Paths of corrupt files, whose corruption is skipped; nil outside of a repair.
  private let corrupt: Set<String>?
  private var segments: [SegmentEntry]
  private var nextSegment: UInt64
  private var obsolete: [ObsoleteFile] = []
  /// Whether the live journals are replaced too.
  private var replacesJournals = false
  private var start: LogToken

  init(_ log: Log, repairing corrupt: Set<String>? = nil) throws(LogError) {
    try log.checkWritable()
    self.log = log
    self.corrupt = corrupt
    segments = log.manifest.segments
    nextSegment = log.manifest.nextSegment
    start = log.token
    // Another chain value, so that readers of the old log detect the change.
    if corrupt != nil { start.chain = ~start.chain }
  }

  mutating func remove(
    _ isConcerned: (Partition) -> Bool, _ isRemoved: (StoredEvent) -> Bool
  ) throws(LogError) {
    func isGone(_ stored: StoredEvent) -> Bool { isConcerned(stored.event.partition) && isRemoved(stored) }
    // A purged partition that is fetched again restarts its streams.
    log.appended = [:]
    for entry in log.manifest.segments {
      let name = LogFileName.segment(entry.number)
      let isCorrupt = corrupt?.contains(log.path(name)) == true
      var contents = NumberedEvents()
      var chain: UInt32?
      let omissions = isCorrupt ? Omissions() : nil
      let isChanged = try omissions.reading { () throws(LogError) -> Bool in
        let segment = try log.segment(entry)
        chain = corrupt == nil ? segment.trailer.chain : nil
        if !isCorrupt {
          let partitions = try segment.footer().partitions
          guard partitions.contains(where: { isConcerned($0.partition) }) else { return false }
        }
        contents = try segment.contents(around: omissions)
        let count = contents.events.count
        contents.removeEvents(from: entry.base, where: isGone)
        return isCorrupt || contents.events.count < count
      }
      guard isChanged ?? true else { continue }
      segments.removeAll { $0.number == entry.number }
      obsolete.append(ObsoleteFile(name: name, isKept: isCorrupt))
      try write(contents, base: entry.base, end: entry.past.distance(from: entry.base), chain: chain)
    }
    var journals: [(journal: Journal, contents: NumberedEvents)] = []
    replacesJournals = corrupt != nil
    for journal in log.journals {
      var contents = try journal.contents(around: corrupt == nil ? nil : Omissions())
      let count = contents.events.count
      contents.removeEvents(from: journal.base, where: isGone)
      if contents.events.count < count { replacesJournals = true }
      journals.append((journal, contents))
    }
    guard replacesJournals else { return }
    // The new files also contain events that are appended but not synced.
    for (journal, contents) in journals {
      obsolete.append(
        ObsoleteFile(
          name: .journal(journal.number), isKept: corrupt?.contains(journal.path) == true))
      try write(
        contents, base: journal.base, end: journal.end, chain: corrupt == nil ? journal.chain : nil)
    }
    obsolete += log.unreadJournals.map { ObsoleteFile(name: .journal($0.number), isKept: true) }
  }

  /// Appends events behind all others.
  mutating func append(_ part: AdoptedEvents) throws(LogError) {
    let numbered = part.events.enumerated().map {
      BlockEvent(relativePosition: UInt64($0.offset), event: $0.element)
    }
    let contents = NumberedEvents(events: numbered, messages: part.messages)
    try write(contents, base: start.position, end: UInt64(numbered.count), chain: nil)
    start.position = start.position.advanced(by: UInt64(numbered.count))
  }

  private mutating func write(
    _ contents: NumberedEvents, base: Position, end: UInt64, chain: UInt32?
  ) throws(LogError) {
    if contents.events.isEmpty { return }
    if nextSegment > LogLimits.fileNumber {
      throw .overLimit(subject: "file number", found: nextSegment, limit: LogLimits.fileNumber)
    }
    let header = SegmentHeader(log: log.id, number: nextSegment, base: base)
    let trailer = try log.makeFile(log.path(.segment(nextSegment))) { (file) throws(LogError) in
      try SegmentWriter.write(
        contents, header: header, end: end, chain: chain, level: log.options.level, to: file)
    }
    nextSegment += 1
    let entry = SegmentEntry(header, trailer)
    segments.insert(entry, at: segments.partitioningIndex { $0.base >= base })
  }

  /// Lists the new files. If it replaces the journals, the log continues in a new journal.
  consuming func finish() throws(LogError) {
    if obsolete.isEmpty, !replacesJournals { return }
    let last = max(log.journals.last?.number ?? 0, log.unreadJournals.last?.number ?? 0)
    try log.replaceManifest { [self] manifest in
      (manifest.segments, manifest.nextSegment, manifest.obsolete) = (segments, nextSegment, obsolete)
      if replacesJournals { (manifest.firstJournal, manifest.start) = (last + 1, start) }
    }
    guard replacesJournals else { return }
    try log.poisoning { () throws(LogError) in
      (log.journals, log.unreadJournals) = ([], [])
      try log.makeJournal(number: last + 1, after: log.manifest.start)
    }
  }
}

extension NumberedEvents {
  /// `base`: the position of position 0.
  fileprivate mutating func removeEvents(from base: Position, where isGone: (StoredEvent) -> Bool) {
    events.removeAll { isGone(StoredEvent($0.event, at: base.advanced(by: $0.relativePosition))) }
  }
}
