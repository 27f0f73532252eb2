import Foundation
import StemmaEvents
import StemmaNode
import StemmaSimulation
import Testing

/// Parses the drawing of `log --graph` and compares it with the contexts of the events.
@Suite("log --graph")
struct GraphTests {
  /// The events of a node, oldest first, with all events that their writers had seen according to
  /// the contexts. These are the events in the context, earlier events of the same node, and
  /// everything that those had seen.
  private func log(_ node: Node, _ words: [String]) throws -> (
    order: [String], parents: [String: Set<String>]
  ) {
    let result = try Tool.run(
      Tool.path, ["-C", node.directory, "log", "--reverse", "--ndjson"] + words, in: node.directory)
    var order: [String] = []
    var parents: [String: Set<String>] = [:]
    var last: [String: String] = [:]
    for event in try result.objects() {
      let partition = event.text("partition") ?? ""
      let name = "\(partition)|\(event.text("event") ?? "")"
      let context = event.object("context").compactMapValues { $0 as? Int }
      parents[name] = Set(context.map { "\(partition)|\($0.key):\($0.value)" })
      let origin = event.text("origin") ?? ""
      if let before = last[origin] { parents[name]?.insert(before) }
      last[origin] = name
      order.append(name)
    }
    return (order, parents)
  }

  private func picture(_ node: Node, _ words: [String]) throws -> GraphPicture {
    let result = try Tool.run(
      Tool.path,
      ["-C", node.directory, "log", "--graph", "--format", "{partition}|{event}"] + words, in: node.directory)
    #expect(result.status == 0, "\(result.errors)")
    return GraphPicture(result.lines)
  }

  @Test(
    "every line leads to what its event's maker had seen, and all of that can be reached",
    arguments: 1...Trials.count(6))
  func pictureIsTrue(seed: Int) throws {
    let work = try Workplace()
    let history = try RandomHistory(
      seed: UInt64(seed), nodes: 2 + seed % 3, steps: 36, models: ["Note", "Kept"], in: work.path)
    var random = SplitMix64(seed: UInt64(seed))
    let node = random.element(history.nodes)
    for words in [["--partition", "site=s0"], ["--partition", "site=s1"], []] {
      let (order, contexts) = try log(node, words)
      let expected = GraphPicture.closure(of: contexts, order)
      let picture = try picture(node, words)
      #expect(picture.events == order.reversed())
      #expect(picture.puzzles == [] && picture.loose == [], "seed \(seed) \(words)")
      for (event, found) in picture.reachable {
        #expect(found == expected[event], "seed \(seed) \(words): \(event)")
        let seen = history.seen[event.replacing("|", with: " ")] ?? []
        #expect(found.isSubset(of: Set(seen.map { $0.replacing(" ", with: "|") })), "seed \(seed): \(event)")
      }
      #expect(expected.values.filter { !$0.isEmpty }.count == picture.reachable.count)
      for (event, names) in picture.named {
        #expect(Set(names).isSubset(of: expected[event] ?? []), "seed \(seed) \(words): \(event) \(names)")
      }
    }
  }

  @Test("what a filter hides is never led to, and nothing is said that is not so", arguments: 21...24)
  func filteredPictureIsTrue(seed: Int) throws {
    let work = try Workplace()
    let history = try RandomHistory(seed: UInt64(seed), nodes: 3, steps: 40, models: ["Note"], in: work.path)
    let node = history.nodes[0]
    let (order, contexts) = try log(node, ["--partition", "site=s0"])
    let expected = GraphPicture.closure(of: contexts, order)
    for words in [
      ["--op", "update"], ["--field", "text"], ["--since", "2026-01-05T09:00:08Z"], ["-n", "6"],
      ["--origin", "n1"], ["--model", "Note", "--key", "site=s0", "--key", "n=0"],
      ["--model", "Note", "--key", "site=s0", "--key", "n=0", "--op", "update"],
    ] {
      let picture = try picture(node, ["--partition", "site=s0"] + words)
      #expect(picture.puzzles == [], "seed \(seed) \(words)")
      for (event, found) in picture.parents {
        #expect(found.isSubset(of: expected[event] ?? []), "seed \(seed) \(words): \(event)")
      }
    }
  }
}
