import Foundation
import Measuring
import StemmaEvents
import StemmaHTTP
import StemmaNode

/// Commits of one event by several nodes, each pushed to one server over HTTP before the next.
///
/// The baseline posts the same lines over bare sockets. Each client appends its line to a file and
/// syncs it before. The server appends all lines to one file and syncs each.
func measurePeersCommits(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: peers-commits is left out") }
  let count = min(480, bench.events / 500)
  for clients in [1, 4, 16] {
    let work = lines(count, of: clients)
    var served = 0.0
    let costs = try bench.byTurns(
      ours: {
        let directory = try bench.emptyNode("served").directory
        let server = try ServedNode(directory, tool: tool)
        var nodes: [PushingClient] = []
        for (index, lines) in work.enumerated() {
          nodes.append(try PushingClient(lines, index, try bench.fresh("client-\(index)"), server.url))
        }
        let before = try server.program.cpuSeconds()
        var cost = try Cost.of { try inThreads(nodes.map { node in { try node.run() } }) }
        served = try server.program.cpuSeconds() - before
        cost.cpu += served
        let stored = try BareSQLite(directory + "/tables.sqlite").texts("SELECT count(*) FROM tasks")
        guard stored == [["\(count)"]] else { throw BenchError("the server has \(stored) rows") }
        return cost
      },
      baseline: {
        let server = try BareLineServer(file: try bench.fresh("lines"))
        defer { server.stop() }
        var posts: [@Sendable () throws -> Void] = []
        for (index, lines) in work.enumerated() {
          let path = try bench.fresh("client-\(index)")
          posts.append {
            let client = try BareLineClient(file: path, port: server.port)
            for line in lines { try client.post(line) }
          }
        }
        return try Cost.of { try inThreads(posts) }
      })
    bench.add(
      "commits pushed over HTTP, \(clients) clients; bare posts", ours: Double(count) / costs.ours.wall,
      baseline: Double(count) / costs.baseline.wall, "commits/s", .none)
    let each = 1e6 / Double(count)
    bench.say(
      "\(clients) clients: \(Report.number(costs.ours.cpu * each)) µs CPU a commit, in the last round "
        + "\(Report.number(served * each)) µs of the server")
    for index in work.indices { _ = try bench.fresh("client-\(index)") }
  }
  for name in ["served", "lines"] { _ = try bench.fresh(name) }
}

/// The lines of each client. Each line creates a record.
private func lines(_ count: Int, of clients: Int) -> [[[UInt8]]] {
  var lines = [[[UInt8]]](repeating: [], count: clients)
  for index in 0..<count {
    let line =
      #"{"op":"create","model":"Task","key":{"tenant":"tenant-\#(100 + index % 100)","id":"task-\#(index)"},"#
      + #""fields":{"title":"a small change","status":"OPEN","priority":1}}"# + "\n"
    lines[index % clients].append(Array(line.utf8))
  }
  return lines
}

/// Runs all bodies at once and throws the first error.
private func inThreads(_ bodies: [@Sendable () throws -> Void]) throws {
  let failures = Mutex<[any Error]>([])
  let group = DispatchGroup()
  for body in bodies {
    group.enter()
    let thread = Thread {
      do { try body() } catch { failures.withLock { $0.append(error) } }
      group.leave()
    }
    thread.stackSize = 8 << 20
    thread.start()
  }
  group.wait()
  if let failure = failures.withLock({ $0.first }) { throw failure }
}

/// A node that makes commits and pushes each.
///
/// Sendable unchecked: one thread uses it at a time.
private final class PushingClient: @unchecked Sendable {
  private let node: Node
  private let mutations: [Mutation]
  private let remote: RemotePeer
  private let connect: Connector

  init(_ lines: [[UInt8]], _ index: Int, _ directory: String, _ url: String) throws {
    // Clients of the same options would share connections. A server without tokens ignores them.
    connect = HTTPPeer.connector { _, _ in HTTPOptions(token: "client-\(index)") }
    remote = RemotePeer(name: "source", address: url)
    mutations = try lines.map { try $0.withUnsafeBytes { try Mutation(line: $0) } }
    _ = try Node.clone(
      from: url, to: directory, partitions: [], name: "client-\(index)", connect: connect
    ) { _, _ in }
    node = try Node.open(at: directory, .init(mode: .write))
  }

  func run() throws {
    for mutation in mutations {
      _ = try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
      let report = try node.exchange(
        with: remote, pulls: false, pushes: true, partitions: [], connect: connect
      ) { _, _ in }
      guard report.pushed?.events == 1 else { throw BenchError("a commit was not pushed") }
    }
  }
}
