import StemmaEvents
import Testing

@testable import StemmaReplication
import StemmaSimulation

/// Several nodes with random writes, scope changes and random pairs on faulty connections. Then
/// connections are reliable until nothing changes. `MemoryNode` fails the test if an event is
/// applied twice, early or out of order.
@Suite struct ConvergenceTests {
  private static let partitions = ["t=a", "t=b", "t=c", "d=x"]
  private static let scopes = [["*"], ["t=*"], ["t=a", "t=b"], ["*", "!t=b"], ["d=x", "t=[ac]"]]

  @Test(arguments: 1...Trials.count(16)) func allNodesAgreeAfterHealing(seed: Int) throws {
    var random = SplitMix64(seed: UInt64(seed))
    let count = 2 + random.below(4)
    var nodes = (0..<count).map { MemoryNode("n\($0)", id: UInt64($0 + 1)) }
    for index in 1..<count { nodes[index].scope = try Scope(patterns: random.element(Self.scopes)) }
    let faultRate = random.element([0, 2, 20])
    for _ in 0..<60 {
      let index = random.below(count)
      switch random.below(10) {
      case 0...4: Self.write(&nodes[index], &random)
      case 5: nodes[index].seal()
      case 6 where index > 0 && random.chance(30): try Self.changeScope(&nodes, index, &random)
      default: try Self.talk(&nodes, index, faultRate: faultRate, &random)
      }
    }
    try Self.heal(&nodes)
    for node in nodes {
      #expect(node.contents() == nodes[0].contents(of: node.scope), "seed \(seed), \(node.name)")
      #expect(node.versionVector == nodes[0].versionVector.restricted { node.scope.contains($0) })
      for (commit, message) in node.notes() { #expect(nodes[0].notes()[commit] == message) }
    }
  }

  private static func write(_ node: inout MemoryNode, _ random: inout SplitMix64) {
    let own = partitions.filter { node.scope.contains(Partition($0)) }
    guard !own.isEmpty else { return }
    let keys = (0...random.below(12)).map { _ in (partition: random.element(own), key: Int64(random.below(5)))
    }
    node.write(keys, message: random.chance(50) ? CommitMessage(author: node.name) : nil)
  }

  /// As in the product, a purge waits until a peer holds the node's own events. An origin that
  /// wrote to a purged partition is not used again.
  private static func changeScope(_ nodes: inout [MemoryNode], _ index: Int, _ random: inout SplitMix64)
    throws
  {
    var talk = Conversation(nodes[index], nodes[0])
    try talk.run(.push)
    (nodes[index], nodes[0]) = (talk.opening, talk.answering)
    guard nodes[0].versionVector.covers(nodes[index].versionVector) else { return }
    nodes[index].changeScope(to: try Scope(patterns: random.element(scopes)))
    nodes[index].takeNewOrigin()
  }

  private static func talk(
    _ nodes: inout [MemoryNode], _ index: Int, faultRate: Int, _ random: inout SplitMix64
  ) throws {
    let other = (index + 1 + random.below(nodes.count - 1)) % nodes.count
    var talk = Conversation(nodes[index], nodes[other])
    talk.batchTarget = random.element([1, 50, 1 << 20])
    var faults = random
    talk.deliver = { _, _ in
      guard faults.chance(faultRate) else { return .whole }
      return faults.element([.lost, .twice, .swapped, .corrupt(at: faults.below(1000))])
    }
    try talk.run(random.element([.pull, .push, .sync]))
    random = SplitMix64(seed: random.next() ^ faults.next())
    for error in [talk.openingError, talk.answeringError].compactMap(\.self) {
      #expect(!error.isFork, "no fork was made: \(error)")
    }
    (nodes[index], nodes[other]) = (talk.opening, talk.answering)
  }

  /// Every node syncs twice with the first, which holds everything: up, then down.
  private static func heal(_ nodes: inout [MemoryNode]) throws {
    for _ in 0..<2 {
      for index in nodes.indices.dropFirst() {
        var talk = Conversation(nodes[index], nodes[0])
        try talk.run(.sync)
        #expect(talk.openingError == nil && talk.answeringError == nil)
        let peer = try #require(talk.summary).peerVector
        #expect(talk.opening.versionVector.lag(against: peer).allSatisfy { $0.isInSync })
        (nodes[index], nodes[0]) = (talk.opening, talk.answering)
      }
    }
  }
}

extension ReplicationError {
  fileprivate var isFork: Bool {
    switch self {
    case .fork: true
    case .refusedByPeer(let error): error.isFork
    default: false
    }
  }
}
