import Measuring
import StemmaNode
import StemmaReplication

/// Pulling one partition with about 1 % of the events into an empty node, against pulling
/// everything. Also measured with the creation of the node, as in a clone of that partition.
func measurePulls(_ bench: Bench) throws {
  let source = RemotePeer(name: "source", address: try bench.node(bench.events))
  let partition = ["tenant=tenant-142"]
  let node = try Node.open(at: source.address, .init(mode: .read))
  let few = try node.digests(within: [try node.scope(partition)]).reduce(0) { $0 + $1.events }
  let all = try node.status().events
  func check(_ events: UInt64, of partitions: [String]) throws {
    let held = partitions.isEmpty ? all : few
    guard held > 0, events == held else {
      throw BenchError("\(events) events came, and the source has \(held)")
    }
  }
  var bytes: UInt64 = 0
  func pull(_ partitions: [String], into name: String) throws -> Cost {
    let target = try bench.emptyNode(name).directory
    return try Cost.of {
      let node = try Node.open(at: target, .init(mode: .write))
      let report = try node.exchange(with: source, pulls: true, pushes: false, partitions: partitions) {
        _, _ in
      }
      guard let pulled = report.pulled, report.missing == nil else {
        throw BenchError("nothing was pulled, or not all")
      }
      try check(pulled.events, of: partitions)
      if !partitions.isEmpty { bytes = pulled.bytesRead }
    }
  }
  let costs = try bench.byTurns(
    rounds: bench.roundsOfSeconds,
    ours: { try pull(partition, into: "part") }, baseline: { try pull([], into: "whole") })
  bench.add(
    "bytes read to pull 1 % of the events", ours: Double(bytes),
    baseline: Double(try bench.logBytes(source.address)),
    "bytes", .atMost(0.02))
  bench.add(
    "time to pull it; 3 % of all and 30 ms", ours: costs.ours.wall * 1000,
    baseline: costs.baseline.wall * 30 + 30, "ms", .atMost(1))
  bench.add(
    "time to pull it; 3 % of all and 30 ms, CPU", ours: costs.ours.cpu * 1000,
    baseline: costs.baseline.cpu * 30 + 30, "ms", .atMost(1))
  func clone(_ partitions: [String], to name: String) throws -> Cost {
    let target = try bench.fresh(name)
    return try Cost.of {
      let report = try Node.clone(
        from: source.address, to: target, partitions: partitions, name: name
      ) { _, _ in }
      try check(report.events, of: partitions)
    }
  }
  let clones = try bench.byTurns(
    rounds: bench.roundsOfSeconds, ours: { try clone(partition, to: "part") },
    baseline: { try clone([], to: "whole") })
  bench.add(
    "time to clone it, with a new node; 3 % of all and 30 ms", ours: clones.ours.wall * 1000,
    baseline: clones.baseline.wall * 30 + 30, "ms", .atMost(1))
  for name in ["part", "whole"] { _ = try bench.fresh(name) }
}
