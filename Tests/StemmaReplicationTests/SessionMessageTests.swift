import StemmaEvents
import StemmaLog
import Testing

@testable import StemmaReplication
import StemmaSimulation

@Suite struct SessionMessageTests {
  static func samples() throws -> [SessionMessage] {
    var random = SplitMix64(seed: 5)
    let greeting = Greeting(
      logID: LogID(77), nodeName: "Zürich",
      origins: [
        NamedOrigin(Origin(9), nodeName: "Zürich", isOwn: true),
        NamedOrigin(Origin(3), nodeName: "Basel", isOwn: false),
      ], schema: "type A @model { id: ID! }\n", scope: try Scope(patterns: ["tenantId=*", "!tenantId=x"]),
      isUnfinished: true,
      losses: [
        StreamLoss(Partition("tenantId=a"), Origin(3), from: SequenceNumber(4), to: SequenceNumber(9))
      ])
    let scope = NarrowedScope(try Scope(patterns: ["a", "b*"]), try Scope(patterns: ["!c"]))
    let side = Fork.Side(node: "Basel", hash: random.hash())
    let partition = Partition("tenantId=acme")
    let errors: [ReplicationError] = [
      .malformed("batch", "nonsense"), .overLimit("batch", found: 1 << 63, limit: 5),
      .newerFormat("greeting", found: 2, supported: 1), .corrupt("batch", "digest"), .sameLog(LogID(.max)),
      .schemaConflict(["A", "B"]), .schemaUnreadable("line 1"), .notPermitted([partition]),
      .unexpectedMessage("end", expected: "greeting"),
      .fork(
        Fork(partition: partition, origin: Origin(1), sequence: SequenceNumber(4), finder: side, peer: side)),
      .gap(partition, Origin(2), expected: SequenceNumber(3), found: SequenceNumber(7)),
      .foreignPartition(partition),
      .hostileEvent(QualifiedEventID(partition: partition, id: EventID(Origin(1), SequenceNumber(2))), "why"),
      .incomplete("half"), .failed("disk"),
    ]
    return [
      .greeting(greeting), .offer(scope), .offer(NarrowedScope(.everything)),
      .request(TransferRequest(scope: scope, versionVector: random.versionVector(partitions: 3))),
      .chunk(Chunk(batch: 3, isLast: true, bytes: [1, 2, 3])),
      .hello,
      .holding(TransferRequest(scope: scope, versionVector: random.versionVector(partitions: 2))),
      .end(TransferEnd(batches: 1, events: 300, bytesRead: 70_000)),
      .acknowledgement(random.versionVector(partitions: 2)),
    ] + errors.map { .refusal($0) }
  }

  @Test func everyMessageIsReadBack() throws {
    for message in try Self.samples() {
      #expect(try SessionMessage(decoding: message.encoded) == message)
    }
  }

  @Test func aMessageCutAtAnyByteIsRefused() throws {
    for message in try Self.samples() {
      let bytes = message.encoded
      for cut in 0..<bytes.count {
        #expect(throws: ReplicationError.self) { try SessionMessage(decoding: Array(bytes[..<cut])) }
      }
      #expect(throws: ReplicationError.self) { try SessionMessage(decoding: bytes + [0]) }
      // The same with a correct checksum. A chunk may have any length.
      if case .chunk = message { continue }
      let content = bytes.dropLast(4)
      for cut in 0..<content.count {
        let short = SessionMessage.seal(Array(content[..<cut]))
        #expect(throws: ReplicationError.self) { try SessionMessage(decoding: short) }
      }
      let long = SessionMessage.seal(content + [0])
      #expect(throws: ReplicationError.self) { try SessionMessage(decoding: long) }
    }
  }

  @Test func everyFlippedBitIsFound() throws {
    for message in try Self.samples() {
      let bytes = message.encoded
      for bit in 0..<bytes.count * 8 {
        var changed = bytes
        changed[bit / 8] ^= 1 << UInt8(bit % 8)
        do throws(ReplicationError) {
          _ = try SessionMessage(decoding: changed)
          Issue.record("\(message.name): bit \(bit) was not missed")
        } catch {}
      }
    }
  }

  /// Every byte changed in a few ways, and random bytes, with correct checksums: an error, or a
  /// message with exactly these bytes. Seed 13.
  @Test func hostileMessagesAreRefusedOrCanonical() throws {
    var random = SplitMix64(seed: 13)
    func probe(_ content: [UInt8]) {
      let bytes = SessionMessage.seal(content)
      do throws(ReplicationError) {
        let message = try SessionMessage(decoding: bytes)
        if message.encoded != bytes { Issue.record("\(bytes) is not canonical") }
      } catch {}
    }
    for message in try Self.samples() {
      let bytes = Array(message.encoded.dropLast(4))
      for index in bytes.indices {
        for value in [0, 1, 0x7F, 0x80, 0xFF, UInt8(truncatingIfNeeded: random.next())] {
          var changed = bytes
          changed[index] = value
          probe(changed)
        }
      }
    }
    for _ in 0..<20_000 {
      var bytes = (0..<random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      if !bytes.isEmpty { bytes[0] = UInt8(random.below(9)) }
      probe(bytes)
    }
  }

  @Test func aNewerProtocolIsNamedBeforeAnythingElseIsRead() {
    #expect(throws: ReplicationError.newerFormat("greeting", found: 2, supported: 1)) {
      try SessionMessage(decoding: SessionMessage.seal([1, 2, 0xFF, 0xFF]))
    }
  }

  @Test func namesForPeopleHaveNoControlCharactersAndAreNeverEmpty() throws {
    for name in ["", "a\u{1B}[2J", "a\0", "a\nb", String(repeating: "x", count: 256)] {
      let greeting = Greeting(logID: LogID(1), nodeName: name, origins: [], schema: "", scope: .everything)
      #expect(throws: ReplicationError.self, "\(name.debugDescription)") {
        try SessionMessage(decoding: SessionMessage.greeting(greeting).encoded)
      }
    }
    let longest = Greeting(
      logID: LogID(1), nodeName: String(repeating: "x", count: 255), origins: [], schema: "", scope: .nothing)
    #expect(try SessionMessage(decoding: SessionMessage.greeting(longest).encoded) == .greeting(longest))
  }

  @Test func aRefusalsTextsAndListsAreCut() throws {
    let long = String(repeating: "é", count: ReplicationLimits.refusalText)
    let read = try SessionMessage(decoding: SessionMessage.refusal(.failed(long)).encoded)
    #expect(read == .refusal(.failed(String(long.prefix(ReplicationLimits.refusalText / 2)))))
    let many = (0...ReplicationLimits.refusalItems).map { Partition("p\($0)") }
    guard
      case .refusal(.notPermitted(let kept)) = try SessionMessage(
        decoding: SessionMessage.refusal(.notPermitted(many)).encoded)
    else { Issue.record("another message"); return }
    #expect(kept == Array(many.prefix(ReplicationLimits.refusalItems)))
  }

  @Test func chunksEndAtTheirLimit() throws {
    for (size, isTaken) in [
      (0, false), (1, true), (ReplicationLimits.chunk, true), (ReplicationLimits.chunk + 1, false),
    ] {
      let bytes = SessionMessage.chunk(
        Chunk(batch: 0, isLast: false, bytes: ArraySlice(repeating: 7, count: size))
      ).encoded
      if isTaken {
        #expect(throws: Never.self) { try SessionMessage(decoding: bytes) }
      } else {
        #expect(throws: ReplicationError.self) { try SessionMessage(decoding: bytes) }
      }
    }
  }
}
