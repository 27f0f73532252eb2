import StemmaEvents

/// Events that another node made or relayed, verified and new here, in the order in which the sender came to
/// hold them.
package struct AdoptedEvents: Sendable {
  package var events: [Event]
  /// Of the commits of these events.
  package var notes: [CommitID: CommitNote]

  package init(_ events: [Event], notes: [CommitID: CommitNote] = [:]) {
    self.events = events
    self.notes = notes
  }
}

extension AdoptedEvents {
  private var numbered: [BlockEvent] {
    events.enumerated().map { BlockEvent(arrival: UInt64($0.offset), event: $0.element) }
  }

  fileprivate func write(
    _ header: SegmentHeader, level: Int32, to file: any File
  ) throws(LogError) -> SegmentTrailer {
    try SegmentWriter.write(
      NumberedEvents(events: numbered, notes: notes), header: header, end: UInt64(events.count), chain: nil,
      level: level, to: file)
  }

  /// Throws `.hole` unless the sequences of each stream rise by one.
  fileprivate func checkRuns() throws(LogError) {
    var last: [EventName: Sequence] = [:]
    for event in events {
      let stream = EventName(partition: event.partition, dot: Dot(event.dot.origin, .zero))
      if let before = last[stream], before.next != event.dot.sequence {
        throw .hole(
          partition: event.partition, origin: event.dot.origin, expected: before.next,
          found: event.dot.sequence)
      }
      last[stream] = event.dot.sequence
    }
  }
}

extension Log {
  /// Stores the events of a shipment, durable on return: many as a segment of their own, few as one frame of
  /// the journal. All of them or none. Returns the position of the first; the others follow.
  ///
  /// A segment begins only when the journal before it is closed, so that positions rise in the order in which
  /// events became visible. The caller has compared the events with what the log holds, under the lock.
  /// Throws `.hole` if the events of a stream are no run (nothing was written), and what `append`, `sync` and
  /// `seal` throw.
  package func adopt(_ adopted: AdoptedEvents) throws(LogError) -> Position {
    try checkWritable()
    try adopted.checkRuns()
    let raw = adopted.events.rawSize
    if adoptsAsSegment(rawBytes: UInt64(raw)) { return try adoptAsSegment(adopted) }
    let commits = Set(adopted.events.map(\.commit))
    let notes = adopted.notes.filter { commits.contains($0.key) }.sorted { $0.key < $1.key }
    let first = end
    try append([(adopted.events, notes.map { ($0.key, $0.value) })])
    try sync()
    return first
  }

  private func adoptAsSegment(_ adopted: AdoptedEvents) throws(LogError) -> Position {
    try adoptSegment { (header, file) throws(LogError) in
      try adopted.write(header, level: options.level, to: file)
    }
  }

  /// Whether contents of this size become a segment of their own when they are adopted: in a log that is whole,
  /// from an eighth of a segment on. Smaller ones would each cost a footer at every pull.
  package func adoptsAsSegment(rawBytes: UInt64) -> Bool {
    rawBytes >= UInt64(options.segmentSize / 8) && recovery.damage.isEmpty
  }

  /// Stores the contents of a segment of another log as they are, durable on return. Positions are the file's and
  /// the events' arrivals there. Returns the position that precedes them all.
  ///
  /// The caller has compared every event, and what the index says, with what the log holds, under the lock; and
  /// has asked `adoptsAsSegment`. Throws what `seal` does.
  package func adopt(_ contents: SealedContents) throws(LogError) -> Position {
    try checkWritable()
    return try adoptSegment { (header, file) throws(LogError) in try contents.write(header, to: file) }
  }

  private func adoptSegment(
    _ write: (SegmentHeader, any File) throws(LogError) -> SegmentTrailer
  ) throws(LogError) -> Position {
    try seal()
    guard let open = journals.last else { throw .noLog(path: directory) }
    // The journal is empty: its number goes to the segment, which wins over it from the rename on.
    let header = SegmentHeader(
      log: id, number: open.number, place: open.number, predecessor: try lastDigest())
    let path = LogFileName.segment(open.number, in: directory)
    let trailer = try install(path) { (file) throws(LogError) in try write(header, file) }
    // From here on the segment counts. An error leaves a log that must be opened again to be written to.
    try poisoning { () throws(LogError) in
      appended = [:]
      listing.headers[header.number] = header
      journals.removeLast()
      try fileSystem.remove(open.path)
      let end = Position(file: header.place, index: trailer.end)
      try makeJournal(after: LogToken(position: end, chain: trailer.chain))
    }
    return Position(file: header.place, index: 0)
  }
}
