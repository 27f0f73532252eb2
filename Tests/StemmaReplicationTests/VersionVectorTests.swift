import StemmaEvents
import Testing

@testable import StemmaReplication
import StemmaSimulation

@Suite struct VersionVectorTests {
  private static let golden: [UInt8] =
    [1, 1, 0x41, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0x81, 0x01]
    + [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]

  @Test func goldenBytes() throws {
    var versionVector = VersionVector()
    versionVector[Partition("A"), Origin(7)] = StreamHead(
      sequence: SequenceNumber(129), hash: StreamHash(high: 1, low: 2))
    #expect(versionVector.encoded == Self.golden)
    #expect(try VersionVector(decoding: Self.golden) == versionVector)
  }

  @Test func encodingIsCanonicalAndReadBack() throws {
    var random = SplitMix64(seed: 3)
    for size in [0, 1, 2, 50] {
      let versionVector = random.versionVector(partitions: size)
      var padded = versionVector
      padded[Partition("unheld"), Origin(1)] = .none
      padded.partitions[Partition("empty")] = [:]
      #expect(padded.encoded == versionVector.encoded)
      #expect(try VersionVector(decoding: versionVector.encoded) == versionVector)
    }
  }

  @Test func hostileBytesAreRefused() {
    let stream = Array(Self.golden[4...])
    let hostile: [(String, [UInt8])] = [
      ("empty", []), ("2^63 partitions", Array(repeating: 0xFF, count: 9) + [0x7F]),
      ("count beyond 64 bits", Array(repeating: 0xFF, count: 9) + [0x02]),
      ("overlong varint", [0x80, 0x00]), ("more partitions than bytes", [0x80, 0x01, 1, 0x41]),
      ("name without bytes", [1, 0]), ("name longer than the bytes", [1, 0x7F, 0x41]),
      ("name that is not UTF-8", [1, 1, 0xFF, 1] + stream),
      ("partition without a stream", [1, 1, 0x41, 0] + stream),
      ("the same partition twice", [2, 1, 0x41, 1] + stream + [1, 0x41, 1] + stream),
      ("partitions out of order", [2, 1, 0x42, 1] + stream + [1, 0x41, 1] + stream),
      ("the same origin twice", [1, 1, 0x41, 2] + stream + stream),
      ("sequence 0", Self.golden[..<12] + [0] + Self.golden[14...]),
      (
        "sequence above 2^53 - 1",
        Self.golden[..<12] + [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10] + Self.golden[14...]
      ),
      ("a byte too many", Self.golden + [0]),
    ]
    for (name, bytes) in hostile {
      #expect(throws: ReplicationError.self, "\(name)") { try VersionVector(decoding: bytes) }
    }
    for cut in 0..<Self.golden.count {
      #expect(throws: ReplicationError.self) { try VersionVector(decoding: Array(Self.golden[..<cut])) }
    }
  }

  @Test func lagCountsEventsInBothDirections() {
    let (a, b) = (Partition("A"), Partition("B"))
    func head(_ sequence: UInt64, _ hash: UInt64 = 1) -> StreamHead {
      StreamHead(sequence: SequenceNumber(sequence), hash: StreamHash(high: 0, low: hash))
    }
    let own = VersionVector([a: [Origin(1): head(5), Origin(2): head(3)], b: [Origin(1): head(2, 8)]])
    let peer = VersionVector([a: [Origin(1): head(4), Origin(3): head(9)], b: [Origin(1): head(2, 9)]])
    #expect(
      own.lag(against: peer) == [
        Lag(partition: a, ahead: 4, behind: 9), Lag(partition: b, forked: [Origin(1)]),
      ])
    #expect(own.lag(against: own).allSatisfy { $0.isInSync })
    #expect(!own.covers(peer) && own.covers(own) && own.covers(VersionVector()))
    #expect(own.fork(against: peer, names: ("here", "there"))?.partition == b)
    #expect(own.restricted { $0 == b }.partitions.keys.sorted() == [b])
    #expect(own.eventCount == 10)
    var union = own
    union.formUnion(peer)
    #expect(union.eventCount == 5 + 3 + 9 + 2)
    #expect(own.origins([Origin(1), Origin(3)], behind: peer) == [Origin(3)])
  }
}
