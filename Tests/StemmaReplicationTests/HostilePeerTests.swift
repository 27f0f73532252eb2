import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaSimulation
import Testing

@testable import StemmaReplication

/// Contents that a malicious peer may send inside of a well-formed batch.
@Suite struct HostilePeerTests {
  private static let partition = Partition("tenantId=acme")
  private static let origin = Origin(0xA)
  private static let schema = """
    type Order @model {
      tenantId: String! @primaryKey(sortKeyFields: ["number"])
      number: Int!
    }
    """

  private static func event(
    _ sequence: UInt64 = 1, partition: Partition = partition, model: String = "Order",
    key: Key = Key(.string("acme"), .int(1)), origin: Origin = origin, context: Context = .empty,
    version: UInt64 = 1, commit: CommitID? = nil, text: String? = nil
  ) -> Event {
    Event(
      partition: partition, model: model, key: key, operation: .create,
      assignments: text.map { [Assignment("text", .string($0))] } ?? [],
      id: EventID(origin, SequenceNumber(sequence)),
      context: context, version: Version(version), timestamp: Timestamp(milliseconds: 1),
      commit: commit ?? CommitID(origin, sequence))
  }

  /// A batch whose footer fits its events.
  private static func batch(
    _ events: [Event], change: (inout [ShippedStream]) -> Void = { _ in }
  ) -> [UInt8] {
    var streams: [ShippedStream] = []
    for event in events {
      let (partition, origin) = (event.partition, event.id.origin)
      if let index = streams.firstIndex(where: {
        ($0.range.partition, $0.range.origin) == (partition, origin)
      }) {
        streams[index].range.to = event.id.sequence
        streams[index].range.hash += event.digest.hash
      } else {
        let range = StreamRange(
          partition: partition, origin: origin, from: event.id.sequence, to: event.id.sequence,
          hash: event.digest.hash)
        streams.append(ShippedStream(range: range, hashBefore: .zero))
      }
    }
    streams.sort { ($0.range.partition, $0.range.origin) < ($1.range.partition, $1.range.origin) }
    change(&streams)
    return Batch.encode(sender: LogID(1), streams: streams, events: events, messages: [:])
  }

  private static func read(_ batch: [UInt8]) throws(ReplicationError) {
    let schema: Schema
    do { schema = try SDL.read(Self.schema).schema } catch { throw .failed("\(error)") }
    let scope: Scope
    scope = try Scope(patterns: ["tenantId=*"])
    var reader = ShipmentReader(
      sender: LogID(1), scope: NarrowedScope(scope), versionVector: VersionVector(), schema: schema,
      names: ("here", "there"))
    _ = try reader.read(batch)
  }

  private static func id(_ sequence: UInt64, _ origin: Origin = origin) -> EventID {
    EventID(origin, SequenceNumber(sequence))
  }

  @Test func anHonestPieceIsTaken() throws {
    try Self.read(
      Self.batch([
        Self.event(1), Self.event(2, context: Context(Self.id(1)), version: 2),
        // Two writers on one node that both read version 1.
        Self.event(3, context: Context(Self.id(1)), version: 2),
        Self.event(1, origin: Origin(0xB), context: Context(Self.id(2)), version: 3),
        Self.event(4, model: "Unknown", key: Key(.bool(true))),
      ]))
  }

  enum Refusal { case hostile, gap, foreign, corrupt, malformed }

  static let attacks: [(name: String, batch: [UInt8], refusal: Refusal)] = [
    ("a gap before the first event", batch([event(2)]), .gap),
    ("a gap inside", batch([event(1), event(3)]) { $0[0].range.to = SequenceNumber(3) }, .gap),
    (
      "the same id twice, in two blocks",
      batch([
        event(1, text: String(repeating: "x", count: 70_000)), event(1, key: Key(.string("acme"), .int(2))),
      ]), .gap
    ),
    (
      "a partition that was not asked for", batch([event(partition: Partition("Author"), model: "X")]),
      .foreign
    ),
    ("a look-alike partition", batch([event(partition: Partition("tenantId=acmе"))]), .hostile),
    ("a partition that is a path", batch([event(partition: Partition("../../etc/passwd"))]), .foreign),
    ("a NUL in a partition", batch([event(partition: Partition("tenantId=a\0b"))]), .hostile),
    (
      "a key of another tenant", batch([event(key: Key(.string("bob"), .int(1)))]), .hostile
    ),
    ("a key of too few parts", batch([event(key: Key(.string("acme")))]), .hostile),
    ("a key of too many parts", batch([event(key: Key(.string("acme"), .int(1), .int(2)))]), .hostile),
    ("a key part of another type", batch([event(key: Key(.string("acme"), .string("1")))]), .hostile),
    ("version 2 from nothing", batch([event(version: 2)]), .hostile),
    ("version 0", batch([event(version: 0)]), .malformed),
    (
      "version 1 on top of another",
      batch([event(1), event(2, context: Context(id(1)), version: 1)]), .hostile
    ),
    (
      "a version deeper than its context",
      batch([event(1), event(2, context: Context(id(1)), version: 3)]), .hostile
    ),
    ("a context that covers itself", batch([event(1, context: Context(id(1)), version: 2)]), .malformed),
    ("a context ahead of itself", batch([event(1, context: Context(id(9)), version: 2)]), .malformed),
    (
      "a context with an id that is nowhere",
      batch([event(1, context: Context(id(5, Origin(0xC))), version: 2)]), .gap
    ),
    (
      "an effect before its cause",
      batch([
        event(1, origin: Origin(0xB), context: Context(id(1)), version: 2), event(1),
      ]), .gap
    ),
    ("another origin's commit", batch([event(commit: CommitID(Origin(0xD), 1))]), .hostile),
    (
      "a stated hash that is not the events'",
      batch([event()]) { $0[0].range.hash = StreamHash(high: 1, low: 1) }, .corrupt
    ),
    (
      "a hash before the first event", batch([event()]) { $0[0].hashBefore = StreamHash(high: 0, low: 1) },
      .malformed
    ),
    ("a stream longer than its events", batch([event()]) { $0[0].range.to = SequenceNumber(2) }, .corrupt),
    ("a stream that is not in the footer", batch([event()]) { $0 = [] }, .malformed),
    (
      "a stream of which there is no event",
      batch([event(), event(origin: Origin(0xB))]) { $0[1].range.origin = Origin(0xC) }, .malformed
    ),
    ("no event at all", batch([]), .malformed),
  ]

  @Test(arguments: attacks.indices) func aHostilePieceIsRefused(index: Int) {
    let (name, batch, refusal) = Self.attacks[index]
    do throws(ReplicationError) {
      try Self.read(batch)
      Issue.record("\(name) was taken")
    } catch {
      let isExpected: Bool =
        switch (refusal, error) {
        case (.hostile, .hostileEvent), (.gap, .gap), (.foreign, .foreignPartition), (.corrupt, .corrupt),
          (.malformed, .malformed):
          true
        default: false
        }
      #expect(isExpected, "\(name): \(error)")
    }
  }

  @Test func aPieceOfAnotherLogIsRefused() throws {
    var reader = ShipmentReader(
      sender: LogID(2), scope: NarrowedScope(.everything), versionVector: VersionVector(), schema: Schema(),
      names: ("here", "there"))
    #expect(throws: ReplicationError.self) { try reader.read(Self.batch([Self.event()])) }
    #expect(reader.versionVector.isEmpty)
  }

  /// An endless batch in many chunks is refused at the size limit. Chunks must have the order of
  /// their batches.
  @Test func chunksOfAnotherPieceEndTheSession() throws {
    let node = MemoryNode("here", id: 1)
    var (session, _) = Session.opening(node.asSessionNode)
    _ = session.receive(.greeting(MemoryNode("there", id: 2).greeting))
    _ = session.begin(.pull, node: node.asSessionNode, scope: .everything, versionVector: VersionVector())
    // Nothing is received before the sender has stated what it holds.
    var early = session
    guard
      case .failed(.unexpectedMessage("chunk", "holding"), .some) = early.receive(
        .chunk(Chunk(batch: 0, isLast: false, bytes: [1])))
    else {
      Issue.record("a chunk was taken first")
      return
    }
    _ = session.receive(
      .holding(TransferRequest(scope: NarrowedScope(.everything), versionVector: VersionVector())))
    guard
      case .failed(.unexpectedMessage, .some) = session.receive(
        .chunk(Chunk(batch: 1, isLast: false, bytes: [1])))
    else {
      Issue.record("a chunk of batch 1 was taken first")
      return
    }
  }

  @Test func aReceiverThatClaimsWhatItDidNotAskForIsRefused() throws {
    var (here, there) = (MemoryNode("here", id: 1), MemoryNode("there", id: 2))
    here.write("t=a")
    there.write("t=b")
    var session = Session.answering(here.asSessionNode, versionVector: here.versionVector)
    _ = session.receive(.greeting(there.greeting))
    let request = TransferRequest(
      scope: NarrowedScope(try Scope(patterns: ["t=a"])), versionVector: there.versionVector)
    guard case .failed(.foreignPartition(Partition("t=b")), .some) = session.receive(.request(request)) else {
      Issue.record("it was taken")
      return
    }
  }
}
