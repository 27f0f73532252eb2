import Foundation
import Testing

@testable import Stemma

/// A key with a part of the same name as the whole.
@Table struct Freight {
  @Selection struct ID: Hashable {
    let depot: String
    let id: Int
  }
  @Selection struct Size {
    var width: Int
    var unit: String?
  }
  let id: ID
  var title: String
  var size: Size
  @HasMany("depot", "parcel") var scans: Related<FreightScan>
}

@Table struct FreightScan {
  let id: Int
  var depot: String
  var parcel: Int
  @BelongsTo("depot", "parcel") var item: Freight
}

/// A key of several parts and a group of columns have the same meaning in a statement as in a row.
@Suite("Keys of several parts, and groups of columns, in statements")
struct KeyStatementTests {
  private static let ids = [("a", 2), ("a", 10), ("b", 1)].map { Freight.ID(depot: $0.0, id: $0.1) }

  private func store() async throws -> Store {
    let store = try await Store.temporary(models: Freight.self, FreightScan.self)
    try await store.write { tx in
      for (index, id) in Self.ids.enumerated() {
        let size = Freight.Size(width: 10 - index % 2, unit: index == 2 ? "cm" : nil)
        try tx.insert(Freight(id: id, title: "\(id.depot)\(id.id)", size: size))
      }
      for (number, id) in [Self.ids[0], Self.ids[0], Self.ids[2]].enumerated() {
        try tx.insert(FreightScan.Draft(id: number, depot: id.depot, parcel: id.id))
      }
    }
    return store
  }

  @Test("a key is selected as itself, alone and beside other columns")
  func select() async throws {
    let store = try await store()
    #expect(try await Freight.select { $0.id }.fetchAll(store) == Self.ids)
    #expect(try await Freight.all.select { $0.id }.distinct().fetchAll(store).count == 3)
    let pairs = try await Freight.select { ($0.title, $0.id, $0.size) }.fetchAll(store)
    #expect(pairs.map(\.0) == ["a2", "a10", "b1"])
    #expect(pairs.map(\.1) == Self.ids)
    #expect(pairs.map(\.2.width) == [10, 9, 10])
    #expect(pairs.map(\.2.unit) == [nil, nil, "cm"])
    // The part has its own name.
    #expect(try await Freight.select { $0.id.id }.fetchAll(store) == [2, 10, 1])
    #expect(try await Freight.where { $0.id.id == 10 }.fetchAll(store).map(\.title) == ["a10"])
  }

  @Test("rows are ordered by a key, its first part first")
  func order() async throws {
    let store = try await store()
    func titles(_ rows: Select<Freight>) async throws -> [String] {
      try await rows.fetchAll(store).map(\.title)
    }
    #expect(try await titles(Freight.order { $0.id }) == ["a2", "a10", "b1"])
    #expect(try await titles(Freight.all.order { $0.id.desc() }) == ["b1", "a10", "a2"])
    #expect(try await titles(Freight.order { ($0.size.width, $0.id.desc()) }) == ["a10", "b1", "a2"])
    #expect(try await titles(Freight.order { ($0.size, $0.id.id) }) == ["a10", "a2", "b1"])
  }

  @Test("rows are grouped by a key, also of a joined table")
  func group() async throws {
    let store = try await store()
    let counts = try await FreightScan.join { $0.item }.group { $1.id }.select { ($1.id, $0.id.count()) }
      .fetchAll(store)
    #expect(counts.map(\.0) == [Self.ids[0], Self.ids[2]])
    #expect(counts.map(\.1) == [2, 1])
    let widths = try await Freight.all.group { ($0.size, $0.id.depot) }.select { ($0.size, $0.id.depot) }
      .fetchAll(store)
    #expect(widths.map(\.0.width) == [9, 10, 10])
    #expect(widths.map(\.1) == ["a", "a", "b"])
    let scanned = try await FreightScan.join { $0.item }.order { ($1.id.desc(), $0.id) }.select { $1.id }
      .fetchAll(store)
    #expect(scanned == [Self.ids[2], Self.ids[0], Self.ids[0]])
  }

  @Test("a key is compared with keys")
  func compare() async throws {
    let store = try await store()
    let (first, last) = (Self.ids[0], Self.ids[2])
    let nowhere = Freight.ID(depot: "a", id: 1)
    #expect(try await Freight.where { $0.id == last }.fetchAll(store).map(\.id) == [last])
    #expect(try await Freight.where { $0.id != last }.fetchAll(store).map(\.id) == Array(Self.ids.dropLast()))
    // Of two keys, not of their parts.
    #expect(
      try await Freight.where { $0.id.in([first, last, nowhere]) }.fetchAll(store).map(\.id) == [first, last])
    #expect(try await Freight.where { [last].contains($0.id) && $0.title == "b1" }.fetchCount(store) == 1)
    #expect(try await Freight.where { !$0.id.in([]) }.fetchCount(store) == 3)
    #expect(try await Freight.find([last, nowhere]).fetchAll(store).map(\.id) == [last])
    #expect(
      try await FreightScan.join { $0.item }.where { $1.id == first }.select { scan, _ in scan.id }.fetchAll(
        store)
        == [0, 1])
  }
}
