import StemmaEvents

// The header of a journal, and what is known where it cannot be read.
//
// It says the log and the number that the checksum of every frame covers. Where these stand there as they did, a frame
// proves it. Where they do not, the frames are those that say so themselves and hold a block that can be read, and the
// first of them stands where the header ended.

extension JournalInspection {
  mutating func readHeader() throws(LogError) -> InspectedPart {
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
      } else if let moved = try movedHeader() {
        fields = moved.bytes
        (part.offset, part.length) = (moved.offset, UInt64(fields.count))
        shift = Int64(moved.offset)
      } else if let cut = Self.cutHeader(bytes) {
        fields = cut.bytes
        part.length -= min(part.length, cut.missing)
        shift = -Int64(cut.missing)
        part.complain(.lacking(cut.missing), in: 0..<part.length)
      } else {
        part.complain(flaw, in: 0..<max(1, UInt64(bytes.count)))
        try endUnreadHeader(&part, bytes)
        return part
      }
    }
    say(fields, in: &part, isProven: true)
    chain = JournalHeader.chain(fields)
    return part
  }

  private mutating func say(_ fields: [UInt8], in part: inout InspectedPart, isProven: Bool) {
    let header: JournalHeader
    // That it is cut short is said already.
    do throws(Flaw) { header = try JournalHeader(fields: fields) } catch { return }
    (log, number) = (header.log, header.number)
    part.say("log", header.log.description)
    part.say("number", header.number)
    guard isProven else { return }
    let end = header.predecessor.position
    if end.index > 0 {
      part.say("after", Position(file: end.file, index: end.index - 1))
    } else {
      part.say("after", end.file > 0 ? "an empty file \(end.file)" : "nothing")
    }
  }

  /// The header, if it stands whole behind bytes that are none of the journal.
  private func movedHeader() throws(LogError) -> (offset: UInt64, bytes: [UInt8])? {
    var header: [UInt8] = []
    let end = min(source.size, UInt64(LogLimits.scanChunk))
    let offset = try source.first(FilePreamble.journal, in: 0..<end) { (place) throws(LogError) in
      header = try source.bytes(at: place, count: JournalHeader.size)
      return Self.isWhole(header)
    }
    return offset.map { ($0, header) }
  }

  /// The header, if what is missing at its beginning is what begins every journal.
  private static func cutHeader(_ bytes: [UInt8]) -> (missing: UInt64, bytes: [UInt8])? {
    var preamble: [UInt8] = []
    FilePreamble.encode(FilePreamble.journal, into: &preamble)
    for missing in 1...preamble.count {
      let header = Array((preamble[..<missing] + bytes).prefix(JournalHeader.size))
      if isWhole(header) { return (UInt64(missing), header) }
    }
    return nil
  }

  private static func isWhole(_ header: [UInt8]) -> Bool {
    do throws(Flaw) {
      try JournalHeader(fields: header).check(header)
      return true
    } catch { return false }
  }

  /// Whether what stands before a frame is the end of the header: the frame says where it was written, or is chained to
  /// the checksum with which the header ends.
  private func followsHeader(_ first: Found, _ bytes: [UInt8]) -> Bool {
    if !isNameless { return Int64(first.offset) - first.shift == JournalHeader.size }
    var checksum: [UInt8] = []
    checksum.put(first.frame.previous)
    return bytes[..<Int(first.offset)].suffix(4).elementsEqual(checksum.suffix(Int(first.offset)))
  }

  /// Of a header that cannot be read: says what the frames prove, and ends it where the first one begins.
  private mutating func endUnreadHeader(_ part: inout InspectedPart, _ bytes: [UInt8]) throws(LogError) {
    var proven = part
    say(bytes, in: &proven, isProven: false)
    var first = try nextFrame(from: 0)
    if first == nil, let journal = request.journal {
      (log, number) = journal
      first = try firstFrame()
    } else if first != nil {
      part = proven
    }
    if first == nil { first = try firstNamelessFrame() }
    guard let first, first.shift == 0 || first.shift < 0 && -first.shift <= JournalHeader.size else { return }
    let size = UInt64(JournalHeader.size)
    if first.offset > size {
      // What stands before it may be frames.
      if !isNameless { return }
      part.end(at: 0)
      part.flaws = []
      part.complain(.disagreement("what is left of it is among the bytes that follow"))
    } else if first.offset < size {
      guard followsHeader(first, bytes) else {
        part.end(at: 0)
        part.flaws = []
        part.complain(.disagreement("what is left of it is among the bytes that follow"))
        return
      }
      shift = first.shift
      part.end(at: first.offset)
      guard part.length > 0 else { return }
      part.flaws = []
      part.complain(.lacking(size - first.offset), in: 0..<first.offset)
    }
  }
}
