import StemmaEvents

/// Gives the events of one record in arrival order. Memory: those of one file. Of a block only the events of the
/// record are made, and its values are unpacked only if it has any.
struct RecordSource: EventSource {
  /// Files to come, the next one last.
  private var views: [FileView]
  private let record: RecordKey
  private let end: Position
  private let fileSystem: any FileSystem
  private let omissions: Omissions?
  /// Of the file `place`, the next one last.
  private var runs: [BlockRun] = []
  private var place: UInt64 = 0

  init(
    _ views: [FileView], record: RecordKey, upTo end: Position, fileSystem: any FileSystem,
    around omissions: Omissions?
  ) {
    self.views = views.filter { Position(file: $0.place, index: 0) < end }.reversed()
    self.record = record
    self.end = end
    self.fileSystem = fileSystem
    self.omissions = omissions
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitNote?)? {
    while true {
      while !runs.isEmpty {
        if let event = runs[runs.count - 1].take(place: place) { return (event.stored, event.note) }
        runs.removeLast()
      }
      guard let view = views.last else { return nil }
      let read = try omissions.reading { () throws(LogError) in try self.runs(of: view) }
      place = view.place
      runs = (read ?? []).reversed()
      views.removeLast()
    }
  }

  private var wanted: BlockReader.Record {
    BlockReader.Record(partition: record.partition, model: record.model, key: record.key)
  }

  private func runs(of view: FileView) throws(LogError) -> [BlockRun] {
    let limit = view.place == end.file ? end.index : .max
    switch view {
    case .damaged(let damage, _): throw damage.error
    case .journal(let journal):
      var runs: [BlockRun] = []
      for part in journal.parts(in: 0..<limit) {
        let run = try run(journal.path, journal.offset(of: part), below: limit) { () throws(LogError) in
          try journal.holds(wanted, part) ? try journal.block(of: part) : nil
        }
        if let run { runs.append(run) }
      }
      return runs
    case .segment(let header, let path):
      return try runs(of: try Segment(path: path, header: header, fileSystem: fileSystem), below: limit)
    }
  }

  private func runs(of segment: Segment, below limit: UInt64) throws(LogError) -> [BlockRun] {
    // Without the filter more is read, and nothing is missed.
    let keys = try omissions.reading { () throws(LogError) in try segment.filter() }
    guard keys?.mayContain(record) ?? true else { return [] }
    let footer = try segment.footer()
    guard let partition = footer.partitions.first(where: { $0.partition == record.partition }) else {
      return []
    }
    var runs: [BlockRun] = []
    for index in partition.blocks where footer.mayStand(record, inBlock: index) {
      let entry = footer.blocks[index]
      let run = try run(segment.path, entry.offset, below: limit) { () throws(LogError) in
        try segment.block(entry)
      }
      if let run { runs.append(run) }
    }
    return runs
  }

  /// The record's events in a block; nil if it has none, or cannot be read and that is noted.
  private func run(
    _ path: String, _ offset: UInt64, below limit: UInt64, _ block: () throws(LogError) -> BlockReader?
  ) throws(LogError) -> BlockRun? {
    return try omissions.reading { () throws(LogError) -> BlockRun? in
      guard let block = try block(), let key = block.number(of: wanted) else { return nil }
      let contents = try decoding(path, offset) { () throws(EventsError) in try BlockContents(block) }
      return BlockRun(contents, below: limit, key: key)
    } ?? nil
  }
}

extension SegmentFooter {
  /// A block may hold a record if it does not begin behind it and the next one does not begin before it.
  fileprivate func mayStand(_ record: RecordKey, inBlock index: Int) -> Bool {
    if blocks[index].isGap { return true }
    let isBefore = index + 1 < blocks.count && blocks[index + 1].firstKey < record
    return !isBefore && !(record < blocks[index].firstKey)
  }
}
