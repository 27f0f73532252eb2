import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaSimulation
import Testing

@testable import StemmaReplication

@Suite struct SessionTests {
  private func pair() -> (MemoryNode, MemoryNode) {
    var one = MemoryNode("basel", id: 1)
    var two = MemoryNode("chur", id: 2)
    one.write([("t=a", 1), ("t=b", 1)], message: CommitMessage(author: "Ann", text: "first"))
    two.write([("t=a", 2)])
    two.write([("t=c", 1)], message: CommitMessage(source: "x.ndjson:3"))
    return (one, two)
  }

  @Test func pullBringsWhatIsMissing() throws {
    let (one, two) = pair()
    var talk = Conversation(one, two)
    try talk.run(.pull)
    #expect(talk.openingError == nil && talk.answeringError == nil)
    #expect(
      talk.messages.map(\.name) == [
        "greeting", "greeting", "request", "holding", "chunk", "end", "acknowledgement",
      ])
    #expect(talk.opening.events.count == 4)
    #expect(talk.opening.notes()[CommitID(two.origin, 2)]?.source == "x.ndjson:3")
    #expect(talk.answering.contents() == two.contents())
    let pulled = try #require(talk.summary?.pulled)
    #expect(pulled.partitions.map(\.description) == ["t=a", "t=c"])
    #expect(pulled.events == 2 && pulled.bytesShipped > 0 && pulled.bytesRead > 0)
    #expect(talk.answeredSummary?.peerVector == talk.opening.versionVector)

    // Again: nothing is moved or read, and nothing counts as a deletion.
    var again = Conversation(talk.opening, talk.answering)
    try again.run(.pull)
    #expect(
      again.messages.map(\.name) == ["greeting", "greeting", "request", "holding", "end", "acknowledgement"])
    #expect(again.opening.contents() == talk.opening.contents())
    #expect(again.summary?.pulled?.bytesRead == 0)
  }

  @Test func pushIsPullFromTheOtherSide() throws {
    let (one, two) = pair()
    var push = Conversation(one, two)
    try push.run(.push)
    var pull = Conversation(two, one)
    try pull.run(.pull)
    #expect(push.answering.contents() == pull.opening.contents())
    #expect(push.summary?.pushed?.events == pull.summary?.pulled?.events)
    #expect(push.summary?.pushed?.bytesShipped == pull.summary?.pulled?.bytesShipped)
    #expect(
      push.messages.map(\.name)
        == ["greeting", "greeting", "offer", "request", "holding", "chunk", "end", "acknowledgement"])
  }

  @Test func syncIsBoth() throws {
    let (one, two) = pair()
    var talk = Conversation(one, two)
    try talk.run(.sync)
    #expect(talk.opening.contents() == talk.answering.contents())
    #expect(talk.opening.versionVector == talk.answering.versionVector)
    #expect(talk.opening.notes() == talk.answering.notes())
    #expect(talk.summary?.peerVector == talk.opening.versionVector)
    #expect(talk.opening.versionVector.lag(against: talk.answering.versionVector).allSatisfy { $0.isInSync })
  }

  @Test func aRunIsNarrowedToPatternsOfTheOwnScope() throws {
    var (one, two) = pair()
    one.changeScope(to: try Scope(patterns: ["t=a", "t=c"]))
    two.write("t=d")
    var talk = Conversation(one, two)
    try talk.run(.pull, narrowedTo: try Scope(patterns: ["t=c", "t=d"]))
    #expect(talk.opening.versionVector.sortedPartitions.map(\.description) == ["t=a", "t=c"])
    #expect(talk.summary?.pulled?.partitions.map(\.description) == ["t=c"])
    // A relay sends exactly the events that it holds.
    var third = MemoryNode("davos", id: 3)
    third.scope = try Scope(patterns: ["t=c"])
    var relay = Conversation(third, talk.opening)
    try relay.run(.pull)
    #expect(relay.opening.contents() == two.contents(of: third.scope))
  }

  @Test func aCopiedDirectoryIsRefused() throws {
    let (one, _) = pair()
    var talk = Conversation(one, one)
    try talk.run(.sync)
    #expect(talk.answeringError == .sameLog(one.logID))
    #expect(talk.openingError == .refusedByPeer(.sameLog(one.logID)))
  }

  @Test func aSchemaThatCannotBeReadIsRefused() throws {
    var (one, two) = pair()
    two.sdl = "type {"
    one.schema = Schema()
    var talk = Conversation(two, one)
    try talk.run(.pull)
    guard case .schemaUnreadable = talk.answeringError else {
      Issue.record("\(String(describing: talk.answeringError))")
      return
    }
  }

  /// Key, partition rule and conflict policy must be equal. Models and fields may be missing on one
  /// side.
  @Test(arguments: [
    ("type A @model { id: ID! }", "type A @model { id: ID! name: String } type B @model { id: ID! }", true),
    (
      "type A @model { id: ID! }", "type A @model { id: ID! @primaryKey(sortKeyFields: [\"n\"]) n: Int! }",
      false
    ),
    ("type A @model { id: ID! }", "type A @model @conflict(policy: LATEST) { id: ID! }", false),
    (
      "type A @model { t: String! @primaryKey(sortKeyFields: [\"n\"]) n: Int! }",
      "type A @model @partition(fields: []) { t: String! @primaryKey(sortKeyFields: [\"n\"]) n: Int! }", false
    ),
  ])
  func peersMustAgreeOnKeysPartitionsAndPolicies(ours: String, theirs: String, fits: Bool) throws {
    var (one, two) = pair()
    (one.sdl, one.schema) = (ours, try SDL.read(ours).schema)
    (two.sdl, two.schema) = (theirs, try SDL.read(theirs).schema)
    for (near, far) in [(one, two), (two, one)] {
      var talk = Conversation(near, far)
      try talk.run(.sync)
      if fits {
        #expect(talk.openingError == nil && talk.opening.contents() == talk.answering.contents())
      } else if case .schemaConflict(let conflicts) = talk.answeringError {
        #expect(!conflicts.isEmpty)
        #expect(talk.answering.contents() == far.contents() && talk.opening.contents() == near.contents())
      } else {
        Issue.record("\(String(describing: talk.answeringError))")
      }
    }
  }

  @Test func partitionsThatAreNotPermittedAreNotGivenAndNotTaken() throws {
    var (one, two) = pair()
    two.readable = try Scope(patterns: ["t=a"])
    two.writable = try Scope(patterns: ["t=b"])
    var talk = Conversation(one, two)
    try talk.run(.sync)
    #expect(talk.opening.contents() == (one.contents() + two.contents(of: two.readable)).sorted())
    #expect(talk.answering.contents() == (two.contents() + one.contents(of: two.writable)).sorted())
    for task in [Session.Task.pull, .push] {
      var named = Conversation(one, two)
      try named.run(task, narrowedTo: try Scope(patterns: ["t=c"]))
      #expect(named.answeringError == .notPermitted([Partition("t=c")]))
    }
  }

  /// A peer that claims events of a partition without rights learns nothing from the answer, and
  /// cannot make the node retire its origin.
  @Test func claimsAboutPartitionsWithoutRightsAreIgnored() throws {
    var here = pair().0
    here.readable = try Scope(patterns: ["t=a"])
    here.writable = try Scope(patterns: ["t=a"])
    let held = here.versionVector[Partition("t=b"), here.origin]
    #expect(held.sequence > .zero)
    for sequence in [held.sequence, held.sequence.next] {
      let claim = VersionVector([
        Partition("t=b"): [here.origin: StreamHead(sequence: sequence, hash: .zero)]
      ])
      let statement = TransferRequest(scope: NarrowedScope(.everything), versionVector: claim)
      for message in [SessionMessage.holding(statement), .request(statement)] {
        var session = Session.answering(here.asSessionNode, versionVector: here.versionVector)
        _ = session.receive(.greeting(MemoryNode("there", id: 9).greeting))
        switch session.receive(message) {
        case .transferred(let summary, _):
          #expect(summary.originsToRetire.isEmpty && summary.peerVector.isEmpty)
        case .ship(let order):
          #expect(!order.scope.contains(Partition("t=b")))
          #expect(session.summary.originsToRetire.isEmpty)
          _ = session.shipped(
            TransferEnd(batches: 0, events: 0, bytesRead: 0), partitions: [], held: VersionVector())
          guard case .transferred(let summary, _) = session.receive(.acknowledgement(claim)) else {
            Issue.record("the acknowledgment was refused")
            continue
          }
          #expect(summary.peerVector.isEmpty)
        case let outcome: Issue.record("\(message.name): \(outcome)")
        }
      }
    }
  }

  @Test func messagesOutOfTurnEndTheSession() throws {
    let node = pair().0
    let samples = try SessionMessageTests.samples()
    for message in samples {
      var answering = Session.answering(node.asSessionNode, versionVector: node.versionVector)
      switch (answering.receive(message), message) {
      case (.send, .greeting), (.send, .hello): break
      case (.failed(.refusedByPeer, nil), .refusal): break
      case (.failed(.unexpectedMessage(let found, "greeting"), .refusal), _): #expect(found == message.name)
      case (let outcome, _): Issue.record("\(message.name): \(outcome)")
      }
    }
    var far = Session.answering(node.asSessionNode, versionVector: node.versionVector)
    var peer = node
    peer = MemoryNode("chur", id: 9)
    _ = far.receive(.greeting(peer.greeting))
    for message in [SessionMessage.greeting(peer.greeting), .acknowledgement(VersionVector())] {
      var session = far
      guard case .failed(.unexpectedMessage, .some) = session.receive(message) else {
        Issue.record("\(message.name) was taken")
        continue
      }
    }
    #expect(far.closed() == nil)
  }

  /// A machine that was restored from a backup meets its own later events.
  @Test func aPeerThatHoldsMoreOfAnOwnOriginAsksForANewOne() throws {
    var (one, two) = pair()
    let backup = one
    one.write("t=a")
    var first = Conversation(one, two)
    try first.run(.sync)
    two = first.answering

    for (task, answers) in [
      (Session.Task.pull, false), (.push, false), (.sync, false), (.pull, true), (.push, true),
    ] {
      var talk = answers ? Conversation(two, backup) : Conversation(backup, two)
      try talk.run(task)
      let summary = answers ? talk.answeredSummary : talk.summary
      #expect(summary?.originsToRetire == [one.origin], "\(task) \(answers)")
    }

    // If it writes before it syncs, that is a fork, found by the side that sees both histories.
    var forked = backup
    forked.write("t=a", 5)
    var sync = Conversation(forked, two)
    try sync.run(.sync)
    guard case .fork(let fork) = sync.answeringError ?? sync.openingError else {
      Issue.record("no fork: \(String(describing: sync.openingError))")
      return
    }
    #expect(Set([fork.finder.node, fork.peer.node]) == ["basel", "chur"])
    #expect(fork.origin == one.origin && fork.partition == Partition("t=a"))
    #expect(sync.opening.contents() == forked.contents() && sync.answering.contents() == two.contents())
  }

  /// The copy wrote three events under the old origin, the original one. The reader needs only the
  /// copy's later events, so no common event id is compared. The stream hash reveals the fork.
  @Test func aForkIsFoundByTheStreamHashWhenNoIDOverlaps() throws {
    var original = MemoryNode("basel", id: 1)
    original.write("t=a")
    var copy = original
    original.write("t=a", 10)
    for key in 20..<23 { copy.write("t=a", Int64(key)) }
    var reader = MemoryNode("chur", id: 3)
    var first = Conversation(reader, original)
    try first.run(.pull)
    reader = first.opening
    #expect(reader.versionVector[Partition("t=a"), original.origin].sequence == SequenceNumber(2))

    var second = Conversation(reader, copy)
    try second.run(.pull)
    guard case .fork(let fork) = second.answeringError else {
      Issue.record("not found by the sender"); return
    }
    #expect(fork.sequence == SequenceNumber(2))
    #expect(second.openingError == .refusedByPeer(.fork(fork)))
    #expect(second.opening.contents() == reader.contents())

    // A receiver detects it even if the sender does not, because the shipment contains the
    // preceding hash.
    let source = copy.source
    let blind = VersionVector([
      Partition("t=a"): [
        copy.origin: StreamHead(
          sequence: SequenceNumber(2),
          hash: copy.files[0][0].event.digest.hash + copy.files[0][1].event.digest.hash
        )
      ]
    ])
    let plan = try ShipmentPlan(
      source: source, scope: NarrowedScope(.everything), above: blind, names: ("copy", "chur"))
    var writer = ShipmentWriter(source: source, plan: plan, sender: copy.logID, bytesReadBefore: 0)
    let batch = try #require(try writer.next())
    var shipment = ShipmentReader(
      sender: copy.logID, scope: NarrowedScope(.everything), versionVector: reader.versionVector,
      schema: Schema(),
      names: ("chur", "copy"))
    #expect { try shipment.read(batch) } throws: { error in
      guard case .fork(let fork) = error as? ReplicationError else { return false }
      return fork.finder.node == "chur" && fork.peer.node == "copy"
    }
  }

  /// Batches that arrive during an adoption are checked on other threads and returned in order.
  @Test func onePieceMayComeWhileAnotherIsAdopted() throws {
    var (one, two) = pair()
    for key in 0..<4 { two.write("t=a", Int64(key)) }
    var whole = Conversation(one, two)
    whole.batchTarget = 1
    try whole.run(.pull)
    let chunks = whole.messages.filter { $0.name == "chunk" }
    #expect(chunks.count > 3)
    let holding = try #require(whole.messages.first { $0.name == "holding" })

    var (session, _) = Session.opening(one.asSessionNode)
    _ = session.receive(.greeting(two.greeting))
    _ = session.begin(.pull, node: one.asSessionNode, scope: one.scope, versionVector: one.versionVector)
    _ = session.receive(holding)
    guard case .adopt(let first) = session.receive(chunks[0]) else {
      Issue.record("the first batch was not handed out")
      return
    }
    #expect(!session.isBatchWaiting && session.isAdopting)
    guard case .wait = session.receive(chunks[1]) else {
      Issue.record("the second batch was not taken")
      return
    }
    session.checkInvariants()
    #expect(session.isBatchWaiting)
    var full = session
    guard case .failed(.unexpectedMessage("chunk", "none"), _) = full.receive(chunks[2]) else {
      Issue.record("two batches wait")
      return
    }
    try one.adopt(first)
    guard case .adopt(let second) = session.adopted(versionVector: one.versionVector) else {
      Issue.record("the second batch was not handed out")
      return
    }
    session.checkInvariants()
    #expect(second.streams != first.streams && !session.isBatchWaiting)
    try one.adopt(second)
    guard case .wait = session.adopted(versionVector: one.versionVector) else {
      Issue.record("there is no third batch")
      return
    }
  }

  /// A peer may split batches arbitrarily. Single bytes must not become separate arrays.
  @Test func shortChunksAreOnePiece() throws {
    var (one, two) = pair()
    for key in 0..<4 { two.write("t=a", Int64(key)) }
    var whole = Conversation(one, two)
    try whole.run(.pull)
    let chunk = try #require(
      whole.messages.compactMap { if case .chunk(let chunk) = $0 { chunk } else { nil } }.first)
    #expect(chunk.isLast)

    var (session, _) = Session.opening(one.asSessionNode)
    _ = session.receive(.greeting(two.greeting))
    _ = session.begin(.pull, node: one.asSessionNode, scope: one.scope, versionVector: one.versionVector)
    _ = session.receive(try #require(whole.messages.first { $0.name == "holding" }))
    var endless = session
    for (place, byte) in chunk.bytes.enumerated() {
      let isLast = place == chunk.bytes.count - 1
      let outcome = session.receive(.chunk(Chunk(batch: 0, isLast: isLast, bytes: [byte])))
      switch outcome {
      case .wait: #expect(!isLast)
      case .adopt(let batch): #expect(isLast && batch.storedSize == chunk.bytes.count)
      default: Issue.record("byte \(place) was refused: \(outcome)")
      }
      session.checkInvariants()
    }
    #expect(session.isAdopting)

    let limit = ReplicationLimits.chunk
    for length in [1, limit, limit - 1, 1, 1, limit / 2, limit / 2, limit / 2 + 1] {
      let bytes = ArraySlice<UInt8>(repeating: 0, count: length)
      _ = endless.receive(.chunk(Chunk(batch: 0, isLast: false, bytes: bytes)))
      endless.checkInvariants()
    }
    guard case .receiving(let receiving) = endless.state else {
      Issue.record("the session does not wait for the rest")
      return
    }
    #expect(receiving.parts.map(\.count) == [1, limit, limit, limit / 2 + 1, limit / 2, limit / 2 + 1])
  }

  /// Within one process a batch is passed as a whole, whatever its length: both sides share one
  /// array.
  @Test func aPieceThatStaysInTheProcessIsOneChunk() throws {
    let (_, two) = pair()
    let bytes = [UInt8](repeating: 7, count: ReplicationLimits.chunk + 1)
    for sharesMemory in [false, true] {
      var node = two.asSessionNode
      node.sharesMemory = sharesMemory
      var session = Session.answering(node, versionVector: two.versionVector)
      session.state = .shipping(
        Session.Shipping(
          request: TransferRequest(scope: NarrowedScope(.everything), versionVector: VersionVector()),
          summary: TransferSummary(direction: .sent)))
      let chunks = session.batch(bytes).compactMap { if case .chunk(let chunk) = $0 { chunk } else { nil } }
      #expect(chunks.map(\.bytes.count) == (sharesMemory ? [bytes.count] : [bytes.count - 1, 1]))
      #expect(chunks.last?.isLast == true)
    }
  }

  /// The connection ends after every possible message. A second run completes the work.
  @Test(arguments: [false, true]) func aSessionCutAnywhereGoesOnFromThere(adoptsLate: Bool) throws {
    var (one, two) = pair()
    (one.adoptsLate, two.adoptsLate) = (adoptsLate, adoptsLate)
    for key in 0..<40 { two.write([("t=a", Int64(key)), ("t=b", Int64(key))]) }
    for key in 0..<5 { one.write("t=d", Int64(key)) }
    var whole = Conversation(one, two)
    whole.batchTarget = 1
    try whole.run(.sync)
    #expect(whole.messages.count > 40)
    for cut in stride(from: 1, through: whole.messages.count, by: Trials.stride(3)) {
      var talk = Conversation(one, two)
      talk.batchTarget = 1
      talk.deliver = { number, _ in number == cut ? .lost : .whole }
      try talk.run(.sync)
      if cut < whole.messages.count { #expect(talk.openingError != nil || talk.answeringError != nil) }
      var again = Conversation(talk.opening, talk.answering)
      try again.run(.sync)
      #expect(again.opening.contents() == whole.opening.contents())
      #expect(again.answering.contents() == whole.opening.contents())
      let shipped = (again.summary?.pulled?.events ?? 0) + (again.summary?.pushed?.events ?? 0)
      #expect(cut < (adoptsLate ? 9 : 8) || shipped < 87, "what was adopted is not shipped again")
    }
  }
}
