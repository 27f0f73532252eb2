import ArgumentParser
import Foundation
import Measuring

/// Peak memory (the largest resident set) of the tool's commands on a large node.
func measureMemory(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: memory is left out") }
  let first = try measureMemory(bench, tool, bench.events)
  for (command, peak) in first {
    bench.add(
      "memory of \(command), \(bench.events) events", ours: peak, baseline: 150, "MB", .atMost(1))
  }
  guard bench.isLong else {
    return bench.say("no --long: memory of \(bench.events * 5) events is left out")
  }
  let second = try measureMemory(bench, tool, bench.events * 5)
  for ((command, peak), (_, before)) in zip(second, first) {
    bench.add(
      "memory of \(command), \(bench.events * 5) events", ours: peak, baseline: before, "MB", .atMost(1.2))
  }
}

private func measureMemory(
  _ bench: Bench, _ tool: String, _ events: Int
) throws -> [(command: String, peak: Double)] {
  let node = try bench.node(events)
  let target = try bench.fresh("child")
  defer { do { _ = try bench.fresh("child") } catch {} }
  return try [
    ("rebuild", ["rebuild", "-C", node]), ("verify", ["verify", "-C", node]),
    ("clone", ["clone", node, target]), ("export", ["export", "-C", node]),
  ].map { command, arguments in (command, try ChildCost.of(tool, arguments).peak) }
}
