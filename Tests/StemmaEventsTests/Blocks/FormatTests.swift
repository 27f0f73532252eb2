import Testing

@testable import StemmaEvents

/// Golden bytes: stored data must remain readable forever. A failure means that the layout has
/// changed and needs a new version byte.
@Suite struct FormatTests {
  @Test func aBlockOfTwoEvents() throws {
    let golden: [[UInt8]] = [
      [1, 1, 2],  // codec, layout, events
      [0x84, 0x01, 32 << 1, 27 << 1],  // raw bytes of K, M and V, none deflated
      [1, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],  // origins
      [3, 4] + "Book".utf8 + [5] + "pages".utf8 + [5] + "title".utf8,
      [1, 0, 4] + "Book".utf8,  // partitions
      [2, 0, 2, 1 << 3 | 2, 2 << 3 | 4, 1, 2, 1 << 3 | 2, 2 << 3 | 4],  // shapes: create and update
      [1, 0, 0, 1, 0],  // runs
      [0, 16, 2] + "978-0132350884".utf8 + [0],  // keys
      [0, 1],  // key
      [0, 1],  // shape
      [0, 0],  // origin
      [0, 0],  // sequence
      [0x80, 0xA0, 0xAB, 0xFE, 0xF9, 0x62, 2],  // milliseconds
      [0, 0],  // counter
      [2, 2],  // commit
      [0, 0],  // position
      [0, 0, 0],  // contexts, commits, causes
      [1, 0, 1, 1, 3] + "Ann".utf8,  // messages
      [1, 0xA0, 7, 2],  // pages
      [0, 10, 10] + "Clean CodeClean Code".utf8,  // title
    ]
    let bytes = Array(golden.joined())
    let message = CommitMessage(author: "Ann")
    let events = history(of: 2)
    #expect(block(events, messages: [(events[0].event.commit, message)]) == bytes)
    #expect(try BlockReader(bytes).events() == events)
  }

  @Test func aCanonicalEvent() {
    var event = history(of: 2)[1].event
    event.cause = QualifiedEventID(partition: Partition("a=1"), id: EventID(Origin(2), SequenceNumber(300)))
    event.assignments = [
      Assignment("a", .null), Assignment("b", .bool(true)), Assignment("c", .int(-2)),
      Assignment("d", .double(1)), Assignment("e", .string("é")), Assignment("f", .json("[]")),
    ]
    let origin: [UInt8] = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]
    let parts: [[UInt8]] = [
      [1, 4] + "Book".utf8, [4] + "Book".utf8, [16, 2] + "978-0132350884".utf8 + [0],
      [1, 0],  // operation, relationship
      origin + [2], [2],  // event id, version
      [0x01, 0x8B, 0xCF, 0xE5, 0x68, 0x01, 0, 0],  // timestamp
      origin + [2],  // commit
      [1] + origin + [1],  // context
      [1, 3] + "a=1".utf8 + [0, 0, 0, 0, 0, 0, 0, 2, 0xAC, 0x02],  // cause
      [6],
      [1, 0x61, 0], [1, 0x62, 1, 1], [1, 0x63, 2, 3], [1, 0x64, 3, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0],
      [1, 0x65, 4, 2, 0xC3, 0xA9], [1, 0x66, 5, 2, 0x5B, 0x5D],
    ]
    #expect(event.canonicalBytes == Array(parts.joined()))
    #expect(event.digest.description == "8b5f72d4d8054b84b846a99038c82c5b")
    #expect(event.digest.bytes.count == 16)
    #expect(event.digest.hash.description == event.digest.description)
  }

  @Test func digestsTellEveryFieldApart() {
    let event = history(of: 2)[1].event
    var others: [Event] = []
    func change(_ body: (inout Event) -> Void) {
      var other = event
      body(&other)
      others.append(other)
    }
    change { $0.partition = Partition("Books") }
    change { $0.model = "Boo" }
    change { $0.key = Key(.string("978-013235088")) }
    change { $0.operation = .create }
    change { $0.relationship = "" }
    change { $0.relationship = "author" }
    change { $0.id = EventID(Origin(1), event.id.sequence) }
    change { $0.id = EventID(event.id.origin, event.id.sequence.next) }
    change { $0.context = .empty }
    change { $0.version = event.version.next }
    change { $0.timestamp = event.timestamp.tick }
    change { $0.commit = CommitID(Origin(1), event.commit.number) }
    change { $0.commit = CommitID(event.commit.origin, event.commit.number + 1) }
    change {
      $0.cause = QualifiedEventID(partition: event.partition, id: EventID(event.id.origin, SequenceNumber(1)))
    }
    change { $0.assignments = [] }
    change { $0.assignments[0].field = "page" }
    change { $0.assignments[0].value = .null }
    change { $0.assignments[1].value = .json("Clean Code") }
    change { $0.assignments[1].value = .string("Clean Cod\u{65}\u{301}") }
    change { $0.assignments[1].value = .string("Clean Cod\u{E9}") }
    var digester = EventDigester()
    let digests = ([event] + others).map { digester.digest(of: $0) }
    #expect(Set(digests).count == others.count + 1)
    #expect(digests == ([event] + others).map(\.digest))
  }

  @Test func canonicalBytesOfRandomEventsAreDistinct() {
    var source = RandomEvents(seed: 31)
    let events = source.events(2000).map(\.event)
    #expect(Set(events.map(\.canonicalBytes)).count == Set(events).count)
  }

  @Test func crc32cOfTheStandardCheck() {
    #expect(CRC32C.of(Array("123456789".utf8)) == 0xE306_9283)
    let bytes = Array("123456789".utf8)
    #expect(CRC32C.of(bytes[4...], continuing: CRC32C.of(bytes[..<4])) == 0xE306_9283)
  }

  @Test func varintsHaveTheirShortestForm() throws {
    let numbers: [UInt64] = [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 1 << 53, .max - 1, .max]
    for number in numbers {
      var bytes: [UInt8] = []
      bytes.appendVarint(number)
      #expect(bytes.count == number.varintCount)
      let read = try bytes.withUnsafeBytes { raw in
        var reader = ByteReader<EventsError>(raw)
        let number = try reader.varint("number")
        try reader.finish("number")
        return number
      }
      #expect(read == number)
    }
    for number in [0, -1, 1, .min, .max, 0x40, -0x41] as [Int64] {
      #expect(Int64(zigzag: number.zigzag) == number)
    }
    for bytes in [[0x80, 0], [0xFF, 0x80, 0], [UInt8](repeating: 0xFF, count: 10), [0x80]] as [[UInt8]] {
      #expect(throws: EventsError.self) {
        try bytes.withUnsafeBytes { raw in
          var reader = ByteReader<EventsError>(raw)
          _ = try reader.varint("number")
        }
      }
    }
  }

  @Test func countsAreComparedWithTheBytesThatAreLeft() throws {
    var bytes: [UInt8] = [1, 2]
    bytes.appendVarint(3)
    bytes += [UInt8](repeating: 7, count: 12)
    func count(_ limit: Int, _ each: Int) throws(EventsError) -> Int {
      try bytes.read(from: 2) { (reader) throws(EventsError) in
        try reader.count("items", limit: limit, each: each)
      }
    }
    #expect(try count(3, 4) == 3)
    #expect(throws: EventsError.malformed("items", "3 in 12 bytes")) { try count(3, 5) }
    #expect(throws: EventsError.overLimit("items", found: 3, limit: 2)) { try count(2, 4) }
    let number = try bytes[3...].read(from: 8) { (reader) throws(EventsError) in try reader.fixed32("number")
    }
    #expect(number == 0x0707_0707)
    for start in [9, 12, 13] {
      #expect(throws: EventsError.self) {
        try bytes[3...].read(from: start) { (reader) throws(EventsError) in try reader.fixed32("number") }
      }
    }
  }
}
