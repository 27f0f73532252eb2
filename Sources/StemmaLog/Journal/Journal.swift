import StemmaEvents

/// Where a frame stands and what it begins with.
struct FrameMark: Equatable, Sendable {
  var offset: UInt64
  /// Index of its first event.
  var first: UInt64
  /// The chain value behind the frame.
  var chain: UInt32
}

/// What is known of one journal file after its frames were scanned. A value: readers take a copy and are not
/// disturbed by later appends.
struct Journal: Sendable {
  let path: String
  let number: UInt64
  let log: LogID
  let file: any File
  let header: JournalHeader
  let headerChain: UInt32

  /// Of the valid frames, in order.
  private(set) var marks: [FrameMark] = []
  /// Behind the last valid frame.
  private(set) var size = UInt64(JournalHeader.size)
  /// The events in valid frames: the index that the next one gets.
  private(set) var end: UInt64 = 0
  private(set) var rawBytes: UInt64 = 0
  /// How many bytes are known durable; at a frame's border.
  private(set) var durable = UInt64(JournalHeader.size)
  /// The first bad byte at or above `size`, as the last scan saw it.
  private(set) var flaw: Flaw?

  var chain: UInt32 { marks.last?.chain ?? headerChain }

  /// Identifies the log up to the first `count` frames. That of an empty journal is its predecessor's.
  func token(frames count: Int) -> LogToken {
    guard count > 0 else { return header.predecessor }
    return LogToken(
      position: Position(file: number, index: endIndex(count - 1)), chain: marks[count - 1].chain)
  }

  /// Frames that are known durable.
  var durableFrames: Int { firstMark { $0.offset >= durable } }

  /// The index behind the last event that is known durable.
  var durableEnd: UInt64 {
    let frames = durableFrames
    return frames > 0 ? endIndex(frames - 1) : 0
  }

  /// The first mark of which `isBehind` holds, or their count; `isBehind` must be false, then true.
  func firstMark(_ isBehind: (FrameMark) -> Bool) -> Int {
    var low = 0
    var high = marks.count
    while low < high {
      let middle = (low + high) / 2
      if isBehind(marks[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The mark of the frame that holds the event `index`, or `marks.count`.
  func mark(of index: UInt64) -> Int {
    index >= end ? marks.count : firstMark { $0.first > index } - 1
  }

  func endOfFrame(_ mark: Int) -> UInt64 { mark + 1 < marks.count ? marks[mark + 1].offset : size }

  /// The index behind the last event of a frame.
  func endIndex(_ mark: Int) -> UInt64 { mark + 1 < marks.count ? marks[mark + 1].first : end }

  /// Opens a journal and scans nothing yet. Throws `.damaged`, `.newerFormat`, `.foreignLog`.
  init(path: String, number: UInt64, log: LogID, file: any File) throws(LogError) {
    let bytes = try file.read(at: 0, count: JournalHeader.size)
    header = try JournalHeader(decoding: bytes, path: path, log: log, number: number)
    headerChain = JournalHeader.chain(bytes)
    self.path = path
    self.number = number
    self.log = log
    self.file = file
  }

  /// Takes in the valid frames behind those that are known, up to the first bad byte or the end of the file.
  /// Reads in pieces of `LogLimits.scanChunk`, or of one frame if that is larger.
  mutating func scan() throws(LogError) {
    let total = try file.size()
    flaw = nil
    var window = Window(file: file, total: total)
    while size < total {
      do throws(LogError) {
        take(try nextFrame(&window))
      } catch {
        guard case .damaged(_, _, let found) = error else { throw error }
        flaw = found
        return
      }
    }
  }

  /// The frame at `size`. Throws `.damaged` if there is no valid one.
  private func nextFrame(_ window: inout Window) throws(LogError) -> JournalFrame {
    let headerSize = UInt64(JournalFrame.headerSize)
    let offset = size
    let left = window.total - offset
    guard left >= headerSize else {
      throw .damaged(path: path, offset: offset, .cutShort(expected: headerSize, found: left))
    }
    let start = try window.index(of: offset, count: JournalFrame.headerSize)
    let frame = try locating(path, offset) { () throws(Flaw) in
      try JournalFrame(decoding: window.bytes, at: start, previous: chain, available: left - headerSize)
    }
    let index = try window.index(of: offset, count: JournalFrame.headerSize + frame.length)
    try locating(path, offset) { () throws(Flaw) in
      try frame.check(window.bytes, at: index, log: log, number: number, offset: offset)
      guard frame.synced <= offset else { throw .malformed("synced") }
    }
    return frame
  }

  /// A piece of the file in memory.
  private struct Window {
    let file: any File
    let total: UInt64
    var bytes: [UInt8] = []
    var start: UInt64 = 0

    /// Where in `bytes` the byte `offset` of the file stands, `count` bytes being there. Reads if need be.
    mutating func index(of offset: UInt64, count: Int) throws(LogError) -> Int {
      if offset >= start, offset - start + UInt64(count) <= UInt64(bytes.count) { return Int(offset - start) }
      let wanted = Int(min(total - offset, UInt64(max(count, LogLimits.scanChunk))))
      bytes = try file.read(at: offset, count: wanted)
      start = offset
      // The file may have been cut since its size was asked.
      if bytes.count < count { bytes += [UInt8](repeating: 0, count: count - bytes.count) }
      return 0
    }
  }

  private mutating func take(_ frame: JournalFrame) {
    marks.append(FrameMark(offset: size, first: end, chain: frame.crc))
    size += UInt64(JournalFrame.headerSize + frame.length)
    end += UInt64(frame.events)
    rawBytes += UInt64(frame.raw)
    durable = max(durable, frame.synced)
  }

  /// Says that the first `bytes` of the file are durable.
  mutating func confirm(_ bytes: UInt64) { durable = max(durable, bytes) }

  mutating func forgetFlaw() { flaw = nil }

  /// Adds a frame that was just written at `size`.
  mutating func append(events: Int, raw: Int, stored: Int, chain: UInt32) {
    marks.append(FrameMark(offset: size, first: end, chain: chain))
    size += UInt64(stored)
    end += UInt64(events)
    rawBytes += UInt64(raw)
  }

  /// The payload of a frame, read and checked anew. Throws `.damaged`.
  func payload(_ mark: Int) throws(LogError) -> [UInt8] {
    let offset = marks[mark].offset
    let length = Int(endOfFrame(mark) - offset)
    var bytes = try file.read(at: offset, count: length)
    try locating(path, offset) { [bytes] () throws(Flaw) in
      guard bytes.count == length else {
        throw .cutShort(expected: UInt64(length), found: UInt64(bytes.count))
      }
      let previous = mark > 0 ? marks[mark - 1].chain : headerChain
      let frame = try JournalFrame(
        decoding: bytes, at: 0, previous: previous, available: UInt64(length - JournalFrame.headerSize))
      guard frame.length == length - JournalFrame.headerSize else { throw .malformed("frame length") }
      try frame.check(bytes, at: 0, log: log, number: number, offset: offset)
      guard frame.crc == marks[mark].chain else {
        throw .checksum(expected: marks[mark].chain, found: frame.crc)
      }
    }
    bytes.removeFirst(JournalFrame.headerSize)
    return bytes
  }

  /// The block of a frame, with as many events as the frame says. Throws `.damaged`.
  func block(_ mark: Int) throws(LogError) -> BlockReader {
    let bytes = try payload(mark)
    let expected = endIndex(mark) - marks[mark].first
    return try decoding(path, marks[mark].offset) { () throws(EventsError) in
      let block = try BlockReader(bytes)
      guard UInt64(block.count) == expected else {
        throw .malformed("journal frame", "\(block.count) events")
      }
      return block
    }
  }

  /// The events of a frame in arrival order, numbered as they stand in this file. Throws `.damaged`.
  func events(_ mark: Int, of block: BlockReader) throws(LogError) -> [BlockEvent] {
    let first = marks[mark].first
    return try decoding(path, marks[mark].offset) { () throws(EventsError) in
      let events = try block.events()
      for (index, event) in events.enumerated() where event.arrival != first + UInt64(index) {
        throw .malformed("arrival", "\(event.arrival)")
      }
      return events
    }
  }

  /// All events with an index below `limit`, and the notes. Memory: all of them. Throws `.damaged`.
  func contents(below limit: UInt64 = .max) throws(LogError) -> NumberedEvents {
    var contents = NumberedEvents()
    for mark in marks.indices where marks[mark].first < limit {
      let block = try block(mark)
      contents.events += try events(mark, of: block)
      for (commit, note) in block.notes { contents.notes[commit] = note }
    }
    if limit < end { contents.events.removeAll { $0.arrival >= limit } }
    return contents
  }

  func collect(into runs: inout RunCollector) throws(LogError) {
    for mark in marks.indices {
      for event in try events(mark, of: try block(mark)) {
        try runs.add(event.event, offset: marks[mark].offset)
      }
    }
  }

  /// What is known durable, as if the file ended there.
  var durablePart: Journal {
    guard durable < size else { return self }
    var part = self
    let frames = durableFrames
    part.size = frames > 0 ? endOfFrame(frames - 1) : UInt64(JournalHeader.size)
    part.end = durableEnd
    part.marks.removeSubrange(frames...)
    return part
  }
}
