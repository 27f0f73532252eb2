import StemmaEvents

/// The place of a frame and the events in it.
struct FrameEntry: Hashable, Sendable {
  var offset: UInt64
  /// The offset behind its last byte.
  var end: UInt64
  /// Index of its first event.
  var first: UInt64
  /// The index behind its last event.
  var past: UInt64
  /// Raw bytes of its events.
  var raw: UInt64
  /// The chain value before the frame, and behind it.
  var previous: UInt32
  var chain: UInt32
}

/// Bytes of a journal that were durable and cannot be read.
struct JournalGap: Equatable, Sendable {
  var offset: UInt64
  var flaw: Flaw
}

/// A frame of a journal, by its number, or unreadable durable bytes.
enum JournalPart: Sendable {
  case frame(Int)
  case gap(JournalGap)
}

/// The result of scanning one journal file. A value: later appends do not change a reader's copy.
struct Journal: Sendable {
  let path: String
  let number: UInt64
  let log: LogID
  let file: any File
  let header: JournalHeader
  let headerChain: UInt32

  /// The valid frames, in order.
  private(set) var marks: [FrameEntry] = []
  /// The offset behind the last valid frame.
  private(set) var size = UInt64(JournalHeader.size)
  /// The index that the next event gets.
  private(set) var end: UInt64 = 0
  private(set) var rawBytes: UInt64 = 0
  /// How many bytes are known durable; at a frame's border.
  private(set) var durable = UInt64(JournalHeader.size)
  /// The first bad byte at or above `size`, as the last scan saw it.
  private(set) var flaw: Flaw?
  /// Durable bytes that cannot be read, by offset; `settle` finds them.
  private(set) var gaps: [JournalGap] = []
  /// The size of the file: from `size` up to here it holds zeros that were written ahead.
  var allocated = UInt64(JournalHeader.size)
  /// Valid frames behind the first bad byte.
  private var detachedFrames: [DetachedFrame] = []
  /// The file up to `size`, or less of it, as scans have read it; nil if it is not kept.
  private var kept: [UInt8]?

  var chain: UInt32 { marks.last?.chain ?? headerChain }
  var base: Position { header.start.position }
  /// The position of the next one.
  var endPosition: Position { base.advanced(by: end) }
  var eventCount: UInt64 { gaps.isEmpty ? end : marks.reduce(0) { $0 + $1.past - $1.first } }
  /// The lowest position that an event behind corruption may have had.
  var firstLost: Position {
    guard let gap = gaps.first else { return endPosition }
    let before = marks.partitioningIndex { $0.offset >= gap.offset }
    return base.advanced(by: before > 0 ? marks[before - 1].past : 0)
  }
  /// Whether durable bytes at its end cannot be read.
  var lacksEnd: Bool { gaps.last.map { $0.offset >= size } ?? false }

  /// Identifies the log up to the first `count` frames; without any, up to the journal's start.
  func token(frames count: Int) -> LogToken {
    guard count > 0 else { return header.start }
    let mark = marks[count - 1]
    return LogToken(position: base.advanced(by: mark.past), chain: mark.chain)
  }

  /// Whether a journal that begins at `next` continues this one at its end. If this one was corrupt
  /// when that journal was made, it may continue from an earlier frame.
  func isFollowed(by next: LogToken) -> Bool {
    if next == token(frames: marks.count) { return true }
    guard next.position > endPosition else { return false }
    return next.chain == headerChain && !marks.isEmpty || marks.dropLast().contains { $0.chain == next.chain }
  }

  var durableFrames: Int { firstMark { $0.offset >= durable } }

  /// The index behind the last event that is known durable.
  var durableEnd: UInt64 {
    let frames = durableFrames
    return frames > 0 ? marks[frames - 1].past : 0
  }

  private func firstMark(_ isBehind: (FrameEntry) -> Bool) -> Int { marks.partitioningIndex(where: isBehind) }

  /// The token at a position, if a frame ends there.
  func token(at position: Position) -> LogToken? {
    let index = position.distance(from: base)
    let next = firstMark { $0.first >= index }
    let token = token(frames: next)
    return token.position == position ? token : nil
  }

  /// The index of the frame with the event `index`, else of the next one, else `marks.count`.
  func mark(of index: UInt64) -> Int { firstMark { $0.past > index } }

  /// Opens a journal without scanning it. `keepsBytes`: scans keep up to `LogLimits.keptJournal` in
  /// memory for `payload`. Throws `.corrupt`, `.newerFormat`, `.foreignLog`.
  init(
    path: String, number: UInt64, log: LogID, file: any File, keepsBytes: Bool = false
  ) throws(LogError) {
    let bytes = try file.read(at: 0, count: JournalHeader.size)
    header = try JournalHeader(decoding: bytes, path: path, log: log, number: number)
    headerChain = JournalHeader.chain(bytes)
    self.path = path
    self.number = number
    self.log = log
    self.file = file
    kept = keepsBytes ? bytes : nil
  }

  /// Reads the valid frames behind the known ones, up to the first bad byte or the end. Reads
  /// chunks of `LogLimits.scanChunk`, or one frame if that is larger.
  ///
  /// The end is the end of the file, or zeros that were written ahead. If `isThorough`, all bytes
  /// to the end of the file must be zero, else those of one frame header. Behind a bad byte, the
  /// scan looks for valid frames. Their `synced` distinguishes corruption from a torn tail.
  mutating func scan(isThorough: Bool) throws(LogError) {
    let total = try file.size()
    allocated = total
    flaw = nil
    detachedFrames = []
    // A frame that was not durable may have been overwritten.
    keep(kept)
    var window = Window(file: file, total: total, kept: kept)
    kept = nil
    defer { keep(window.kept) }
    while size < total {
      do throws(LogError) {
        let frame = try frame(at: size, after: chain, &window)
        marks.append(
          FrameEntry(
            offset: size, end: size + frame.size, first: end, past: end + UInt64(frame.events),
            raw: UInt64(frame.raw), previous: frame.previous, chain: frame.crc))
        take(frame, end: size + frame.size)
      } catch {
        guard case .corrupt(_, _, let found) = error else { throw error }
        if try isZero(to: isThorough ? total : min(total, size + UInt64(JournalFrame.headerSize)), &window) {
          return
        }
        flaw = found
        return try lookBehind(&window)
      }
    }
  }

  /// The valid frame at `offset`, or `.corrupt`. `previous`: the chain value before it, if known.
  private func frame(
    at offset: UInt64, after previous: UInt32?, _ window: inout Window
  ) throws(LogError) -> JournalFrame {
    let headerSize = UInt64(JournalFrame.headerSize)
    let left = window.total - offset
    guard left >= headerSize else {
      throw .corrupt(path: path, offset: offset, .cutShort(expected: headerSize, found: left))
    }
    let start = try window.index(of: offset, count: JournalFrame.headerSize)
    let frame = try locating(path, offset) { () throws(Flaw) in
      try JournalFrame(decoding: window.bytes, at: start, previous: previous, available: left - headerSize)
    }
    let index = try window.index(of: offset, count: JournalFrame.headerSize + frame.length)
    try locating(path, offset) { () throws(Flaw) in
      try frame.check(window.bytes, at: index, log: log, number: number, offset: offset)
      guard frame.synced <= offset else { throw .malformed("synced") }
    }
    return frame
  }

  /// Keeps no bytes behind the last valid frame: a writer may overwrite them.
  private mutating func keep(_ bytes: [UInt8]?) {
    kept = bytes
    let extra = (kept?.count ?? 0) - Int(clamping: size)
    if extra > 0 { kept?.removeLast(extra) }
  }

  /// Whether nothing was written behind the known frames: the file ends there, or zeros follow.
  func isAtEnd() throws(LogError) -> Bool {
    let next = try file.read(at: size, count: JournalFrame.headerSize)
    return next.allSatisfy { $0 == 0 } && (allocated > size || next.isEmpty)
  }

  private func isZero(to end: UInt64, _ window: inout Window) throws(LogError) -> Bool {
    var offset = size
    while offset < end {
      let count = Int(min(end - offset, UInt64(LogLimits.scanChunk)))
      let start = try window.index(of: offset, count: count)
      // Without an early exit, the compiler vectorizes the loop.
      let any = window.bytes.withUnsafeBytes { $0[start..<start + count].reduce(0, |) }
      guard any == 0 else { return false }
      offset += UInt64(count)
    }
    return true
  }

  /// A chunk of the file in memory.
  private struct Window {
    let file: any File
    let total: UInt64
    var bytes: [UInt8] = []
    var start: UInt64 = 0
    /// The file from its beginning, as far as it was read without a gap.
    var kept: [UInt8]?

    init(file: any File, total: UInt64, kept: [UInt8]? = nil) {
      (self.file, self.total, self.kept) = (file, total, kept)
    }

    /// The index in `bytes` of the byte at `offset`, with `count` bytes from there. Reads if
    /// needed.
    mutating func index(of offset: UInt64, count: Int) throws(LogError) -> Int {
      if offset >= start, offset - start + UInt64(count) <= UInt64(bytes.count) { return Int(offset - start) }
      let isInside = offset >= start && offset - start <= UInt64(bytes.count)
      let found = isInside ? bytes.count - Int(offset - start) : 0
      let wanted = Int(min(total - offset, UInt64(max(count, LogLimits.scanChunk))))
      let read = try file.read(at: offset + UInt64(found), count: wanted - found)
      keep(read, at: offset + UInt64(found))
      bytes = found > 0 ? Array(bytes.suffix(found)) + read : read
      start = offset
      // The file may have been truncated since its size was read.
      if bytes.count < count { bytes += [UInt8](repeating: 0, count: count - bytes.count) }
      assert(StemmaEvents.holds(checkInvariants))
      return 0
    }

    private mutating func keep(_ bytes: [UInt8], at offset: UInt64) {
      guard let count = kept?.count, UInt64(count) == offset,
        count + bytes.count <= LogLimits.keptJournal
      else { return }
      kept?.append(contentsOf: bytes)
    }

    /// Traps if it shows more than the file has. In debug builds at each reading.
    func checkInvariants() {
      precondition(start + UInt64(bytes.count) <= total, "a window is on the file")
      precondition(bytes.count <= LogLimits.framePayload + LogLimits.scanChunk, "memory is bounded")
    }
  }

  private mutating func take(_ frame: JournalFrame, end offset: UInt64) {
    size = offset
    end = marks.last?.past ?? end
    rawBytes += UInt64(frame.raw)
    durable = max(durable, frame.synced)
  }

  // MARK: Behind the corruption

  private struct DetachedFrame: Sendable {
    var offset: UInt64
    var frame: JournalFrame
    /// The corruption before it; nil if it directly follows a valid frame.
    var flaw: Flaw?
  }

  /// Collects the valid frames behind a bad one. The checksum covers log, file and offset, so bytes
  /// that resemble a frame, or belong to another place, are not valid.
  private mutating func lookBehind(_ window: inout Window) throws(LogError) {
    var offset = size + 1
    var gap = flaw
    // Bytes that resemble long frames must not cost quadratic time.
    var budget = 8 * window.total
    while budget > 0, let start = try nextMagic(from: offset, &window) {
      do throws(LogError) {
        let found = try frame(at: start, after: nil, &window)
        detachedFrames.append(DetachedFrame(offset: start, frame: found, flaw: gap))
        durable = max(durable, found.synced)
        gap = nil
        offset = start + found.size
        budget -= min(budget, found.size)
        guard offset < window.total else { return }
        do throws(LogError) { _ = try frame(at: offset, after: nil, &window) } catch {
          guard case .corrupt(_, _, let flaw) = error else { throw error }
          gap = flaw
        }
      } catch {
        guard case .corrupt = error else { throw error }
        budget -= min(budget, UInt64(window.bytes.count))
        offset = start + 1
      }
    }
  }

  private func nextMagic(from offset: UInt64, _ window: inout Window) throws(LogError) -> UInt64? {
    let magic = JournalFrame.magic
    var offset = offset
    while offset + UInt64(JournalFrame.headerSize) <= window.total {
      let count = Int(min(window.total - offset, UInt64(LogLimits.scanChunk)))
      let start = try window.index(of: offset, count: count)
      for index in start...start + count - magic.count where window.bytes[index] == magic[0] {
        if window.bytes[index..<index + magic.count].elementsEqual(magic) {
          return offset + UInt64(index - start)
        }
      }
      offset += UInt64(count - magic.count + 1)
    }
    return nil
  }

  /// Classifies unreadable bytes once the durable size of the file is known. Below it they are
  /// corrupt, and the valid frames behind them count. `isClosed`: the whole file is durable.
  mutating func settle(isClosed: Bool) throws(LogError) {
    if detachedFrames.isEmpty, size < durable {
      var window = Window(file: file, total: allocated)
      try lookBehind(&window)
    }
    for detached in detachedFrames {
      // A frame directly behind a counted frame counts too. A frame that bad bytes separate from
      // the durable part was never acknowledged.
      guard isClosed || detached.offset <= durable || detached.flaw == nil else { break }
      if let flaw = detached.flaw ?? (gaps.isEmpty ? .notThisFormat : nil) {
        gaps.append(JournalGap(offset: size, flaw: flaw))
      }
      let past = detached.offset + detached.frame.size
      let first = try firstIndex(at: detached.offset, detached.frame)
      marks.append(
        FrameEntry(
          offset: detached.offset, end: past, first: first, past: first + UInt64(detached.frame.events),
          raw: UInt64(detached.frame.raw), previous: detached.frame.previous, chain: detached.frame.crc))
      take(detached.frame, end: past)
      flaw = nil
    }
    detachedFrames = []
    // Already settled, and nothing was appended since.
    if let last = gaps.last, last.offset == size { return }
    if size < durable {
      gaps.append(JournalGap(offset: size, flaw: flaw ?? .cutShort(expected: durable, found: size)))
    } else if isClosed, let flaw {
      gaps.append(JournalGap(offset: size, flaw: flaw))
    }
    if isClosed { durable = max(durable, size) }
  }

  /// A frame behind corrupt bytes takes its first index from its events.
  private func firstIndex(at offset: UInt64, _ frame: JournalFrame) throws(LogError) -> UInt64 {
    let bytes = try file.read(at: offset + UInt64(JournalFrame.headerSize), count: frame.length)
    let first = try decoding(path, offset) { () throws(EventsError) in
      try BlockReader(bytes).events().first?.relativePosition
    }
    guard let first, first >= end, first <= Limits.highestNumber else {
      throw .corrupt(path: path, offset: offset, .disagreement("indices of events"))
    }
    return first
  }

  // MARK: Changes

  /// Records that the first `bytes` of the file are durable.
  mutating func confirm(_ bytes: UInt64) { durable = max(durable, bytes) }

  mutating func forgetFlaw() { flaw = nil }

  /// Records that the next file begins behind events that cannot be read here.
  mutating func noteLostEnd(_ flaw: Flaw) { gaps.append(JournalGap(offset: size, flaw: flaw)) }

  /// Adds a frame that was just written at `size`.
  mutating func append(events: Int, raw: Int, stored: Int, chain next: UInt32) {
    let past = end + UInt64(events)
    marks.append(
      FrameEntry(
        offset: size, end: size + UInt64(stored), first: end, past: past, raw: UInt64(raw),
        previous: chain, chain: next))
    size += UInt64(stored)
    end = past
    rawBytes += UInt64(raw)
    allocated = max(allocated, size)
  }

  // MARK: Reading

  /// The payload of a frame, verified, and read unless it is kept. Throws `.corrupt`.
  func payload(_ index: Int) throws(LogError) -> [UInt8] {
    let mark = marks[index]
    let length = Int(mark.end - mark.offset)
    var bytes = try bytes(mark.offset..<mark.end)
    try locating(path, mark.offset) { [bytes] () throws(Flaw) in
      guard bytes.count == length else {
        throw .cutShort(expected: UInt64(length), found: UInt64(bytes.count))
      }
      let frame = try JournalFrame(
        decoding: bytes, at: 0, previous: mark.previous,
        available: UInt64(length - JournalFrame.headerSize))
      guard frame.length == length - JournalFrame.headerSize else { throw .malformed("frame length") }
      try frame.check(bytes, at: 0, log: log, number: number, offset: mark.offset)
      guard frame.crc == mark.chain else { throw .checksum(expected: mark.chain, found: frame.crc) }
    }
    bytes.removeFirst(JournalFrame.headerSize)
    return bytes
  }

  private func bytes(_ range: Range<UInt64>) throws(LogError) -> [UInt8] {
    guard let kept, range.upperBound <= UInt64(kept.count) else {
      return try file.read(at: range.lowerBound, count: Int(range.upperBound - range.lowerBound))
    }
    return Array(kept[Int(range.lowerBound)..<Int(range.upperBound)])
  }

  /// The block of a frame, with the number of events that the frame states. Throws `.corrupt`.
  func block(_ index: Int) throws(LogError) -> BlockReader {
    let bytes = try payload(index)
    let mark = marks[index]
    return try decoding(path, mark.offset) { () throws(EventsError) in
      let block = try BlockReader(bytes)
      guard UInt64(block.count) == mark.past - mark.first else {
        throw .malformed("journal frame", "\(block.count) events")
      }
      for index in 0..<block.count where block.relativePosition(index) != mark.first + UInt64(index) {
        throw .malformed("relativePosition", "\(block.relativePosition(index))")
      }
      return block
    }
  }

  /// The block of a frame, to read its events one by one. Throws `.corrupt`, also for a `.gap`.
  func contents(of part: JournalPart) throws(LogError) -> BlockContents {
    let block = try block(of: part)
    return try decoding(path, offset(of: part)) { () throws(EventsError) in try BlockContents(block) }
  }

  /// The block of a frame. Throws `.corrupt`, also for a `.gap`.
  func block(of part: JournalPart) throws(LogError) -> BlockReader {
    switch part {
    case .gap(let gap): throw .corrupt(path: path, offset: gap.offset, gap.flaw)
    case .frame(let index): try block(index)
    }
  }

  /// Whether a frame has events of a record. Throws `.corrupt`, also for a `.gap`.
  func holds(_ record: BlockReader.Record, _ part: JournalPart) throws(LogError) -> Bool {
    switch part {
    case .gap(let gap): throw .corrupt(path: path, offset: gap.offset, gap.flaw)
    case .frame(let index):
      let bytes = try payload(index)
      return try decoding(path, marks[index].offset) { () throws(EventsError) in
        try BlockReader.holds(record, in: bytes)
      }
    }
  }

  func offset(of part: JournalPart) -> UInt64 {
    switch part {
    case .gap(let gap): gap.offset
    case .frame(let index): marks[index].offset
    }
  }

  /// The frames that hold events of these indices, and the gaps that may have held some.
  func parts(in indices: Range<UInt64>) -> [JournalPart] {
    let last = firstMark { $0.first >= indices.upperBound }
    if gaps.isEmpty {
      let first = mark(of: indices.lowerBound)
      return (first..<max(first, last)).map { .frame($0) }
    }
    var parts: [JournalPart] = []
    var left = gaps[...]
    var past: UInt64 = 0
    func addGaps(before offset: UInt64, _ next: UInt64) {
      while let gap = left.first, gap.offset < offset {
        if past < indices.upperBound, next > indices.lowerBound { parts.append(.gap(gap)) }
        left.removeFirst()
      }
    }
    for index in marks.indices {
      addGaps(before: marks[index].offset, marks[index].first)
      past = marks[index].past
      if index < last, past > indices.lowerBound { parts.append(.frame(index)) }
    }
    addGaps(before: .max, .max)
    return parts
  }

  /// The events of a frame, with authors and messages. Throws `.corrupt`, also for a `.gap`.
  func read(_ part: JournalPart) throws(LogError) -> NumberedEvents {
    let block = try block(of: part)
    let events = try decoding(path, offset(of: part)) { () throws(EventsError) in try block.events() }
    return NumberedEvents(events: events, messages: block.messages)
  }

  /// All events below `limit`, with authors and messages. Memory: all of them. Throws `.corrupt`.
  func contents(
    below limit: UInt64 = .max, around omissions: Omissions? = nil
  ) throws(LogError) -> NumberedEvents {
    var contents = NumberedEvents()
    for part in parts(in: 0..<limit) {
      let read = try omissions.reading { () throws(LogError) in try self.read(part) }
      if let read { contents.add(read) }
    }
    if limit < end { contents.events.removeAll { $0.relativePosition >= limit } }
    return contents
  }

  func collect(into runs: inout RunCollector) throws(LogError) {
    for part in parts(in: 0..<UInt64.max) {
      let block = try block(of: part)
      let cursor = try decoding(path, offset(of: part)) { () throws(EventsError) in
        try block.cursor(.relativePosition)
      }
      try runs.add(cursor, offset: offset(of: part))
    }
  }

  /// The durable part of the journal, as if the file ended there.
  var durablePart: Journal {
    guard durable < size else { return self }
    var part = self
    let frames = durableFrames
    part.size = frames > 0 ? marks[frames - 1].end : UInt64(JournalHeader.size)
    part.end = durableEnd
    part.rawBytes -= marks[frames...].reduce(0) { $0 + $1.raw }
    part.marks.removeSubrange(frames...)
    return part
  }
}
