import StemmaEvents

/// Gives the events of one record in arrival order. Memory: those of one file.
struct RecordSource: EventSource {
  /// Files to come, the next one last.
  private var views: [FileView]
  private let record: RecordKey
  private let end: Position
  private let fileSystem: any FileSystem
  private let omissions: Omissions?
  private var run = EventRun()
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
      if let event = run.current {
        run.advance()
        return run.stored(event, place: place)
      }
      guard let view = views.last else { return nil }
      let read = try omissions.reading { () throws(LogError) in try contents(of: view) }
      place = view.place
      run = EventRun(read?.events ?? [], notes: read?.notes ?? [:])
      views.removeLast()
    }
  }

  private func contents(of view: FileView) throws(LogError) -> NumberedEvents {
    let limit = view.place == end.file ? end.index : .max
    var contents: NumberedEvents
    switch view {
    case .damaged(let damage, _): throw damage.error
    case .journal(let journal): contents = try journal.contents(below: limit, around: omissions)
    case .segment(let header, let path):
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem)
      contents = try segment.contents(of: record, around: omissions)
    }
    contents.events.removeAll { $0.arrival >= limit || RecordKey($0.event) != record }
    return contents
  }
}

extension Segment {
  /// The contents of the blocks in which a record may stand: among its events those of others.
  fileprivate func contents(
    of record: RecordKey, around omissions: Omissions?
  ) throws(LogError) -> NumberedEvents {
    // Without the filter more is read, and nothing is missed.
    let keys = try omissions.reading { () throws(LogError) in try filter() }
    guard keys?.mayContain(record) ?? true else { return NumberedEvents() }
    let footer = try footer()
    var contents = NumberedEvents()
    guard let run = footer.partitions.first(where: { $0.partition == record.partition }) else {
      return contents
    }
    for index in run.blocks where footer.mayStand(record, inBlock: index) {
      let read = try omissions.reading { () throws(LogError) in
        try self.contents(of: footer.blocks[index])
      }
      if let read { contents.add(read) }
    }
    contents.events.sort { $0.arrival < $1.arrival }
    return contents
  }
}

extension SegmentFooter {
  /// A block may hold a record if it does not begin behind it and the next one does not begin before it.
  fileprivate func mayStand(_ record: RecordKey, inBlock index: Int) -> Bool {
    let isBefore = index + 1 < blocks.count && blocks[index + 1].firstKey < record
    return !isBefore && !(record < blocks[index].firstKey)
  }
}
