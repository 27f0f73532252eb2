import Foundation
import Measuring
import StemmaEvents
import StemmaImport
import StemmaNode

/// The time from a durable commit at a served node until `sync --follow` has its row in the tables
/// of other nodes.
func measurePeersFollowing(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: peers-follow is left out") }
  for count in [1, 4] {
    let times = try latencies(bench, tool, followers: count).sorted()
    let name = count == 1 ? "1 follower shows" : "\(count) followers show"
    bench.add(
      "time until \(name) a commit, p50", ours: times[times.count / 2], baseline: 0, "ms", .none)
    bench.add(
      "time until \(name) a commit, p99; 200 ms", ours: times[times.count * 99 / 100], baseline: 200, "ms",
      .atMost(1))
  }
}

/// Milliseconds of each commit at each follower.
private func latencies(_ bench: Bench, _ tool: String, followers count: Int) throws -> [Double] {
  let node = try bench.emptyNode("followed")
  _ = try Import(into: node, options: .init()).run(path: try bench.lines(bench.events / 100))
  let server = try ServedNode(node.directory, tool: tool)
  let names = (1...count).map { "follower-\($0)" }
  var tables: [BareSQLite] = []
  for name in names {
    let directory = try bench.fresh(name)
    _ = try ChildCost.of(tool, ["clone", server.url, directory, "--name", name])
    tables.append(try BareSQLite(directory + "/tables.sqlite"))
  }
  var programs = try names.map { name in
    try BackgroundProgram(tool, ["-C", bench.path(name), "sync", "--follow"], readsLine: false)
  }
  programs.append(server.program)
  defer {
    programs = []
    for name in names + ["followed"] { do { _ = try bench.fresh(name) } catch { bench.say("\(error)") } }
  }
  var dice = Dice(1)
  var times: [Double] = []
  // The first commits wait for the start of the programs.
  for commit in -5..<100 {
    // The programs look at the log in intervals, so commits are not made in step with them.
    usleep(UInt32(dice.below(100_000)))
    let id = "followed-\(commit)"
    let line =
      #"{"op":"create","model":"Task","key":{"tenant":"tenant-100","id":"\#(id)"},"#
      + #""fields":{"title":"followed","status":"OPEN","priority":1}}"#
    let mutation = try Array(line.utf8).withUnsafeBytes { try Mutation(line: $0) }
    _ = try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
    let began = Cost.wallSeconds()
    var waiting = tables
    while !waiting.isEmpty {
      guard Cost.wallSeconds() - began < 60 else {
        throw BenchError("a follower did not show a commit in 60 s")
      }
      let before = waiting.count
      waiting = try waiting.filter { tables in
        try tables.texts("SELECT 1 FROM tasks WHERE tenant = 'tenant-100' AND id = '\(id)'").isEmpty
      }
      let seen = (Cost.wallSeconds() - began) * 1000
      if commit >= 0 { times += Array(repeating: seen, count: before - waiting.count) }
      usleep(1000)
    }
  }
  return times
}
