import StemmaEvents
import StemmaLog
import StemmaSchema
import Testing

@testable import StemmaReplication
import StemmaSimulation

@Suite struct ShipmentTests {
  private let everything = NarrowedScope(.everything)

  private func pieces(
    of node: MemoryNode, above knowledge: VersionVector = VersionVector(),
    scope: NarrowedScope = NarrowedScope(.everything),
    target: Int = ReplicationLimits.pieceTarget
  ) throws -> [[UInt8]] {
    let source = node.source
    let plan = try ShipmentPlan(
      source: source, scope: scope, above: knowledge, names: (node.name, "receiver"))
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: node.logID, bytesReadBefore: 0, pieceTarget: target)
    var pieces: [[UInt8]] = []
    while let piece = try writer.next() { pieces.append(piece) }
    #expect(writer.eventCount == plan.eventCount && writer.pieceCount == UInt64(pieces.count))
    return pieces
  }

  private func reader(
    of node: MemoryNode, knowledge: VersionVector = VersionVector(),
    scope: NarrowedScope = NarrowedScope(.everything),
    schema: Schema = Schema()
  ) -> ShipmentReader {
    ShipmentReader(
      sender: node.logID, scope: scope, knowledge: knowledge, schema: schema, names: ("receiver", node.name))
  }

  private func sender() -> MemoryNode {
    var node = MemoryNode("basel", id: 1)
    for round in 0..<6 {
      node.write(
        [("t=a", Int64(round % 3)), ("t=b", Int64(round)), ("t=a", 7)],
        note: round % 2 == 0 ? CommitNote(by: "Ann", note: "round \(round)") : nil)
      if round % 2 == 1 { node.seal() }
    }
    return node
  }

  @Test func piecesCarryEventsInTheSendersOrderWithTheirNotes() throws {
    let node = sender()
    var reader = reader(of: node)
    var events: [Event] = []
    var notes: [CommitID: CommitNote] = [:]
    for piece in try pieces(of: node, target: 1) {
      let before = reader.knowledge
      let verified = try reader.read(piece)
      let adopted = try #require(try verified.remaining(above: before))
      events += adopted.events
      notes.merge(adopted.notes) { first, _ in first }
      #expect(try verified.remaining(above: reader.knowledge) == nil, "a second time there is nothing new")
    }
    #expect(events == node.events)
    #expect(notes == node.notes())
    #expect(reader.knowledge == node.knowledge)
  }

  @Test func piecesAreCutOnlyBetweenCommits() throws {
    let node = sender()
    let all = try pieces(of: node, target: 1)
    #expect(all.count == 6, "one a commit")
    for piece in all { #expect(Set(try Piece(decoding: piece).unpacked().events.map(\.commit)).count == 1) }
    #expect(try pieces(of: node).count == 1, "small files travel together")
  }

  @Test func onlyWhatIsMissingAndInScopeIsReadAndShipped() throws {
    var node = sender()
    let known = node.knowledge
    node.seal()
    node.write([("t=a", 1), ("t=c", 1)])
    let source = node.source
    let scope = NarrowedScope(try Scope(patterns: ["t=[ab]"]))
    let plan = try ShipmentPlan(source: source, scope: scope, above: known, names: ("basel", "chur"))
    #expect(plan.partitions == [Partition("t=a")] && plan.eventCount == 1)
    var writer = ShipmentWriter(source: source, plan: plan, sender: node.logID, bytesReadBefore: 0)
    let piece = try Piece(decoding: try #require(try writer.next()))
    #expect(piece.events.map(\.partition) == [Partition("t=a")])
    #expect(try writer.next() == nil)
    #expect(source.filesRead == [3], "files whose streams the receiver holds are skipped by their footers")
    #expect(writer.end.knowledge == node.knowledge.restricted { scope.contains($0) })
    // A receiver whose version vector ends inside of a file.
    var half = reader(of: node)
    for piece in try pieces(of: node, target: 1).prefix(3) { _ = try half.read(piece) }
    var rest = reader(of: node, knowledge: half.knowledge)
    for piece in try pieces(of: node, above: half.knowledge) { _ = try rest.read(piece) }
    #expect(rest.knowledge == node.knowledge)
  }

  /// An empty shipment does not change the receiver's events.
  @Test func emptyShipmentsAndEndsNeverMeanDeletion() throws {
    let node = sender()
    let reader = reader(of: node, knowledge: node.knowledge)
    let nothing = TransferEnd(pieces: 0, events: 0, bytesRead: 0, knowledge: VersionVector())
    try reader.finish(nothing)
    #expect(reader.knowledge == node.knowledge)
    #expect(throws: ReplicationError.self) { try Piece(decoding: []) }
    // A shipment that lacks announced events is incomplete.
    #expect {
      try self.reader(of: node).finish(
        TransferEnd(pieces: 0, events: 0, bytesRead: 0, knowledge: node.knowledge))
    } throws: { error in
      if case .incomplete = error as? ReplicationError { true } else { false }
    }
  }

  @Test func overlapIsComparedAndSkipped() throws {
    let node = sender()
    let all = try pieces(of: node)
    var reader = reader(of: node)
    let verified = try reader.read(all[0])
    #expect(try reader.read(all[0]).remaining(above: reader.knowledge) == nil)
    // Another process has adopted half of it.
    var half = MemoryNode("receiver", id: 5)
    var halfReader = self.reader(of: node)
    for piece in try pieces(of: node, target: 1).prefix(2) { try half.adopt(try halfReader.read(piece)) }
    let rest = try #require(try verified.remaining(above: half.knowledge))
    #expect(rest.events == Array(node.events[6...]))
    #expect(rest.notes.keys.sorted() == node.notes().keys.sorted().filter { $0.number > 2 })
  }

  @Test func aPieceCutAtAnyByteIsRefused() throws {
    let piece = try pieces(of: sender())[0]
    for cut in 0..<piece.count {
      #expect(throws: ReplicationError.self) { try Piece(decoding: Array(piece[..<cut])) }
    }
    #expect(throws: ReplicationError.self) { try Piece(decoding: piece + [0]) }
  }

  @Test func everyFlippedBitOfAPieceIsFound() throws {
    let node = sender()
    let piece = try pieces(of: node)[0]
    for bit in 0..<piece.count * 8 {
      var changed = piece
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      var reader = reader(of: node)
      do throws(ReplicationError) {
        _ = try reader.read(changed)
        Issue.record("bit \(bit) was not missed")
      } catch {
        if !reader.knowledge.isEmpty { Issue.record("bit \(bit): the reader believed a part") }
      }
    }
  }

  /// A peer with correct digests and false contents. Seed 17.
  @Test func piecesWithGoodDigestsAndBadContentNeverTrap() throws {
    let node = sender()
    let piece = try pieces(of: node)[0]
    var random = SplitMix64(seed: 17)
    var taken = 0
    for _ in 0..<4000 {
      var changed = Array(piece.dropLast(36))
      for _ in 0...random.below(3) {
        let index = 16 + random.below(changed.count - 16)
        changed[index] = random.element([0, 1, 0x7F, 0x80, 0xFF, UInt8(truncatingIfNeeded: random.next())])
      }
      var reader = reader(of: node)
      Piece.seal(&changed)
      do throws(ReplicationError) {
        _ = try reader.read(changed)
        taken += 1
      } catch {}
    }
    // Only a change without effect, or one in a message, may pass.
    #expect(taken < 400)
  }

  @Test func aNewerPieceIsNamed() throws {
    var piece = try pieces(of: sender())[0]
    piece[8] = 2
    piece.replaceSubrange(12..<16, with: Piece.crc(Array(piece[..<12])))
    #expect(throws: ReplicationError.newerFormat("piece", found: 2, supported: 1)) {
      try Piece(decoding: piece)
    }
  }
}

extension Piece {
  static func crc(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.appendFixed(CRC32C.of(bytes))
    return result
  }
}
