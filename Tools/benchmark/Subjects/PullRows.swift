import Measuring
import StemmaNode
import StemmaReplication

/// Pulling one partition, which has about 1 % of the events, against pulling everything.
func measurePulls(_ bench: Bench) throws {
  let directory = try bench.node(bench.events)
  var bytes: UInt64 = 0
  let costs = try bench.byTurns(
    rounds: bench.roundsOfSeconds,
    ours: {
      let target = try bench.fresh("part")
      return try Cost.of {
        bytes = try Node.clone(
          from: directory, to: target, partitions: ["tenant=tenant-142"], name: "part"
        ) { _, _ in }.bytesRead
      }
    },
    baseline: {
      let target = try bench.fresh("whole")
      return try Cost.of {
        _ = try Node.clone(from: directory, to: target, partitions: [], name: "whole") { _, _ in }
      }
    })
  bench.add(
    "bytes read to pull 1 % of the events", ours: Double(bytes),
    baseline: Double(try bench.logBytes(directory)),
    "bytes", .atMost(0.02))
  bench.add(
    "time to pull it; 3 % of all and 30 ms", ours: costs.ours.wall * 1000,
    baseline: costs.baseline.wall * 30 + 30, "ms", .atMost(1))
  bench.add(
    "time to pull it; 3 % of all and 30 ms, CPU", ours: costs.ours.cpu * 1000,
    baseline: costs.baseline.cpu * 30 + 30, "ms", .atMost(1))
  for name in ["part", "whole"] { _ = try bench.fresh(name) }
}
