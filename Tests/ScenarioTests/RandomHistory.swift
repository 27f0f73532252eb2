import Foundation
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSimulation

/// Nodes that change a few records and sometimes sync, reproducible by seed. It records the events
/// that each node had seen at each write, for comparison with the tool.
final class RandomHistory {
  /// Models of each policy. Their records are created, changed, deleted, recreated and resolved.
  static let schema = """
    type Note @model {
      site: ID! @primaryKey(sortKeyFields: ["n"])
      n: Int!
      text: String
      stars: Int
    }
    type Late @model @conflict(policy: LATEST) {
      site: ID! @primaryKey(sortKeyFields: ["n"])
      n: Int!
      text: String
      stars: Int
    }
    type Gone @model @conflict(deletes: DELETE_WINS) {
      site: ID! @primaryKey(sortKeyFields: ["n"])
      n: Int!
      text: String
      stars: Int
    }
    type Kept @model @conflict(deletes: UPDATE_WINS) {
      site: ID! @primaryKey(sortKeyFields: ["n"])
      n: Int!
      text: String
      stars: Int
    }
    type Whole @model @conflict(policy: OPTIMISTIC) {
      site: ID! @primaryKey(sortKeyFields: ["n"])
      n: Int!
      text: String
      stars: Int
    }

    """

  let folder: String
  private(set) var nodes: [Node] = []
  /// By `partition event`: the events that the writing node held.
  private(set) var seen: [String: Set<String>] = [:]
  private var held: [Set<String>]
  private var random: SplitMix64
  private let models: [String]
  private let clock: SetClock

  /// `apart`: on average, one of this many steps syncs two nodes.
  init(
    seed: UInt64, nodes count: Int, steps: Int, apart: Int = 4, models: [String], in folder: String
  ) throws {
    print("seed \(seed)")
    self.folder = folder
    self.models = models
    random = SplitMix64(seed: seed)
    held = Array(repeating: [], count: count)
    clock = try SetClock("2026-01-05T09:00:00Z")
    for index in 0..<count {
      var options = Node.OpeningOptions(mode: .write)
      options.ports = Ports(clock: clock, random: SeededRandom(seed: seed &* 16 &+ UInt64(index)))
      let name = "n\(index)"
      nodes.append(
        try Node.create(at: "\(folder)/\(name)", schema: Self.schema, name: name, options: options))
    }
    for step in 0..<steps {
      // Two steps may share a timestamp.
      try clock.set("2026-01-05T09:\(Self.digits(step / 120)):\(Self.digits(step / 2 % 60))Z")
      if random.below(apart) == 0 { try meet() } else { try change() }
    }
    for _ in 0..<2 { for other in 1..<count { try meet(0, other) } }
  }

  private static func digits(_ number: Int) -> String { (number < 10 ? "0" : "") + "\(number)" }

  private func meet() throws {
    let node = random.below(nodes.count)
    try meet(node, (node + 1 + random.below(nodes.count - 1)) % nodes.count)
  }

  private func meet(_ a: Int, _ b: Int) throws {
    let peer = RemotePeer(name: nodes[b].metadata.name, address: nodes[b].directory)
    _ = try nodes[a].exchange(with: peer, pulls: true, pushes: true, partitions: [], progress: { _, _ in })
    held[a].formUnion(held[b])
    held[b] = held[a]
  }

  /// One change of one record. The node may refuse it.
  private func change() throws {
    let index = random.below(nodes.count)
    let node = nodes[index]
    let model = models[random.below(models.count)]
    let key: JSON = .object([
      ("site", .string("s\(random.below(2))")), ("n", .int(Int64(random.below(2)))),
    ])
    let field = ["text", "stars"][random.below(2)]
    let value: JSON = field == "text" ? .string("t\(random.below(3))") : .int(Int64(random.below(3)))
    let change = random.below(10)
    do throws(NodeError) {
      let events = try node.write { transaction throws(NodeError) in
        switch change {
        case 0, 1: try transaction.perform(Mutation(.delete, model: model, key: key))
        case 2: try transaction.resolve(model, key, field: field, .take(2))
        case 3: try transaction.resolve(model, key, field: nil, .keep)
        case 4: try transaction.perform(Mutation(.create, model: model, key: key, fields: [(field, value)]))
        default: try transaction.perform(Mutation(.upsert, model: model, key: key, fields: [(field, value)]))
        }
        return transaction.events
      }
      for event in events {
        let name = "\(event.partition) \(node.description.name(event.id))"
        seen[name] = held[index]
        held[index].insert(name)
      }
    } catch {
      // Most changes are valid only in some states of the record.
      guard case .mutation = error else { throw error }
    }
  }
}
