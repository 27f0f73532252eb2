import Foundation
import Measuring
import StemmaEvents
import StemmaHistory
import StemmaNode

/// The requests of the views of `stemma serve --ui`, on a log of a million events and on 50,000
/// conflicts. Compared with fixed limits; times are those that curl sees on the loopback.
func measureViews(_ bench: Bench) throws {
  guard let tool = bench.tool, let curl = bench.program("curl") else {
    return bench.say("no --tool, or no curl: views are left out")
  }
  let client = ViewClient(curl: curl, rounds: 5 * bench.rounds)
  func add(_ name: String, _ server: ServedNode, _ paths: String..., limit: Double = 100) throws {
    let milliseconds = try paths.reduce(0) { try $0 + client.milliseconds(server.url + $1) }
    bench.add("view \(name); \(Int(limit)) ms", ours: milliseconds, baseline: limit, "ms", .atMost(1))
  }
  let directory = try bench.nodeWithJournal()
  let node = try Node.open(at: directory, .init(mode: .read))
  let row = try ViewedRecord(inTheMiddleOf: node)
  let server = try ServedNode(directory, tool: tool, ["--ui"])
  try add("overview", server, "/v1/node", "/v1/status", "/v1/conflicts/counts", "/v1/activity", limit: 300)
  try add("events", server, "/v1/events?limit=200")
  try add("events before a position", server, "/v1/events?limit=200&until=\(row.position)")
  try add("event", server, "/v1/events/\(row.position)")
  try add("records", server, "/v1/records/\(row.model)")
  let name = "\(row.model)/\(row.key)"
  try add("record", server, "/v1/records/\(name)", "/v1/history/\(name)", "/v1/why/\(name)")
  try add("record at a position", server, "/v1/records/\(name)?asOf=\(row.position)")
  try add("differences to the last 100 positions", server, "/v1/diff?from=\(row.late)")
  try add("files", server, "/v1/files")
  try add("SQL, 1000 rows", server, "/v1/query?sql=SELECT+*+FROM+\(row.table)")
  let count = min(50_000, bench.events / 2)
  let conflicts = try ServedNode(try bench.nodeWithConflicts(count), tool: tool, ["--ui"])
  _ = try client.milliseconds(conflicts.url + "/v1/conflicts/counts")
  try add("overview, \(count) conflicts", conflicts, "/v1/status", "/v1/conflicts/counts", limit: 300)
  try add("conflicts, \(count)", conflicts, "/v1/conflicts")
  try add("conflicts from the last ones", conflicts, "/v1/conflicts?from=Pet/id%3D9999&offset=1")
  try add("merge", conflicts, "/v1/conflicts/Pet/7", "/v1/history/Pet/7")
}

/// Asks with curl.
private struct ViewClient {
  let curl: String
  let rounds: Int

  /// The shortest time until the whole answer was there.
  func milliseconds(_ url: String) throws -> Double {
    var best = Double.infinity
    for _ in 0..<rounds {
      let process = Process()
      let output = Pipe()
      process.executableURL = URL(fileURLWithPath: curl)
      process.arguments = ["-sSf", "-o", "/dev/null", "-w", "%{time_total}", url]
      process.standardOutput = output
      try process.run()
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      guard process.terminationStatus == 0, let seconds = Double(text) else {
        throw BenchError("\(url): curl ended with \(process.terminationStatus)")
      }
      best = min(best, seconds * 1000)
    }
    return best
  }
}

/// A record that was written in the middle of a log, as paths name it.
private struct ViewedRecord {
  var model = ""
  var table = ""
  var key = ""
  var position = ""
  /// A hundred positions before the end.
  var late = ""

  init(inTheMiddleOf node: Node) throws {
    let middle = Position(node.logEnd.rawValue / 2)
    position = "@\(middle)"
    late = "@\(node.logEnd.rawValue - 100)"
    let event = try node.event(named: position).event
    guard let found = node.description.model(of: event),
      case .object(let parts) = node.schema.json(of: event.key, model: found)
    else { throw BenchError("a foreign event") }
    (model, table) = (found.name, found.tableName)
    let allowed = CharacterSet.alphanumerics
    key = parts.map { part in
      "\(part.name)=\(part.value.plainText.addingPercentEncoding(withAllowedCharacters: allowed) ?? "")"
    }.joined(separator: "&")
  }
}
