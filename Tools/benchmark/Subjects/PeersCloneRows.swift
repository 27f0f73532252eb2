import Foundation
import Measuring

/// Cloning a node over HTTP, against downloading its log files with curl and inserting the rows of
/// its tables by bare SQLite. The servers' processor time counts on both sides.
func measurePeersClone(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: peers-clone is left out") }
  guard let curl = bench.program("curl"), let python = bench.program("python3") else {
    return bench.say("no curl or python3: peers-clone is left out")
  }
  let directory = try bench.node(bench.events)
  let rows = try BareRows(of: directory + "/tables.sqlite")
  let server = try ServedNode(directory, tool: tool)
  let files = try ServedFolder(directory + "/log", python: python)
  let names = try BareFiles.list(directory + "/log").map { $0.split(separator: "/").last ?? "" }
    .filter { !$0.hasSuffix("lock") }
  var parts = CloneParts()
  let costs = try bench.byTurns(
    ours: {
      let target = try bench.fresh("cloned")
      let before = try server.program.cpuSeconds()
      let child = try ChildCost.of(tool, ["clone", server.url, target, "--name", "cloned"])
      let served = try server.program.cpuSeconds() - before
      parts.client = min(parts.client, child.cpu)
      parts.server = min(parts.server, served)
      return Cost(wall: child.wall, cpu: child.cpu + served)
    },
    baseline: {
      let target = try bench.fresh("copied")
      try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
      let before = try files.program.cpuSeconds()
      let words = ["--silent", "--show-error", "--fail", "--output-dir", target, "--remote-name-all"]
      let child = try ChildCost.of(curl, words + names.map { files.url + $0 })
      let served = try files.program.cpuSeconds() - before
      let sync = try Cost.of { for name in names { try BareFiles.sync("\(target)/\(name)") } }
      let insertion = try Cost.of { try rows.insert(into: target + "/bare.sqlite") }
      parts.download = min(parts.download, child.wall + sync.wall)
      parts.insertion = min(parts.insertion, insertion.wall)
      return Cost(
        wall: child.wall + sync.wall + insertion.wall, cpu: child.cpu + served + sync.cpu + insertion.cpu)
    })
  try BareSQLite(bench.path("copied/bare.sqlite")).checkSameRows(as: bench.path("cloned/tables.sqlite"))
  bench.add("clone over HTTP", costs, count: bench.events, "events", .atLeast(0.6))
  bench.say(
    "clone over HTTP: \(Report.number(costs.ours.wall)) s; CPU: client \(Report.number(parts.client)) s, server "
      + "\(Report.number(parts.server)) s; baseline: download \(Report.number(parts.download)) s, inserts "
      + "\(Report.number(parts.insertion)) s")
  var local = Cost()
  for _ in 0..<bench.rounds {
    let child = try ChildCost.of(tool, ["clone", directory, try bench.fresh("cloned"), "--name", "cloned"])
    local = local.best(Cost(wall: child.wall, cpu: child.cpu))
  }
  bench.add("clone over HTTP; from a directory", ours: costs.ours.wall, baseline: local.wall, "s", .none)
  for name in ["cloned", "copied"] { _ = try bench.fresh(name) }
}

/// Seconds of the parts of both sides: the best of the rounds.
private struct CloneParts {
  /// Processor time.
  var client = Double.infinity
  var server = Double.infinity
  /// Wall time.
  var download = Double.infinity
  var insertion = Double.infinity
}
