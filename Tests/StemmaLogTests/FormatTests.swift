import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Golden bytes of version 1: a change here breaks every log that was ever written.
@Suite struct FormatTests {
  private let digest = SegmentDigest(bytes: Array(0..<32))

  /// Bytes from the words of a golden text.
  private func bytes(_ text: String) -> [UInt8] {
    let digits = Array(text.utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\n") })
    return stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
    }
  }

  private func expect(_ found: [UInt8], _ golden: String, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(hex(found) == hex(bytes(golden)), sourceLocation: sourceLocation)
  }

  @Test func journalHeader() throws {
    let token = LogToken(position: Position(file: 4, index: 17), chain: 0xAABB_CCDD)
    let header = JournalHeader(log: testLog, number: 5, predecessor: token)
    expect(
      header.encoded(),
      """
      5354454d4d412d4a010000002ee1446a0123456789abcdef00000000000000050000000000000004
      0000000000000011aabbccdd0000000000000000ea22cde6
      """)
    #expect(
      try JournalHeader(decoding: header.encoded(), path: "f", log: testLog, number: 5) == header)
  }

  @Test func journalFrame() throws {
    var bytes: [UInt8] = [0xEE]
    let crc = try JournalFrame.encode(
      payload: [1, 2, 3], events: 2, raw: 150, synced: 64, previous: 0x1122_3344, log: testLog, number: 5,
      offset: 64, into: &bytes)
    expect(
      Array(bytes.dropFirst()),
      """
      46524d31000000030000000000000040112233440000000200000096fbea4b36010203
      """)
    let frame = try JournalFrame(decoding: bytes, at: 1, previous: 0x1122_3344, available: 3)
    #expect(frame.crc == crc && frame.events == 2 && frame.raw == 150 && frame.synced == 64)
    try frame.check(bytes, at: 1, log: testLog, number: 5, offset: 64)
    // The same bytes are not valid in another log, file or place, or after another frame.
    #expect(throws: Flaw.self) { try frame.check(bytes, at: 1, log: LogID(1), number: 5, offset: 64) }
    #expect(throws: Flaw.self) { try frame.check(bytes, at: 1, log: testLog, number: 6, offset: 64) }
    #expect(throws: Flaw.self) { try frame.check(bytes, at: 1, log: testLog, number: 5, offset: 65) }
    #expect(throws: Flaw.self) { try JournalFrame(decoding: bytes, at: 1, previous: 0, available: 3) }
  }

  @Test func watermark() throws {
    let found = Watermark(turn: 3, journal: 5, durable: 4096).encoded(testLog)
    #expect(found.count == 512)
    expect(
      Array(found[..<48] + found[508...]),
      """
      5354454d4d412d5701000000bcf0ff340123456789abcdef00000000000000030000000000000005
      0000000000001000f0faddfd
      """)
    #expect(found[48..<508].allSatisfy { $0 == 0 })
  }

  @Test func segmentHeader() throws {
    let header = SegmentHeader(
      log: testLog, number: 9, place: 2, predecessor: digest,
      replaced: [ReplacedFile(number: 2, digest: digest), ReplacedFile(number: 7, digest: .none)])
    expect(
      header.encoded(),
      """
      5354454d4d412d53010000005cb541840123456789abcdef00000000000000090000000000000002
      000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0000000200000000
      00000002000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00000000
      00000007000000000000000000000000000000000000000000000000000000000000000039f169d0
      """)
  }

  @Test func segmentFooter() throws {
    let (a, b) = (Partition("t=a"), Partition("t=abc"))
    var footer = SegmentFooter()
    footer.partitions = [
      PartitionRun(
        partition: a, blocks: 0..<1, events: 3,
        streams: [
          StreamRun(origin: Origin(1), from: Sequence(5), to: Sequence(6), hash: StreamHash(high: 1, low: 2)),
          StreamRun(origin: Origin(2), from: Sequence(1), to: Sequence(1), hash: StreamHash(high: 3, low: 4)),
        ]),
      PartitionRun(
        partition: b, blocks: 0..<2, events: 300,
        streams: [
          StreamRun(
            origin: Origin(2), from: Sequence(1), to: Sequence(300), hash: StreamHash(high: 5, low: 6))
        ]),
    ]
    let key = RecordKey(partition: a, model: "Book", key: Key(.string("x")))
    footer.blocks = [
      BlockEntry(
        offset: 80, length: 1000, crc: 0x0102_0304, events: 203, firstArrival: 0, lastArrival: 302,
        lowestTimestamp: Timestamp(rawValue: 100), highestTimestamp: Timestamp(rawValue: 400), firstKey: key),
      BlockEntry(
        offset: 1080, length: 20, crc: 0x0506_0708, events: 100, firstArrival: 7, lastArrival: 7,
        lowestTimestamp: .zero, highestTimestamp: .zero,
        firstKey: RecordKey(partition: b, model: "Author", key: Key(.int(5)))),
    ]
    let found = footer.encoded()
    expect(
      found,
      """
      02000000000000000100000000000000020206417574686f7204426f6f6b020003743d6100000302
      00050100000000000000010000000000000002010100000000000000000300000000000000040302
      62630001ac02010101ab020000000000000005000000000000000602e80701020304cb0100ae0264
      ac02000103027800140506070864070000000100021505
      """)
    #expect(try SegmentFooter(decoding: found, data: 80..<1100) == footer)
    #expect(throws: Flaw.malformed("lengths of blocks")) {
      try SegmentFooter(decoding: found, data: 80..<1101)
    }
    #expect(throws: Flaw.malformed("end of the footer")) {
      try SegmentFooter(decoding: found + [0], data: 80..<1100)
    }
    // Wrong bytes with a right checksum never trap.
    var random = SplitMix64(seed: 1)
    for _ in 0..<20_000 {
      var mutated = found
      for _ in 0...random.below(3) {
        mutated[random.below(mutated.count)] = UInt8(truncatingIfNeeded: random.next())
      }
      do { _ = try SegmentFooter(decoding: mutated, data: 80..<1100) } catch {}
    }
  }

  @Test func segmentTrailer() throws {
    var trailer = SegmentTrailer(
      footerOffset: 1100, footer: [1, 2, 3], filter: [4], events: 303, end: 400, rawBytes: 70_000,
      chain: 0xDEAD_BEEF)
    trailer.digest = digest
    expect(
      trailer.encoded(),
      """
      000000000000044c00000000000000030000000000000001f130f21e95e7c44e000000000000012f
      00000000000001900000000000011170deadbeef00000000000102030405060708090a0b0c0d0e0f
      101112131415161718191a1b1c1d1e1f1687894a5354454d4d412d45
      """)
    #expect(try SegmentTrailer(decoding: trailer.encoded(), headerSize: 1100) == trailer)
    #expect(throws: Flaw.malformed("trailer")) {
      try SegmentTrailer(decoding: trailer.encoded(), headerSize: 1101)
    }
  }

  private let golden = [
    "00000001.segment": """
    5354454d4d412d53010000005cb541840123456789abcdef00000000000000010000000000000001
    0000000000000000000000000000000000000000000000000000000000000000000000002bf4d4fd
    010103cc0182015c0100000000000000070404426f6f6b05636f756e74057469746c650641757468
    6f7202000874656e616e743d610701620100020a14030003010101030101000001010000000a0a0a
    027265636f7264203400027265636f7264203400027265636f726420310004050000000000000000
    0000b2a0abfef96210060000000200000000000000000100010703616e6e0974776f20626f6f6b73
    0e626f6f6b732e6e646a736f6e3a3100ea07aa063a000c0c0c71627a6b616c70686c627a746f6161
    766a646e756f7375706c777972696b646b646d6e640100000000000000070106417574686f720200
    0874656e616e743d6100000101000100f164fc2025aa4b746644bed194c701440701620000020100
    01015409aba92f47e628131f553e9070cedd01dd01f3f8b0500300028080e4c0d6fcf3c50180802c
    00000d026100027265636f72642034000524f29b000000000000012d000000000000007300000000
    0000000431df14fdf964c63e0000000000000003000000000000000300000000000000c3d4327975
    000000001afef0a2f63f5b694f75c1cb61392cb871b985fe5663392a2e5eb0cb51fa6db03c98996c
    5354454d4d412d45
    """,
    "00000002.journal": """
    5354454d4d412d4a010000002ee1446a0123456789abcdef00000000000000020000000000000001
    0000000000000003d4327975000000000000000032fabc3146524d31000000660000000000000040
    32fabc310000000100000041fe2e31e70101017c22220100000000000000070306417574686f7205
    636f756e74057469746c6501000874656e616e743d610100020a140100000101000a027265636f72
    6420330000000001f4a0abfef9620004000000000000f407000c706a69707577666174646372
    """,
    "watermark": """
    5354454d4d412d5701000000bcf0ff340123456789abcdef00000000000000040000000000000002
    00000000000000c60000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    0000000000000000000000000000000000000000000000000000000083903c6d5354454d4d412d57
    01000000bcf0ff340123456789abcdef000000000000000300000000000000020000000000000040
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    00000000000000000000000000000000000000000000000000000000000000000000000000000000
    000000000000000000000000000000000000000033c8fab3
    """,
  ]

  private var goldenCommits: [Commit] {
    var maker = EventMaker(seed: 2024)
    return [
      Commit(maker.commit(3), note: CommitNote(by: "ann", note: "two books", source: "books.ndjson:1")),
      Commit(maker.commit(1)),
    ]
  }

  @Test func aLogOfVersionOneIsRead() throws {
    let disk = SimulatedFileSystem()
    try disk.createDirectory("/log")
    for (name, text) in golden { disk.plant(bytes(text), at: "/log/" + name) }
    let log = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
    #expect(try log.allEvents() == goldenCommits.flatMap(\.events))
    #expect(try log.verify() == [])
    var reader = log.events()
    _ = try reader.next()
    #expect(reader.note == goldenCommits[0].note)
  }

  @Test func aLogOfVersionOneIsWrittenAsBefore() throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    _ = try log.append([goldenCommits[0]])
    try log.seal()
    _ = try log.append([goldenCommits[1]])
    try log.sync()
    for (name, text) in golden { expect(try #require(disk.contents("/log/" + name)), text) }
  }
}
