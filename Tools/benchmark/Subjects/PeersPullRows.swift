import Measuring
import StemmaHTTP
import StemmaNode
import StemmaReplication

/// Pulling one partition with about 1 % of the events over HTTP into an empty node, against pulling
/// everything over HTTP.
func measurePeersPull(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: peers-pull is left out") }
  let server = try ServedNode(try bench.node(bench.events), tool: tool)
  let costs = try bench.byTurns(
    rounds: bench.roundsOfSeconds,
    ours: { try bench.pullOverHTTP([Workload.onePartition], from: server).cost },
    baseline: { try bench.pullOverHTTP([], from: server).cost })
  bench.add(
    "pull of 1 % over HTTP; 3 % of all and 50 ms", ours: costs.ours.wall * 1000,
    baseline: costs.baseline.wall * 30 + 50, "ms", .atMost(1))
  bench.add(
    "pull of 1 % over HTTP; 3 % of all and 50 ms, CPU", ours: costs.ours.cpu * 1000,
    baseline: costs.baseline.cpu * 30 + 50, "ms", .atMost(1))
}

extension Workload {
  /// A partition with about 1 % of the events.
  static let onePartition = "tenant=tenant-142"
}

extension Bench {
  /// Pulls into a new node. The cost includes the processor time of the server.
  func pullOverHTTP(
    _ partitions: [String], from server: ServedNode
  ) throws -> (events: UInt64, cost: Cost) {
    let target = try emptyNode("pulled").directory
    let before = try server.program.cpuSeconds()
    var events: UInt64 = 0
    var cost = try Cost.of {
      let node = try Node.open(at: target, .init(mode: .write))
      let report = try node.exchange(
        with: RemotePeer(name: "source", address: server.url), pulls: true, pushes: false,
        partitions: partitions, connect: HTTPPeer.connector { _, _ in HTTPOptions() }
      ) { _, _ in }
      guard let pulled = report.pulled, pulled.events > 0, report.missing == nil else {
        throw BenchError("nothing was pulled, or not all")
      }
      events = pulled.events
    }
    cost.cpu += try server.program.cpuSeconds() - before
    _ = try fresh("pulled")
    return (events, cost)
  }
}
