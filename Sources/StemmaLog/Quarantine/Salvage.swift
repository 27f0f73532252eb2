import StemmaEvents

// Reading stops at a part whose checksum does not hold, or goes around all that it vouches for: without its header,
// footer or trailer a whole segment. Inspection reads what is there all the same. Salvage takes the lost events from
// such a reading, and believes them as it would a stranger: only where their digests sum to what a footer or the
// tables say of the stream (`ProvenOffers`).

/// Lost events that damaged files still tell.
package struct Salvage: Sendable {
  /// By place: what can be made out of a damaged file and ordinary reading goes around. Unproven, but of parts whose
  /// checksums hold, so that it stood there.
  fileprivate(set) var placed: [UInt64: NumberedEvents] = [:]
  /// By place: events of blocks of which no checksum is left. Their indices and notes may be anything.
  fileprivate(set) var unplaced: [UInt64: [Event]] = [:]
  /// By place: what of it mending puts back.
  fileprivate(set) var rescued: [UInt64: NumberedEvents] = [:]
  /// Lost events that mending with nothing but this puts back.
  package fileprivate(set) var ranges: [LostRange] = []
  /// Lost events that are not among these.
  package fileprivate(set) var missing: [LostRange] = []
  /// Those of `ranges` in which are events of blocks of which no checksum is left, and the commits of these events:
  /// digests prove events, and nothing proves who wrote them and why. Mending needs an offer of these commits.
  package fileprivate(set) var unnoted: [LostRange] = []
  package fileprivate(set) var unnotedCommits: Set<CommitID> = []
  /// Paths of files that have no footer, and yet lost nothing that is not put back: the frames number their events.
  fileprivate(set) var complete: Set<String> = []

  package init() {}

  package var count: UInt64 { ranges.reduce(0) { $0 + $1.count } }

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
  var checkedOffer: Offer {
    placed.values.reduce(into: Offer([])) { offer, contents in
      offer.events += contents.events.map(\.event)
      offer.notes.merge(contents.notes) { kept, _ in kept }
    }
  }

  /// Events of blocks of which no checksum is left.
  private func unprovenEvents(at place: UInt64) -> [Event] {
    let checked = Set((placed[place]?.events ?? []).map { EventName($0.event) })
    return (unplaced[place] ?? []).filter { !checked.contains(EventName($0)) }
  }

  /// The commits of those of them that are put back.
  func unprovenCommits(at place: UInt64, of isPutBack: (Event) -> Bool) -> Set<CommitID> {
    Set(unprovenEvents(at: place).filter(isPutBack).map(\.commit))
  }

  fileprivate mutating func addUnnoted(_ ranges: [LostRange], at place: UInt64) {
    let streams = Dictionary(grouping: unprovenEvents(at: place)) {
      StreamName(partition: $0.partition, origin: $0.dot.origin)
    }
    for range in ranges {
      let events = (streams[range.stream] ?? []).filter { (range.from...range.to).contains($0.dot.sequence) }
      if !events.isEmpty { unnoted.append(range) }
    }
  }

  func events(at place: UInt64) -> [Event] {
    (unplaced[place] ?? []) + (placed[place]?.events.map(\.event) ?? [])
  }

  /// The events of `ranges`, in the order of their positions, with the notes of their commits.
  package var events: [(event: StoredEvent, note: CommitNote?)] {
    rescued.sorted { $0.key < $1.key }.flatMap { place, contents in
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
    for (place, file) in survey.files where survey.lost.contains(where: { $0.place == place }) {
      (salvage.placed[place], salvage.unplaced[place]) = try inspectedContents(of: file)
    }
    let proven = ProvenOffers([salvage.offer], survey)
    salvage.missing = survey.lost.filter { $0.place == nil }
    for (place, file) in survey.files.sorted(by: { $0.key < $1.key }) {
      let ranges = survey.lost.filter { $0.place == place }
      guard let part = try mended(file, place, survey, proven, salvage, givesUp: true) else {
        salvage.missing += ranges
        continue
      }
      salvage.missing += part.missing
      let found = ranges.filter { !part.missing.contains($0) }
      salvage.ranges += found
      salvage.rescued[place] = part.rescued
      salvage.addUnnoted(found, at: place)
      salvage.unnotedCommits.formUnion(part.unprovenCommits)
      if part.missing.isEmpty, file.counts(part.contents), salvage.unplaced[place]?.isEmpty != false {
        salvage.complete.insert(file.path)
      }
    }
    return salvage
  }

  /// The events of the parts that ordinary reading goes around: those of parts whose checksums hold, and others.
  func inspectedContents(of file: DamagedFile) throws(LogError) -> (NumberedEvents, [Event]) {
    let source: InspectedFile
    do throws(LogError) { source = try InspectedFile(path: file.path, fileSystem: fileSystem) } catch {
      guard error.isNotFound else { throw error }
      return (NumberedEvents(), [])
    }
    let isReadable = if case .nothing = file.kind { false } else { true }
    let format: LogFileFormat = if case .journal = file.kind { .journal } else { .segment }
    var placed = NumberedEvents()
    var unplaced: [Event] = []
    try inspect(source, as: try LogFileFormat(of: source) ?? format) { part in
      guard let block = part.block, !isReadable || !part.flaws.isEmpty else { return }
      // Whatever has a block was read once, values too.
      guard case .success(let events) = Result(catching: { () throws(EventsError) in try block.events() })
      else { return }
      if part.isChecked {
        placed.add(NumberedEvents(events: events, notes: block.notes))
      } else {
        unplaced += events.map(\.event)
      }
    }
    return (placed, unplaced)
  }

  /// What a file says that it held, if header and trailer leave no doubt of it.
  func inspectedFooter(of path: String) throws(LogError) -> SegmentFooter? {
    do throws(LogError) {
      let source = try InspectedFile(path: path, fileSystem: fileSystem)
      guard try LogFileFormat(of: source) == .segment else { return nil }
      return try SegmentInspection.wholeFooter(of: source)
    } catch {
      guard error.isNotFound else { throw error }
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

extension DamagedFile {
  /// Whether `contents` are all events that the frames of a journal number, up to the last durable byte.
  fileprivate func counts(_ contents: NumberedEvents) -> Bool {
    guard case .journal(let journal) = kind, journal.holes.last?.offset != journal.size else { return false }
    return UInt64(contents.events.count) == journal.end
  }
}
