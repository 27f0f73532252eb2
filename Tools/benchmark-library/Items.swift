import Foundation
import Measuring
import Stemma

/// The record that is read and written: a key, texts, numbers, and optional values.
@Table struct Item {
  let id: UUID
  var title: String
  var note: String?
  var priority: Int
  var isDone: Bool
  var effort: Double?
}

extension Item {
  static let words = ["invoice", "order", "garden", "kitchen", "window", "report", "travel", "archive"]

  /// Drafts from a fixed seed, in key order: each run measures the same data.
  static func drafts(_ count: Int) -> [Item.Draft] {
    var dice = Dice(7)
    return (0..<count).map { number in
      let words = (0..<4).map { _ in Self.words[dice.below(Self.words.count)] }
      return Item.Draft(
        id: UUID(number: number, &dice), title: words.joined(separator: " "),
        note: dice.below(3) == 0 ? words.reversed().joined(separator: ", ") : nil,
        priority: dice.below(10), isDone: dice.below(4) == 0,
        effort: dice.below(2) == 0 ? Double(dice.below(400)) / 4 : nil)
    }
  }
}

extension UUID {
  /// A UUID of version 7 from a clock with milliseconds.
  fileprivate init(number: Int, _ dice: inout Dice) {
    let time = UInt64(1_700_000_000_000 + number)
    let random = dice.next()
    func byte(_ word: UInt64, _ index: Int) -> UInt8 {
      UInt8(truncatingIfNeeded: word >> (8 * UInt64(index)))
    }
    self.init(
      uuid: (
        byte(time, 5), byte(time, 4), byte(time, 3), byte(time, 2), byte(time, 1), byte(time, 0),
        0x70, byte(random, 0), 0x80, byte(random, 1), byte(random, 2), byte(random, 3), byte(random, 4),
        byte(random, 5), byte(random, 6), byte(random, 7)
      ))
  }
}

extension Bench {
  /// The number of rows: as claimed, or a quarter in a quick run.
  var itemCount: Int { min(100_000, events / 4) }

  /// A store of items that all subjects read.
  func itemStore() async throws -> Store {
    try await shared("item-store") {
      let store = try await Store(at: try fresh("items"), models: Item.self)
      let drafts = Item.drafts(itemCount)
      try await Item.insert { drafts }.execute(store)
      return store
    }
  }

  /// Bare SQLite on the store's tables.
  func itemTables() throws -> BareSQLite { try BareSQLite(path("items/tables.sqlite")) }
}
