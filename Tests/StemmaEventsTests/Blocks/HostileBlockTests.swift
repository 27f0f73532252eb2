import StemmaEvents
import Testing
import StemmaSimulation

/// Arbitrary bytes give a typed error, or events that can be written and read again. A trap would
/// end the whole test run.
@Suite struct HostileBlockTests {
  /// Reads the complete block. Returns whether it is valid.
  private func survives(_ bytes: [UInt8]) throws -> Bool {
    let reader: BlockReader
    let events: [BlockEvent]
    do {
      reader = try BlockReader(bytes, limit: 1 << 20)
      events = try reader.events()
    } catch { return false }
    let again = try BlockReader(block(events, messages: reader.messages.map { ($0.commit, $0.message) }))
    #expect(try again.events() == events)
    #expect(try reader.eventsByKey() == events.sorted(by: order))
    return true
  }

  @Test func cutAnywhereIsRefused() throws {
    var source = RandomEvents(seed: 3)
    for events in [history(of: 1), history(of: 20), source.events(40)] {
      let bytes = block(events)
      for count in 0..<bytes.count {
        #expect(throws: EventsError.self) { try BlockReader(Array(bytes[..<count])).events() }
      }
      #expect(throws: EventsError.self) { try BlockReader(bytes + [0]).events() }
    }
  }

  @Test(arguments: 1...40)
  func mutatedBytesAreRefusedOrRead(seed: Int) throws {
    var random = SplitMix64(seed: UInt64(seed))
    var source = RandomEvents(seed: UInt64(seed))
    // Small blocks are not deflated, so mutations reach the columns. Large ones are deflated.
    let bytes = block(source.events(seed % 8 == 0 ? 60 : 1 + seed % 5))
    var read = 0
    for _ in 0..<300 {
      var mutated = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let index = Int.random(in: 0..<mutated.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: mutated[index] = UInt8.random(in: 0...255, using: &random)
        case 1: mutated[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 2: mutated[index] = [0, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
        case 3: mutated.insert(UInt8.random(in: 0...255, using: &random), at: index)
        default: if mutated.count > 1 { mutated.remove(at: index) }
        }
      }
      let survived = try survives(mutated)
      if survived { read += 1 }
      // Blocks that are stored unchanged are inflated by zlib alone. Everything it accepts must
      // also be accepted in local files.
      let strict = Result { () throws(EventsError) in
        try BlockReader(mutated[...], limit: 1 << 20, strictly: true).events()
      }
      if case .success(let events) = strict {
        #expect(survived)
        #expect(try BlockReader(mutated, limit: 1 << 20).events() == events)
      }
    }
    #expect(read < 300, "seed \(seed)")
  }

  @Test func noiseIsRefused() {
    var random = SplitMix64(seed: 1)
    for count in 0..<600 {
      let noise = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      #expect(throws: EventsError.self) { try BlockReader([1, 1] + noise).events() }
      #expect(throws: EventsError.self) { try BlockReader(noise).events() }
    }
  }

  /// A block of one event, with modifiable bytes of each stream.
  private struct Open {
    var count: UInt64 = 1
    var keys: [UInt8]
    var rows: [UInt8]
    var values: [UInt8]

    init() {
      let bytes = block(history(of: 1))
      // Codec, layout, one event, and three sizes of one byte each, since all streams are under 64
      // bytes.
      let (k, m, v) = (Int(bytes[3] >> 1), Int(bytes[4] >> 1), Int(bytes[5] >> 1))
      keys = Array(bytes[6..<6 + k])
      rows = Array(bytes[(6 + k)..<(6 + k + m)])
      values = Array(bytes[(6 + k + m)..<(6 + k + m + v)])
    }

    var bytes: [UInt8] {
      var bytes: [UInt8] = [1, 1]
      bytes.appendVarint(count)
      for stream in [keys, rows, values] { bytes.appendVarint(stream.count << 1) }
      return bytes + keys + rows + values
    }
  }

  @Test func theOpenBlockIsTheBlock() { #expect(Open().bytes == block(history(of: 1))) }

  @Test func otherCodecsAndLayoutsAreRefused() {
    var bytes = block(history(of: 1))
    bytes[0] = 2
    #expect(throws: EventsError.malformed("block", "codec 2")) { try BlockReader(bytes) }
    bytes[0] = 1
    bytes[1] = 2
    #expect(throws: EventsError.malformed("block", "layout 2")) { try BlockReader(bytes) }
  }

  @Test func countsBeyondTheBytesAreRefused() {
    var open = Open()
    for count: UInt64 in [0, 2, 1 << 24, 1 << 24 + 1, .max] {
      open.count = count
      #expect(throws: EventsError.self) { try BlockReader(open.bytes) }
    }
    open = Open()
    open.keys = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F] + open.keys.dropFirst()
    #expect(throws: EventsError.self) { try BlockReader(open.bytes) }
  }

  @Test func overlongNumbersAreRefused() {
    var open = Open()
    open.keys = [0x81, 0x00] + open.keys.dropFirst()
    #expect(throws: EventsError.self) { try BlockReader(open.bytes) }
  }

  @Test func streamsThatClaimTooMuchAreRefusedBeforeMemoryIsTaken() {
    for raw in [Limits.blockStream, Limits.blockStream + 1, 1 << 40, 1 << 62] {
      var bytes: [UInt8] = [1, 1, 1]
      bytes.appendVarint(UInt64(raw) << 1 | 1)
      bytes += [5, 2 << 1, 2 << 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
      #expect(throws: EventsError.self) { try BlockReader(bytes) }
    }
  }

  @Test func theLimitOfStreamsHoldsToTheByte() throws {
    let bytes = block(history(of: 1))
    let largest = Int(bytes[3] >> 1)
    #expect(try BlockReader(bytes, limit: largest + 1).count == 1)
    #expect(try BlockReader(bytes, limit: largest).count == 1)
    #expect(throws: EventsError.self) { try BlockReader(bytes, limit: largest - 1) }
  }

  @Test func namesThatAreNoneAreRefused() {
    for (name, replacement) in [("Book", "Bo k"), ("pages", "1ages"), ("title", "t\u{301}tl")] {
      var open = Open()
      for start in 0..<(open.keys.count - name.utf8.count)
      where open.keys[start..<start + name.utf8.count].elementsEqual(name.utf8) {
        open.keys.replaceSubrange(start..<start + name.utf8.count, with: replacement.utf8)
        break
      }
      #expect(throws: EventsError.self) { try BlockReader(open.bytes) }
    }
  }

  @Test func textThatIsNotUTF8IsRefused() throws {
    var open = Open()
    open.values[open.values.count - 1] = 0xC3
    #expect(throws: EventsError.malformed("text", "not UTF-8")) { try BlockReader(open.bytes).events() }
  }

  @Test func aNewerSequenceInTheContextIsRefused() throws {
    // The event's own sequence is 2. Its context cannot contain 2 or more of its own origin.
    for (sequence, isFine) in [(1 as UInt64, true), (2, false), (3, false)] {
      var event = history(of: 2)[1]
      event.event.context = Context(EventID(event.event.id.origin, SequenceNumber(sequence)))
      let bytes = block([event])
      if isFine {
        #expect(try BlockReader(bytes).events() == [event])
      } else {
        #expect(throws: EventsError.malformed("context", "covers its own event")) { try BlockReader(bytes) }
      }
    }
  }

  @Test func numbersBeyondTheLimitAreRefused() throws {
    for (number, isFine) in [
      (Limits.highestNumber - 1, true), (Limits.highestNumber, true), (Limits.highestNumber + 1, false),
    ] {
      var bySequence = history(of: 1)[0]
      bySequence.event.id = EventID(Origin(1), SequenceNumber(number))
      var byVersion = history(of: 1)[0]
      byVersion.event.version = Version(number)
      var byCommit = history(of: 1)[0]
      byCommit.event.commit = CommitID(byCommit.event.id.origin, number)
      for event in [bySequence, byVersion, byCommit] {
        if isFine {
          #expect(try BlockReader(block([event])).events() == [event])
        } else {
          #expect(throws: EventsError.self) { try BlockReader(block([event])).events() }
        }
      }
    }
  }

  @Test func utf8CheckAgreesWithTheStandardLibrary() {
    var random = SplitMix64(seed: 9)
    let edges: [UInt8] = [
      0, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
      0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
    ]
    for _ in 0..<60_000 {
      let bytes = (0..<Int.random(in: 0...12, using: &random)).map { _ in
        edges.randomElement(using: &random) ?? 0
      }
      let isUTF8 = bytes.withUnsafeBytes { $0.isUTF8 }
      #expect(isUTF8 == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
    }
  }

  @Test func keysAreCheckedByTheRulesOfKey() {
    // Compares the block's own check, which decodes no key, with the check that does.
    var random = SplitMix64(seed: 12)
    let edges: [UInt8] = [
      0, 1, 2, 0x0B, 0x0C, 0x13, 0x14, 0x15, 0x1C, 0x1D, 0x21, 0x26, 0x27, 0x41, 0x7F, 0x80, 0xC3, 0xA9, 0xFF,
    ]
    var keys = 0
    for _ in 0..<60_000 {
      let bytes = (0..<Int.random(in: 0...10, using: &random)).map { _ in
        edges.randomElement(using: &random) ?? 0
      }
      let isKey = bytes.withUnsafeBytes { Key.isEncoding($0) }
      var expected = true
      do { _ = try Key(encoded: bytes) } catch { expected = false }
      #expect(isKey == expected, "\(bytes)")
      if isKey { keys += 1 }
    }
    #expect(keys > 1000)
  }
}
