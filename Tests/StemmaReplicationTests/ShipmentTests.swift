import StemmaEvents
import StemmaLog
import StemmaSchema
import Testing

@testable import StemmaReplication
import StemmaSimulation

@Suite struct ShipmentTests {
  private let everything = NarrowedScope(.everything)

  private func batches(
    of node: MemoryNode, above versionVector: VersionVector = VersionVector(),
    scope: NarrowedScope = NarrowedScope(.everything),
    target: Int = ReplicationLimits.batchTarget
  ) throws -> [[UInt8]] {
    let source = node.source
    let plan = try ShipmentPlan(
      source: source, scope: scope, above: versionVector, names: (node.name, "receiver"))
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: node.logID, bytesReadBefore: 0, batchTarget: target)
    var batches: [[UInt8]] = []
    while let batch = try writer.next() { batches.append(batch) }
    #expect(writer.eventCount == plan.eventCount && writer.batchCount == UInt64(batches.count))
    return batches
  }

  private func reader(
    of node: MemoryNode, versionVector: VersionVector = VersionVector(),
    scope: NarrowedScope = NarrowedScope(.everything),
    schema: Schema = Schema()
  ) -> ShipmentReader {
    ShipmentReader(
      sender: node.logID, scope: scope, versionVector: versionVector, schema: schema,
      names: ("receiver", node.name))
  }

  private func sender() -> MemoryNode {
    var node = MemoryNode("basel", id: 1)
    for round in 0..<6 {
      node.write(
        [("t=a", Int64(round % 3)), ("t=b", Int64(round)), ("t=a", 7)],
        message: round % 2 == 0 ? CommitMessage(author: "Ann", text: "round \(round)") : nil)
      if round % 2 == 1 { node.seal() }
    }
    return node
  }

  @Test func piecesCarryEventsInTheSendersOrderWithTheirNotes() throws {
    let node = sender()
    var reader = reader(of: node)
    var events: [Event] = []
    var messages: [CommitID: CommitMessage] = [:]
    for batch in try batches(of: node, target: 1) {
      let before = reader.versionVector
      let verified = try reader.read(batch)
      let adopted = try #require(try verified.remaining(above: before))
      events += adopted.events
      messages.merge(adopted.messages) { first, _ in first }
      #expect(
        try verified.remaining(above: reader.versionVector) == nil, "a second time there is nothing new")
    }
    #expect(events == node.events)
    #expect(messages == node.notes())
    #expect(reader.versionVector == node.versionVector)
  }

  @Test func piecesAreCutOnlyBetweenCommits() throws {
    let node = sender()
    let all = try batches(of: node, target: 1)
    #expect(all.count == 6, "one a commit")
    for batch in all { #expect(Set(try Batch(decoding: batch).unpacked().events.map(\.commit)).count == 1) }
    #expect(try batches(of: node).count == 1, "small files travel together")
  }

  @Test func onlyWhatIsMissingAndInScopeIsReadAndShipped() throws {
    var node = sender()
    let known = node.versionVector
    node.seal()
    node.write([("t=a", 1), ("t=c", 1)])
    let source = node.source
    let scope = NarrowedScope(try Scope(patterns: ["t=[ab]"]))
    let plan = try ShipmentPlan(source: source, scope: scope, above: known, names: ("basel", "chur"))
    #expect(plan.partitions == [Partition("t=a")] && plan.eventCount == 1)
    var writer = ShipmentWriter(source: source, plan: plan, sender: node.logID, bytesReadBefore: 0)
    let batch = try Batch(decoding: try #require(try writer.next()))
    #expect(batch.events.map(\.partition) == [Partition("t=a")])
    #expect(try writer.next() == nil)
    #expect(source.filesRead == [3], "files whose streams the receiver holds are skipped by their footers")
    #expect(plan.versionVector == node.versionVector.restricted { scope.contains($0) })
    // A receiver whose version vector ends inside of a file.
    var half = reader(of: node)
    for batch in try batches(of: node, target: 1).prefix(3) { _ = try half.read(batch) }
    var rest = reader(of: node, versionVector: half.versionVector)
    for batch in try batches(of: node, above: half.versionVector) { _ = try rest.read(batch) }
    #expect(rest.versionVector == node.versionVector)
  }

  /// An empty shipment does not change the receiver's events.
  @Test func emptyShipmentsAndEndsNeverMeanDeletion() throws {
    let node = sender()
    let reader = reader(of: node, versionVector: node.versionVector)
    try reader.finish(VersionVector())
    #expect(reader.versionVector == node.versionVector)
    #expect(throws: ReplicationError.self) { try Batch(decoding: []) }
    // A shipment that lacks announced events is incomplete.
    #expect {
      try self.reader(of: node).finish(node.versionVector)
    } throws: { error in
      if case .incomplete = error as? ReplicationError { true } else { false }
    }
  }

  @Test func overlapIsComparedAndSkipped() throws {
    let node = sender()
    let all = try batches(of: node)
    var reader = reader(of: node)
    let verified = try reader.read(all[0])
    #expect(try reader.read(all[0]).remaining(above: reader.versionVector) == nil)
    // Another process has adopted half of it.
    var half = MemoryNode("receiver", id: 5)
    var halfReader = self.reader(of: node)
    for batch in try batches(of: node, target: 1).prefix(2) { try half.adopt(try halfReader.read(batch)) }
    let rest = try #require(try verified.remaining(above: half.versionVector))
    #expect(rest.events == Array(node.events[6...]))
    #expect(rest.messages.keys.sorted() == node.notes().keys.sorted().filter { $0.number > 2 })
  }

  @Test func aPieceCutAtAnyByteIsRefused() throws {
    let batch = try batches(of: sender())[0]
    for cut in 0..<batch.count {
      #expect(throws: ReplicationError.self) { try Batch(decoding: Array(batch[..<cut])) }
    }
    #expect(throws: ReplicationError.self) { try Batch(decoding: batch + [0]) }
  }

  @Test func everyFlippedBitOfAPieceIsFound() throws {
    let node = sender()
    let batch = try batches(of: node)[0]
    for bit in 0..<batch.count * 8 {
      var changed = batch
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      var reader = reader(of: node)
      do throws(ReplicationError) {
        _ = try reader.read(changed)
        Issue.record("bit \(bit) was not missed")
      } catch {
        if !reader.versionVector.isEmpty { Issue.record("bit \(bit): the reader believed a part") }
      }
    }
  }

  /// A peer with correct digests and false contents. Seed 17.
  @Test func piecesWithGoodDigestsAndBadContentNeverTrap() throws {
    let node = sender()
    let batch = try batches(of: node)[0]
    var random = SplitMix64(seed: 17)
    var taken = 0
    for _ in 0..<4000 {
      var changed = Array(batch.dropLast(36))
      for _ in 0...random.below(3) {
        let index = 16 + random.below(changed.count - 16)
        changed[index] = random.element([0, 1, 0x7F, 0x80, 0xFF, UInt8(truncatingIfNeeded: random.next())])
      }
      var reader = reader(of: node)
      Batch.seal(&changed)
      do throws(ReplicationError) {
        _ = try reader.read(changed)
        taken += 1
      } catch {}
    }
    // Only a change without effect, or one in a message, may pass.
    #expect(taken < 400)
  }

  @Test func aNewerPieceIsNamed() throws {
    var batch = try batches(of: sender())[0]
    batch[8] = 2
    batch.replaceSubrange(12..<16, with: Batch.crc(Array(batch[..<12])))
    #expect(throws: ReplicationError.newerFormat("batch", found: 2, supported: 1)) {
      try Batch(decoding: batch)
    }
  }
}

extension Batch {
  static func crc(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.appendFixed(CRC32C.of(bytes))
    return result
  }
}
