import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Golden bytes of version 2: a change here breaks every existing log.
@Suite struct FormatTests {
  private let digest = SegmentDigest(bytes: Array(0..<32))

  /// The bytes of a golden text.
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
    let token = LogToken(position: Position(4017), chain: 0xAABB_CCDD)
    let header = JournalHeader(log: testLog, number: 5, start: token)
    expect(
      header.encoded(),
      """
      5354454d4d412d4a020000004cc3cd530123456789abcdef00000000000000050000000000000fb1
      aabbccdd611e5d5f
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
    let found = Watermark(turn: 3, journal: 5, durable: 4096, manifest: 7).encoded(testLog)
    #expect(found.count == 512)
    expect(
      Array(found[..<56] + found[508...]),
      """
      5354454d4d412d5702000000ded2760d0123456789abcdef00000000000000030000000000000005
      000000000000100000000000000000074ede61b0
      """)
    #expect(found[56..<508].allSatisfy { $0 == 0 })
  }

  @Test func segmentHeader() throws {
    let header = SegmentHeader(log: testLog, number: 9, base: Position(4017))
    expect(
      header.encoded(),
      """
      5354454d4d412d53020000003e97c8bd0123456789abcdef00000000000000090000000000000fb1
      7f9d79d5
      """)
  }

  @Test func segmentFooter() throws {
    let (a, b) = (Partition("t=a"), Partition("t=abc"))
    var footer = SegmentFooter()
    footer.partitions = [
      PartitionRun(
        partition: a, blocks: 0..<1, events: 3,
        streams: [
          StreamRun(origin: Origin(1), from: SequenceNumber(5), to: SequenceNumber(6), hash: .zero),
          StreamRun(origin: Origin(2), from: SequenceNumber(1), to: SequenceNumber(1), hash: .zero),
        ]),
      PartitionRun(
        partition: b, blocks: 0..<2, events: 300,
        streams: [
          StreamRun(
            origin: Origin(2), from: SequenceNumber(1), to: SequenceNumber(300),
            hash: StreamHash(high: 5, low: 6))
        ]),
    ]
    let key = RecordKey(partition: a, model: "Book", key: Key(.string("x")))
    footer.blocks = [
      BlockEntry(
        offset: 80, length: 1000, crc: 0x0102_0304, events: 203, firstRelativePosition: 0,
        lastRelativePosition: 302,
        lowestTimestamp: Timestamp(rawValue: 100), highestTimestamp: Timestamp(rawValue: 400), firstKey: key),
      BlockEntry(
        offset: 1080, length: 20, crc: 0x0506_0708, events: 100, firstRelativePosition: 7,
        lastRelativePosition: 7,
        lowestTimestamp: .zero, highestTimestamp: .zero,
        firstKey: RecordKey(partition: b, model: "Author", key: Key(.int(5)))),
    ]
    let found = footer.encoded().bytes
    expect(
      found,
      """
      02000000000000000100000000000000020206417574686f7204426f6f6b020003743d6101030278
      00e80701020304cb0100ae02c801ac0203026263000215051405060708640700c701000003000000
      02000501010100030262630001010101ab0200000000000000050000000000000006
      """)
    #expect(try SegmentFooter(decoding: found, data: 80..<1100) == footer)
    #expect(throws: Flaw.malformed("lengths of blocks")) {
      try SegmentFooter(decoding: found, data: 80..<1101)
    }
    #expect(throws: Flaw.self) { try SegmentFooter(decoding: found + [0], data: 80..<1100) }
    // Wrong bytes with a correct checksum never trap.
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
      footerOffset: 1100, footer: [1, 2, 3], rootSize: 2, filter: [4], events: 303, end: 400,
      rawBytes: 70_000, chain: 0xDEAD_BEEF)
    trailer.digest = digest
    expect(
      trailer.encoded(),
      """
      000000000000044c0000000000000003000000000000000103f89f5295e7c44e000000000000012f
      00000000000001900000000000011170deadbeef00000002000102030405060708090a0b0c0d0e0f
      101112131415161718191a1b1c1d1e1ff174d0885354454d4d412d45
      """)
    #expect(try SegmentTrailer(decoding: trailer.encoded()) == trailer)
  }
}
