import StemmaEvents

extension Log {
  /// Reads every byte of the log and compares all checks: checksums, digests, that blocks decode to what the
  /// footers say, that each file names the one before it. Returns what is wrong, by path and offset; nothing
  /// else is thrown for damage. `progress` gets the stored bytes of each file when it is done.
  ///
  /// A file is read up to its first damage by checksums of its parts: bytes behind it may be damaged too. Numbers that
  /// a stream has twice are no damage of bytes: `streams` throws them.
  package func verify(progress: (UInt64) -> Void = { _ in }) throws(LogError) -> [Damage] {
    var found = Set(recovery.damage)
    if let watermarkFile {
      let path = LogFileName.watermark(in: directory)
      found.formUnion(try Watermark.read(watermarkFile, path: path, log: id).1)
    } else {
      found.formUnion(recovery.watermarkDamage)
    }
    /// That the file before may be called by; nil: it cannot be read.
    var previous: [SegmentDigest]? = [.none]
    for view in views {
      do throws(LogError) {
        switch view {
        case .damaged: previous = nil
        case .journal(let journal):
          try verify(journal)
          found.formUnion(journal.holes.map { Damage(path: journal.path, offset: $0.offset, flaw: $0.flaw) })
          progress(journal.size)
        case .segment(let header, _):
          let before = previous
          previous = nil
          let segment = try segment(header)
          // First: without it a segment of which other parts are damaged would seem to break the chain.
          defer { previous = segment.names }
          guard before?.contains(header.predecessor) ?? true else {
            throw .damaged(
              path: segment.path, offset: 40, .disagreement("it does not name the file before it"))
          }
          found.formUnion(try segment.verify())
          progress(segment.fileSize)
        }
      } catch {
        guard case .damaged(let path, let offset, let flaw) = error else { throw error }
        if flaw.isDoubled { continue }
        found.insert(Damage(path: path, offset: offset, flaw: flaw))
      }
    }
    return found.sorted()
  }

  /// Whether nothing but the watermark is damaged: the next sync writes it again, and no event is lost.
  package func isHarmless(_ damage: [Damage]) -> Bool {
    damage.allSatisfy { $0.path == LogFileName.watermark(in: directory) }
  }

  /// Files that have the names of others that the log never had: what they are. They count for nothing.
  package var outsiders: [Damage] {
    listing.outsiders.map { outsider in
      let what: String
      switch outsider.flaw {
      case .disagreement: return outsider
      case .notAFile(let kind): what = "this is \(kind), not a file of the log"
      case _ where listing.unreached.contains(outsider.path):
        what =
          "the header of this file cannot be read, and no file of the log can have its number; if one is missing, give it the "
          + "name of that one"
      default: what = "nothing in this file is of a log, and the log has not come to its number"
      }
      var outsider = outsider
      let advice = listing.unreached.contains(outsider.path) ? "otherwise take it away" : "take it away"
      outsider.flaw = .disagreement("\(what); nobody reads it; \(advice)")
      return outsider
    }
  }

  /// Journals under other names than their own, which the next writer gives them back: nothing of them is lost.
  package var renamedJournals: [Damage] {
    listing.renamedJournals.sorted { $0.key < $1.key }.map { number, path in
      let name = LogFileName.digits(number) + ".journal"
      let what = "this is \(name) under another name; it is read there, and the next write gives it its own"
      return Damage(path: path, offset: 24, flaw: .disagreement(what))
    }
  }

  private func verify(_ journal: Journal) throws(LogError) {
    var runs = RunCollector(path: journal.path)
    guard journal.holes.isEmpty else { return _ = try journal.contents(around: Omissions()) }
    try journal.collect(into: &runs)
  }
}

extension Segment {
  /// All damage of the parts; if every part is whole, of the digest.
  fileprivate func verify() throws(LogError) -> [Damage] {
    // The header was read and kept, perhaps long ago.
    _ = try SegmentHeader(of: file, path: path, log: header.log, number: header.number)
    var damage: [Damage] = []
    func collecting(_ body: () throws(LogError) -> Void) throws(LogError) {
      do throws(LogError) { try body() } catch {
        guard case .damaged(let path, let offset, let flaw) = error else { throw error }
        damage.append(Damage(path: path, offset: offset, flaw: flaw))
      }
    }
    var footer: SegmentFooter?
    try collecting { () throws(LogError) in footer = try self.footer() }
    var filter: KeyFilter?
    try collecting { () throws(LogError) in filter = try self.filter() }
    if let footer {
      var runs = RunCollector(path: path)
      var events: [BlockEvent] = []
      for (index, entry) in footer.blocks.enumerated() {
        try collecting { () throws(LogError) in
          let block = try block(entry)
          let found = try decoding(path, entry.offset) { () throws(EventsError) in try block.events() }
          events += found
          try compare(footer, index, block, found, filter)
        }
      }
      if damage.isEmpty {
        try collecting { () throws(LogError) in try compare(footer, &events, &runs) }
      }
    }
    if damage.isEmpty, try digestOfBytes() != trailer.digest {
      damage.append(Damage(path: path, offset: 0, flaw: .digest))
    }
    return damage
  }

  /// Whether the footer says of a block what is in it, and the key filter has its records.
  private func compare(
    _ footer: SegmentFooter, _ index: Int, _ block: BlockReader, _ events: [BlockEvent], _ filter: KeyFilter?
  ) throws(LogError) {
    let entry = footer.blocks[index]
    try locating(path, trailer.footerOffset) { () throws(Flaw) in
      let next = footer.blocks[(index + 1)...].first { !$0.isGap }?.firstKey
      guard RecordKey(block.record(0)) == entry.firstKey,
        next.map({ RecordKey(block.record(block.keyCount - 1)) <= $0 }) ?? true
      else { throw .disagreement("keys in the footer and in a block") }
      guard events.map(\.arrival).min() == entry.firstArrival,
        events.map(\.arrival).max() == entry.lastArrival,
        events.map(\.event.timestamp).min() == entry.lowestTimestamp,
        events.map(\.event.timestamp).max() == entry.highestTimestamp
      else { throw .disagreement("times in the footer and in a block") }
      _ = try footer.partitions(of: block, index, filter)
    }
  }

  /// Whether the footer says what the events say.
  private func compare(
    _ footer: SegmentFooter, _ events: inout [BlockEvent], _ runs: inout RunCollector
  ) throws(LogError) {
    events.sort { $0.event.dot.sequence < $1.event.dot.sequence }
    var raw: UInt64 = 0
    for event in events {
      try runs.add(event.event, offset: trailer.footerOffset)
      raw += UInt64(event.event.rawSize)
    }
    let told = footer.partitions.map {
      PartitionRun(partition: $0.partition, blocks: 0..<0, events: $0.events, streams: $0.streams)
    }
    try locating(path, trailer.footerOffset) { [events] () throws(Flaw) in
      guard told == runs.partitions else { throw .disagreement("streams in the footer and in the blocks") }
      guard raw == trailer.rawBytes else { throw .disagreement("raw bytes in the trailer and in the blocks") }
      guard Set(events.map(\.arrival)).count == events.count,
        events.allSatisfy({ $0.arrival < trailer.end })
      else { throw .disagreement("indices of events") }
    }
  }
}
