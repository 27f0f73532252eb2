import Foundation
import Measuring
import StemmaNode

/// Cloning a node, against copying its log files and inserting the rows of its tables by bare
/// SQLite.
func measureClone(_ bench: Bench) throws {
  let directory = try bench.node(bench.events)
  let rows = try BareRows(of: directory + "/tables.sqlite")
  let files = try BareFiles.list(directory + "/log").filter { !$0.hasSuffix(".lock") }
  let costs = try bench.byTurns(
    rounds: bench.roundsOfSeconds,
    ours: {
      let target = try bench.fresh("cloned")
      return try Cost.of {
        _ = try Node.clone(from: directory, to: target, partitions: [], name: "cloned") { _, _ in }
      }
    },
    baseline: {
      let target = try bench.fresh("copied")
      try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
      return try Cost.of {
        for file in files {
          try BareFiles.copy(file, to: target + "/" + (file.split(separator: "/").last ?? ""))
        }
        try rows.insert(into: target + "/bare.sqlite")
      }
    })
  try BareSQLite(bench.path("copied/bare.sqlite")).checkSameRows(as: bench.path("cloned/tables.sqlite"))
  bench.add("clone", costs, count: bench.events, "events", .atLeast(0.8))
  for name in ["cloned", "copied"] { _ = try bench.fresh(name) }
}
