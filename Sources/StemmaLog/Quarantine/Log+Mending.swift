import StemmaEvents

/// What mending did.
package struct Mended: Sendable {
  /// Paths of the files that were replaced or made again.
  package var files: [String] = []
  /// Events that were put back, and how many of them the damaged files themselves told.
  package var events: UInt64 = 0
  package var rescued: UInt64 = 0
  /// Commits of events that the damaged files told, and whose notes nothing proves and nobody has offered: their notes
  /// are left out, or their files stay as they are.
  package var unnotedCommits: Set<CommitID> = []
  /// What is still missing.
  package var missing: [LostRange] = []
  /// Streams whose events were offered and are not the ones that were lost: their digests do not sum to what
  /// the footer, or the one who remembers, says. None of them was put back.
  package var forged: [(partition: Partition, origin: Origin)] = []
}

/// A damaged file as mending writes it.
struct MendedFile {
  /// What it lost and does not get back.
  var missing: [LostRange]
  var gaps: [Partition: PartitionGap]
  /// Events that it gets back, and those of them that it told itself.
  var events: UInt64
  var rescued = NumberedEvents()
  var contents = NumberedEvents()
  /// Commits of events that it told itself, and of which no checksum is left: nothing proves their notes.
  var unprovenCommits: Set<CommitID> = []
}

extension Log {
  /// Puts lost events back: writes damaged files anew from what can be read of them and from what is offered, each in
  /// its old place. Durable on return.
  ///
  /// Of each partition a file gets back all that it lost, if the digests sum to what is known of each stream, or
  /// nothing: where an event stands that builds on one that is still lost, only that one tells. Where other partitions
  /// of the file stay incomplete, it goes on saying so (`BlockEntry.isGap`), and a later offer may complete them. A
  /// file that gets nothing, or of which nobody knows what it held of these, stays as it is.
  /// Where events are lost that no damaged file can have held, before others that can be read, all stays as it is: without any
  /// damage left, nobody could read the log over that hole, and nothing would tell where it is.
  ///
  /// Interrupted at any point, the log is as it was, or some of its files are mended. The events keep an order in which
  /// causes come before effects; their indices may be others than before, so that tables made from the log must be
  /// made anew.
  ///
  /// `salvage`: what the files tell themselves is put back, too, where it stood. With it, and without any other offer,
  /// a file of which nobody knows what it held stays; and so does one that tells events of which nothing proves the notes,
  /// if no offer has their commits, unless `takesUnnoted`; and one that tells events that would not stand in the new one,
  /// as nothing proves them yet.
  package func mend(
    _ survey: Survey, with offers: [Offer], and salvage: Salvage = Salvage(), takesUnnoted: Bool = false
  ) throws(LogError) -> Mended {
    try checkWritable()
    let survey = survey.placing([salvage.checkedOffer] + offers, besides: salvage)
    var mended = Mended()
    if survey.hasHoleWithoutFile {
      mended.missing = survey.lost
      return mended
    }
    // What no checksum vouches for comes last: others may know better.
    let proven = ProvenOffers([salvage.checkedOffer] + offers + [salvage.offer], survey)
    let noted = Set(offers.flatMap { $0.events.map(\.commit) })
    // What a damaged file tells wrong is damage, and nobody's other history.
    let told = ProvenOffers(offers, survey)
    mended.forged = told.forged.filter(proven.forged.contains).map { ($0.partition, $0.origin) }
    mended.missing = survey.lost.filter { $0.place == nil }
    let vague = offers.isEmpty ? Set(survey.vague(after: salvage).map(\.path)) : []
    var isMended: Set<UInt64> = []
    for (place, file) in survey.filesInTurn where !vague.contains(file.path) {
      // A copy of what stays damaged stays, too: it may tell more of it.
      let isNeeded = survey.files.contains { $1.copies.contains(file.path) && !isMended.contains($0) }
      guard !isNeeded,
        let part = try self.mended(file, place, survey, proven, salvage, givesUp: false)
      else {
        mended.missing += survey.lost.filter { $0.place == place }
        continue
      }
      let unnoted = part.unprovenCommits.subtracting(noted)
      mended.unnotedCommits.formUnion(unnoted)
      if !unnoted.isEmpty, !takesUnnoted { continue }
      isMended.insert(place)
      mended.missing += part.missing
      mended.files.append(try rewrite(file, place: place, of: survey, part.contents, part.gaps))
      mended.rescued += UInt64(part.rescued.events.count)
      mended.events += part.events
    }
    try load()
    return mended
  }

  /// What a damaged file is to hold: what can be read of it, and of each partition what is proven, if that is all
  /// that it lost. nil: it stays as it is.
  func mended(
    _ file: DamagedFile, _ place: UInt64, _ survey: Survey, _ proven: ProvenOffers, _ salvage: Salvage,
    givesUp: Bool
  ) throws(LogError) -> MendedFile? {
    if survey.outOfOrder.contains(place) { return nil }
    let ranges = survey.lost.filter { $0.place == place }
    // Nothing is known to be lost of it; but it may be what held events that another one may have held, too.
    let isSuspect = survey.lost.contains { range in
      guard !range.isPlaceSure, let place = range.place else { return false }
      return proven.events[place]?[range.stream] == nil
    }
    if ranges.isEmpty, !file.tellsAll, isSuspect { return nil }
    var streams = proven.events[place] ?? [:]
    let incomplete = Set(ranges.filter { streams[$0.stream] == nil }.map(\.partition))
    streams = streams.filter { !incomplete.contains($0.key.partition) }
    let missing = ranges.filter { incomplete.contains($0.partition) }
    if !missing.isEmpty, streams.isEmpty { return nil }
    if !givesUp {
      // Somebody may have what proves them.
      let told = salvage.events(at: place).map(EventName.init)
      if !missing.split(by: told, at: place).named.isEmpty { return nil }
    }
    var contents = try file.contents()
    guard let gaps = survey.gaps(missing, at: place, contents) else { return nil }
    let events = Dictionary(
      streams.flatMap(\.value).map { (EventName($0), $0) }, uniquingKeysWith: { first, _ in first })
    var mended = MendedFile(missing: missing, gaps: gaps, events: UInt64(events.count))
    let commits = Set(events.values.map(\.commit))
    contents.notes.merge(proven.notes.filter { commits.contains($0.key) }) { kept, _ in kept }
    mended.unprovenCommits = salvage.unprovenCommits(at: place) { events[EventName($0)] == $0 }
    let told = Set(salvage.events(at: place).filter { events[EventName($0)] == $0 }.map(EventName.init))
    try contents.putBack(events, salvage.placed[place], of: file)
    mended.rescued.events = contents.events.filter { told.contains(EventName($0.event)) }
    mended.rescued.notes = contents.notes
    mended.contents = contents
    return mended
  }

  /// Gives up what damage has taken: writes every damaged file anew, in its old place, from what can be read of
  /// it and from what it tells, without the events for which `isRemoved` holds. Durable on return.
  ///
  /// Interrupted at any point, the log is as it was, or some of its files are written anew. What is left of each
  /// stream must be a run in every file, or `.hole` is thrown and the file stays.
  package func giveUp(
    _ survey: Survey, keeping salvage: Salvage = Salvage(), removing isRemoved: (Event) -> Bool
  ) throws(LogError) {
    try checkWritable()
    for (place, file) in survey.filesInTurn {
      var contents = try file.contents()
      if let kept = salvage.kept[place] {
        let events = kept.events.map { (EventName($0.event), $0.event) }
        try contents.putBack(Dictionary(events, uniquingKeysWith: { first, _ in first }), kept, of: file)
        contents.notes.merge(kept.notes) { known, _ in known }
      }
      contents.events.removeAll { isRemoved($0.event) }
      _ = try rewrite(file, place: place, of: survey, contents)
    }
    try load()
  }

  /// Writes a damaged file anew and returns its path.
  private func rewrite(
    _ file: DamagedFile, place: UInt64, of survey: Survey, _ contents: NumberedEvents,
    _ gaps: [Partition: PartitionGap] = [:]
  ) throws(LogError) -> String {
    var end = contents.events.last.map { $0.arrival + 1 } ?? 0
    var chain: UInt32?
    var former: SegmentHeader?
    var replaced: [ReplacedFile] = []
    let old: String?
    switch file.kind {
    case .journal(let journal):
      end = max(end, journal.end)
      old = journal.path
    case .segment(let segment, _):
      end = max(end, segment.trailer.end)
      chain = segment.trailer.chain
      former = segment.header
      replaced = segment.header.replaced
      replaced.append(ReplacedFile(number: segment.header.number, digest: segment.trailer.digest))
      old = segment.path
    case .nothing(let path):
      // A copy of another file has nothing of this one, and nobody takes it away but a person.
      if listing.outsiders.contains(where: { $0.path == path }) { try moveAside(path) }
      old = try isFile(path) ? path : nil
      let digest = nameGiven(behind: place) ?? .none
      if let old, case .segment(let found) = LogFileName(String(old.dropFirst(directory.count + 1))) {
        former = listing.headers[found]
        replaced =
          former?.replaced
          ?? (place..<max(place, found)).filter {
            $0 == place || isUnaccounted($0) && survey.files[$0] == nil
          }.map { ReplacedFile(number: $0, digest: digest) }
        replaced.append(ReplacedFile(number: found, digest: digest))
      }
    }
    let lacking = gaps.values.reduce(0) { $0 + $1.events }
    // Room for what may still be put back; and tables that stand in the middle of the file begin anew.
    end = max(end, UInt64(contents.events.count) + lacking)
    if lacking > 0 { chain = nil }
    let header = try header(at: place, former: former, replacing: replaced, around: Omissions())
    let path = LogFileName.segment(header.number, in: directory)
    _ = try install(path) { (file) throws(LogError) in
      try SegmentWriter.write(
        contents, header: header, end: end, chain: chain, level: options.level, gaps: gaps, to: file)
    }
    try poisoning { () throws(LogError) in
      listing.highestNumber = max(listing.highestNumber, header.number)
      listing.headers[header.number] = header
      for file in header.replaced { listing.headers[file.number] = nil }
      journals.removeAll { $0.number == place }
      if let old, old != path { try fileSystem.remove(old) }
      try relist()
    }
    return path
  }

  /// Whether there is a file. What is there and is none is moved aside.
  func isFile(_ path: String) throws(LogError) -> Bool {
    do throws(LogError) {
      try fileSystem.open(path, .read).close()
      return true
    } catch {
      guard error.isNoFile else { throw error }
      if !error.isNotFound { try moveAside(path) }
      return false
    }
  }

  private func isUnaccounted(_ number: UInt64) -> Bool {
    listing.headers[number] == nil && !journals.contains { $0.number == number }
      && !listing.headers.values.contains { $0.replaced.contains { $0.number == number } }
  }
}

extension Survey {
  /// Whether a stream goes on behind events that nothing can be put back for.
  fileprivate var hasHoleWithoutFile: Bool {
    lost.contains { range in
      range.place == nil && (standing[range.stream] ?? []).contains { $0.from > range.to.rawValue }
    }
  }

  /// By place, copies of others behind these: until they are written anew, nothing may write over what tells of them.
  fileprivate var filesInTurn: [(key: UInt64, value: DamagedFile)] {
    let files = files.sorted { $0.key < $1.key }
    return files.filter { !isCopy($0.value.path) } + files.filter { isCopy($0.value.path) }
  }
}

extension NumberedEvents {
  /// Puts lost events back: where they stand in `found`, if nothing else does, and the others so that causes come before
  /// effects. Throws `.damaged` if they do not fit.
  mutating func putBack(
    _ lost: [EventName: Event], _ found: NumberedEvents?, of file: DamagedFile
  ) throws(LogError) {
    var lost = lost
    var taken = Set(events.map(\.arrival))
    for item in found?.events ?? [] where lost[EventName(item.event)] == item.event {
      guard taken.insert(item.arrival).inserted else { continue }
      events.append(item)
      lost[EventName(item.event)] = nil
    }
    events.sort { $0.arrival < $1.arrival }
    let rest = lost.values.sorted {
      ($0.partition, $0.dot.origin, $0.dot.sequence) < ($1.partition, $1.dot.origin, $1.dot.sequence)
    }
    try insert(rest, into: file.freeIndices(self), path: file.path)
  }
}

extension DamagedFile {
  /// Indices that lost events may have had, rising. Where the file does not say, all behind what can be read.
  fileprivate func freeIndices(_ contents: NumberedEvents) -> [Range<UInt64>] {
    let known = contents.events.map(\.arrival).sorted()
    let past = known.last.map { $0 + 1 } ?? 0
    var free: [Range<UInt64>] = []
    var next: UInt64 = 0
    for index in known {
      if index > next { free.append(next..<index) }
      next = index + 1
    }
    let end: UInt64
    switch kind {
    case .segment(let segment, _): end = max(past, segment.trailer.end)
    case .journal, .nothing: end = .max
    }
    if end > past { free.append(past..<end) }
    return free
  }
}
