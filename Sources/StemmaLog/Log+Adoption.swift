import StemmaEvents

extension AdoptedEvents {
  private var numbered: [BlockEvent] {
    events.enumerated().map { BlockEvent(relativePosition: UInt64($0.offset), event: $0.element) }
  }

  fileprivate func write(
    _ header: SegmentHeader, level: Int32, to file: any File
  ) throws(LogError) -> SegmentTrailer {
    try SegmentWriter.write(
      NumberedEvents(events: numbered, messages: messages), header: header, end: UInt64(events.count),
      chain: nil,
      level: level, to: file)
  }

  /// Throws `.gap` unless the sequences of each stream rise by one.
  fileprivate func checkRuns() throws(LogError) {
    var last: [QualifiedEventID: SequenceNumber] = [:]
    for event in events {
      let stream = QualifiedEventID(partition: event.partition, id: EventID(event.id.origin, .zero))
      if let before = last[stream], before.next != event.id.sequence {
        throw .gap(
          partition: event.partition, origin: event.id.origin, expected: before.next,
          found: event.id.sequence)
      }
      last[stream] = event.id.sequence
    }
  }
}

extension Log {
  /// Stores the events of a shipment, all or none, durable on return. Many events become a segment,
  /// few become one frame of the journal. Returns the position of the first; the others follow.
  ///
  /// The journal is sealed before a segment is added, so positions rise in the order in which
  /// events became visible. The caller has compared the events with the log, under the lock. Throws
  /// `.gap` with nothing written, or the errors of `append`, `sync` and `seal`.
  package func adopt(_ adopted: AdoptedEvents) throws(LogError) -> Position {
    try checkWritable()
    try adopted.checkRuns()
    let raw = adopted.events.rawSize
    if adoptsAsSegment(rawBytes: UInt64(raw)) { return try adoptAsSegment(adopted) }
    let commits = Set(adopted.events.map(\.commit))
    let messages = adopted.messages.filter { commits.contains($0.key) }.sorted { $0.key < $1.key }
    let first = end
    try append([(adopted.events, messages.map { ($0.key, $0.value) })])
    try sync()
    return first
  }

  private func adoptAsSegment(_ adopted: AdoptedEvents) throws(LogError) -> Position {
    try adoptSegment { (header, file) throws(LogError) in
      try adopted.write(header, level: options.level, to: file)
    }
  }

  /// Whether contents of this size are adopted as a segment: from an eighth of a segment on, if the
  /// log is not corrupt. Smaller segments would each cost a footer at every pull.
  package func adoptsAsSegment(rawBytes: UInt64) -> Bool {
    rawBytes >= UInt64(options.segmentSize / 8) && recovery.corruption.isEmpty
  }

  /// Stores another log's sealed contents unchanged, durable on return. Returns their base.
  ///
  /// The caller has compared every event and the index with the log, under the lock, and has called
  /// `adoptsAsSegment`. Throws the errors of `seal`.
  package func adopt(_ contents: SealedContents) throws(LogError) -> Position {
    try checkWritable()
    return try adoptSegment { (header, file) throws(LogError) in try contents.write(header, to: file) }
  }

  private func adoptSegment(
    _ write: (SegmentHeader, any File) throws(LogError) -> SegmentTrailer
  ) throws(LogError) -> Position {
    try seal()
    guard let open = journals.last else { throw .noLog(path: directory) }
    // The journal is empty: the segment takes its positions, and another journal follows.
    let header = SegmentHeader(log: id, number: manifest.nextSegment, base: open.base)
    let trailer = try makeFile(path(.segment(header.number))) { (file) throws(LogError) in
      try write(header, file)
    }
    let entry = SegmentEntry(header, trailer)
    // From here on the segment counts. After an error, the log must be opened again for writes.
    try replaceManifest { manifest in
      manifest.list(entry)
      manifest.firstJournal = open.number + 1
      manifest.start = LogToken(position: entry.past, chain: trailer.chain)
      manifest.obsolete = [ObsoleteFile(name: .journal(open.number))]
    }
    try poisoning { () throws(LogError) in
      appended = [:]
      journals.removeLast()
      try makeJournal(number: manifest.firstJournal, after: manifest.start)
    }
    return header.base
  }
}
