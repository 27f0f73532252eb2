import Foundation
import StemmaSchema
import StemmaSimulation
import Testing

@testable import Stemma

@Table struct Ring {
  @Column(primaryKey: true) let name: String
  @HasMany("ringName") var coils: Related<Coil>
}

@Table struct Coil {
  let id: Int
  var label: String
  var ringName: String?
  @BelongsTo("ringName") var ring: Ring?
}

@Table struct Slot {
  @Selection struct ID: Hashable {
    let shelf: String
    let number: Int
  }
  let id: ID
  var note: String?
}

@Table struct Appointment {
  let id: Int
  var at: Date?
}

/// The same model, with the spelling of times.
enum Spelled {
  @Table struct Appointment {
    let id: Int
    @Column(as: String.AWSDateTime?.self) var at: String?
  }
}

/// Values that pass unchanged through SQLite's JSON or its functions.
@Suite("Values that SQLite reads otherwise")
struct ListedValueTests {
  private static let pieces = [
    "\u{0}", "\u{1}", "0", "1", "a", "é", "e\u{301}", "\"", "\\", "\u{301}", "\u{FFFF}",
  ]

  private func text(_ dice: inout SplitMix64) -> String {
    (0..<Int.random(in: 0...5, using: &dice)).map { _ in Self.pieces.randomElement(using: &dice) ?? "" }
      .joined()
  }

  @Test(
    "texts with U+0000 and integers of 64 bits are found among values and keys, and lead to what belongs to them"
  )
  func listed() async throws {
    let store = try await Store.temporary(models: Ring.self, Coil.self, Slot.self)
    var dice = SplitMix64(seed: 7)
    var coils: [Coil] = []
    for number in 0..<60 {
      let name = "\(number)\(text(&dice))"
      let ring = try await store.insert(Ring(name: name))
      let id = Int(truncatingIfNeeded: dice.next())
      let coil = try await store.insert(Coil.Draft(id: id, label: text(&dice), ring: ring))
      coils.append(coil)
      try await store.insert(Slot(id: Slot.ID(shelf: name, number: id), note: coil.label))
    }
    for _ in 0..<40 {
      let chosen = coils.shuffled(using: &dice).prefix(4)
      let ids = chosen.map(\.id).sorted()
      let names = chosen.compactMap(\.ringName)
      #expect(try await Coil.where { $0.id.in(ids) }.order { $0.id }.fetchAll(store).map(\.id) == ids)
      #expect(try await Coil.where { coil in (coil.id + 0).in(ids) }.fetchCount(store) == 4)
      #expect(try await Coil.find(ids).fetchAll(store).map(\.id) == ids)
      #expect(try await Coil.where { $0.ringName.in(names) }.fetchCount(store) == 4)
      #expect(try await Ring.find(names).fetchCount(store) == 4)
      let keys = chosen.map { Slot.ID(shelf: $0.ringName ?? "", number: $0.id) }
      #expect(Set(try await Slot.find(keys).fetchAll(store).map(\.id)) == Set(keys))
      let labels = Set(chosen.map { Array($0.label.utf8) })
      #expect(
        Set(
          try await Coil.where { $0.label.in(chosen.map(\.label)) }.fetchAll(store).map {
            Array($0.label.utf8)
          })
          == labels)
    }
    for coil in coils {
      let name = try #require(coil.ringName)
      let ring = try #require(
        try await store.get(Ring.self, byIdentifier: name, including: { [$0.coils.ring] }))
      #expect(try ring.loaded(\.coils).map(\.id) == [coil.id])
      #expect(try ring.loaded(\.coils)[0].loaded(\.ring)?.name.utf8.elementsEqual(name.utf8) == true)
    }
  }

  @Test("texts with U+0000 have their length, beginnings, ends and parts, and count as rows of their own")
  func zeros() async throws {
    let store = try await Store.temporary(models: Ring.self, Coil.self)
    var dice = SplitMix64(seed: 13)
    var labels: [Int: String] = [:]
    for id in 0..<120 {
      let label = text(&dice)
      labels[id] = label
      try await store.insert(Coil.Draft(id: id, label: label))
    }
    func ids(_ condition: (String) -> Bool) -> [Int] {
      labels.filter { condition($0.value) }.map(\.key).sorted()
    }
    for _ in 0..<60 {
      let part = String(decoding: Array(text(&dice).utf8), as: UTF8.self)
      let bytes = Array(part.utf8)
      let beginning = try await Coil.where { $0.label.hasPrefix(part) }.fetchAll(store).map(\.id)
      #expect(beginning == ids { $0.utf8.starts(with: bytes) }, "\(bytes)")
      let ending = try await Coil.where { $0.label.hasSuffix(part) }.fetchAll(store).map(\.id)
      #expect(ending == ids { $0.utf8.reversed().starts(with: bytes.reversed()) }, "\(bytes)")
      let having = try await Coil.where { $0.label.contains(part) }.fetchAll(store).map(\.id)
      #expect(having == ids { bytes.isEmpty || $0.utf8.contains(bytes) }, "\(bytes)")
      let length = part.unicodeScalars.count
      let long = try await Coil.where { $0.label.length == length }.fetchAll(store).map(\.id)
      #expect(long == ids { $0.unicodeScalars.count == length })
    }
    #expect(try await Coil.where { $0.ringName.hasSuffix("") }.fetchCount(store) == 0)
    // Keys that differ only after U+0000.
    for name in ["a\u{0}b", "a\u{0}c", "a\u{0}d"] { try await store.insert(Ring(name: name)) }
    #expect(try await Ring.limit(2).select { $0.name.max() }.fetchOne(store) == "a\u{0}c")
    #expect(try await Ring.limit(2).select { $0.name.count() }.fetchOne(store) == 2)
  }

  @Test("points in time compare as such at every offset, and are null only where nothing is stored")
  func offsets() async throws {
    let spelled = try await Store.temporary(models: Spelled.Appointment.self)
    var dice = SplitMix64(seed: 11)
    var times: [Int: Int64] = [:]
    for id in 0..<150 {
      guard id % 7 > 0 else {
        try await spelled.insert(Spelled.Appointment.Draft(id: id))
        continue
      }
      let time = 1_700_000_000_000 + Int64.random(in: 0..<200_000, using: &dice) * 500
      times[id] = time
      let text = try #require(Self.text(time, offset: Int64.random(in: -86_399...86_399, using: &dice)))
      try await spelled.insert(Spelled.Appointment.Draft(id: id, at: text))
    }
    let store = try await Store(at: spelled.directory, models: Appointment.self)
    func date(_ time: Int64) -> Date { Date(timeIntervalSince1970: Double(time) / 1000) }
    #expect(try await Appointment.where { $0.at == nil }.fetchCount(store) == 150 - times.count)
    #expect(try await Appointment.where { $0.at != nil }.fetchCount(store) == times.count)
    let ordered = times.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key)
    #expect(
      try await Appointment.where { $0.at != nil }.order { ($0.at, $0.id) }.fetchAll(store).map(\.id)
        == ordered)
    #expect(try await Appointment.select { $0.at.min() }.fetchOne(store) == times.values.min().map(date))
    #expect(try await Appointment.select { $0.at.max() }.fetchOne(store) == times.values.max().map(date))
    for _ in 0..<30 {
      let limit = try #require(times.values.randomElement(using: &dice))
      #expect(
        try await Appointment.where { $0.at < date(limit) }.fetchCount(store)
          == times.values.count { $0 < limit })
      #expect(
        try await Appointment.where { $0.at == date(limit) }.fetchCount(store)
          == times.values.count { $0 == limit })
      #expect(
        try await Appointment.where { $0.at.in([date(limit)]) }.fetchCount(store)
          == times.values.count { $0 == limit })
    }
  }

  /// A point in time as text, with an offset in seconds east of UTC.
  private static func text(_ time: Int64, offset: Int64) -> String? {
    func digits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let size = abs(offset)
    let seconds = size % 60 == 0 ? "" : ":\(digits(size % 60))"
    return DateText(millisecondsSince1970: time + offset * 1000).utcText.map {
      "\($0.dropLast())\(offset < 0 ? "-" : "+")\(digits(size / 3600)):\(digits(size / 60 % 60))\(seconds)"
    }
  }
}
