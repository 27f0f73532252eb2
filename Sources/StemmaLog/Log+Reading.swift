import StemmaEvents

/// A file of the log, as it is listed to people.
package struct LogFile: Hashable, Sendable {
  package enum Kind: Sendable { case segment, journal, damaged }

  package var number: UInt64
  /// The file number in the positions of its events.
  package var place: UInt64
  package var kind: Kind
  package var path: String
  package var events: UInt64
  /// The index that an event after the last would have; more than `events` where some were purged.
  package var end: UInt64
  /// `Event.rawSize` of all events.
  package var rawBytes: UInt64
  package var storedBytes: UInt64
  /// Of a segment.
  package var digest: SegmentDigest?

  fileprivate static func damaged(_ number: UInt64, place: UInt64, path: String, size: UInt64) -> LogFile {
    LogFile(
      number: number, place: place, kind: .damaged, path: path, events: 0, end: 0, rawBytes: 0,
      storedBytes: size, digest: nil)
  }
}

extension Log {
  /// Events from `from` up to but not including `to` (nil: the end), oldest first; only those of partitions
  /// that pass the filter (nil: all). Blocks that hold none of them are not read. Damage is thrown, or collected
  /// in `omissions` and read around.
  package func events(
    from: Position = Position(file: 0, index: 0), to: Position? = nil,
    partitions filter: PartitionFilter? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    let range = from..<max(from, to ?? readEnd)
    return EventReader(
      ArrivalSource(
        views, range: range, filter: filter, direction: .oldestFirst, fileSystem: fileSystem,
        around: omissions, footers: filter == nil ? nil : footers))
  }

  /// As `events`, the newest first.
  package func eventsNewestFirst(
    from: Position = Position(file: 0, index: 0), to: Position? = nil,
    partitions filter: PartitionFilter? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    let range = from..<max(from, to ?? readEnd)
    return EventReader(
      ArrivalSource(
        views, range: range, filter: filter, direction: .newestFirst, fileSystem: fileSystem,
        around: omissions))
  }

  /// As `events`, or `eventsNewestFirst`, without making the events: for those who look at all of them and need
  /// few, or only a part of each. With `times`, blocks without an event of these times are not read; the others give
  /// all of their events.
  package func scan(
    from: Position = Position(file: 0, index: 0), to: Position? = nil,
    partitions filter: PartitionFilter? = nil, times: ClosedRange<Timestamp>? = nil,
    newestFirst: Bool = false, around omissions: Omissions? = nil
  ) -> EventScan {
    let range = from..<max(from, to ?? readEnd)
    return EventScan(
      source: ArrivalSource(
        views, range: range, filter: filter, direction: newestFirst ? .newestFirst : .oldestFirst,
        fileSystem: fileSystem, around: omissions, times: times))
  }

  /// Events before `to` in the order of (partition, model, key), those of one key in arrival order.
  /// Opens every file at once, if these are not more than `Options.openSegments`; memory: one block for each
  /// segment, and the journals.
  package func eventsByKey(
    to: Position? = nil, partitions filter: PartitionFilter? = nil, around omissions: Omissions? = nil
  ) throws(LogError) -> EventReader {
    EventReader(
      try KeySource(
        views, upTo: to ?? readEnd, filter: filter, fileSystem: fileSystem, around: omissions,
        staysOpen: views.count <= options.openSegments))
  }

  /// Events of one record before `to`, in arrival order. Of each segment it reads the footer, the key filter
  /// and the blocks where the record may stand.
  package func events(
    of record: RecordKey, to: Position? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    events(of: [record], to: to, around: omissions)
  }

  /// As of one record, of several: those of each in arrival order. A block in which any of them may stand is read once;
  /// memory: one block.
  package func events(
    of records: [RecordKey], to: Position? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    EventReader(
      RecordSource(views, records: records, upTo: to ?? readEnd, fileSystem: fileSystem, around: omissions))
  }

  /// The files in the order of their places. Reads the trailer of each segment; where that is damaged, or nothing
  /// of a file can be read, it is listed as `.damaged`, with nothing but how long it is: 0 if it is not there.
  package func files() throws(LogError) -> [LogFile] {
    var files: [LogFile] = []
    for view in views {
      switch view {
      case .segment(let header, let path):
        do throws(LogError) {
          let segment = try segment(header)
          files.append(
            LogFile(
              number: header.number, place: header.place, kind: .segment, path: path,
              events: segment.trailer.events, end: segment.trailer.end, rawBytes: segment.trailer.rawBytes,
              storedBytes: segment.fileSize, digest: segment.trailer.digest))
        } catch {
          guard case .damaged = error else { throw error }
          files.append(
            .damaged(header.number, place: header.place, path: path, size: try sizeIfThere(path)))
        }
      case .journal(let journal):
        files.append(
          LogFile(
            number: journal.number, place: journal.number, kind: .journal, path: journal.path,
            events: journal.end, end: journal.end, rawBytes: journal.rawBytes, storedBytes: journal.size,
            digest: nil))
      case .damaged(let damage, let place):
        let isStandIn = listing.standIns[place] != nil
        let path = isStandIn ? LogFileName.segment(place, in: directory) : damage.path
        files.append(.damaged(place, place: place, path: path, size: try sizeIfThere(path)))
      }
    }
    return files
  }

  /// Those of `files` that are there.
  package func filesThatAreThere() throws(LogError) -> [LogFile] {
    try files().filter { $0.kind != .damaged || $0.storedBytes > 0 }
  }

  private func sizeIfThere(_ path: String) throws(LogError) -> UInt64 {
    do throws(LogError) { return try fileSystem.open(path, .read).size() } catch {
      if error.isNoFile { return 0 }
      throw error
    }
  }

  /// A sealed file, to be shipped as it is; nil for a journal. Memory: the file.
  package func sealedFile(ofPlace place: UInt64) throws(LogError) -> SealedFile? {
    for view in views where view.place == place {
      switch view {
      case .segment(let header, _): return try segment(header).sealedFile()
      case .journal: return nil
      case .damaged(let damage, _): throw damage.error
      }
    }
    return nil
  }

  /// What the log holds of every stream: from footers, and by decoding the journals. For rebuilding what the
  /// tables keep; the tables' own copy is what everybody else asks.
  /// `isWanted`: of these partitions alone.
  /// Throws `.damaged` if a stream has a hole, does not begin with 1, or has a number twice.
  package func streams(
    in isWanted: (Partition) -> Bool = { _ in true }
  ) throws(LogError) -> Knowledge {
    var knowledge = Knowledge()
    for view in views {
      let path: String
      let runs: [PartitionRun]
      switch view {
      case .segment(let header, let name):
        path = name
        runs = try segment(header).footer().partitions
      case .journal(let journal):
        path = journal.path
        var collector = RunCollector(path: path)
        try journal.collect(into: &collector)
        runs = collector.partitions
      case .damaged(let damage, _): throw damage.error
      }
      for run in runs where isWanted(run.partition) {
        for stream in run.streams {
          let head = knowledge[run.partition, stream.origin]
          guard stream.from == head.sequence.next else {
            if stream.from <= head.sequence {
              let dot = Dot(stream.origin, stream.from)
              throw .damaged(path: path, offset: 0, .doubled(run.partition, dot))
            }
            let what = "\(run.partition) of \(stream.origin): \(stream.from) after \(head.sequence)"
            throw .damaged(path: path, offset: 0, .disagreement(what))
          }
          knowledge[run.partition, stream.origin] = StreamHead(
            sequence: stream.to, hash: head.hash + stream.hash)
        }
      }
    }
    return knowledge
  }

  // MARK: Tokens

  /// Identifies what the log holds up to `end`.
  package var token: LogToken {
    guard let open = journals.last else { return tokenWithoutJournal }
    return open.token(frames: showsUnsynced ? open.marks.count : open.durableFrames)
  }

  /// A read-only log whose writer died between closing one file and making the next has no open journal; a
  /// writer will make one. Its token says so, and matches nothing.
  private var tokenWithoutJournal: LogToken { LogToken(position: end, chain: 0) }

  /// Whether this log is the one of which the token was taken, perhaps with more events since. Reads a
  /// trailer at most. Says false, too, of a token that was taken in the middle of a journal that was sealed
  /// since: whoever seals brings the tables up to the end before.
  package func matches(_ token: LogToken) throws(LogError) -> Bool {
    if token == .start { return true }
    let position = token.position
    for journal in journals {
      if journal.header.predecessor == token { return true }
      if journal.number == position.file {
        let next = journal.firstMark { $0.first >= position.index }
        return next > 0 && journal.token(frames: next) == token
      }
    }
    guard let header = listing.headers.values.first(where: { $0.place == position.file }) else {
      return false
    }
    let trailer = try segment(header).trailer
    return trailer.end == position.index && trailer.chain == token.chain
  }
}

/// Gathers what a journal holds of each stream.
struct RunCollector {
  private struct Stream: Hashable {
    var partition: Partition
    var origin: Origin
  }

  let path: String
  /// Whether an event whose name was given before is one more of its run, and no error.
  private let takesDoubled: Bool
  private var runs: [Stream: StreamRun] = [:]
  private var events: [Partition: UInt64] = [:]
  private var digester = EventDigester()
  private var blockDigester = BlockDigester()

  init(path: String, takesDoubled: Bool = false) {
    self.path = path
    self.takesDoubled = takesDoubled
  }

  mutating func add(_ event: Event, offset: UInt64) throws(LogError) {
    events[event.partition, default: 0] += 1
    try add(event.dot, of: event.partition, digester.digest(of: event).hash, offset)
  }

  /// All events of a block, in place.
  mutating func add(_ cursor: BlockCursor, offset: UInt64) throws(LogError) {
    blockDigester.begin(cursor)
    while cursor.advance() {
      let partition = cursor.partition
      events[partition, default: 0] += 1
      try add(cursor.dot, of: partition, blockDigester.digest(of: cursor), offset)
    }
  }

  private mutating func add(
    _ dot: Dot, of partition: Partition, _ hash: StreamHash, _ offset: UInt64
  ) throws(LogError) {
    let fresh = StreamRun(
      origin: dot.origin, from: dot.sequence, to: Sequence(dot.sequence.rawValue - 1), hash: .zero)
    let stream = Stream(partition: partition, origin: dot.origin)
    var run = runs[stream] ?? fresh
    if takesDoubled, dot.sequence <= run.to { return }
    guard dot.sequence == run.to.next else {
      if dot.sequence <= run.to { throw .damaged(path: path, offset: offset, .doubled(partition, dot)) }
      let what = "\(partition) of \(dot.origin): \(dot.sequence) after \(run.to)"
      throw .damaged(path: path, offset: offset, .disagreement(what))
    }
    run.to = dot.sequence
    run.hash += hash
    runs[stream] = run
  }

  /// Traps if an event counts for a partition and for none of its streams. In debug builds when it is asked for them.
  func checkInvariants() {
    var ofStreams: [Partition: UInt64] = [:]
    for (stream, run) in runs {
      precondition(stream.origin == run.origin, "a run is found by its stream")
      ofStreams[stream.partition, default: 0] += run.to.rawValue - run.from.rawValue + 1
    }
    precondition(takesDoubled || ofStreams == events, "each event is one of its stream")
  }

  /// Sorted by partition; without blocks.
  var partitions: [PartitionRun] {
    assert(holds(checkInvariants))
    var found: [Partition: [StreamRun]] = [:]
    for (stream, run) in runs { found[stream.partition, default: []].append(run) }
    return found.keys.sorted().map { partition in
      let streams = found[partition, default: []].sorted { $0.origin < $1.origin }
      return PartitionRun(
        partition: partition, blocks: 0..<0, events: events[partition, default: 0], streams: streams)
    }
  }
}
