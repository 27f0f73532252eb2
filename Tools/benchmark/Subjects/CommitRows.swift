import Foundation
import GRDBSQLite
import Measuring
import StemmaEvents
import StemmaNode

/// Durable commits of one event each, against SQLite in WAL mode with synchronous=FULL, one row a transaction.
func measureCommits(_ bench: Bench) throws {
  let count = min(2000, bench.events / 10)
  var workload = Workload(total: count)
  var changes = BareChanges()
  var mutations: [Mutation] = []
  while let change = workload.next() {
    change.append(to: &changes)
    var line: [UInt8] = []
    change.append(to: &line)
    mutations.append(try line.withUnsafeBytes { try Mutation(line: $0) })
  }
  let empty = try bench.emptyNode("empty")
  let tables = empty.directory + "/tables.sqlite"
  let baseline = { try changes.apply(to: try bench.fresh("bare.sqlite"), tablesOf: tables, batch: 1) }

  let single = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      let node = try bench.emptyNode("single")
      return try Cost.of {
        for mutation in mutations {
          _ = try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
        }
      }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("single/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add("durable commits of one event", single, count: count, "commits", .atLeast(1), waits: true)

  let grouped = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      let node = try bench.emptyNode("grouped")
      return try Cost.of { try writeInGroups(of: 16, mutations, to: node) }
    }, baseline: baseline)
  bench.add("the same by 16 writers at once", grouped, count: count, "commits", .atLeast(6), waits: true)
  for name in ["empty", "single", "grouped", "bare.sqlite"] { _ = try bench.fresh(name) }
}

private func writeInGroups(of size: Int, _ mutations: [Mutation], to node: Node) throws {
  var start = 0
  while start < mutations.count {
    let group = mutations[start..<min(start + size, mutations.count)]
    let requests = group.map { mutation in
      Node.CommitRequest(CommitNote()) { transaction throws(NodeError) in
        _ = try transaction.perform(mutation)
      }
    }
    for outcome in try node.write(requests) { try outcome.get() }
    start += size
  }
}
