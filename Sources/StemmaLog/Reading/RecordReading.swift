import StemmaEvents

/// Returns the events of some records, those of each in position order. Reads each block once that
/// may contain any of them. Memory: one block. Constructs only the events of the records, and
/// unpacks the values of a block only if it has any.
struct RecordSource: EventSource {
  private enum Part: Sendable {
    case block(Segment, BlockEntry)
    case frame(Journal, JournalPart)
  }

  /// Files to come, the next one last.
  private var views: FileViews
  private let wanted: WantedRecords
  private let end: Position
  private let omissions: Omissions?
  /// Parts of the file that begins at `base`, the next one last.
  private var parts: [Part] = []
  private var base = Position.first
  private var run = BlockRun()

  init(
    _ views: FileViews, records: [RecordKey], upTo end: Position, around omissions: Omissions?
  ) {
    self.views = views
    self.views.files = views.files.filter { $0.base < end }.reversed()
    wanted = WantedRecords(records)
    self.end = end
    self.omissions = omissions
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitMessage?)? {
    while true {
      if let event = run.take(base: base) { return (event.stored, event.message) }
      if let part = parts.last {
        let read = try omissions.reading { () throws(LogError) in try run(of: part) }
        parts.removeLast()
        run = (read ?? nil) ?? BlockRun()
        continue
      }
      guard let view = views.files.last else { return nil }
      let found = try omissions.reading { () throws(LogError) in try self.parts(of: view) }
      base = view.base
      parts = (found ?? []).reversed()
      views.files.removeLast()
    }
  }

  /// Traps if a file would be read twice.
  func checkInvariants() {
    let files = views.files
    for (a, b) in zip(files, files.dropFirst()) { precondition(a.base >= b.base, "the next one is last") }
    precondition(files.last.map { $0.base >= base } ?? true, "files are read in their order")
    run.checkInvariants()
  }

  /// The first position that is not returned.
  private func limit(_ base: Position) -> UInt64 { end.distance(from: base) }

  private func parts(of view: FileView) throws(LogError) -> [Part] {
    switch view {
    case .corrupt(let corruption, _): throw corruption.error
    case .journal(let journal):
      return journal.parts(in: 0..<limit(view.base)).map { .frame(journal, $0) }
    case .segment(let entry):
      let segment = try views.segment(entry)
      // A corrupt filter costs reads, but misses nothing.
      let keys = try omissions.reading { () throws(LogError) in try segment.filter() }
      let passing = wanted.passing(keys)
      if passing.isEmpty { return [] }
      return try segment.root().blocks(inWhichMayStand: passing).map { .block(segment, $0) }
    }
  }

  /// The records' events in a block; nil if it has none.
  private func run(of part: Part) throws(LogError) -> BlockRun? {
    switch part {
    case .block(let segment, let entry):
      return try run(segment.path, entry.offset, try segment.block(entry))
    case .frame(let journal, let part):
      // Most frames lack the record, and only their keys are unpacked.
      if let record = wanted.only, !(try journal.holds(record, part)) { return nil }
      return try run(journal.path, journal.offset(of: part), try journal.block(of: part))
    }
  }

  private func run(_ path: String, _ offset: UInt64, _ block: BlockReader) throws(LogError) -> BlockRun? {
    guard let keys = wanted.keys(of: block) else { return nil }
    let contents = try decoding(path, offset) { () throws(EventsError) in try BlockContents(block) }
    return BlockRun(contents, below: limit(base), keys: keys)
  }
}

/// The records to find.
private struct WantedRecords: Sendable {
  private let records: Set<RecordKey>
  /// Sorted, with the hashes for key filters.
  private let sorted: [(record: RecordKey, hash: UInt64)]

  init(_ records: [RecordKey]) {
    self.records = Set(records)
    sorted = self.records.sorted().map { ($0, KeyFilter.hash($0)) }
  }

  /// The record, if there is exactly one.
  var only: BlockReader.Record? {
    guard sorted.count == 1, let record = sorted.first?.record else { return nil }
    return BlockReader.Record(partition: record.partition, model: record.model, key: record.key)
  }

  /// The records that pass a file's key filter, sorted.
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

extension FooterRoot {
  /// The blocks that may contain any of some sorted records. A block may contain a record if it
  /// does not begin behind the record, and the next block not before it.
  fileprivate func blocks(inWhichMayStand records: [RecordKey]) -> [BlockEntry] {
    var found = 0..<0
    return records.flatMap { record in
      let first = blocks.partitioningIndex { !($0.firstKey < record) } - 1
      let end = blocks.partitioningIndex { record < $0.firstKey }
      found = max(first, found.upperBound)..<max(first, found.upperBound, end)
      return blocks[found]
    }
  }
}
