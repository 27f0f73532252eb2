import StemmaEvents
import StemmaLog
import Testing

@testable import StemmaTables

/// The rows of streams and commits are assembled from bytes. Tables of earlier programs must remain
/// readable, so the texts are compared with ones built from strings.
@Suite struct HeadRowTests {
  @Test(arguments: [0, 1, 9, 10, 4_294_967_296, UInt64(Int64.max)], [0, 1, 0xa5, UInt64.max])
  func rowIsWrittenAsItsTextsSay(_ number: UInt64, _ word: UInt64) throws {
    let (partition, origin) = (Partition("tenant=é,1"), Origin(word))
    let head = StreamHead(sequence: SequenceNumber(number), hash: StreamHash(high: word, low: ~word))
    let tables = try Tables.inMemory(schema: try sampleSchema())
    try tables.access { connection throws(TablesError) in
      try HeadRow(partition, origin, head).write(by: connection.prepare(HeadRow.upsertStream.description))
      try HeadRow(origin, commit: number).write(by: connection.prepare(HeadRow.upsertCommit.description))
    }
    let (name, digits) = (hexadecimal(word, 16), hexadecimal(word, 16) + hexadecimal(~word, 16))
    let stream = "\(name) \(number) \(digits)"
    let streamCRC = hexadecimal(UInt64(CRC32C.of(Array("tenant=é,1\(stream)".utf8))), 8)
    let commitCRC = hexadecimal(UInt64(CRC32C.of(Array("\(name) \(number) ".utf8))), 8)
    let numbers = Value.int(Int64(number))
    #expect(
      try tables.lines("SELECT partition, origin, value, hash FROM _stemma_meta WHERE name = 'stream'") == [
        [.string("tenant=é,1"), .string(name), numbers, .string(digits + streamCRC)]
      ])
    #expect(
      try tables.lines("SELECT partition, origin, value, hash FROM _stemma_meta WHERE name = 'commit'") == [
        [.string(""), .string(name), numbers, .string(commitCRC)]
      ])
    // Readers sum the columns.
    let sum = HeadRow(partition, origin, head).sum + HeadRow(origin, commit: number).sum
    try tables.access { connection throws(TablesError) in #expect(try HeadChecksum.ofRows(connection) == sum)
    }
    #expect(HeadRow.crc(partition.bytes, origin, Int64(number), digits) == streamCRC)
  }

  /// Without lookup tables and without custom arithmetic.
  private func hexadecimal(_ number: UInt64, _ count: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: count - digits.count) + digits
  }
}
