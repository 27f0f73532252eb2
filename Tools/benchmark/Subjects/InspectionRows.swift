import Foundation
import Measuring
import StemmaEvents
import StemmaHistory
import StemmaImport
import StemmaNode

/// Reading a large log from the command line: the latency of the first answer and the throughput of
/// the whole output. The start of the tool (`--version`) is excluded; times are processor times.
func measureInspection(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: inspection is left out") }
  let directory = try bench.nodeWithJournal()
  let node = try Node.open(at: directory, .init(mode: .read))
  let record = try Record(inTheMiddleOf: node)
  let rounds = 5 * bench.rounds
  let start = try ChildCost.best(of: rounds, tool, ["--version"]).cpu
  func add(_ name: String, _ arguments: [String], atMost milliseconds: Double) throws {
    let cost = try ChildCost.best(of: rounds, tool, ["-C", directory] + arguments).cpu - start
    bench.add(
      "\(name); \(Int(milliseconds)) ms, CPU", ours: cost * 1000, baseline: milliseconds, "ms", .atMost(1))
  }
  try add("log -n 20", ["log", "-n", "20"], atMost: 50)
  // Both nodes wrote to the hottest record concurrently to the end, so it is among the newest.
  try add("log -p -n 20", ["log", "-p", "-n", "20"], atMost: 100)
  try add("history of a record", ["history"] + record.words, atMost: 20)
  if let hottest = try node.statistics(top: 1).hottest.first {
    let words = ["history", hottest.model, hottest.key.text]
    try add("history of the hottest record, \(hottest.events) events, concurrent", words, atMost: 100)
  }
  try add("get --as-of a position", ["get"] + record.words + ["--as-of", record.position], atMost: 20)
  try add("get --as-of a time", ["get"] + record.words + ["--as-of", record.time], atMost: 20)
  try add("blame of a record", ["blame"] + record.words, atMost: 5)

  let events = Double(record.events)
  let whole = try ChildCost.best(of: bench.rounds, tool, ["-C", directory, "log", "--oneline"])
  bench.add("log --oneline; 500 k/s", ours: events / whole.wall, baseline: 500_000, "events/s", .none)
  bench.add(
    "log --oneline; 500 k/s, CPU", ours: events / whole.cpu, baseline: 500_000, "events/CPU s", .atLeast(1))
}

/// A record that was written in the middle of a log.
private struct Record {
  var words: [String] = []
  var position = ""
  var time = ""
  /// The number of events in the whole log.
  var events = 0

  init(inTheMiddleOf node: Node) throws {
    let files = try node.logFiles()
    events = files.reduce(0) { $0 + Int($1.events) }
    guard let file = files.first(where: { $0.number == UInt64(files.count / 2) }) ?? files.first else {
      throw BenchError("an empty log")
    }
    position = "@\(file.positions?.first ?? "1")"
    let event = try node.event(named: position)
    guard let model = node.description.model(of: event.event) else { throw BenchError("a foreign event") }
    time = node.description.time(event.event.timestamp)
    words = [model.name, node.schema.json(of: event.event.key, model: model).text]
  }
}

extension Bench {
  /// The shared node with a journal that is not sealed.
  func nodeWithJournal() throws -> String {
    let directory = try node(events)
    return try shared("node-with-journal") {
      let copy = try fresh("with-journal")
      try FileManager.default.copyItem(atPath: directory, toPath: copy)
      var workload = Workload(changing: events / 4, total: events / 20, seed: 3)
      let lines = try fresh("tail.ndjson")
      try workload.write(to: lines)
      _ = try Import(into: try Node.open(at: copy, .init(mode: .write)), options: .init()).run(path: lines)
      _ = try fresh("tail.ndjson")
      return copy
    }
  }
}
