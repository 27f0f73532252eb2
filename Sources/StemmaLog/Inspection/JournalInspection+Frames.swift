import StemmaEvents

// Which frame stands here?
//
// The checksum of a frame covers the offset at which it was written. Where bytes before it are missing or too many,
// it stands elsewhere; but as every byte steps the register of a CRC to another value, and back, the four bytes of an
// offset below 2^32 are those that lead from the register before them to the one behind them, whatever these are. So
// every frame tells where it was written, a damaged one some place or other: that is believed near to where it stands,
// or if the frame says the same of what was synced before it, of one whose block can be read. Chance does the same once in
// 2^15 damaged frames that can be read.
//
// At any distance two frames confirm each other of which one was written where the other says that it ended, and which
// are chained: a damaged one would tell another place. And what is about as far from its place as a frame that is
// confirmed is believed, too. Frames of another log or file tell places that are wrong, all by the same bits: chained ones may
// follow each other there, but seldom as near as a file is long.

extension JournalInspection {
  /// What looks like a frame at `offset`; its checksum is not compared.
  mutating func frame(at offset: UInt64) throws(LogError) -> Found? {
    let headerSize = JournalFrame.headerSize
    let head = try source.bytes(at: offset, count: headerSize)
    guard head.count == headerSize else { return nil }
    let available = source.size - offset - UInt64(headerSize)
    let frame: JournalFrame
    do throws(Flaw) {
      frame = try JournalFrame(decoding: head, at: 0, previous: nil, available: available)
    } catch {
      return nil
    }
    guard frame.length <= InspectionLimits.part, mayRead(frame.size) else { return nil }
    let bytes = try source.bytes(at: offset, count: headerSize + frame.length)
    return bytes.count == headerSize + frame.length
      ? Found(offset: offset, shift: shift, frame: frame, bytes: bytes) : nil
  }

  /// Whether a frame seems to begin near the beginning of a file, be it that a journal's first bytes are missing.
  static func hasFrame(_ source: InspectedFile) throws(LogError) -> Bool {
    let end = min(source.size, UInt64(LogLimits.scanChunk))
    return try source.first(JournalFrame.magic, in: 0..<end) { (place) throws(LogError) in
      try beginsBlock(source, behind: place)
    } != nil
  }

  /// Whether as long a block as a frame at `offset` says seems to follow its header.
  static func beginsBlock(_ source: InspectedFile, behind offset: UInt64) throws(LogError) -> Bool {
    let head = try source.bytes(at: offset, count: JournalFrame.headerSize)
    guard head.count == JournalFrame.headerSize else { return false }
    let start = offset + UInt64(head.count)
    let frame: JournalFrame
    do throws(Flaw) {
      frame = try JournalFrame(decoding: head, at: 0, previous: nil, available: source.size - start)
    } catch { return false }
    return try BlockScan(source).size(at: start, before: start + UInt64(frame.length)) == frame.length
  }

  func checksum(of found: Found) -> UInt32 { checksum(of: found.bytes, at: found.offset) }

  private func checksum(of bytes: [UInt8], at offset: UInt64) -> UInt32 {
    JournalFrame.checksum(
      bytes, at: 0, payload: bytes.count - JournalFrame.headerSize, log: log, number: number,
      offset: writtenAt(offset))
  }

  /// Where that was written which stands at `offset`.
  private func writtenAt(_ offset: UInt64) -> UInt64 { offset &- UInt64(bitPattern: shift) }

  /// A frame that is valid, at its place or near it.
  mutating func validFrame(at offset: UInt64) throws(LogError) -> Found? {
    guard var found = try frame(at: offset) else { return nil }
    if isNameless { return Self.isRead(found) ? found : nil }
    if checksum(of: found) == found.frame.crc { return found }
    let written = writtenOffset(of: found)
    found.shift = Int64(clamping: offset) - Int64(written)
    // One that was synced before the next was written says itself where it stood; a copy that stands right behind itself
    // is as far from its place as it is long.
    let moved = found.shift - shift
    guard Self.isRead(found) else { return nil }
    let isNear =
      moved.magnitude <= InspectionLimits.shift || found.frame.synced == UInt64(written)
      || moved == Int64(found.bytes.count)
    if isNear { return found }
    return try isConfirmed(found) ? found : nil
  }

  /// Whether a frame is about as far from its place as one that is confirmed.
  private mutating func isConfirmed(_ found: Found) throws(LogError) -> Bool {
    let shifts: NearbyShifts
    if let confirmedShifts { shifts = confirmedShifts } else { shifts = try findConfirmedShifts() }
    confirmedShifts = shifts
    return shifts.contains(found.shift)
  }

  /// How far from their places those frames of the file stand of which others, or what was synced before them, say that
  /// they were written where their checksums do. Frames inside of others are none.
  private mutating func findConfirmedShifts() throws(LogError) -> NearbyShifts {
    // What this reads is not taken from the rest.
    let kept = allowance
    defer { allowance = kept }
    let limit = allReadings
    allowance = limit
    var frames: [(shift: Int64, isSynced: Bool, first: Border, last: Border)] = []
    var offset: UInt64 = 0
    let source = source
    func isFrame(_ place: UInt64) throws(LogError) -> Bool { try Self.beginsBlock(source, behind: place) }
    while let place = try source.first(JournalFrame.magic, in: offset..<source.size, where: isFrame) {
      offset = place + 1
      guard var found = try frame(at: place), Self.isRead(found) else { continue }
      offset = found.end
      let written = writtenOffset(of: found)
      found.shift = Int64(clamping: place) - Int64(written)
      guard found.shift.magnitude <= limit else { continue }
      frames.append((found.shift, found.frame.synced == UInt64(written), found.first, found.last))
    }
    let (beginnings, ends) = (Set(frames.map(\.first)), Set(frames.map(\.last)))
    var shifts = NearbyShifts()
    for frame in frames
    where frame.isSynced || ends.contains(frame.first) || beginnings.contains(frame.last) {
      shifts.insert(frame.shift)
    }
    return shifts
  }

  /// Shifts, and those that are as near to them as frames are believed, or twice as far.
  struct NearbyShifts {
    private var steps: Set<Int64> = []

    mutating func insert(_ shift: Int64) { steps.formUnion((-1...1).map { Self.step(shift) + $0 }) }

    func contains(_ shift: Int64) -> Bool { steps.contains(Self.step(shift)) }

    private static func step(_ shift: Int64) -> Int64 { shift / Int64(InspectionLimits.shift) }
  }

  /// The offset below 2^32 with which the checksum holds.
  private func writtenOffset(of found: Found) -> UInt32 {
    let place = JournalFrame.headerSize - 4
    var register = WrongByte.register(before: found.bytes[JournalFrame.headerSize...], ~found.frame.crc)
    register = WrongByte.register(before: found.bytes[..<place], register)
    let front = Array(JournalFrame.place(log: log, number: number, offset: 0).dropLast(4))
    return (WrongByte.register(before: [0, 0, 0, 0], register) ^ ~front.crc32c).byteSwapped
  }

  private static func isRead(_ found: Found) -> Bool {
    BlockReader(inspecting: found.payload)?.count == found.frame.events
  }

  /// A frame with one wrong byte, as it was. How long it is its header says, or its block.
  mutating func mendedFrame(at offset: UInt64) throws(LogError) -> Found? {
    let (size, place) = (JournalFrame.headerSize, JournalFrame.headerSize - 4)
    let head = try source.bytes(at: offset, count: size)
    guard head.count == size, !isNameless else { return nil }
    var lengths = [head[4..<8].reduce(0) { $0 << 8 | Int($1) }]
    let block = try BlockScan(source).size(at: offset + UInt64(size), before: source.size)
    if let block, !lengths.contains(block) { lengths.append(block) }
    for length in lengths where length > 0 && length <= InspectionLimits.part {
      guard offset + UInt64(size + length) <= source.size, mayRead(UInt64(size + length)) else { continue }
      let bytes = try source.bytes(at: offset, count: size + length)
      guard bytes.count == size + length else { continue }
      let front = JournalFrame.place(log: log, number: number, offset: writtenAt(offset))
      // The checksum stands amidst what it covers.
      let covered = front + bytes[..<place] + bytes[size...]
      let candidates = WrongByte.candidates(in: covered + bytes[place..<size], checksumAt: covered.count)
        .compactMap { (index, mask) -> (index: Int, mask: UInt8)? in
          if index >= covered.count { return (place + index - covered.count, mask) }
          let index = index - front.count
          return index < 0 ? nil : (index < place ? index : index + 4, mask)
        }
      let mended = WrongByte.mending(bytes, at: offset, candidates) { (bytes) -> Found? in
        do throws(Flaw) {
          let frame = try JournalFrame(decoding: bytes, at: 0, previous: nil, available: UInt64(length))
          let found = Found(offset: offset, shift: shift, frame: frame, bytes: bytes)
          return frame.length == length && Self.isRead(found) ? found : nil
        } catch { return nil }
      }
      guard let mended else { continue }
      var found = mended.content
      let stored = bytes[place..<size].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      found.flaw = .checksum(expected: stored, found: checksum(of: bytes, at: offset))
      found.byte = mended.byte
      return found
    }
    return nil
  }

  /// A frame from whose payload one byte is missing, with it, and where it stood.
  mutating func shortenedFrame(_ found: Found) throws(LogError) -> (bytes: [UInt8], place: UInt64)? {
    let size = JournalFrame.headerSize
    guard !isNameless else { return nil }
    let place = JournalFrame.place(log: log, number: number, offset: writtenAt(found.offset))
    let front = place + found.bytes[..<(size - 4)]
    let covered = front + found.bytes[size...].dropLast()
    guard let (index, byte) = WrongByte.lacking(in: covered, expected: found.frame.crc), index >= front.count
    else { return nil }
    let missing = index - front.count + size
    let bytes = Array(found.bytes[..<missing] + [byte] + found.bytes[missing...].dropLast())
    guard let whole = try whole(bytes, at: found.offset), Self.isRead(whole) else { return nil }
    return (bytes, found.offset + UInt64(missing))
  }

  // MARK: The last frame

  /// A frame with bytes in its payload, or in its header, that were not written. Their number is that of the bytes
  /// behind its end, and where they stand the checksum tells: without them it holds.
  mutating func lengthenedFrame(
    at offset: UInt64
  ) throws(LogError) -> (found: Found, range: Range<UInt64>)? {
    let (size, place) = (JournalFrame.headerSize, JournalFrame.headerSize - 4)
    // In its header: the block begins that much later.
    if let start = try nextBlock(behind: offset), start > offset + UInt64(size),
      let block = try BlockScan(source).size(at: start, before: source.size), mayRead(UInt64(block))
    {
      let head = try source.bytes(at: offset, count: Int(start - offset))
      let payload = try source.bytes(at: start, count: block)
      let surplus = head.count - size
      for index in 0...size {
        let bytes = head[..<index] + head[(index + surplus)...] + payload
        guard let found = try whole(Array(bytes), at: offset) else { continue }
        return (found, offset + UInt64(index)..<offset + UInt64(index + surplus))
      }
    }
    // In its payload: it ends that much later; with zeros if it ends with such.
    let end = try endOfWritten()
    guard let found = try frame(at: offset), end > offset else { return nil }
    let first = end > found.end ? end - found.end : 1
    guard first <= InspectionLimits.shift else { return nil }
    let front =
      JournalFrame.place(log: log, number: number, offset: writtenAt(offset)) + found.bytes[..<place]
    for surplus in first..<first + 4 {
      guard found.end + surplus <= source.size, mayRead(found.frame.size + surplus) else { return nil }
      let bytes = try source.bytes(at: offset, count: found.bytes.count + Int(surplus))
      let places = WrongByte.surplus(
        of: Int(surplus), in: front + bytes[size...], expected: found.frame.crc)
      for index in places where index >= front.count {
        let index = index - front.count + size
        guard let found = try whole(Array(bytes[..<index] + bytes[(index + Int(surplus))...]), at: offset)
        else { continue }
        return (found, offset + UInt64(index)..<offset + UInt64(index) + surplus)
      }
    }
    return nil
  }

  /// What is left of the header of a frame of which bytes are missing there, or all of one that is none: all before its
  /// block.
  mutating func shortenedHeader(at offset: UInt64) throws(LogError) -> Range<UInt64>? {
    let end = offset + UInt64(JournalFrame.headerSize)
    guard let start = try nextBlock(behind: offset), start <= end else { return nil }
    if start == end, try frame(at: offset) != nil { return nil }
    return offset..<start
  }

  /// Where the first block begins that can be read, if it is near to where that of a frame at `offset` is.
  private mutating func nextBlock(behind offset: UInt64) throws(LogError) -> UInt64? {
    let source = source
    let end = min(source.size, offset + UInt64(JournalFrame.headerSize + InspectionLimits.shift))
    return try source.first(BlockReader.beginning, in: offset..<end) { (place) throws(LogError) in
      guard let size = try BlockScan(source).size(at: place, before: source.size),
        mayRead(UInt64(size))
      else { return false }
      return BlockReader(inspecting: try source.bytes(at: place, count: size)) != nil
    }
  }

  /// The frame that these bytes are, if their checksum holds.
  private func whole(_ bytes: [UInt8], at offset: UInt64) throws(LogError) -> Found? {
    let length = UInt64(bytes.count - JournalFrame.headerSize)
    let frame: JournalFrame
    do throws(Flaw) {
      frame = try JournalFrame(decoding: bytes, at: 0, previous: nil, available: length)
    } catch { return nil }
    let found = Found(offset: offset, shift: shift, frame: frame, bytes: bytes)
    return UInt64(frame.length) == length && checksum(of: found) == frame.crc ? found : nil
  }
}
