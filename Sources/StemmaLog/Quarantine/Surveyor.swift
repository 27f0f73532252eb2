import StemmaEvents

/// Works out what a damaged log has lost, out of what is added of its files.
struct Surveyor {
  private typealias Run = StandingRun

  var survey = Survey()
  /// What can be read of each stream, in the order of places.
  private var present: [StreamName: [Run]] = [:]
  /// Damaged files that stand for others, too, which may be gone.
  var ambiguous: Set<String> = []
  /// Copies of files that are there: what they tell of stands in these.
  var strays: Set<String> = []
  /// By place: events of journals that can be read.
  var readableCounts: [UInt64: UInt64] = [:]
  /// What can be made out of damaged files of which nobody knows what they held, and ordinary reading goes around.
  private var told: [StreamName: [Run]] = [:]
  /// The highest number of each stream that an event has seen: nothing is stored before what it has seen.
  private var seen: [StreamName: UInt64] = [:]
  private var digester = EventDigester()
  /// Up to where the tables remember; nil: to the end.
  private let end: Position?
  /// By place: the index behind the last event that a damaged journal tells. (A segment may be a copy of another one.)
  var toldEnds: [UInt64: UInt64] = [:]
  /// By place of a file: the index behind its last event, as the journal behind it says.
  var ends: [UInt64: UInt64] = [:]

  init(held: Knowledge?, end: Position?) {
    survey.held = held
    self.end = end
  }

  mutating func add(
    _ header: SegmentHeader, _ path: String, isDamaged: Bool, _ log: Log
  ) throws(LogError) {
    let place = header.place
    do throws(LogError) {
      let segment = try log.segment(header)
      let footer = try segment.footer()
      let file = DamagedFile(kind: .segment(segment, footer), end: (footer, nil))
      guard isDamaged else {
        for (name, run) in file.claims {
          add(name, from: run.from.rawValue, to: run.to.rawValue, place)
          note(name, run.to, run.hash)
        }
        // What the tables have taken in they remember.
        if survey.held == nil || end.map({ $0.file <= place }) ?? false {
          see(try segment.contents(around: Omissions()).events.map(\.event))
        }
        return
      }
      survey.files[place] = file
      add(try file.contents(), place: place)
    } catch {
      guard let damage = error.damage else { throw error }
      survey.files[place] = DamagedFile(kind: .nothing(path: path), end: try log.inspectedEnd(of: path))
      if !survey.damage.contains(damage) { survey.damage = (survey.damage + [damage]).sorted() }
    }
  }

  mutating func see(_ events: [Event]) {
    for event in events {
      for entry in event.context.entries {
        let name = StreamName(partition: event.partition, origin: entry.origin)
        seen[name] = max(seen[name] ?? 0, entry.sequence.rawValue)
      }
    }
  }

  mutating func noteStanding() { survey.standing = present }

  /// Finds the place of a segment whose header cannot be read: one of `places`, the last of which is in its name; or, if it
  /// fits none of them, one of `others`, of whose files nothing is left. It is where the file behind says so, or where alone
  /// it fits between the others. If that is not its own, it is a copy of the one that is gone there, and tells nothing of
  /// the one that it has the name of.
  mutating func settle(_ path: String, at places: [UInt64], or others: [UInt64], _ log: Log) {
    guard let first = places.first, let number = places.last, let file = survey.files[first],
      file.path == path, file.tellsAll, file.hasUnreadHeader,
      places.dropFirst().allSatisfy({ survey.files[$0] == nil })
    else { return }
    // Only one that replaces others can have another place than its number.
    let own = file.trailer == nil ? places : [number]
    let others = (others + places).filter { place in
      !own.contains(place) && survey.files[place].map { !$0.tellsAll || $0.claims == file.claims } ?? true
    }
    let damaged = Set(survey.files.keys).union(places)
    func stood(at place: UInt64) -> Bool? {
      file.trailer.flatMap { log.stood($0, at: place, among: damaged) }
    }
    func fits(_ place: UInt64) -> Bool {
      file.claims.allSatisfy { name, claim in
        let run = Run(from: claim.from.rawValue, to: claim.to.rawValue, place: place)
        return !isOutOfPlace(name, run) && !leavesNoPlace(name, run, among: damaged)
      }
    }
    var fitting = (own + others).filter { stood(at: $0) == true }
    for some in [own, others] where fitting.isEmpty {
      fitting = some.filter { stood(at: $0) != false && fits($0) }
    }
    guard let place = fitting.count == 1 ? fitting[0] : file.trailer == nil ? nil : number else { return }
    ambiguous.remove(path)
    survey.files[first] = nil
    let isItsOwn = own.contains(place)
    for other in places.dropLast() where !isItsOwn || other != place {
      let missing = Damage(path: LogFileName.segment(other, in: log.directory), offset: 0, flaw: .missing)
      survey.files[other] = DamagedFile(kind: .nothing(path: missing.path))
      survey.damage = (survey.damage + [missing]).sorted()
    }
    if isItsOwn {
      survey.files[place] = file
      return
    }
    strays.insert(path)
    survey.files[number] = DamagedFile(kind: .nothing(path: path))
    survey.files[place]?.claims = file.claims
    survey.files[place]?.tellsAll = true
    survey.files[place]?.copies.append(path)
  }

  /// Finds the place of a segment of which neither header nor footer can be read: the last of `places`, which is in its name,
  /// unless what it tells fits between the others at another one of them only. All the others are holes: they are filled on
  /// their own, as if it was not there, and so is its number, if that is not its place.
  mutating func separate(_ path: String, at places: [UInt64], telling events: [Event], _ log: Log) {
    guard let first = places.first, let number = places.last, let file = survey.files[first],
      file.path == path, !file.tellsAll,
      places.dropFirst().allSatisfy({ survey.files[$0] == nil })
    else { return }
    // One behind the journal replaced another one, and has no place of its own.
    let last = log.journals.last?.number ?? .max
    let candidates = places.filter { $0 <= last }.reversed()
    let damaged = Set(survey.files.keys).union(places)
    let runs = Self.runs(of: events, 0)
    func fits(_ place: UInt64) -> Bool {
      runs.allSatisfy { name, runs in
        runs.allSatisfy { run in
          let run = Run(from: run.from, to: run.to, place: place)
          return !isOutOfPlace(name, run) && !leavesNoPlace(name, run, among: damaged)
        }
      }
    }
    let place = candidates.first(where: fits) ?? candidates.first ?? first
    ambiguous.remove(path)
    survey.files[first] = nil
    let isHole = number <= last
    for other in places.dropLast() where other <= last && (other != place || isHole) {
      let missing = Damage(path: LogFileName.segment(other, in: log.directory), offset: 0, flaw: .missing)
      survey.files[other] = DamagedFile(kind: .nothing(path: missing.path))
      survey.damage = (survey.damage + [missing]).sorted()
    }
    if isHole, place != number {
      strays.insert(path)
      survey.files[place]?.copies.append(path)
      survey.files[number] = file
      return
    }
    survey.files[place] = file
  }

  mutating func add(_ contents: NumberedEvents, place: UInt64) {
    see(contents.events.map(\.event))
    for event in contents.events.map(\.event) {
      let name = StreamName(event)
      add(name, from: event.dot.sequence.rawValue, to: event.dot.sequence.rawValue, place)
      let hash = digester.digest(of: event).hash
      note(name, event.dot.sequence, hash)
      survey.files[place]?.readable[name, default: .zero] += hash
    }
  }

  mutating func addTold(_ events: [Event], _ place: UInt64) {
    for (name, runs) in Self.runs(of: events, place) { told[name, default: []] += runs }
  }

  private static func runs(of events: [Event], _ place: UInt64) -> [StreamName: [Run]] {
    Dictionary(grouping: events) { StreamName($0) }.mapValues { events in
      var runs: [Run] = []
      for number in Set(events.map(\.dot.sequence.rawValue)).sorted() {
        if let last = runs.last, last.to + 1 == number {
          runs[runs.count - 1].to = number
        } else {
          runs.append(Run(from: number, to: number, place: place))
        }
      }
      return runs
    }
  }

  private mutating func note(_ name: StreamName, _ sequence: Sequence, _ hash: StreamHash) {
    var head = survey.readable[name] ?? .none
    head.sequence = max(head.sequence, sequence)
    head.hash += hash
    survey.readable[name] = head
  }

  private mutating func add(_ name: StreamName, from: UInt64, to: UInt64, _ place: UInt64) {
    var run = Run(from: from, to: to, place: place)
    if let last = present[name]?.last, last.place == place, last.to + 1 == from {
      run.from = last.from
      present[name]?.removeLast()
    }
    present[name, default: []].append(run)
  }

  /// Finds the gaps of every stream, and the files that held them.
  mutating func conclude() {
    survey.lost = []
    survey.outOfOrder = []
    var names = Set(present.keys).union(told.keys).union(seen.keys)
    for file in survey.files.values { names.formUnion(file.claims.keys) }
    for (partition, streams) in survey.held?.partitions ?? [:] {
      for (origin, head) in streams where head.sequence > .zero {
        names.insert(StreamName(partition: partition, origin: origin))
      }
    }
    for name in names.sorted() { findGaps(of: name) }
    findDisorder()
    survey.vague = survey.damage.filter { damage in
      survey.files.contains { place, file in
        switch file.kind {
        case .segment: false
        case .journal(let journal):
          journal.path == damage.path
            && (survey.held == nil || isCountLarger(upTo: journal.end, place)
              || isEndUnknown(of: journal, place))
        case .nothing(let path):
          path == damage.path
            && (survey.held == nil || !isRemembered(place) || isCountLarger(upTo: 0, place))
            && (!file.tellsAll || ambiguous.contains(path))
        }
      }
    }
    assert(holds(checkInvariants))
  }

  /// Traps if what can be read is called lost, or what the survey says contradicts itself. In debug builds at each
  /// conclusion.
  func checkInvariants() {
    survey.checkInvariants()
    for (name, runs) in present {
      precondition(!runs.isEmpty && runs.allSatisfy { $0.from <= $0.to }, "a run has an event")
      let highest = survey.readable[name]?.sequence.rawValue ?? 0
      precondition(runs.allSatisfy { $0.to <= highest }, "what can be read counts for its stream")
    }
    for range in survey.lost {
      let runs = present[range.stream] ?? []
      precondition(
        runs.allSatisfy { $0.to < range.from.rawValue || $0.from > range.to.rawValue },
        "what can be read is not lost")
    }
  }

  /// Where what a file without a header tells cannot have stood at its place, for what others hold before it and behind it,
  /// and could have at that of another damaged one which tells the same, it is a copy of that one, and tells nothing of
  /// its own place.
  mutating func settleCopies() {
    var runs: [UInt64: [(name: StreamName, run: Run)]] = [:]
    for (name, told) in told { for run in told { runs[run.place, default: []].append((name, run)) } }
    for (place, file) in survey.files where file.tellsAll {
      runs[place, default: []] += file.claims.map { name, claim in
        (name, Run(from: claim.from.rawValue, to: claim.to.rawValue, place: place))
      }
    }
    let misplaced = runs.filter { place, runs in
      guard let file = survey.files[place], file.hasUnreadHeader else { return false }
      return runs.contains { name, run in
        isOutOfPlace(name, run) || file.tellsAll && leavesNoPlace(name, run, among: Set(survey.files.keys))
      }
    }
    for (place, told) in misplaced.sorted(by: { $0.key < $1.key }) {
      guard let path = survey.files[place]?.path else { continue }
      // One that stands for several places is not a copy of itself.
      let original = runs.keys.sorted().first { other in
        misplaced[other] == nil && survey.files[other]?.path != path
          && (runs[other] ?? []).contains { name, run in
            told.contains { $0.name == name && $0.run.from <= run.to && $0.run.to >= run.from }
          }
      }
      guard let original else { continue }
      survey.files[original]?.copies.append(path)
      strays.insert(path)
      disown(place)
      toldEnds[place] = nil
      for name in self.told.keys { self.told[name]?.removeAll { $0.place == place } }
    }
  }

  /// Whether whole files hold later events before its place, or earlier ones behind it.
  private func isOutOfPlace(_ name: StreamName, _ run: Run) -> Bool {
    (present[name] ?? []).contains { other in
      other.place < run.place ? other.to >= run.from : other.place > run.place && other.from <= run.to
    }
  }

  /// Whether events before it are lost, or behind it, and no other damaged file stands where they must have been.
  private func leavesNoPlace(_ name: StreamName, _ run: Run, among damaged: Set<UInt64>) -> Bool {
    let others = present[name] ?? []
    let before = others.filter { $0.to < run.from }.max { $0.to < $1.to }
    let behind = others.filter { $0.from > run.to }.min { $0.from < $1.from }
    let next = behind?.from ?? (survey.held?[name.partition, name.origin].sequence.rawValue ?? run.to) + 1
    func isDamaged(_ places: (UInt64) -> Bool) -> Bool {
      damaged.contains { $0 != run.place && places($0) }
    }
    if run.from > (before?.to ?? 0) + 1,
      !isDamaged({ $0 >= before?.place ?? 0 && $0 < run.place })
    {
      return true
    }
    return next > run.to + 1 && !isDamaged { $0 > run.place && $0 <= behind?.place ?? .max }
  }

  /// What a file tells of itself cannot be so where others hold the same events, or later ones stand before it, or say so of
  /// themselves: it has the place of another file.
  mutating func disownFooters() {
    var runs = present
    for (place, file) in survey.files {
      for (name, claim) in file.claims {
        runs[name, default: []].append(Run(from: claim.from.rawValue, to: claim.to.rawValue, place: place))
      }
    }
    let others = survey.files.filter { place, file in
      file.hasUnreadHeader
        && file.claims.contains { name, claim in
          (runs[name] ?? []).contains { run in
            if run.place == place { return false }
            return run.place < place ? run.to >= claim.from.rawValue : run.from <= claim.to.rawValue
          }
        }
    }
    for place in others.keys { disown(place) }
  }

  private mutating func disown(_ place: UInt64) {
    survey.files[place]?.claims = [:]
    survey.files[place]?.tellsAll = false
  }

  /// Believes no file any more that cannot have held what it says with what others have lost. Returns the places of these.
  mutating func disownDisorder() -> [UInt64] {
    let places = survey.outOfOrder.filter {
      survey.files[$0].map { $0.hasUnreadHeader && $0.tellsAll } == true
    }
    for place in places { disown(place) }
    return places.sorted()
  }

  /// Where files of which nothing can be read in the ordinary way tell events in an order that cannot be, the first of them
  /// stands for all.
  mutating func joinDisorder() {
    guard let first = survey.outOfOrder.min(),
      survey.outOfOrder.allSatisfy({ survey.files[$0]?.hasUnreadHeader == true })
    else { return }
    for index in survey.lost.indices {
      guard let place = survey.lost[index].place, survey.outOfOrder.contains(place) else { continue }
      survey.lost[index].place = first
      survey.lost[index].isPlaceSure = false
    }
    survey.outOfOrder = []
    findDisorder()
  }

  /// Finds the files whose losses would break the order of a stream.
  private mutating func findDisorder() {
    for (name, ranges) in Dictionary(grouping: survey.lost, by: \.stream) {
      var runs = present[name] ?? []
      for range in ranges {
        guard let place = range.place else { continue }
        runs.append(Run(from: range.from.rawValue, to: range.to.rawValue, place: place))
      }
      runs.sort { $0.from < $1.from }
      for (before, run) in zip(runs, runs.dropFirst()) where run.from > before.to && run.place < before.place
      {
        survey.outOfOrder.formUnion([before.place, run.place])
      }
    }
  }

  /// Whether what a file tells counts more events than can be read of it, or are missed in streams: what a process has
  /// written and died before the tables took it in. `end`: the index behind the last event that can be read.
  private func isCountLarger(upTo end: UInt64, _ place: UInt64) -> Bool {
    let lost = survey.lost.filter { $0.place == place }.reduce(0) { $0 + $1.count }
    return max(end, toldEnds[place] ?? 0) > (readableCounts[place] ?? 0) + lost
  }

  /// Whether a journal ends with bytes that were durable and cannot be read, and nobody remembers any event of them.
  private func isEndUnknown(of journal: Journal, _ place: UInt64) -> Bool {
    guard end != nil, journal.holes.last?.offset == journal.size else { return false }
    return !survey.lost.contains { range in
      range.place == place && range.from > survey.readable[range.stream]?.sequence ?? .zero
    }
  }

  /// Whether the tables have followed the log as far as a file went, or as far as anybody can tell.
  private func isRemembered(_ place: UInt64) -> Bool {
    guard let end, end.file <= place else { return true }
    return end.file == place && end.index >= ends[place] ?? 0
  }

  private mutating func findGaps(of name: StreamName) {
    let runs = (present[name] ?? []).sorted { $0.from < $1.from }
    let told = (told[name] ?? []).sorted { $0.from < $1.from }
    let claims =
      told
      + survey.files.compactMap { place, file in
        file.claims[name].map { Run(from: $0.from.rawValue, to: $0.to.rawValue, place: place) }
      }
    var highest = survey.held?[name.partition, name.origin].sequence.rawValue ?? 0
    highest = max(highest, seen[name] ?? 0)
    for run in runs { highest = max(highest, run.to) }
    for claim in claims.dropFirst(told.count) { highest = max(highest, claim.to) }
    // Tables may be behind the log, or gone: then nobody else tells how far it went. A number that is further behind a hole
    // than a file has events is a wrong one.
    for run in told where run.from <= highest + UInt64(LogLimits.arrivals) { highest = max(highest, run.to) }
    var next: UInt64 = 1
    var before: UInt64 = 0
    for run in runs {
      if run.from > next { addGap(name, next, run.from - 1, claims, after: before, upTo: run.place) }
      next = max(next, run.to + 1)
      before = run.place
    }
    if highest >= next { addGap(name, next, highest, claims, after: before, upTo: .max) }
  }

  /// Splits a gap by the files that claim parts of it; what none claims was in the first damaged file without a
  /// footer that stands between the neighbours, claims among them.
  private mutating func addGap(
    _ name: StreamName, _ from: UInt64, _ to: UInt64, _ claims: [Run], after: UInt64, upTo last: UInt64
  ) {
    var next = from
    func add(_ to: UInt64, _ place: UInt64?, isSure: Bool = true) {
      survey.lost.append(
        LostRange(
          partition: name.partition, origin: name.origin, from: Sequence(next), to: Sequence(to),
          place: place, isPlaceSure: isSure))
      next = to + 1
    }
    let all = survey.files.keys.sorted().filter { place in
      place >= after && place <= last
        && survey.files[place].map { !$0.tellsAll || ambiguous.contains($0.path) } == true
    }
    func addUnclaimed(_ to: UInt64, between low: UInt64, and high: UInt64) {
      var candidates = all.filter { $0 >= low && $0 <= high }
      // A claim may be wrong.
      if candidates.isEmpty { candidates = all }
      let isSure =
        candidates.count < 2 && !candidates.contains { ambiguous.contains(survey.files[$0]?.path ?? "") }
      add(to, candidates.first, isSure: isSure)
    }
    var before = after
    // Claims overlap where one is wrong.
    for claim in claims.sorted(by: { ($0.from, $0.place) < ($1.from, $1.place) }) where next <= to {
      if claim.to >= next, claim.from <= to {
        if claim.from > next { addUnclaimed(claim.from - 1, between: before, and: claim.place) }
        add(min(claim.to, to), claim.place)
      } else if claim.from > to {
        break
      }
      before = max(before, claim.place)
    }
    if next <= to {
      let behind = claims.filter { $0.from > to }.map(\.place).min() ?? last
      addUnclaimed(to, between: before, and: min(behind, last))
    }
  }
}
