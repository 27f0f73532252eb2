import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaSimulation
import Testing

@testable import Stemma

@Table struct Ware {
  let id: Int
  var price: Decimal
  var discount: Decimal?
  var digest: Data

  static let prices = ["-2", "9.5", "10.25", "100", "0", "-10", "0.001", "1.5"]
}

@Table struct Tick {
  let id: Int
  var at: Date
}

/// The same model, with the spelling of times.
enum Zoned {
  @Table struct Tick {
    let id: Int
    @Column(as: String.AWSDateTime.self) var at: String
  }
}

@Table struct Reading {
  @Selection struct ID: Hashable {
    let sensor: String
    let at: Date.UnixTimeRepresentation
  }
  let id: ID
  var value: Int
}

@Table struct Gauge {
  let id: Int
  var tiny: Int8
  var small: UInt16?
  var medium: Int32
  var ratio: Float
}

@Table private struct Stage {
  let id: Int
  var at: Date
  var end: Date?
  @Column(as: Date.DayRepresentation.self) var day: Date
  @Column(as: Date.UnixTimeRepresentation.self) var second: Date
}

@Suite("Comparing with times that no column holds")
struct DistantTimeTests {
  /// Before the year 0, after 9999, and beyond the range of 64-bit numbers.
  private static let seconds = [-1e20, -1e12, 253_402_300_800, 1e12, 1e20, -.infinity, .infinity]

  @Test("they are before or after all that one holds, and equal to none", arguments: seconds)
  func distant(_ seconds: Double) async throws {
    let store = try await Store.temporary(models: Stage.self)
    for (id, text) in ["0000-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"].enumerated() {
      let date = try Date(datum: .text(text))
      try await store.insert(
        Stage.Draft(id: id, at: date, end: id == 0 ? nil : date, day: date, second: date))
    }
    let date = Date(timeIntervalSince1970: seconds)
    let (all, known) = (seconds > 0 ? (3, 0) : (0, 3), seconds > 0 ? (2, 0) : (0, 2))
    func count(_ predicate: (Stage.Columns) -> ColumnExpression<Bool>) async throws -> Int {
      try await Stage.where(predicate).fetchCount(store)
    }
    #expect(try await count { $0.at < date } == all.0)
    #expect(try await count { $0.at <= date } == all.0)
    #expect(try await count { $0.at > date } == all.1)
    #expect(try await count { $0.at >= date } == all.1)
    #expect(try await count { $0.end < date } == known.0)
    #expect(try await count { $0.end > date } == known.1)
    #expect(try await count { $0.end == date } == 0)
    #expect(try await count { $0.end != date } == 3)
    #expect(try await count { $0.at.in([date]) } == 0)
    #expect(try await count { !$0.end.in([date]) } == 3)
    let range = Date(timeIntervalSince1970: -1e12)...Date(timeIntervalSince1970: 1e12)
    #expect(try await count { range.contains($0.at) } == 3)
    let day = Date.DayRepresentation(representing: date)
    #expect(try await count { $0.day < day } == all.0)
    #expect(try await count { $0.day > day } == all.1)
    #expect(try await count { $0.day == day } == 0)
    // Replaces the null of the first stage.
    let first = Date(timeIntervalSince1970: 1)
    #expect(try await count { ($0.end ?? date) > first } == (seconds > 0 ? 2 : 1))
    #expect(try await count { ($0.end ?? date) < first } == (seconds > 0 ? 1 : 2))
    #expect(try await count { ($0.end ?? date) == date } == 1)
    #expect(try await count { ($0.end ?? date) != date } == 2)
    let ordered = try await Stage.order { $0.end ?? date }.fetchAll(store).map(\.id)
    #expect(ordered == (seconds > 0 ? [1, 2, 0] : [0, 1, 2]))
    await #expect(throws: StoreError.self) { try await Stage.select { $0.end ?? date }.fetchAll(store) }
    await #expect(throws: StoreError.self) {
      try await Stage.where { $0.id == 0 }.select { ($0.end ?? date).max() }.fetchAll(store)
    }
    guard abs(seconds) > 1e15 else { return }
    let second = Date.UnixTimeRepresentation(representing: date)
    #expect(try await count { $0.second < second } == all.0)
    #expect(try await count { $0.second > second } == all.1)
  }

  @Test("a date that is no number is before, after and equal to nothing")
  func never() async throws {
    let store = try await Store.temporary(models: Stage.self)
    let now = Date(timeIntervalSince1970: 0)
    try await store.insert(Stage.Draft(id: 1, at: now, end: nil, day: now, second: now))
    let never = Date(timeIntervalSince1970: .nan)
    #expect(
      try await Stage.where { $0.at < never || $0.at >= never || $0.end == never }.fetchCount(store) == 0)
    #expect(try await Stage.where { $0.at != never && $0.end != never }.fetchCount(store) == 1)
  }
}

@Suite("Counting with numbers of every width")
struct NumberTests {
  @Test("sums, means and arithmetic")
  func numbers() async throws {
    let store = try await Store.temporary(models: Gauge.self)
    for id in 1...3 {
      try await store.insert(
        Gauge.Draft(
          id: id, tiny: 100, small: id == 1 ? nil : 60_000, medium: Int32.max, ratio: Float(id) / 2))
    }
    let sums = try await Gauge.select { ($0.tiny.sum(), $0.small.sum(), $0.medium.sum(), $0.ratio.sum()) }
      .fetchOne(store)
    #expect(sums?.0 == 300 && sums?.1 == 120_000 && sums?.2 == 3 * Int(Int32.max) && sums?.3 == 3)
    #expect(try await Gauge.select { $0.ratio.avg() }.fetchOne(store) == 1)
    #expect(try await Gauge.where { $0.ratio * 2 > 2 }.fetchCount(store) == 1)
    #expect(try await Gauge.where { $0.tiny - 1 == 99 }.fetchCount(store) == 3)
    #expect(try await Gauge.where { $0.medium / 2 > 5 }.fetchCount(store) == 3)
  }
}

/// Values whose stored text has a different order.
@Suite("Comparing decimal numbers and bytes")
struct ComparisonTests {
  private func store() async throws -> Store {
    let store = try await Store.temporary(models: Ware.self)
    try await store.write { transaction in
      for (index, price) in Ware.prices.enumerated() {
        // From the last to the first, so that the letters of Base64 do not have the order of the
        // bytes.
        let byte = UInt8(index * 36)
        try transaction.insert(
          Ware.Draft(
            id: index + 1, price: try #require(Decimal(string: price)),
            discount: index == 0 ? nil : Decimal(index), digest: Data([byte, 255 - byte])))
      }
    }
    return store
  }

  @Test("decimal numbers compare as numbers in conditions, orders, extremes and ranges")
  func decimals() async throws {
    let store = try await store()
    let all = try Ware.prices.map { try #require(Decimal(string: $0)) }
    #expect(try await Ware.order { $0.price }.fetchAll(store).map(\.price) == all.sorted())
    #expect(try await Ware.order { $0.price.desc() }.fetchAll(store).map(\.price) == all.sorted(by: >))
    for limit in all + [Decimal(string: "9.9") ?? 0] {
      let above = try await Ware.where { $0.price > limit }.order { $0.price }.fetchAll(store)
      #expect(above.map(\.price) == all.filter { $0 > limit }.sorted())
      let upTo = try await Ware.where { $0.price <= limit }.fetchCount(store)
      #expect(upTo == all.count { $0 <= limit })
      #expect(try await Ware.where { $0.price == limit }.fetchCount(store) == all.count { $0 == limit })
    }
    #expect(try await Ware.select { $0.price.max() }.fetchOne(store) == 100)
    #expect(try await Ware.select { $0.price.min() }.fetchOne(store) == -10)
    #expect(try await Ware.where { $0.price.between(1, and: 10) }.fetchCount(store) == 2)
    #expect(try await Ware.where { $0.price.in([100, 0, 7]) }.fetchCount(store) == 2)
    #expect(try await Ware.where { $0.discount == nil }.fetchCount(store) == 1)
    #expect(try await Ware.where { $0.discount < 3 }.fetchCount(store) == 2)
    // Two columns, and within a commit.
    #expect(
      try await Ware.where { ($0.discount ?? 0) > $0.price }.fetchAll(store).map(\.id) == [1, 5, 6, 7, 8])
    try await store.write { transaction in
      try Ware.where { $0.price > 9 && $0.price < 11 }.update { $0.price += 1 }.execute(transaction)
    }
    #expect(try await Ware.where { $0.price > 10 }.order { $0.price }.fetchAll(store).map(\.id) == [2, 3, 4])
  }

  @Test("the same number in another spelling is equal, whatever its author")
  func spellings() async throws {
    let store = try await store()
    try await store.writer.access { node in
      try node.write { write throws(NodeError) in
        _ = try write.perform(
          Mutation(.update, model: "Ware", key: .int(8), fields: [(name: "price", value: .string("01.50"))]))
      }
    }
    #expect(try await Ware.where { $0.price == 1.5 }.fetchAll(store).map(\.id) == [8])
    #expect(try await Ware.where { $0.price < 1.5 }.fetchCount(store) == 4)
  }

  @Test("nil among values means null, as it does in a comparison with one")
  func listedNull() async throws {
    let store = try await store()
    #expect(try await Ware.where { $0.discount.in([nil, 3]) }.fetchAll(store).map(\.id) == [1, 4])
    #expect(try await Ware.where { $0.discount.in([3]) }.fetchAll(store).map(\.id) == [4])
    #expect(try await Ware.where { !$0.discount.in([nil, 3]) }.fetchCount(store) == 6)
  }

  @Test("integers of all 64 bits are found among values, also by what is no bare column")
  func listedIntegers() async throws {
    let store = try await Store.temporary(models: Tick.self)
    let ids = [Int.max, Int.max - 1, 1 << 53 + 1, 7]
    for id in ids { try await store.insert(Tick.Draft(id: id, at: Date(timeIntervalSince1970: 0))) }
    for id in ids {
      #expect(try await Tick.where { $0.id.in([id, 3]) }.fetchAll(store).map(\.id) == [id])
      #expect(try await Tick.where { tick in (tick.id + 0).in([id, 3]) }.fetchAll(store).map(\.id) == [id])
    }
  }

  @Test("a point in time is among those of a statement whatever zone each is written in")
  func listedTimes() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("stemma-zones-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: directory) } catch {} }
    let zoned = try await Store(at: directory, models: Zoned.Tick.self)
    for (id, text) in ["2024-01-01T12:00:00Z", "2024-01-01T13:00:00.0+01:00", "2024-01-01T13:00:00Z"]
      .enumerated()
    {
      try await zoned.insert(Zoned.Tick.Draft(id: id, at: text))
    }
    await zoned.close()
    let store = try await Store(at: directory, models: Tick.self)
    let first = Tick.where { $0.id == 0 }
    #expect(try await Tick.where { $0.at.in(first.select { $0.at }) }.fetchAll(store).map(\.id) == [0, 1])
  }

  /// A random spelling of a number with few digits.
  private func spelling(_ dice: inout SplitMix64) -> String {
    let number =
      Decimal(Int.random(in: -25...25, using: &dice))
      / Decimal([1, 10, 100].randomElement(using: &dice) ?? 1)
    var text = number.description
    let isNegative = text.hasPrefix("-")
    if isNegative { text.removeFirst() }
    switch Int.random(in: 0..<6, using: &dice) {
    case 0: text = "00" + text
    case 1: text += text.contains(".") ? "00" : ".0"
    case 2:
      text = (number.magnitude * 1000).description + ["e-3", "E-03"][Int.random(in: 0...1, using: &dice)]
    case 3: text = (number.magnitude / 100).description + ["e2", "E+2"][Int.random(in: 0...1, using: &dice)]
    case 4 where text.hasPrefix("0."): text.removeFirst()
    default: break
    }
    return isNegative ? "-" + text : Int.random(in: 0..<4, using: &dice) == 0 ? "+" + text : text
  }

  /// A random spelling of one of a few points in time, `moment` half seconds after the beginning of
  /// 2000.
  private func spelling(of moment: Int, _ dice: inout SplitMix64) -> String {
    let offset = [0, 60, -330, 840, -720].randomElement(using: &dice) ?? 0
    let local = DateText(millisecondsSince1970: 946_684_800_000 + Int64(moment * 500 + offset * 60_000))
    var text = String((local.utcText ?? "").dropLast())
    if Bool.random(using: &dice) { text += text.contains(".") ? "0" : ".000" }
    if offset == 0, Bool.random(using: &dice) { return text + "Z" }
    let minutes = abs(offset) % 60
    let hours = abs(offset) / 60
    return text + (offset < 0 ? "-" : "+") + (hours < 10 ? "0" : "") + "\(hours):"
      + (minutes == 0 ? "00" : "\(minutes)")
  }

  /// Writes rows as any program does.
  private func write(_ rows: [(id: Int, fields: [String: String])], _ model: String, _ store: Store)
    async throws
  {
    try await store.writer.access { node in
      try node.write { write throws(NodeError) in
        for row in rows {
          let fields = row.fields.sorted { $0.key < $1.key }.map {
            (name: $0.key, value: JSON.string($0.value))
          }
          _ = try write.perform(Mutation(.create, model: model, key: .int(Int64(row.id)), fields: fields))
        }
      }
    }
  }

  /// Compares a statement's result for a column with Swift's result for its values.
  private func expectByValue<Row: Table, Value: ColumnValue & Comparable>(
    _ values: [Value?], _ store: Store, _ type: Row.Type,
    _ location: Testing.SourceLocation = #_sourceLocation,
    _ column: @escaping @Sendable (Row.Columns) -> ColumnExpression<Value?>
  ) async throws {
    // Null first; equal values in the order of the ids.
    let order = values.indices.sorted { a, b in
      guard let left = values[a], let right = values[b] else {
        return (values[a] == nil && values[b] != nil) || (values[a] == values[b] && a < b)
      }
      return left < right || (left == right && a < b)
    }
    let rows = try await Row.order { column($0) }.fetchAll(store)
    #expect(rows.map { $0.primaryKey as? Int } == order, sourceLocation: location)
    var groups: [(value: Value?, count: Int)] = []
    for place in order {
      if let last = groups.last, last.value == values[place] {
        groups[groups.count - 1].count += 1
      } else {
        groups.append((values[place], 1))
      }
    }
    let grouped = try await Row.group { column($0) }.select { (column($0), column($0).count()) }.fetchAll(
      store)
    #expect(grouped.map(\.0) == groups.map(\.value), sourceLocation: location)
    #expect(grouped.map(\.1) == groups.map { $0.value == nil ? 0 : $0.count }, sourceLocation: location)
    let distinct = try await Row.all.order { column($0) }.select { column($0) }.distinct().fetchAll(store)
    #expect(distinct == groups.map(\.value), sourceLocation: location)
    let known = groups.compactMap(\.value)
    let counts = try await Row.select {
      (column($0).count(distinct: true), column($0).min(), column($0).max())
    }
    .fetchOne(store)
    #expect(counts?.0 == known.count, sourceLocation: location)
    #expect(counts?.1 == known.first && counts?.2 == known.last, sourceLocation: location)
  }

  @Test(
    "orders, groups, distinct values and extremes go by value, however it is spelled, as in Swift",
    arguments: 0..<10)
  func spelledAnyhow(seed: UInt64) async throws {
    var dice = SplitMix64(seed: seed)
    let store = try await Store.temporary(models: Ware.self, Tick.self)
    var wares: [(id: Int, fields: [String: String])] = []
    var ticks = wares
    for id in 0..<60 {
      var fields = ["price": spelling(&dice), "digest": "AA=="]
      if Int.random(in: 0..<5, using: &dice) > 0 { fields["discount"] = spelling(&dice) }
      wares.append((id, fields))
      ticks.append((id, ["at": spelling(of: Int.random(in: -4...4, using: &dice), &dice)]))
    }
    try await write(wares, "Ware", store)
    try await write(ticks, "Tick", store)
    func decimal(_ text: String?) throws -> Decimal? { try text.map { try Decimal(datum: .text($0)) } }
    let prices = try wares.map { try decimal($0.fields["price"]) }
    try await expectByValue(prices, store, Ware.self) { ColumnExpression($0.price.text) }
    let discounts = try wares.map { try decimal($0.fields["discount"]) }
    try await expectByValue(discounts, store, Ware.self) { $0.discount.expression }
    let times = try ticks.map { try Date(datum: .text($0.fields["at"] ?? "")) }
    try await expectByValue(times, store, Tick.self) { ColumnExpression($0.at.text) }
  }

  @Test("comparisons without a truth value are false in groups too")
  func truthOfGroups() async throws {
    let store = try await store()
    let groups = try await Ware.group { $0.discount > 3 }.select { ($0.discount > 3, $0.id.count()) }
      .fetchAll(store)
    #expect(groups.map(\.0) == [false, true])
    #expect(groups.map(\.1) == [4, 4])
    #expect(try await Ware.select { $0.discount > 3 }.distinct().fetchAll(store).count == 2)
  }

  @Test("a second as a part of a key")
  func timestampKey() async throws {
    let store = try await Store.temporary(models: Reading.self)
    let second = Date.UnixTimeRepresentation(representing: Date(timeIntervalSince1970: 1_435_662_990))
    try await store.insert(Reading.Draft(sensor: "a", at: second, value: 1))
    let found = try await store.find(Reading.self, Reading.ID(sensor: "a", at: second))
    #expect(found.id.at == second)
    #expect(try await Reading.where { $0.id.at == second }.fetchCount(store) == 1)
  }

  @Test("bytes compare as bytes")
  func bytes() async throws {
    let store = try await store()
    let digests = try await Ware.order { $0.digest }.fetchAll(store).map { Array($0.digest) }
    #expect(digests == digests.sorted { $0.lexicographicallyPrecedes($1) })
    #expect(digests.count == Ware.prices.count)
    #expect(try await Ware.where { $0.digest >= Data([108]) }.fetchCount(store) == 5)
    #expect(try await Ware.select { $0.digest.max() }.fetchOne(store) == Data([252, 3]))
  }
}
