import StemmaEvents

/// A watermark, slot by slot. Where bytes are missing from the first one, or too many in it, the second one does not stand
/// at its place, but says which it is, also at the beginning of the file; and the first bytes of a slot are always the same.
enum WatermarkInspection {
  private static let size = UInt64(Watermark.slotSize)

  static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: (InspectedPart) -> Void
  ) throws(LogError) {
    let second = try secondSlot(source) ?? size
    for (index, range) in [0..<second, second..<second + size].enumerated() where request.wants(index + 1) {
      let bytes = try source.bytes(at: range.lowerBound, count: range.count)
      var part = InspectedPart(.slot, at: range.lowerBound, UInt64(bytes.count), number: index + 1)
      if !bytes.isEmpty, bytes.allSatisfy({ $0 == 0 }) {
        part.say("content", "zeros: never written")
      } else if range.count != size {
        let flaw = Flaw.count(of: second, size) ?? .notThisFormat
        if let whole = mended(bytes) {
          part.complain(flaw, at: 0)
          tell(whole, in: &part)
        } else {
          part.complain(flaw, in: range)
        }
      } else if let fields = try read(bytes, in: &part, path: source.path) {
        tell(fields, in: &part)
      }
      body(part)
    }
    if source.size > second + size, request.block == nil {
      var part = InspectedPart(.unknown, at: second + size, source.size - second - size)
      part.complain(.disagreement("these bytes stand behind the end of the watermark"))
      body(part)
    }
  }

  /// Where the second slot begins, if it is whole, or if the first one lacks only bytes that all have; nil: that cannot be
  /// told.
  static func secondSlot(_ source: InspectedFile) throws(LogError) -> UInt64? {
    let place = try source.first(FilePreamble.watermark, in: 0..<2 * size) { (place) throws(LogError) in
      let slot = try source.bytes(at: place, count: Watermark.slotSize)
      return isWhole(slot) && isSecond(slot)
    }
    if let place { return place }
    let bytes = try source.bytes(at: 0, count: Watermark.slotSize - 1)
    for missing in 1...FilePreamble.size {
      let start = Array(bytes.prefix(Watermark.slotSize - missing))
      if mended(start) != nil { return size - UInt64(missing) }
    }
    return nil
  }

  /// A slot that lacks its first bytes, with them.
  private static func mended(_ bytes: [UInt8]) -> [UInt8]? {
    var preamble: [UInt8] = []
    FilePreamble.encode(FilePreamble.watermark, into: &preamble)
    let missing = Watermark.slotSize - bytes.count
    guard 1...preamble.count ~= missing else { return nil }
    let whole = preamble[..<missing] + bytes
    return isWhole(Array(whole)) ? Array(whole) : nil
  }

  private static func isWhole(_ slot: [UInt8]) -> Bool {
    do throws(Flaw) {
      try Watermark.check(slot: slot)
      return slot.starts(with: FilePreamble.watermark)
    } catch { return false }
  }

  private static func isSecond(_ slot: [UInt8]) -> Bool {
    do throws(Flaw) { return try Watermark.fields(slot: slot).0.offset > 0 } catch { return false }
  }

  /// The bytes of a slot at its place, as they were written; nil: that cannot be told. Without a checksum they say nothing.
  private static func read(
    _ bytes: [UInt8], in part: inout InspectedPart, path: String
  ) throws(LogError) -> [UInt8]? {
    do throws(LogError) {
      if !bytes.isEmpty { try FilePreamble.check(bytes, FilePreamble.watermark, path: path) }
      if bytes.count == size {
        try locating(path, part.offset) { () throws(Flaw) in try Watermark.check(slot: bytes) }
        return bytes
      }
    } catch {
      guard case .damaged(_, _, let flaw) = error else { throw error }
      if bytes.count == size {
        let mended = WrongByte.mending(bytes, at: part.offset) { $0.starts(with: FilePreamble.watermark) }
        if let mended {
          part.complain(flaw, byte: mended.byte)
        } else {
          part.complain(flaw, in: part.offset..<part.offset + part.length)
        }
        return mended?.content
      }
    }
    // What is there may be right; what is missing is not there.
    part.complain(.cutShort(expected: size, found: UInt64(bytes.count)), at: part.offset + part.length)
    return nil
  }

  private static func tell(_ fields: [UInt8], in part: inout InspectedPart) {
    do throws(Flaw) {
      let (watermark, log) = try Watermark.fields(slot: fields)
      part.say("log", log.description)
      part.say("turn", watermark.turn)
      part.say("journal", watermark.journal)
      part.say("durable", watermark.durable)
      try watermark.checkFields()
    } catch { part.complain(error) }
  }
}
