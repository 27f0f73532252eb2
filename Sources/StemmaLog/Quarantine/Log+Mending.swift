import StemmaEvents

/// What mending did.
package struct Mended: Sendable {
  /// Paths of the files that were replaced or made again.
  package var files: [String] = []
  /// Events that were put back.
  package var events: UInt64 = 0
  /// What is still missing: a file is mended as a whole or not at all.
  package var missing: [LostRange] = []
  /// Streams whose events were offered and are not the ones that were lost: their digests do not sum to what
  /// the footer, or the one who remembers, says. Nothing of their files was written.
  package var forged: [(partition: Partition, origin: Origin)] = []
}

extension Log {
  /// Puts lost events back: writes every damaged file anew from what can be read of it and from `offered`, in
  /// its old place. `offered` may hold more than was lost; the rest is left alone. Durable on return.
  ///
  /// The digests must sum to the stream hashes that are known. Interrupted at any point, the log is as it was, or
  /// some of its files are mended. The events keep an order in which causes come before effects; their indices
  /// may be others than before, so that tables made from the log must be made anew.
  package func mend(
    _ survey: Survey, with offered: [Event], notes: [CommitID: CommitNote]
  ) throws(LogError) -> Mended {
    try checkWritable()
    var mended = Mended()
    var repository: [StreamName: [Sequence: Event]] = [:]
    for event in offered {
      let name = StreamName(partition: event.partition, origin: event.dot.origin)
      repository[name, default: [:]][event.dot.sequence] = event
    }
    let forged = survey.forged(repository)
    mended.forged = forged.sorted().map { ($0.partition, $0.origin) }
    mended.missing = survey.lost.filter { $0.place == nil }
    for (place, file) in survey.files.sorted(by: { $0.key < $1.key }) {
      let ranges = survey.lost.filter { $0.place == place }
      let isForged = ranges.contains { range in
        forged.contains(StreamName(partition: range.partition, origin: range.origin))
      }
      guard !isForged, let events = ranges.events(in: repository) else {
        mended.missing += ranges
        continue
      }
      let commits = Set(events.map(\.commit))
      var contents = try file.contents()
      let slots = file.freeIndices(contents)
      contents.notes.merge(notes.filter { commits.contains($0.key) }) { kept, _ in kept }
      try contents.insert(events, into: slots, path: file.path)
      mended.files.append(try rewrite(file, place: place, contents))
      mended.events += UInt64(events.count)
    }
    try load()
    return mended
  }

  /// Gives up what damage has taken: writes every damaged file anew, in its old place, from what can be read of
  /// it, without the events for which `isRemoved` holds. Durable on return.
  ///
  /// Interrupted at any point, the log is as it was, or some of its files are written anew. What is left of each
  /// stream must be a run in every file, or `.hole` is thrown and the file stays.
  package func giveUp(_ survey: Survey, removing isRemoved: (Event) -> Bool) throws(LogError) {
    try checkWritable()
    for (place, file) in survey.files.sorted(by: { $0.key < $1.key }) {
      var contents = try file.contents()
      contents.events.removeAll { isRemoved($0.event) }
      _ = try rewrite(file, place: place, contents)
    }
    try load()
  }

  /// Writes a damaged file anew and returns its path.
  private func rewrite(
    _ file: DamagedFile, place: UInt64, _ contents: NumberedEvents
  ) throws(LogError) -> String {
    var end = contents.events.last.map { $0.arrival + 1 } ?? 0
    var chain: UInt32?
    var number = place
    var replaced: [ReplacedFile] = []
    var predecessor = try digest(before: place)
    let old: String?
    switch file.kind {
    case .journal(let journal):
      end = max(end, journal.end)
      old = journal.path
    case .segment(let segment, _):
      end = max(end, segment.trailer.end)
      chain = segment.trailer.chain
      predecessor = segment.header.predecessor
      replaced = segment.header.replaced
      replaced.append(ReplacedFile(number: segment.header.number, digest: segment.trailer.digest))
      number = listing.highestNumber + 1
      old = segment.path
    case .nothing(let path):
      old = try list(path) ? path : nil
      let digest = digestNamed(after: place)
      if let old, case .segment(let found) = LogFileName(String(old.dropFirst(directory.count + 1))) {
        if let header = listing.headers[found] {
          predecessor = header.predecessor
          replaced = header.replaced
        } else {
          replaced = (place..<max(place, found)).filter(isUnaccounted).map {
            ReplacedFile(number: $0, digest: digest)
          }
        }
        replaced.append(ReplacedFile(number: found, digest: digest))
      } else if digest != .none {
        replaced = [ReplacedFile(number: place, digest: digest)]
      }
      if !replaced.isEmpty { number = listing.highestNumber + 1 }
    }
    try LogLimits.check("replaced files", replaced.count, LogLimits.replaced)
    let header = SegmentHeader(
      log: id, number: number, place: place, predecessor: predecessor, replaced: replaced)
    let path = LogFileName.segment(number, in: directory)
    _ = try install(path) { (file) throws(LogError) in
      try SegmentWriter.write(
        contents, header: header, end: end, chain: chain, level: options.level, to: file)
    }
    try poisoning { () throws(LogError) in
      listing.highestNumber = max(listing.highestNumber, number)
      listing.headers[number] = header
      for file in replaced { listing.headers[file.number] = nil }
      journals.removeAll { $0.number == place }
      if let old, old != path { try fileSystem.remove(old) }
      try relist()
    }
    return path
  }

  private func list(_ path: String) throws(LogError) -> Bool {
    try fileSystem.list(directory).contains(String(path.dropFirst(directory.count + 1)))
  }

  private func isUnaccounted(_ number: UInt64) -> Bool {
    listing.headers[number] == nil && !journals.contains { $0.number == number }
      && !listing.headers.values.contains { $0.replaced.contains { $0.number == number } }
  }

  /// The digest of the segment before a place, as far as it can be read.
  private func digest(before place: UInt64) throws(LogError) -> SegmentDigest {
    guard let header = listing.headers.values.filter({ $0.place < place }).max(by: { $0.place < $1.place })
    else { return .none }
    return try Omissions?.some(Omissions()).reading { () throws(LogError) in
      try segment(header).trailer.digest
    } ?? .none
  }

  /// The digest that the segment after a place says the one before it had: that one must be named by whatever
  /// stands in for it.
  private func digestNamed(after place: UInt64) -> SegmentDigest {
    listing.headers.values.filter { $0.place > place }.min { $0.place < $1.place }?.predecessor ?? .none
  }
}

extension Survey {
  /// Streams of which the offered events are not what was lost.
  fileprivate func forged(_ offered: [StreamName: [Sequence: Event]]) -> Set<StreamName> {
    var digester = EventDigester()
    var forged: Set<StreamName> = []
    let streams = Dictionary(grouping: lost) { StreamName(partition: $0.partition, origin: $0.origin) }
    for (name, ranges) in streams {
      guard let events = ranges.events(in: offered) else { continue }
      var sum = readable[name]?.hash ?? .zero
      for event in events { sum += digester.digest(of: event).hash }
      // What is remembered covers the whole stream, unless more can be read than was remembered.
      let head = held?[name.partition, name.origin] ?? .none
      let last = max(readable[name]?.sequence ?? .zero, ranges.map(\.to).max() ?? .zero)
      if head.sequence == last {
        if sum != head.hash { forged.insert(name) }
      } else if !claimsHold(name, ranges, offered) {
        forged.insert(name)
      }
    }
    return forged
  }

  /// Whether the offered events sum, file by file, to what the footers say.
  private func claimsHold(
    _ name: StreamName, _ ranges: [LostRange], _ offered: [StreamName: [Sequence: Event]]
  ) -> Bool {
    var digester = EventDigester()
    return files.allSatisfy { place, file in
      guard let claim = file.claims[name] else { return true }
      var sum = file.readable[name] ?? .zero
      for event in ranges.filter({ $0.place == place }).events(in: offered) ?? [] {
        sum += digester.digest(of: event).hash
      }
      return sum == claim.hash
    }
  }
}

extension [LostRange] {
  /// The events of these ranges; nil if any is not there.
  fileprivate func events(in offered: [StreamName: [Sequence: Event]]) -> [Event]? {
    var events: [Event] = []
    for range in self {
      let stream = offered[StreamName(partition: range.partition, origin: range.origin)] ?? [:]
      guard range.count <= UInt64(stream.count) else { return nil }
      for number in range.from.rawValue...range.to.rawValue {
        guard let event = stream[Sequence(number)] else { return nil }
        events.append(event)
      }
    }
    return events
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
