import StemmaEvents

/// A journal, frame by frame. Behind one that is damaged it looks for the next that is valid, at its place or, where
/// bytes are missing or too many before it, near it. A frame that was told already is a copy. One that was written before
/// the one behind which it stands was moved, or that one was: what was written behind it is looked for behind it, but for
/// what was told. What follows the last valid frame is a tail: space that was never written, a write that a crash
/// cut short, the remains of what stood in the file before, or damage.
struct JournalInspection {
  let source: InspectedFile
  let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  var log = LogID(0)
  var number: UInt64 = 0
  /// Whether log and number are not known, so that no checksum of a frame can be compared.
  private(set) var isNameless = false
  /// How many bytes more stand before what comes next than were written there.
  var shift: Int64 = 0
  /// The chain value before the next frame; nil: what stood before is damaged.
  var chain: UInt32?
  /// The next valid frame behind damage, as long as it is not reached.
  private var following: Found?
  private var isBehindLast = false
  /// By where they were written: the frames that were told.
  private var told: [Int64: Told] = [:]
  /// How many bytes of what looks like a frame may still be read. Frames do not overlap, so that each of their bytes is
  /// read a few times; the long frames that a hostile file pretends to have at each of its places are not.
  var allowance: UInt64
  /// How far from their places frames stand that others confirm; nil until one asks that stands far from its own.
  var confirmedShifts: NearbyShifts?
  /// Behind the last byte of the file that is not zero; nil until somebody asks.
  private var writtenEnd: UInt64?

  static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(LogError) {
    var inspection = JournalInspection(source: source, request: request, body: body)
    try inspection.run()
  }

  private init(source: InspectedFile, request: InspectionRequest, body: @escaping (InspectedPart) -> Void) {
    self.source = source
    self.request = request
    self.body = InspectedPart.checking(body)
    allowance = 0
    allowance = allReadings
  }

  /// Traps if a frame was told that leads nowhere, if the next one lies behind the file or behind the last one, or if
  /// more may be read than at first. In debug builds when a file was inspected.
  func checkInvariants() {
    precondition(told.allSatisfy { $0.value.next.place > $0.key }, "what follows was written behind")
    precondition(following == nil || !isBehindLast, "behind the last frame there is none")
    precondition((following?.end ?? 0) <= source.size, "a frame is a part of its file")
    precondition(allowance <= allReadings, "what may be read becomes less")
  }

  /// How many bytes are read of a file at most to look for frames.
  var allReadings: UInt64 { min(source.size, .max / InspectionLimits.readings) * InspectionLimits.readings }

  private mutating func run() throws(LogError) {
    defer { assert(holds(checkInvariants)) }
    let header = try readHeader()
    if request.block == nil {
      if let flaw = Flaw.count(of: header.offset, 0) {
        var part = InspectedPart(.unknown, at: 0, header.offset)
        part.complain(flaw, in: 0..<header.offset)
        body(part)
      }
      body(header)
    }
    var offset = header.offset + header.length
    var frame = 1
    while offset < source.size {
      passTold(at: offset)
      var found = following
      if found?.offset != offset { found = try validFrame(at: offset) }
      if let copy = found, let first = placeTold(of: copy) {
        if request.block == nil { body(Self.part(copy, of: first)) }
        (shift, offset) = (shift + Int64(copy.bytes.count), copy.end)
        continue
      }
      let isEarly = (found?.shift ?? shift) > shift
      if !isEarly, found?.shift != shift { found = try mendedFrame(at: offset) }
      if let found {
        remember(found)
        var part = part(found, frame)
        if isEarly, part.flaws.isEmpty { part.complain(Self.notNext) }
        if request.wants(frame) { body(part) }
        (chain, shift, offset) = (found.frame.crc, found.shift, found.end)
      } else if let next = try nextFrame(from: offset) {
        let gap = try gap(offset..<next.offset, frame, shiftedBy: next.shift - shift)
        if gap.number == nil ? request.block == nil : request.wants(frame) { body(gap) }
        (chain, shift, offset) = (nil, next.shift, next.offset)
        if gap.number == nil { continue }
      } else if let last = try displacedLastFrame(at: offset, frame) {
        if request.wants(frame) { body(last.part) }
        (chain, shift, offset) = (last.chain, shift + last.shift, last.part.offset + last.part.length)
      } else if let last = try damagedLastFrame(at: offset, frame) {
        if request.wants(frame) { body(last.part) }
        (chain, offset) = (last.chain, last.part.offset + last.part.length)
      } else {
        if request.block == nil || request.wants(frame) { body(try tail(from: offset, frame)) }
        return
      }
      frame += 1
    }
  }

  // MARK: Frames

  struct Found {
    var offset: UInt64
    /// How many bytes more stand before it than when it was written.
    var shift: Int64
    var frame: JournalFrame
    var bytes: [UInt8]
    /// What is wrong with it, and the one wrong byte, with which it was read as it was.
    var flaw: Flaw?
    var byte: WrongByte?

    var payload: [UInt8] { Array(bytes.dropFirst(JournalFrame.headerSize)) }
    var end: UInt64 { offset + UInt64(bytes.count) }
    /// Where it was written.
    var written: Int64 { Int64(clamping: offset) - shift }
    var first: Border { Border(place: written, chain: frame.previous) }
    var last: Border { Border(place: written + Int64(bytes.count), chain: frame.crc) }
  }

  /// Where one frame was written to end and the next one to begin, and the chain value there.
  struct Border: Hashable {
    var place: Int64
    var chain: UInt32
  }

  private struct Told {
    var offset: UInt64
    var crc: UInt32
    /// Behind it, and behind what follows it and was told, too.
    var next: Border
  }

  /// The first valid frame from `start` on that was not told.
  mutating func nextFrame(from start: UInt64) throws(LogError) -> Found? {
    if isBehindLast { return nil }
    if let following, following.offset >= start, placeTold(of: following) == nil { return following }
    var found: Found?
    let source = source
    // Before one that was found, and has been told since, there is none.
    let first = max(start, following.map { $0.offset + 1 } ?? start)
    _ = try source.first(JournalFrame.magic, in: first..<source.size) { (place) throws(LogError) in
      guard try Self.beginsBlock(source, behind: place), let valid = try validFrame(at: place),
        placeTold(of: valid) == nil
      else { return false }
      found = valid
      return true
    }
    following = found
    isBehindLast = found == nil
    return found
  }

  private mutating func remember(_ found: Found) {
    told[found.written] = Told(offset: found.offset, crc: found.frame.crc, next: found.last)
  }

  /// Where the frame stands that was told and is the same.
  private func placeTold(of found: Found) -> UInt64? {
    guard let first = told[found.written], first.crc == found.frame.crc else { return nil }
    return first.offset
  }

  /// What comes next is what was written behind the frames that were told. Those are passed together the next time.
  private mutating func passTold(at offset: UInt64) {
    var place = Int64(clamping: offset) - shift
    var passed: [Int64] = []
    while let next = told[place]?.next {
      passed.append(place)
      (place, chain) = (next.place, next.chain)
    }
    guard let chain else { return }
    for passed in passed { told[passed]?.next = Border(place: place, chain: chain) }
    shift = Int64(clamping: offset) - place
  }

  /// The first frame, where no header says whose they are.
  mutating func firstNamelessFrame() throws(LogError) -> Found? {
    isNameless = true
    return try firstFrame()
  }

  /// The first frame, looked for anew.
  mutating func firstFrame() throws(LogError) -> Found? {
    isBehindLast = false
    confirmedShifts = nil
    return try nextFrame(from: 0)
  }

  /// Takes `size` bytes from what may be read; false: so many are not left.
  mutating func mayRead(_ size: UInt64) -> Bool {
    allowance = size <= allowance ? allowance - size : 0
    return allowance > 0
  }

  private func part(_ found: Found, _ number: Int) -> InspectedPart {
    var part = InspectedPart(.frame, at: found.offset, UInt64(found.bytes.count), number: number)
    part.place = self.number
    part.describe(found.frame)
    if found.shift != 0 { part.say("moved", Self.words(for: found.shift)) }
    if let chain, chain != found.frame.previous {
      part.complain(Self.notNext)
    }
    part.decode(found.payload)
    part.isChecked = !isNameless
    if let flaw = found.flaw { part.complain(flaw, byte: found.byte) }
    if let block = part.block, block.count != found.frame.events {
      part.complain(.disagreement("\(block.count) events, the frame says \(found.frame.events)"))
    }
    return part
  }

  private static func words(for shift: Int64) -> String {
    let count = shift.magnitude
    return (count == 1 ? "1 byte" : "\(count) bytes") + (shift < 0 ? " before" : " behind") + " its place"
  }

  // MARK: Damage

  private static let notNext = Flaw.disagreement("it does not follow the frame before it")
  private static let noFrame = Flaw.disagreement("these bytes are no whole frame")

  private func flaw(of found: Found) -> Flaw {
    isNameless ? Self.noFrame : .checksum(expected: found.frame.crc, found: checksum(of: found))
  }

  /// A copy of the frame at `first`. It has no number, and no events but those that were told.
  private static func part(_ copy: Found, of first: UInt64) -> InspectedPart {
    var part = InspectedPart(.unknown, at: copy.offset, copy.frame.size)
    part.say("content", "a copy of the frame at \(first)")
    part.complain(.surplus(copy.frame.size), in: copy.offset..<copy.end)
    return part
  }

  /// Bytes before a valid frame that are none. Without a number: no byte of a frame need be among them.
  private mutating func gap(
    _ range: Range<UInt64>, _ number: Int, shiftedBy moved: Int64
  ) throws(LogError) -> InspectedPart {
    let length = range.upperBound - range.lowerBound
    let expected = Int64(length) - moved
    if expected == 0, let flaw = Flaw.count(of: length, 0) {
      var part = InspectedPart(.unknown, at: range.lowerBound, length)
      part.complain(flaw, in: range)
      return part
    }
    var part = InspectedPart(.frame, at: range.lowerBound, length, number: number)
    part.place = self.number
    // Of a shorter one the header is not its own.
    if length >= UInt64(JournalFrame.headerSize), let found = try frame(at: range.lowerBound),
      moved != 0 || found.end == range.upperBound
    {
      if moved == 0 {
        part.describe(found.frame)
        part.complain(flaw(of: found), in: range)
        return part
      }
      if moved == -1, expected == Int64(found.frame.size), let whole = try shortenedFrame(found) {
        part.describe(found.frame)
        part.decode(Array(whole.bytes.dropFirst(JournalFrame.headerSize)))
        part.isChecked = true
        remember(found)
        part.complain(.lacking(1), at: whole.place)
        return part
      }
      // Where bytes of its header are missing, or too many, that says nothing.
      if found.payload.starts(with: BlockReader.beginning) { part.describe(found.frame) }
    }
    let flaw = expected > 0 ? Flaw.count(of: length, UInt64(expected)) : nil
    part.complain(flaw ?? Self.noFrame, in: range)
    return part
  }

  /// The last frame, if bytes of its header are missing or wrong, or there are too many in it: behind it no other one
  /// tells how many.
  private mutating func displacedLastFrame(
    at offset: UInt64, _ number: Int
  ) throws(LogError) -> (part: InspectedPart, chain: UInt32?, shift: Int64)? {
    if let last = try lengthenedFrame(at: offset) {
      let surplus = last.range.upperBound - last.range.lowerBound
      var part = part(last.found, number)
      part.length += surplus
      part.complain(.surplus(surplus), in: last.range)
      return (part, last.found.frame.crc, Int64(surplus))
    }
    guard let range = try shortenedHeader(at: offset),
      let size = try BlockScan(source).size(at: range.upperBound, before: source.size)
    else { return nil }
    let flaw =
      Flaw.count(of: range.upperBound - range.lowerBound, UInt64(JournalFrame.headerSize))
      ?? .disagreement("its header is wrong")
    var part = InspectedPart(
      .frame, at: offset, range.upperBound - range.lowerBound + UInt64(size), number: number)
    part.place = self.number
    part.decode(try source.bytes(at: range.upperBound, count: size))
    part.complain(flaw, in: range)
    return (part, nil, Int64(range.upperBound - range.lowerBound) - Int64(JournalFrame.headerSize))
  }

  /// The last frame, if its payload is wrong: that it is one of this journal it says by its chain.
  private mutating func damagedLastFrame(
    at offset: UInt64, _ number: Int
  ) throws(LogError) -> (part: InspectedPart, chain: UInt32)? {
    guard let chain, let found = try frame(at: offset), found.frame.previous == chain else { return nil }
    var part = InspectedPart(.frame, at: offset, found.frame.size, number: number)
    part.place = self.number
    part.say("content", "a frame of this journal: rot, or a write that a crash cut short")
    part.describe(found.frame)
    part.complain(flaw(of: found), in: offset..<found.end)
    return (part, found.frame.crc)
  }

  /// What follows the last valid frame.
  private mutating func tail(from offset: UInt64, _ number: Int) throws(LogError) -> InspectedPart {
    let written = try writtenBytes(from: offset)
    var part = InspectedPart(.unknown, at: offset, source.size - offset)
    guard let written else {
      part.say("content", "zeros: space that was not written yet")
      return part
    }
    if let found = try frame(at: offset) {
      part.number = number
      part.say(
        "content",
        "a frame that is not valid here: a write that a crash cut short, remains of an older file, or rot"
      )
      part.describe(found.frame)
      part.place = self.number
      part.complain(flaw(of: found), in: offset..<found.end)
    } else if let flaw = try cut(at: offset) {
      (part.kind, part.number) = (.frame, number)
      part.say("content", "the beginning of a frame: a write that a crash cut short, or a file that was cut")
      part.complain(flaw, in: offset..<source.size)
    } else if written.upperBound - written.lowerBound == 1 {
      let byte = try source.bytes(at: written.lowerBound, count: 1)[0]
      part.say("content", "zeros but for one byte: space that was not written yet")
      part.complain(.notThisFormat, byte: WrongByte(offset: written.lowerBound, found: byte, expected: 0))
    } else {
      part.number = number
      part.say(
        "content",
        allowance > 0
          ? "no frame: a write that a crash cut short, or rot"
          : "so much that looks like frames and is none that frames were not looked for any further")
      part.complain(Self.noFrame, in: written)
    }
    return part
  }

  /// From the first byte to the last one that is not zero; nil: all are.
  func writtenBytes(from start: UInt64) throws(LogError) -> Range<UInt64>? {
    var written: Range<UInt64>?
    var offset = start
    while offset < source.size {
      let bytes = try source.bytes(at: offset, count: LogLimits.scanChunk)
      guard !bytes.isEmpty else { break }
      if let first = bytes.firstIndex(where: { $0 != 0 }), let last = bytes.lastIndex(where: { $0 != 0 }) {
        written = (written?.lowerBound ?? offset + UInt64(first))..<offset + UInt64(last) + 1
      }
      offset += UInt64(bytes.count)
    }
    return written
  }

  /// Behind the last byte of the file that is not zero. Found once: many frames may ask.
  mutating func endOfWritten() throws(LogError) -> UInt64 {
    if let writtenEnd { return writtenEnd }
    let end = try writtenBytes(from: 0)?.upperBound ?? 0
    writtenEnd = end
    return end
  }

  /// How much is missing of a frame of which only the beginning is there; nil: there is none.
  private func cut(at offset: UInt64) throws(LogError) -> Flaw? {
    let size = JournalFrame.headerSize
    let head = try source.bytes(at: offset, count: size)
    guard head.prefix(4).elementsEqual(JournalFrame.magic.prefix(head.count)) else { return nil }
    guard head.count == size else { return .cutShort(expected: UInt64(size), found: UInt64(head.count)) }
    let available = source.size - offset - UInt64(size)
    do throws(Flaw) {
      _ = try JournalFrame(decoding: head, at: 0, previous: nil, available: available)
    } catch {
      guard case .cutShort(let length, _) = error else { return nil }
      return .cutShort(expected: UInt64(size) + length, found: UInt64(size) + available)
    }
    return nil
  }
}

extension InspectedPart {
  fileprivate mutating func describe(_ frame: JournalFrame) {
    say("events", UInt64(frame.events))
    say("rawBytes", UInt64(frame.raw))
    say("synced", frame.synced)
  }
}
