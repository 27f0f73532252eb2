import Foundation
import GRDB
import GRDBSQLite
import Measuring
import Stemma

/// All rows into structs, against a loop that steps a statement and calls the same struct's
/// initializer.
func measureFetch(_ bench: Bench) async throws {
  let store = try await bench.itemStore()
  let count = bench.itemCount
  let tables = try bench.itemTables()
  let bare = try ItemStatement(tables, "ORDER BY id")
  var rows: [Item] = []
  let costs = try await bench.byTurns(
    rounds: max(5, bench.rounds),
    ours: {
      // Freeing the rows of the previous round is not measured.
      rows = []
      return try await Cost.of { rows = try await Item.all.fetchAll(store) }
    },
    baseline: {
      var items: [Item] = []
      let cost = Cost.of {
        items = []
        while let item = bare.next() { items.append(item) }
      }
      bare.reset()
      guard items.count == count else { throw BenchError("\(items.count) rows of \(count)") }
      return cost
    })
  var number = 0
  while let item = bare.next() {
    guard rows[number].id == item.id, rows[number].title == item.title, rows[number].note == item.note else {
      throw BenchError("row \(number) differs")
    }
    number += 1
  }
  bench.add(
    "fetch of \(count) rows into structs, CPU", ours: costs.ours.cpu / Double(count) * 1e6,
    baseline: costs.baseline.cpu / Double(count) * 1e6, "µs/row", .atMost(1.5))
  let pool = try DatabasePool(path: bench.path("items/tables.sqlite"))
  let records = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      try Cost.of {
        let items = try pool.read { try GRDBItem.fetchAll($0, sql: "SELECT * FROM items ORDER BY id") }
        guard items.count == count else { throw BenchError("\(items.count) rows of \(count)") }
      }
    }, baseline: { costs.baseline })
  bench.add(
    "the same by GRDB's Codable records, CPU", ours: records.ours.cpu / Double(count) * 1e6,
    baseline: costs.baseline.cpu / Double(count) * 1e6, "µs/row", .none)
}

/// Single records by key, in random order.
func measureFind(_ bench: Bench) async throws {
  let store = try await bench.itemStore()
  var dice = Dice(11)
  let keys = try await Item.select { $0.id }.fetchAll(store)
  let wanted = (0..<20_000).map { _ in keys[dice.below(keys.count)] }
  let bare = try ItemStatement(try bench.itemTables(), "WHERE id = ?")
  let costs = try await bench.byTurns(
    rounds: max(5, bench.rounds),
    ours: {
      try await Cost.of {
        for key in wanted where try await store.find(Item.self, key).id != key {
          throw BenchError("another record")
        }
      }
    },
    baseline: {
      try Cost.of {
        for key in wanted {
          bare.bind(key.uuidString.lowercased())
          guard bare.next()?.id == key else { throw BenchError("another record") }
          bare.reset()
        }
      }
    })
  let each = 1e6 / Double(wanted.count)
  bench.add("find by key, CPU; 3 µs", ours: costs.ours.cpu * each, baseline: 3, "µs", .atMost(1))
  bench.add(
    "find by key beside a prepared statement, CPU", ours: costs.ours.cpu * each,
    baseline: costs.baseline.cpu * each, "µs", .none)
  let pool = try DatabasePool(path: bench.path("items/tables.sqlite"))
  let records = try Cost.of {
    for key in wanted {
      let text = key.uuidString.lowercased()
      guard try pool.read({ try GRDBItem.fetchOne($0, key: text) })?.id == key else {
        throw BenchError("another record")
      }
    }
  }
  bench.add(
    "the same by GRDB's Codable records, CPU", ours: records.cpu * each,
    baseline: costs.baseline.cpu * each, "µs", .none)
}

/// A handwritten prepared statement that reads items.
private final class ItemStatement {
  private let database: BareSQLite
  private let statement: OpaquePointer

  init(_ database: BareSQLite, _ clause: String) throws {
    self.database = database
    statement = try database.prepare(
      "SELECT id, title, note, priority, isDone, effort FROM items \(clause)")
  }

  deinit { sqlite3_finalize(statement) }

  func bind(_ key: String) {
    // SQLITE_TRANSIENT: the text is copied.
    sqlite3_bind_text(statement, 1, key, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
  }

  func reset() { sqlite3_reset(statement) }

  func next() -> Item? {
    guard sqlite3_step(statement) == SQLITE_ROW, let id = identifier(0), let title = text(1) else {
      return nil
    }
    return Item(
      id: id, title: title, note: text(2), priority: Int(sqlite3_column_int64(statement, 3)),
      isDone: sqlite3_column_int64(statement, 4) != 0,
      effort: sqlite3_column_type(statement, 5) == SQLITE_NULL ? nil : sqlite3_column_double(statement, 5))
  }

  private func text(_ column: Int32) -> String? {
    guard let start = sqlite3_column_text(statement, column) else { return nil }
    let count = Int(sqlite3_column_bytes(statement, column))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  private func identifier(_ column: Int32) -> UUID? {
    guard let start = sqlite3_column_text(statement, column), sqlite3_column_bytes(statement, column) == 36
    else { return nil }
    func digit(_ place: Int) -> UInt8 {
      let byte = start[place]
      return byte <= 57 ? byte &- 48 : (byte | 32) &- 87
    }
    func byte(_ place: Int) -> UInt8 { digit(place) << 4 | digit(place + 1) }
    return UUID(
      uuid: (
        byte(0), byte(2), byte(4), byte(6), byte(9), byte(11), byte(14), byte(16), byte(19), byte(21),
        byte(24), byte(26), byte(28), byte(30), byte(32), byte(34)
      ))
  }
}
