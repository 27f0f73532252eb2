import Foundation
import Measuring
import StemmaNode

/// Rebuilding the tables from the log, against bare inserts of the resulting rows into the same
/// tables, in key order, in one transaction, indexes last.
func measureRebuild(_ bench: Bench) throws {
  let directory = try bench.node(bench.events)
  let node = try Node.open(at: directory, .init(mode: .read))
  let rebuilt = try bench.fresh("rebuilt.sqlite")
  _ = try node.rebuild(into: rebuilt, upTo: nil) { _, _ in }
  let rows = try BareRows(of: rebuilt)
  let costs = try bench.byTurns(
    ours: {
      let path = try bench.fresh("rebuilt.sqlite")
      return try Cost.of { _ = try node.rebuild(into: path, upTo: nil) { _, _ in } }
    },
    baseline: {
      let path = try bench.fresh("bare.sqlite")
      return try Cost.of { try rows.insert(into: path) }
    })
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(as: rebuilt)
  bench.add("rebuild", costs, count: rows.count, "rows", .atLeast(0.7))
  for name in ["rebuilt.sqlite", "bare.sqlite"] { _ = try bench.fresh(name) }
}
