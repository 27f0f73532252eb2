import StemmaEvents

/// A journal, frame by frame. Behind one that is damaged it looks for the next that is valid at its place;
/// what follows the last valid frame is a tail: space that was never written, a write that a crash cut short,
/// the remains of what stood in the file before, or damage.
struct JournalInspection {
  private let source: InspectedFile
  private let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  private var log = LogID(0)
  private var number: UInt64 = 0
  /// The chain value before the next frame; nil: what stood before is damaged.
  private var chain: UInt32?

  static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(LogError) {
    var inspection = JournalInspection(source: source, request: request, body: body)
    try inspection.run()
  }

  private init(source: InspectedFile, request: InspectionRequest, body: @escaping (InspectedPart) -> Void) {
    self.source = source
    self.request = request
    self.body = body
  }

  private mutating func run() throws(LogError) {
    let header = try readHeader()
    if request.block == nil { body(header) }
    var offset = header.length
    var frame = 1
    while offset < source.size {
      if let found = try validFrame(at: offset) {
        if request.wants(frame) { body(part(found, frame)) }
        chain = found.frame.crc
        offset = found.end
      } else if let next = try nextValidFrame(from: offset + 1) {
        if request.wants(frame) { body(try damagedPart(offset..<next, frame)) }
        chain = nil
        offset = next
      } else {
        if request.block == nil || request.wants(frame) { body(try tail(from: offset, frame)) }
        return
      }
      frame += 1
    }
  }

  private mutating func readHeader() throws(LogError) -> InspectedPart {
    let bytes = try source.bytes(at: 0, count: JournalHeader.size)
    var part = InspectedPart(.header, at: 0, UInt64(bytes.count))
    var fields = bytes
    do throws(LogError) {
      try FilePreamble.check(bytes, FilePreamble.journal, path: source.path)
      try locating(source.path, 0) { () throws(Flaw) in try JournalHeader(fields: bytes).check(bytes) }
    } catch {
      guard case .damaged(_, _, let flaw) = error else { throw error }
      let mended = WrongByte.mending(bytes, at: 0) { $0.starts(with: FilePreamble.journal) }
      if let mended, bytes.count == JournalHeader.size {
        fields = mended.content
        part.complain(flaw, byte: mended.byte)
      } else {
        part.complain(flaw, in: 0..<max(1, UInt64(bytes.count)))
      }
    }
    do throws(Flaw) {
      let header = try JournalHeader(fields: fields)
      (log, number) = (header.log, header.number)
      part.say("log", header.log.description)
      part.say("number", header.number)
      let end = header.predecessor.position
      if end.index > 0 {
        part.say("after", Position(file: end.file, index: end.index - 1))
      } else {
        part.say("after", end.file > 0 ? "an empty file \(end.file)" : "nothing")
      }
      if part.flaws.allSatisfy({ $0.byte != nil }) { chain = JournalHeader.chain(fields) }
    } catch {}  // That it is cut short is said already.
    return part
  }

  // MARK: Frames

  private struct Found {
    var offset: UInt64
    var frame: JournalFrame
    var bytes: [UInt8]

    var payload: [UInt8] { Array(bytes.dropFirst(JournalFrame.headerSize)) }
    var end: UInt64 { offset + UInt64(bytes.count) }
  }

  /// What looks like a frame at `offset`; its checksum is not compared.
  private func frame(at offset: UInt64) throws(LogError) -> Found? {
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
    guard frame.length <= InspectionLimits.part else { return nil }
    let bytes = try source.bytes(at: offset, count: headerSize + frame.length)
    return bytes.count == headerSize + frame.length
      ? Found(offset: offset, frame: frame, bytes: bytes) : nil
  }

  private func checksum(of found: Found) -> UInt32 {
    JournalFrame.checksum(
      found.bytes, at: 0, payload: found.frame.length, log: log, number: number, offset: found.offset)
  }

  private func validFrame(at offset: UInt64) throws(LogError) -> Found? {
    guard let found = try frame(at: offset), checksum(of: found) == found.frame.crc else { return nil }
    return found
  }

  private func nextValidFrame(from start: UInt64) throws(LogError) -> UInt64? {
    guard start < source.size else { return nil }
    return try source.first(JournalFrame.magic, in: start..<source.size) { (place) throws(LogError) in
      try validFrame(at: place) != nil
    }
  }

  private func part(_ found: Found, _ number: Int) -> InspectedPart {
    var part = InspectedPart(.frame, at: found.offset, UInt64(found.bytes.count), number: number)
    part.place = self.number
    part.describe(found.frame)
    if let chain, chain != found.frame.previous {
      part.complain(.disagreement("it does not follow the frame before it"))
    }
    part.decode(found.payload)
    part.isChecked = true
    if let block = part.block, block.count != found.frame.events {
      part.complain(.disagreement("\(block.count) events, the frame says \(found.frame.events)"))
    }
    return part
  }

  /// Bytes before a valid frame that are none.
  private func damagedPart(_ range: Range<UInt64>, _ number: Int) throws(LogError) -> InspectedPart {
    var part = InspectedPart(
      .frame, at: range.lowerBound, range.upperBound - range.lowerBound, number: number)
    guard let found = try frame(at: range.lowerBound), found.end == range.upperBound else {
      part.complain(.notThisFormat)
      return part
    }
    complain(&part, found)
    return part
  }

  private func complain(_ part: inout InspectedPart, _ found: Found) {
    part.describe(found.frame)
    part.place = self.number
    let payload = found.payload
    // The checksum covers the place and the header too; only a wrong byte of the payload is looked for.
    part.complain(
      checksum: found.frame.crc, found: checksum(of: found), of: payload,
      at: found.offset + UInt64(JournalFrame.headerSize))
  }

  /// What follows the last valid frame.
  private func tail(from offset: UInt64, _ number: Int) throws(LogError) -> InspectedPart {
    var rest = offset
    while rest < source.size {
      let bytes = try source.bytes(at: rest, count: LogLimits.scanChunk)
      guard !bytes.isEmpty, bytes.allSatisfy({ $0 == 0 }) else { break }
      rest += UInt64(bytes.count)
    }
    var part = InspectedPart(.unknown, at: offset, source.size - offset)
    if rest >= source.size {
      part.say("content", "zeros: space that was not written yet")
      return part
    }
    part.number = number
    if let found = try frame(at: offset) {
      part.say(
        "content",
        "a frame that is not valid here: a write that a crash cut short, remains of an older file, or rot"
      )
      complain(&part, found)
    } else {
      part.say("content", "no frame: a write that a crash cut short, or rot")
      part.complain(.notThisFormat)
    }
    return part
  }
}

extension InspectedPart {
  fileprivate mutating func describe(_ frame: JournalFrame) {
    say("events", UInt64(frame.events))
    say("rawBytes", UInt64(frame.raw))
    say("synced", frame.synced)
  }
}
