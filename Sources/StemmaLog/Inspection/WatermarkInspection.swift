import StemmaEvents

enum WatermarkInspection {
  static func run(_ source: InspectedFile, _ body: (InspectedPart) -> Void) throws(LogError) {
    let size = UInt64(Watermark.slotSize)
    for index in 0..<2 {
      let bytes = try source.bytes(at: UInt64(index) * size, count: Watermark.slotSize)
      var part = InspectedPart(.slot, at: UInt64(index) * size, UInt64(bytes.count), number: index + 1)
      if !bytes.isEmpty, bytes.allSatisfy({ $0 == 0 }) {
        part.say("content", "zeros: never written")
      } else if let (watermark, log) = try part.reading({ () throws(LogError) in
        try fields(bytes, source.path)
      }) {
        part.say("log", log.description)
        part.say("turn", watermark.turn)
        part.say("journal", watermark.journal)
        part.say("durable", watermark.durable)
        part.say("manifest", watermark.manifest)
      }
      body(part)
    }
    guard source.size > 2 * size else { return }
    var part = InspectedPart(.unknown, at: 2 * size, source.size - 2 * size)
    part.complain(.disagreement("these bytes follow the end of the watermark"))
    body(part)
  }

  private static func fields(_ bytes: [UInt8], _ path: String) throws(LogError) -> (Watermark, LogID) {
    if !bytes.isEmpty { try FilePreamble.check(bytes, FilePreamble.watermark, path: path) }
    return try locating(path, 0) { () throws(Flaw) in
      guard bytes.count == Watermark.slotSize else {
        throw .cutShort(expected: UInt64(Watermark.slotSize), found: UInt64(bytes.count))
      }
      try Watermark.check(slot: bytes)
      let fields = try Watermark.fields(slot: bytes)
      try fields.0.checkFields()
      return fields
    }
  }
}
