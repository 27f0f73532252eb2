import StemmaEvents

/// Gives the events of some records, those of each in arrival order. Reads each block once in which any of them may
/// stand. Memory: one block. Of a block only the events of the records are made, and its values are unpacked only if it
/// has any.
struct RecordSource: EventSource {
  private enum Part: Sendable {
    case block(Segment, BlockEntry)
    case frame(Journal, JournalPart)
  }

  /// Files to come, the next one last.
  private var views: [FileView]
  private let wanted: WantedRecords
  private let end: Position
  private let fileSystem: any FileSystem
  private let omissions: Omissions?
  /// Of the file `place`, the next one last.
  private var parts: [Part] = []
  private var place: UInt64 = 0
  private var run = BlockRun()

  init(
    _ views: [FileView], records: [RecordKey], upTo end: Position, fileSystem: any FileSystem,
    around omissions: Omissions?
  ) {
    self.views = views.filter { Position(file: $0.place, index: 0) < end }.reversed()
    wanted = WantedRecords(records)
    self.end = end
    self.fileSystem = fileSystem
    self.omissions = omissions
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitNote?)? {
    while true {
      if let event = run.take(place: place) { return (event.stored, event.note) }
      if let part = parts.last {
        let read = try omissions.reading { () throws(LogError) in try run(of: part) }
        parts.removeLast()
        run = (read ?? nil) ?? BlockRun()
        continue
      }
      guard let view = views.last else { return nil }
      let found = try omissions.reading { () throws(LogError) in try self.parts(of: view) }
      place = view.place
      parts = (found ?? []).reversed()
      views.removeLast()
    }
  }

  /// Traps if a file would be read twice.
  func checkInvariants() {
    for (a, b) in zip(views, views.dropFirst()) { precondition(a.place >= b.place, "the next one is last") }
    precondition(views.last.map { $0.place >= place } ?? true, "files are read in the order of their places")
    run.checkInvariants()
  }

  /// Indices at or above it are not given.
  private func limit(_ place: UInt64) -> UInt64 { place == end.file ? end.index : .max }

  private func parts(of view: FileView) throws(LogError) -> [Part] {
    switch view {
    case .damaged(let damage, _): throw damage.error
    case .journal(let journal):
      return journal.parts(in: 0..<limit(view.place)).map { .frame(journal, $0) }
    case .segment(let header, let path):
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem)
      // Without the filter more is read, and nothing is missed.
      let keys = try omissions.reading { () throws(LogError) in try segment.filter() }
      let passing = wanted.passing(keys)
      if passing.isEmpty { return [] }
      let footer = try segment.footer()
      return footer.blocks(inWhichMayStand: passing).map { .block(segment, footer.blocks[$0]) }
    }
  }

  /// The records' events in a block; nil if it has none.
  private func run(of part: Part) throws(LogError) -> BlockRun? {
    switch part {
    case .block(let segment, let entry):
      return try run(segment.path, entry.offset, try segment.block(entry))
    case .frame(let journal, let part):
      // Of most frames no more than the keys is unpacked.
      if let record = wanted.only, !(try journal.holds(record, part)) { return nil }
      return try run(journal.path, journal.offset(of: part), try journal.block(of: part))
    }
  }

  private func run(_ path: String, _ offset: UInt64, _ block: BlockReader) throws(LogError) -> BlockRun? {
    guard let keys = wanted.keys(of: block) else { return nil }
    let contents = try decoding(path, offset) { () throws(EventsError) in try BlockContents(block) }
    return BlockRun(contents, below: limit(place), keys: keys)
  }
}

/// Records that are looked for.
private struct WantedRecords: Sendable {
  private let records: Set<RecordKey>
  /// In their order, with what a key filter asks for.
  private let sorted: [(record: RecordKey, hash: UInt64)]

  init(_ records: [RecordKey]) {
    self.records = Set(records)
    sorted = self.records.sorted().map { ($0, KeyFilter.hash($0)) }
  }

  /// The record, if it is one.
  var only: BlockReader.Record? {
    guard sorted.count == 1, let record = sorted.first?.record else { return nil }
    return BlockReader.Record(partition: record.partition, model: record.model, key: record.key)
  }

  /// Those that a file may have, in their order.
  func passing(_ filter: KeyFilter?) -> [RecordKey] {
    sorted.filter { filter?.mayContain($0.hash) ?? true }.map(\.record)
  }

  /// Which of a block's keys are wanted; nil if none is.
  func keys(of block: BlockReader) -> [Bool]? {
    var keys = [Bool](repeating: false, count: block.keyCount)
    if let only {
      guard let key = block.number(of: only) else { return nil }
      keys[key] = true
      return keys
    }
    for key in keys.indices { keys[key] = records.contains(RecordKey(block.record(key))) }
    return keys.contains(true) ? keys : nil
  }
}

extension SegmentFooter {
  /// The blocks in which any of some records, which are sorted, may stand.
  fileprivate func blocks(inWhichMayStand records: [RecordKey]) -> [Int] {
    var found: [Int] = []
    var rest = records[...]
    for run in partitions {
      rest = rest.drop { $0.partition < run.partition }
      let own = rest.prefix { $0.partition == run.partition }
      if own.isEmpty { continue }
      rest = rest[own.endIndex...]
      // Partitions may share a block.
      for index in run.blocks where index > found.last ?? -1 && mayStand(own, inBlock: index) {
        found.append(index)
      }
    }
    return found
  }

  /// A block may hold a record of its partition if it does not begin behind it and the next one does not begin before
  /// it.
  private func mayStand(_ records: ArraySlice<RecordKey>, inBlock index: Int) -> Bool {
    if blocks[index].isGap { return true }
    // The first that does not stand before the block.
    var (low, high) = (records.startIndex, records.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if records[middle] < blocks[index].firstKey { low = middle + 1 } else { high = middle }
    }
    guard low < records.endIndex else { return false }
    return !(index + 1 < blocks.count && blocks[index + 1].firstKey < records[low])
  }
}
