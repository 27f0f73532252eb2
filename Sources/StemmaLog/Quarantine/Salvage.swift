import StemmaEvents

// Reading stops at a part whose checksum does not hold, or goes around all that it vouches for: without its header,
// footer or trailer a whole segment. Inspection reads what is there all the same. Salvage takes the lost events from
// such a reading, and believes them as it would a stranger: only where their digests sum to what a footer or the
// tables say of the stream (`ProvenOffers`).
//
// Where others of their stream are gone, no sum tells. Then those count as *told* of which the checksum of their part
// says that they stood there, without a byte put in, and where nobody remembers anything of the stream, the others, too.
// Mending waits for the rest of them; giving up keeps them.

/// Lost events that damaged files still tell.
package struct Salvage: Sendable {
  /// By place: what can be made out of a damaged file and ordinary reading goes around. Unproven, but of parts whose
  /// checksums hold, so that it stood there.
  fileprivate(set) var placed: [UInt64: NumberedEvents] = [:]
  /// By place: events of blocks of which no checksum is left. Their indices and notes may be anything.
  fileprivate(set) var unplaced: [UInt64: [Event]] = [:]
  /// By place: those of `placed` whose block lacks a byte. With one that the checksum tells it reads well; that it is the one
  /// which stood there only the digests of their streams prove.
  fileprivate(set) var rebuilt: [UInt64: Set<EventName>] = [:]
  /// By place: what of it is kept when the rest is given up, with places in the order.
  fileprivate(set) var kept: [UInt64: NumberedEvents] = [:]
  /// Lost events that mending with nothing but this puts back.
  package fileprivate(set) var ranges: [LostRange] = []
  /// Lost events that damaged files tell, too, while others of them, without which mending leaves them, are missing.
  package fileprivate(set) var told: [LostRange] = []
  /// Lost events that are not among these.
  package fileprivate(set) var missing: [LostRange] = []
  /// Those of `ranges` and `told` in which are events of blocks of which no checksum is left, and the commits of these events:
  /// digests prove events, and nothing proves who wrote them and why. Mending needs an offer of these commits.
  package fileprivate(set) var unnoted: [LostRange] = []
  package fileprivate(set) var unnotedCommits: Set<CommitID> = []
  /// Paths of files that have no footer, and yet lost nothing that is not put back: the frames number their events.
  fileprivate(set) var complete: Set<String> = []

  package init() {}

  /// All lost events that the damaged files tell.
  package var rescuable: [LostRange] { ranges + told }
  package var count: UInt64 { rescuable.reduce(0) { $0 + $1.count } }

  /// What can be made out, as somebody else's offer would be.
  var offer: Offer {
    var offer = Offer([])
    for place in Set(placed.keys).union(unplaced.keys) {
      offer.events += events(at: place)
      offer.notes.merge(placed[place]?.notes ?? [:]) { kept, _ in kept }
    }
    return offer
  }

  /// What can be made out of parts whose checksums hold.
  package var checkedOffer: Offer {
    placed.values.reduce(into: Offer([])) { offer, contents in
      offer.events += contents.events.map(\.event)
      offer.notes.merge(contents.notes) { kept, _ in kept }
    }
  }

  /// Events of blocks of which no checksum is left.
  func unprovenEvents(at place: UInt64) -> [Event] {
    let checked = Set((placed[place]?.events ?? []).map { EventName($0.event) })
    return (unplaced[place] ?? []).filter { !checked.contains(EventName($0)) }
  }

  /// The commits of those of them that are put back.
  func unprovenCommits(at place: UInt64, of isPutBack: (Event) -> Bool) -> Set<CommitID> {
    Set(unprovenEvents(at: place).filter(isPutBack).map(\.commit))
  }

  fileprivate mutating func addUnnoted(_ ranges: [LostRange], at place: UInt64) {
    let streams = Dictionary(grouping: unprovenEvents(at: place)) {
      StreamName($0)
    }
    for range in ranges {
      let events = (streams[range.stream] ?? []).filter { (range.from...range.to).contains($0.dot.sequence) }
      if !events.isEmpty { unnoted.append(range) }
    }
  }

  /// Traps if an event is rescued twice, or is missing all the same. In debug builds whenever something is salvaged.
  func checkInvariants() {
    let all = (ranges + told + missing).sorted { $0.precedes($1) }
    for (a, b) in zip(all, all.dropFirst()) where a.stream == b.stream {
      precondition(a.to < b.from, "an event is put back, told, or missing")
    }
    for contents in kept.values { contents.checkInvariants() }
    for (place, names) in rebuilt {
      let placed = Set((placed[place]?.events ?? []).map { EventName($0.event) })
      precondition(names.isSubset(of: placed), "what lacked a byte is told by a checksum")
    }
    precondition(Set(unnoted).isSubset(of: rescuable), "only what is put back or told lacks a note")
  }

  func events(at place: UInt64) -> [Event] {
    (unplaced[place] ?? []) + (placed[place]?.events.map(\.event) ?? [])
  }

  /// The events of `rescuable`, in the order of their positions, with the notes of their commits.
  package var events: [(event: StoredEvent, note: CommitNote?)] {
    kept.sorted { $0.key < $1.key }.flatMap { place, contents in
      contents.events.map { event in
        (
          StoredEvent(event.event, at: Position(file: place, index: event.arrival)),
          contents.notes[event.event.commit]
        )
      }
    }
  }
}

extension Log {
  /// Looks in the damaged files for what the survey calls lost. Reads all of them; writes nothing.
  package func salvage(_ survey: Survey) throws(LogError) -> Salvage {
    var salvage = Salvage()
    for (place, file) in survey.files
    where survey.lost.contains(where: { $0.place == place }) && !survey.isCopy(file.path) {
      let (placed, unplaced, rebuilt) = try inspectedContents(of: file)
      (salvage.placed[place], salvage.unplaced[place], salvage.rebuilt[place]) = (placed, unplaced, rebuilt)
    }
    let proven = ProvenOffers([salvage.offer], survey)
    var missing = survey.lost.filter { $0.place == nil }
    for (place, file) in survey.files.sorted(by: { $0.key < $1.key }) {
      let ranges = survey.lost.filter { $0.place == place }
      guard let part = try mended(file, place, survey, proven, salvage, givesUp: true) else {
        missing += ranges
        continue
      }
      missing += part.missing
      let left = Set(part.missing)
      let found = ranges.filter { !left.contains($0) }
      salvage.ranges += found
      salvage.kept[place] = part.rescued
      salvage.addUnnoted(found, at: place)
      salvage.unnotedCommits.formUnion(part.unprovenCommits)
      if part.missing.isEmpty, file.counts(part.contents), salvage.unplaced[place]?.isEmpty != false {
        salvage.complete.insert(file.path)
      }
    }
    for (place, file) in survey.files.sorted(by: { $0.key < $1.key })
    where !survey.outOfOrder.contains(place) {
      let events = salvage.toldEvents(at: place, of: missing, proven, survey)
      let ranges = missing.split(by: events.keys, at: place)
      if !events.isEmpty, try keep(events, of: file, place, &salvage) {
        salvage.told += ranges.named
        missing = ranges.rest
      }
    }
    salvage.missing = missing.sorted { $0.precedes($1) }
    assert(holds(salvage.checkInvariants))
    return salvage
  }

  /// Adds told events to what is kept of a file. False, and nothing is changed, if they fit into no order: then they
  /// are not what was written.
  private func keep(
    _ events: [EventName: Event], of file: DamagedFile, _ place: UInt64, _ salvage: inout Salvage
  ) throws(LogError) -> Bool {
    var wanted = events
    for event in salvage.kept[place]?.events ?? [] { wanted[EventName(event.event)] = event.event }
    do throws(LogError) {
      var contents = try file.contents()
      try contents.putBack(wanted, salvage.placed[place], of: file)
      contents.events.removeAll { wanted[EventName($0.event)] == nil }
      contents.notes.merge(salvage.offer.notes) { kept, _ in kept }
      salvage.kept[place] = contents
    } catch {
      guard error.damage != nil else { throw error }
      return false
    }
    salvage.unnotedCommits.formUnion(salvage.unprovenCommits(at: place) { events[EventName($0)] == $0 })
    return true
  }

  /// The events of the parts that ordinary reading goes around, in the file and in copies of it: those of parts whose
  /// checksums hold, and others; and which of the former are of parts that lack a byte.
  func inspectedContents(
    of file: DamagedFile
  ) throws(LogError) -> (placed: NumberedEvents, unplaced: [Event], rebuilt: Set<EventName>) {
    var (placed, unplaced, rebuilt) = try inspectedContents(of: file, at: file.path)
    for path in file.copies {
      let more = try inspectedContents(of: file, at: path)
      let known = Set(placed.events.map { EventName($0.event) })
      let better = Set(more.placed.events.map { EventName($0.event) }).filter {
        !known.contains($0) || rebuilt.contains($0) && !more.rebuilt.contains($0)
      }
      placed.events.removeAll { better.contains(EventName($0.event)) }
      placed.events += more.placed.events.filter { better.contains(EventName($0.event)) }
      placed.events.sort { $0.arrival < $1.arrival }
      placed.notes.merge(more.placed.notes) { known, _ in known }
      rebuilt = rebuilt.subtracting(better).union(more.rebuilt.intersection(better))
      let names = Set(unplaced.map(EventName.init))
      unplaced += more.unplaced.filter { !names.contains(EventName($0)) }
    }
    return (placed, unplaced, rebuilt)
  }

  private func inspectedContents(
    of file: DamagedFile, at path: String
  ) throws(LogError) -> (placed: NumberedEvents, unplaced: [Event], rebuilt: Set<EventName>) {
    let source: InspectedFile
    do throws(LogError) { source = try InspectedFile(path: path, fileSystem: fileSystem) } catch {
      guard error.isNoFile else { throw error }
      return (NumberedEvents(), [], [])
    }
    // What another log's file tells is not of this one.
    if let other = try JournalHeader.whole(of: source.file), other.log != id {
      return (NumberedEvents(), [], [])
    }
    let format: LogFileFormat = if case .journal = file.kind { .journal } else { .segment }
    var placed = NumberedEvents()
    var unplaced: [Event] = []
    var rebuilt: Set<EventName> = []
    var request = InspectionRequest()
    if case .journal(let number) = LogFileName(String(path.dropFirst(directory.count + 1))) {
      request.journal = (id, number)
    }
    let isRead = try file.ordinaryReading()
    try inspect(source, as: try LogFileFormat(of: source) ?? format, request) { part in
      guard let block = part.block, !isRead(part) else { return }
      // Whatever has a block was read once, values too.
      guard case .success(let events) = Result(catching: { () throws(EventsError) in try block.events() })
      else { return }
      if part.isChecked {
        placed.add(NumberedEvents(events: events, notes: block.notes))
        if part.lacksByte { rebuilt.formUnion(events.map { EventName($0.event) }) }
      } else {
        unplaced += events.map(\.event)
      }
    }
    return (placed, unplaced, rebuilt)
  }

  /// What a file says that it held, if header and trailer leave no doubt of it.
  func inspectedEnd(
    of path: String
  ) throws(LogError) -> (footer: SegmentFooter, trailer: SegmentTrailer?)? {
    do throws(LogError) {
      let source = try InspectedFile(path: path, fileSystem: fileSystem)
      guard try LogFileFormat(of: source) == .segment else { return nil }
      return try SegmentInspection.wholeEnd(of: source)
    } catch {
      guard error.isNoFile else { throw error }
      return nil
    }
  }
}

extension Survey {
  /// Damaged files that may have held more than is known to be lost, where even `salvage` does not tell.
  package func vague(after salvage: Salvage) -> [Damage] {
    vague.filter { !salvage.complete.contains($0.path) }
  }
}

extension Salvage {
  /// What a damaged file tells of `missing`, unless it is known to be wrong.
  fileprivate func toldEvents(
    at place: UInt64, of missing: [LostRange], _ proven: ProvenOffers, _ survey: Survey
  ) -> [EventName: Event] {
    let streams = Dictionary(grouping: missing, by: \.stream).mapValues { $0.sorted { $0.precedes($1) } }
    let forged = Set(proven.forged)
    func isWanted(_ event: Event) -> Bool {
      let name = StreamName(event)
      guard let ranges = streams[name], !forged.contains(name) else { return false }
      return ranges.holds(event.dot.sequence)
    }
    let rebuilt = rebuilt[place] ?? []
    let checked = (placed[place]?.events ?? []).map(\.event)
    var events = checked.filter { !rebuilt.contains(EventName($0)) && isWanted($0) }
    if survey.held == nil {
      let others = checked.filter { rebuilt.contains(EventName($0)) } + (unplaced[place] ?? [])
      events += others.filter { event in
        let name = StreamName(event)
        return survey.files[place]?.claims[name] == nil && isWanted(event)
      }
    }
    return Dictionary(events.map { (EventName($0), $0) }, uniquingKeysWith: { first, _ in first })
  }
}

extension InspectedPart {
  /// Whether its block was read with a byte that is not there.
  fileprivate var lacksByte: Bool {
    flaws.contains { if case .lacking = $0.flaw { true } else { false } }
  }
}

extension [LostRange] {
  /// Whether a number is one of these, which are of one stream, and rise.
  fileprivate func holds(_ sequence: Sequence) -> Bool {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].to < sequence { low = middle + 1 } else { high = middle }
    }
    return low < count && self[low].from <= sequence
  }

  /// The runs of these of which the names are given, as they stand at `place`, and the others.
  func split(
    by names: some Collection<EventName>, at place: UInt64
  ) -> (named: [LostRange], rest: [LostRange]) {
    var numbers: [StreamName: ArraySlice<UInt64>] = [:]
    let streams = Dictionary(grouping: names) { StreamName($0) }
    for (name, events) in streams { numbers[name] = events.map(\.dot.sequence.rawValue).sorted()[...] }
    var (named, rest): ([LostRange], [LostRange]) = ([], [])
    for range in sorted(by: { $0.precedes($1) }) {
      var next = range.from
      while let number = numbers[range.stream]?.first, number <= range.to.rawValue {
        numbers[range.stream]?.removeFirst()
        let sequence = Sequence(number)
        if sequence < next { continue }
        if sequence > next { rest.append(range.part(next, Sequence(number - 1))) }
        next = sequence.next
        if let last = named.last, last.stream == range.stream, last.to.next == sequence {
          named[named.count - 1].to = sequence
        } else {
          var part = range.part(sequence, sequence)
          (part.place, part.isPlaceSure) = (place, true)
          named.append(part)
        }
      }
      if next <= range.to { rest.append(range.part(next, range.to)) }
    }
    return (named, rest)
  }
}

extension DamagedFile {
  /// Tells of a part whether ordinary reading reads it.
  fileprivate func ordinaryReading() throws(LogError) -> (InspectedPart) -> Bool {
    switch kind {
    case .segment(let segment, let footer):
      let places = try footer.blocks.map { (entry) throws(LogError) in try segment.place(of: entry) }
      return { part in
        guard let number = part.number, number <= places.count else { return false }
        return places[number - 1] == part.offset && part.block?.count == footer.blocks[number - 1].events
      }
    // One that does not stand at its place is none for it.
    case .journal(let journal):
      return { part in part.flaws.isEmpty && journal.marks.contains { $0.offset == part.offset } }
    case .nothing: return { _ in false }
    }
  }

  /// Whether `contents` are all events that the frames of a journal number, up to the last durable byte.
  fileprivate func counts(_ contents: NumberedEvents) -> Bool {
    guard case .journal(let journal) = kind, journal.holes.last?.offset != journal.size else { return false }
    return UInt64(contents.events.count) == journal.end
  }
}
