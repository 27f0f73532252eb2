import StemmaEvents

/// A journal, frame by frame. Behind corruption, it continues with the next valid frame.
struct JournalInspection {
  private let source: InspectedFile
  private let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  /// Bytes that may be read to find frames.
  private var allowance: UInt64
  private var log = LogID(0)
  private var number: UInt64 = 0
  /// The position of its first event, if the header is whole.
  private var base: Position?

  init(_ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void) {
    self.source = source
    self.request = request
    self.body = body
    allowance = source.allowance
  }

  mutating func run() throws(LogError) {
    var (header, chain) = try readHeader()
    body(header)
    var next = try nextFrame(from: header.end)
    if next == nil, chain == nil {
      // Without the log and the number no checksum of a frame holds.
      return try BlockScan(source).report(header.end..<source.size, body)
    }
    var offset = header.end
    var count = 1
    while offset < source.size {
      let part: InspectedPart
      if let (start, frame) = next, start == offset {
        part = try self.part(frame, at: offset, count, after: chain)
        chain = frame.crc
        next = try nextFrame(from: part.end)
      } else {
        part = try corruption(offset..<(next?.offset ?? source.size), count, isTail: next == nil)
        chain = nil
      }
      body(part)
      offset = part.end
      count += 1
    }
  }

  /// The header, and the chain value before the first frame if it is whole.
  private mutating func readHeader() throws(LogError) -> (part: InspectedPart, chain: UInt32?) {
    let bytes = try source.bytes(at: 0, count: JournalHeader.size)
    var part = InspectedPart(.header, at: 0, UInt64(bytes.count))
    let fields = Result { () throws(Flaw) in try JournalHeader(fields: bytes) }
    // The checksums of frames prove whether the log and the number of a corrupt header are right.
    if case .success(let fields) = fields { (log, number) = (fields.log, fields.number) }
    let header = try part.reading { () throws(LogError) in
      try FilePreamble.check(bytes, FilePreamble.journal, path: source.path)
      return try locating(source.path, 0) { () throws(Flaw) in
        try fields.get().check(bytes)
        return try fields.get()
      }
    }
    if let header {
      part.describe(header)
      base = header.start.position
      return (part, JournalHeader.chain(bytes))
    }
    if case .journal(let number) = LogFileName(source.path.fileName) { self.number = number }
    log = request.log ?? log
    return (part, nil)
  }

  // MARK: Frames

  /// The next frame whose checksum holds, at `start` or behind it; nil if there is none.
  private mutating func nextFrame(
    from start: UInt64
  ) throws(LogError) -> (offset: UInt64, frame: JournalFrame)? {
    if let frame = try validFrame(at: start) { return (start, frame) }
    guard start < source.size else { return nil }
    let (source, scan) = (source, BlockScan(source))
    var found: (UInt64, JournalFrame)?
    _ = try source.first(JournalFrame.magic, in: start + 1..<source.size) { (place) throws(LogError) in
      // Requires a block of the same length, which costs less than the checksum of a long frame.
      let payload = place + UInt64(JournalFrame.headerSize)
      guard case .success(let frame) = try header(at: place),
        try scan.size(at: payload, before: payload + UInt64(frame.length)) == frame.length,
        let valid = try validFrame(at: place)
      else { return false }
      found = (place, valid)
      return true
    }
    return found
  }

  private mutating func validFrame(at offset: UInt64) throws(LogError) -> JournalFrame? {
    guard case .success(let frame) = try header(at: offset), frame.size <= allowance else { return nil }
    allowance -= frame.size
    guard case .success = try payload(of: frame, at: offset) else { return nil }
    return frame
  }

  /// The header of the frame that seems to begin at `offset`; its checksum is not compared.
  private func header(at offset: UInt64) throws(LogError) -> Result<JournalFrame, Flaw> {
    let (size, magic) = (UInt64(JournalFrame.headerSize), JournalFrame.magic)
    let head = try source.bytes(at: offset, count: Int(size))
    guard !head.isEmpty, head.prefix(magic.count) == magic.prefix(head.count) else {
      return .failure(.notThisFormat)
    }
    guard head.count == size else { return .failure(.cutShort(expected: size, found: UInt64(head.count))) }
    return Result { [source] () throws(Flaw) in
      try JournalFrame(decoding: head, at: 0, previous: nil, available: source.size - offset - size)
    }
  }

  /// The payload of a frame whose checksum holds.
  private func payload(
    of frame: JournalFrame, at offset: UInt64
  ) throws(LogError) -> Result<[UInt8], Flaw> {
    let bytes = try source.bytes(at: offset, count: Int(frame.size))
    return Result { () throws(Flaw) in
      guard UInt64(bytes.count) == frame.size else {
        throw .cutShort(expected: frame.size, found: UInt64(bytes.count))
      }
      try frame.check(bytes, at: 0, log: log, number: number, offset: offset)
      return Array(bytes[JournalFrame.headerSize...])
    }
  }

  /// `chain`: the chain value before the frame, if it is known.
  private func part(
    _ frame: JournalFrame, at offset: UInt64, _ count: Int, after chain: UInt32? = nil
  ) throws(LogError) -> InspectedPart {
    var part = InspectedPart(.frame, at: offset, frame.size, number: count)
    part.base = base
    part.say("events", UInt64(frame.events))
    part.say("rawBytes", UInt64(frame.raw))
    part.say("synced", frame.synced)
    guard request.wants(count) else { return part }
    if let chain, chain != frame.previous {
      part.complain(.disagreement("it does not follow the frame before it"))
    }
    switch try payload(of: frame, at: offset) {
    case .success(let payload):
      part.decode(payload)
      part.isChecked = true
      part.checkEvents(frame.events, "frame")
    case .failure(let flaw): part.complain(flaw)
    }
    return part
  }

  /// The first part of bytes without a valid frame. The tail can be unwritten space, a torn write,
  /// or rot.
  private func corruption(_ range: Range<UInt64>, _ count: Int, isTail: Bool) throws(LogError)
    -> InspectedPart
  {
    var part = InspectedPart(.frame, at: range.lowerBound, UInt64(range.count), number: count)
    switch try header(at: part.offset) {
    case .success(let frame) where isTail || frame.size == part.length:
      part = try self.part(frame, at: part.offset, count)
      if isTail, !part.flaws.isEmpty {
        part.say("content", "a write that a crash cut short, remains of an older file, or rot")
      }
    case .failure(let flaw) where isTail && flaw != .notThisFormat:
      part.say("content", "a write that a crash cut short, or a file that was cut")
      part.complain(flaw)
    default:
      let written = isTail ? try source.firstNonZero(from: part.offset) : part.offset
      if isTail { (part.kind, part.number) = (.unknown, nil) }
      if let written {
        part.complain(.disagreement("no valid frame is here"), at: written)
      } else {
        part.say("content", "zeros: space that is not written yet")
      }
    }
    return part
  }
}

extension InspectedPart {
  fileprivate mutating func describe(_ header: JournalHeader) {
    say("log", header.log.description)
    say("number", header.number)
    say("base", header.start.position)
    say("chain", header.start.chain.eightDigits)
  }
}
