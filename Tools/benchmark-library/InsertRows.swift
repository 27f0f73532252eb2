import Foundation
import GRDB
import Measuring
import Stemma
import StemmaImport
import StemmaNode

/// Drafts in one commit, against the tool's import of the same records.
func measureInsert(_ bench: Bench) async throws {
  let count = bench.itemCount
  let drafts = Item.drafts(count)
  let lines = try bench.fresh("items.ndjson")
  try Data(drafts.map(\.line).joined().utf8).write(to: URL(fileURLWithPath: lines))
  _ = try await Store(at: try bench.fresh("inserted"), models: Item.self)
  let schema = try String(contentsOfFile: bench.path("inserted/schema.graphql"), encoding: .utf8)
  let costs = try await bench.byTurns(
    ours: {
      let store = try await Store(at: try bench.fresh("inserted"), models: Item.self)
      return try await Cost.of { try await Item.insert { drafts }.execute(store) }
    },
    baseline: {
      let node = try Node.create(at: try bench.fresh("imported"), schema: schema, name: "imported")
      return try Cost.of { _ = try Import(into: node, options: .init()).run(path: lines) }
    })
  try BareSQLite(bench.path("inserted/tables.sqlite")).checkSameRows(
    as: bench.path("imported/tables.sqlite"), leavingOut: ["_version", "_state"])
  let each = 1e6 / Double(count)
  bench.add(
    "insert of \(count) drafts in one commit, CPU", ours: costs.ours.cpu * each,
    baseline: costs.baseline.cpu * each, "µs/event", .atMost(2))
  bench.add(
    "the same, wall", ours: costs.ours.wall * each, baseline: costs.baseline.wall * each, "µs/event", .none)

  let items = drafts.map(GRDBItem.init)
  let records = try Cost.of {
    let pool = try bench.grdbItems()
    try pool.write { database in for item in items { try item.insert(database) } }
  }
  bench.add(
    "the same rows by GRDB's Codable records, CPU", ours: records.cpu * each,
    baseline: costs.baseline.cpu * each, "µs/row", .none)
  for name in ["inserted", "imported", "items.ndjson", "grdb.sqlite"] { _ = try bench.fresh(name) }
}

/// Single inserts, each in its own commit with relaxed durability. The baseline is GRDB's records
/// in its default pool, in WAL mode with synchronous=NORMAL.
func measureRelaxedInserts(_ bench: Bench) async throws {
  let drafts = Item.drafts(min(5000, bench.itemCount))
  let items = drafts.map(GRDBItem.init)
  let costs = try await bench.byTurns(
    ours: {
      var options = Store.Options()
      options.durability = .relaxed
      let store = try await Store(at: try bench.fresh("inserted"), options: options, models: Item.self)
      return try await Cost.of { for draft in drafts { try await store.insert(draft) } }
    },
    baseline: {
      let pool = try bench.grdbItems()
      return try await Cost.of {
        for item in items { try await pool.write { database in try item.insert(database) } }
      }
    })
  bench.add("relaxed inserts one by one", costs, count: drafts.count, "commits", .atLeast(0.5), waits: true)
  for name in ["inserted", "grdb.sqlite"] { _ = try bench.fresh(name) }
}

extension Bench {
  fileprivate func grdbItems() throws -> DatabasePool {
    let pool = try DatabasePool(path: try fresh("grdb.sqlite"))
    try pool.write { database in
      try database.execute(
        sql: """
          CREATE TABLE items (id TEXT PRIMARY KEY, title TEXT NOT NULL, note TEXT, priority INTEGER NOT NULL,
            isDone INTEGER NOT NULL, effort REAL) STRICT, WITHOUT ROWID
          """)
    }
    return pool
  }
}

extension Item.Draft {
  /// The line of an import. No text of a draft needs an escape.
  fileprivate var line: String {
    let id = id?.uuidString.lowercased() ?? ""
    var fields = "\"title\":\"\(title)\",\"priority\":\(priority),\"isDone\":\(isDone)"
    if let note { fields += ",\"note\":\"\(note)\"" }
    if let effort { fields += ",\"effort\":\(effort)" }
    return "{\"op\":\"create\",\"model\":\"Item\",\"key\":{\"id\":\"\(id)\"},\"fields\":{\(fields)}}\n"
  }
}
