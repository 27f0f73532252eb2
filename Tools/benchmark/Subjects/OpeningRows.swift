import Measuring
import StemmaNode

/// Opening a large node, against a node with a hundredth of the events.
func measureOpening(_ bench: Bench) throws {
  let large = try bench.node(bench.events)
  let small = try bench.node(bench.events / 100)
  for (name, mode) in [("to read", Node.Mode.read), ("to write", Node.Mode.write)] {
    let costs = try bench.byTurns(
      rounds: 25,
      ours: { try Cost.of { _ = try Node.open(at: large, .init(mode: mode)) } },
      baseline: { try Cost.of { _ = try Node.open(at: small, .init(mode: mode)) } })
    bench.add(
      "opening \(name): \(bench.events) events, \(bench.events / 100)", ours: costs.ours.wall * 1000,
      baseline: costs.baseline.wall * 1000, "ms", .atMost(2))
  }
}
