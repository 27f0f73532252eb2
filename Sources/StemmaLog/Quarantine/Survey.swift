import StemmaEvents

/// Events of one stream that were held and cannot be read any more.
package struct LostRange: Hashable, Sendable {
  package var partition: Partition
  package var origin: Origin
  /// The first and the last, both lost.
  package var from: Sequence
  package var to: Sequence
  /// The place of the file that held them; nil if no damaged file can have done so.
  package var place: UInt64?
  /// Whether it was no other one: several files that are gone may have held parts of a run.
  package var isPlaceSure = true

  package var count: UInt64 { to.rawValue - from.rawValue + 1 }
}

extension LostRange {
  var stream: StreamName { StreamName(partition: partition, origin: origin) }

  /// By partition, origin and sequence.
  package func precedes(_ other: LostRange) -> Bool {
    stream == other.stream ? from < other.from : stream < other.stream
  }

  /// Some of the events of it.
  func part(_ from: Sequence, _ to: Sequence) -> LostRange {
    var part = self
    (part.from, part.to) = (from, to)
    return part
  }
}

/// What a damaged log has lost: worked out from what its footers claim, from the gaps in the streams, and from
/// what somebody remembers to have held; and from what can be made out of damaged files that have no footer.
package struct Survey: Sendable {
  package var damage: [Damage] = []
  /// By partition, origin and sequence.
  package var lost: [LostRange] = []
  /// Damaged files that may have held more than `lost` says: nothing that can be read tells of it.
  package var vague: [Damage] = []

  /// Sorted.
  package var partitions: [Partition] { Set(lost.map(\.partition)).sorted() }
  package var eventCount: UInt64 { lost.reduce(0) { $0 + $1.count } }

  /// The damaged file that held a range; nil where that cannot be told.
  package func path(of range: LostRange) -> String? {
    range.isPlaceSure ? range.place.flatMap { files[$0]?.path } : nil
  }

  /// Whether a file of another place is what can be read under this path: what is lost at its own place is not in it.
  func isCopy(_ path: String) -> Bool { files.values.contains { $0.copies.contains(path) } }

  /// Places of damaged files that cannot have held what the survey says: a stream would not rise over the places.
  /// They stand for one another; nothing can be put back into them.
  var outOfOrder: Set<UInt64> = []
  /// By place: damaged files, and what their own footers say that they held.
  var files: [UInt64: DamagedFile] = [:]
  /// The sum of the digests of what can be read of each stream, and the highest sequence of it.
  var readable: [StreamName: StreamHead] = [:]
  /// What was remembered.
  var held: Knowledge?
  /// What can be read of each stream, and in which files.
  var standing: [StreamName: [StandingRun]] = [:]
}

extension Survey {
  /// Traps if an event is called lost twice, or was lost by a file that is none. In debug builds whenever one is made.
  func checkInvariants() {
    for range in lost {
      precondition(range.from <= range.to, "a range has an event")
      precondition(range.place.map { files[$0] != nil } ?? true, "what is lost was in a damaged file")
    }
    let ranges = lost.sorted { $0.precedes($1) }
    for (a, b) in zip(ranges, ranges.dropFirst()) where a.stream == b.stream {
      precondition(a.to < b.from, "an event is lost once")
    }
    held?.checkInvariants()
    precondition(Set(vague).isSubset(of: damage), "what cannot be told is why of damage")
  }
}

/// A run of events of one stream in a file.
struct StandingRun: Sendable {
  var from: UInt64
  var to: UInt64
  var place: UInt64
}

/// One damaged file of a log.
struct DamagedFile: Sendable {
  enum Kind: Sendable {
    /// Header and footer can be read, some blocks cannot.
    case segment(Segment, SegmentFooter)
    case journal(Journal)
    /// It cannot be read in the ordinary way, or is not there.
    case nothing(path: String)
  }

  var kind: Kind
  /// What its footer says; empty without one.
  var claims: [StreamName: StreamRun] = [:]
  /// Whether `claims` is all that it held.
  var tellsAll = false
  /// The sums of the digests of what can be read of it.
  var readable: [StreamName: StreamHash] = [:]
  /// Of a segment that replaces no other one: its trailer. Its number is its place.
  var trailer: SegmentTrailer?
  /// Paths of damaged files that are copies of it, and may tell what it has lost since.
  var copies: [String] = []

  var path: String {
    switch kind {
    case .segment(let segment, _): segment.path
    case .journal(let journal): journal.path
    case .nothing(let path): path
    }
  }

  /// Whether its place is known from its name alone.
  var hasUnreadHeader: Bool { if case .nothing = kind { true } else { false } }

  init(kind: Kind, end: (footer: SegmentFooter, trailer: SegmentTrailer?)? = nil) {
    self.kind = kind
    tellsAll = end != nil
    if let end, let trailer = end.trailer,
      trailer.footerOffset == UInt64(SegmentHeader.size(replaced: 0)) + end.footer.storedBytes
    {
      self.trailer = trailer
    }
    for run in end?.footer.partitions ?? [] {
      for stream in run.streams {
        claims[StreamName(partition: run.partition, origin: stream.origin)] = stream
      }
    }
  }

  /// All that can be read of it.
  func contents() throws(LogError) -> NumberedEvents {
    switch kind {
    case .segment(let segment, _): try segment.contents(around: Omissions())
    case .journal(let journal): try journal.contents(around: Omissions())
    case .nothing: NumberedEvents()
    }
  }
}

extension Log {
  /// Says what is lost by `damage`, which `verify` or readers have found, and by what opening found. `held`: what
  /// the tables remember to have taken from the log; without it, the loss at the end of a stream may not show. `end`: up to
  /// where they have followed it; without it, to where it went. What a file held behind that may be anything. `offered`: what is to be
  /// put back; what it has seen was there, too.
  ///
  /// Reads the footers of whole files, and all of the damaged ones and of the journals.
  package func survey(
    _ found: [Damage], held: Knowledge?, upTo end: Position? = nil, seenBy offered: [Event] = []
  ) throws(LogError) -> Survey {
    var surveyor = Surveyor(held: held, end: end)
    surveyor.see(offered)
    let damage = Set(found + recovery.damage)
    let paths = Set(damage.map(\.path))
    var placed: Set<Damage> = []
    var standIns: [String: [UInt64]] = [:]
    surveyor.survey.damage = damage.sorted()
    for view in views {
      switch view {
      case .damaged(let damage, let place):
        standIns[damage.path, default: []].append(place)
        // Frames of a journal may stand in the same place, whole; and one file with a header that cannot be read
        // stands for every number that is not accounted for.
        if surveyor.survey.files[place] == nil, placed.insert(damage).inserted {
          if damage.isMisnamed, !listing.isCountedByHeader(damage) { surveyor.strays.insert(damage.path) }
          let tellsNothing = damage.flaw == .missing || surveyor.strays.contains(damage.path)
          surveyor.survey.files[place] = DamagedFile(
            kind: .nothing(path: damage.path),
            end: tellsNothing ? nil : try inspectedEnd(of: damage.path))
        } else {
          surveyor.ambiguous.insert(damage.path)
        }
      case .journal(let journal):
        let before = journal.header.predecessor.position
        surveyor.ends[before.file] = before.index
        if paths.contains(journal.path) {
          surveyor.survey.files[journal.number] = DamagedFile(kind: .journal(journal))
        }
        let contents = try journal.contents(around: Omissions())
        surveyor.add(contents, place: journal.number)
        surveyor.readableCounts[journal.number] = UInt64(contents.events.count)
      case .segment(let header, let path):
        try surveyor.add(header, path, isDamaged: paths.contains(path), self)
      }
    }
    let gone = Set(standIns.values.joined()).sorted().filter { place in
      surveyor.survey.files[place].map { !$0.tellsAll && $0.path.hasSuffix(".segment") } ?? false
    }
    for (path, places) in standIns.sorted(by: { $0.key < $1.key }) {
      surveyor.settle(path, at: places, or: gone.filter { !places.contains($0) }, self)
    }
    for (path, places) in standIns.sorted(by: { $0.key < $1.key }) where surveyor.ambiguous.contains(path) {
      guard let file = places.first.flatMap({ surveyor.survey.files[$0] }) else { continue }
      let (placed, unplaced, _) = try inspectedContents(of: file)
      surveyor.separate(path, at: places, telling: placed.events.map(\.event) + unplaced, self)
    }
    surveyor.settleCopies()
    surveyor.disownFooters()
    for place in surveyor.survey.files.keys { try addTold(of: place, to: &surveyor) }
    surveyor.settleCopies()
    for (number, header) in listing.strays {
      surveyor.survey.files[header.place]?.copies.append(LogFileName.segment(number, in: directory))
    }
    for case .damaged(let damage, let place) in views where damage.flaw == .missing {
      surveyor.survey.files[place]?.copies += listing.shadowed
    }
    surveyor.conclude()
    // A file whose header cannot be read may have the name of another one.
    let disowned = surveyor.disownDisorder()
    if !disowned.isEmpty {
      for place in disowned { try addTold(of: place, to: &surveyor) }
      surveyor.conclude()
    }
    surveyor.joinDisorder()
    surveyor.noteStanding()
    return surveyor.survey
  }

  /// Adds what a damaged file tells of which nobody knows what it held.
  private func addTold(of place: UInt64, to surveyor: inout Surveyor) throws(LogError) {
    guard let file = surveyor.survey.files[place], !file.tellsAll, !surveyor.ambiguous.contains(file.path),
      !surveyor.strays.contains(file.path)
    else { return }
    let (placed, unplaced, _) = try inspectedContents(of: file)
    surveyor.addTold(placed.events.map(\.event) + unplaced, place)
    surveyor.see(placed.events.map(\.event))
    if file.path.hasSuffix(".journal") {
      surveyor.toldEnds[place] = placed.events.map { $0.arrival + 1 }.max()
    }
  }
}
