import StemmaEvents

extension Log {
  /// Removes all events of some partitions, by rewriting the files that hold any. Files that hold none stay
  /// as they are; positions of the other events stay what they were. Durable on return.
  ///
  /// Interrupted at any point, the log is readable and whole; calling it again goes on with the files that
  /// still hold such events. Memory: all events of one file.
  ///
  /// `events`: only those of them for which it holds. What is left of each stream must be a run in every file, or
  /// `.hole` is thrown and the file stays.
  package func purge(
    _ isPurged: (Partition) -> Bool, events isRemoved: (StoredEvent) -> Bool = { _ in true }
  ) throws(LogError) {
    try checkWritable()
    try checkWhole()
    // A partition that is fetched again begins anew.
    appended = [:]
    func isGone(_ stored: StoredEvent) -> Bool { isPurged(stored.event.partition) && isRemoved(stored) }
    // Left out at once: what is to go may be what keeps a journal from being sealed.
    if try journalsHold(isGone) { try seal(without: isGone) }
    // The last file first: where the ends of streams go, each is without a hole at every moment.
    for header in listing.headers.values.sorted(by: { $0.place > $1.place }) {
      let old = try segment(header)
      guard try old.footer().partitions.contains(where: { isPurged($0.partition) }) else { continue }
      var contents = try old.contents()
      let before = contents.events.count
      contents.removeEvents(inPlace: header.place, where: isGone)
      if contents.events.count < before { try replace(old, by: contents) }
    }
  }

  private func journalsHold(_ isGone: (StoredEvent) -> Bool) throws(LogError) -> Bool {
    for journal in journals {
      for part in journal.parts(in: 0..<UInt64.max) {
        if try journal.read(part).events.contains(where: { isGone($0.stored(inPlace: journal.number)) }) {
          return true
        }
      }
    }
    return false
  }

  /// Writes a file that stands in for `old`, under a new number and in its place.
  private func replace(_ old: Segment, by contents: NumberedEvents) throws(LogError) {
    let number = listing.highestNumber + 1
    if number > LogLimits.fileNumber {
      throw .overLimit(subject: "file number", found: number, limit: LogLimits.fileNumber)
    }
    try LogLimits.check("replaced files", old.header.replaced.count + 1, LogLimits.replaced)
    let replaced = old.header.replaced + [ReplacedFile(number: old.header.number, digest: old.trailer.digest)]
    let header = SegmentHeader(
      log: id, number: number, place: old.header.place, predecessor: old.header.predecessor,
      replaced: replaced)
    _ = try install(LogFileName.segment(number, in: directory)) { (file) throws(LogError) in
      try SegmentWriter.write(
        contents, header: header, end: old.trailer.end, chain: old.trailer.chain, level: options.level,
        to: file)
    }
    try poisoning { () throws(LogError) in
      listing.highestNumber = number
      listing.headers[old.header.number] = nil
      listing.headers[number] = header
      try fileSystem.remove(old.path)
      try relist()
    }
  }
}

extension NumberedEvents {
  /// `place`: the file number in the positions of the events.
  mutating func removeEvents(inPlace place: UInt64, where isGone: (StoredEvent) -> Bool) {
    events.removeAll { isGone($0.stored(inPlace: place)) }
  }
}

extension BlockEvent {
  fileprivate func stored(inPlace place: UInt64) -> StoredEvent {
    StoredEvent(event, at: Position(file: place, index: arrival))
  }
}
