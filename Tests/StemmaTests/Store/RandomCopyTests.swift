import StemmaSimulation
import Testing

@testable import Stemma

@Table struct Parcel {
  @Selection struct Address: Sendable {
    var street: String
    var city: String
  }
  let id: UUID
  var title: String
  var address: Address
  /// Observed by the model itself.
  var label: String {
    didSet { if label == "empty" { label = "0" } }
  }
  @Column(as: [String].JSONRepresentation.self) var notes: [String]

  /// All fields as text.
  var fields: [String: String] {
    ["title": title, "street": address.street, "city": address.city, "label": label, "notes": notes[0]]
  }

  mutating func set(_ field: String, _ value: String) {
    switch field {
    case "title": title = value
    case "street": address.street = value
    case "city": address = Address(street: address.street, city: value)
    case "label": label = value
    default: notes[0] = value
    }
  }
}

/// Copies of one value, set and saved in random order, some in failing commits. Checks what a save
/// writes and what it keeps.
@Suite("Random copies")
struct RandomCopyTests {
  /// A copy, and all changes of it and of its originals.
  private struct Copy {
    var row: Parcel
    let loaded: [String: String]
    /// The values that were shown or in conflict at the read, or recorded from the copy since.
    var seen: Set<String>
    var settings: [Setting] = []

    struct Setting {
      var number: Int
      var field: String
      var value: String
    }

    /// The changes since the read or the last recorded save.
    func changes(_ recorded: Set<Int>) -> [Setting] {
      loaded.keys.sorted().compactMap { field in
        let own = settings.filter { $0.field == field }
        guard let last = own.last else { return nil }
        let base = own.last { recorded.contains($0.number) }?.value ?? loaded[field]
        return last.value == base ? nil : last
      }
    }
  }

  private struct Abandoned: Error {}

  @Test(
    "a save writes what its own copy has changed, keeps what that has not seen, and leaves all else as it is",
    arguments: 0..<60)
  func random(seed: UInt64) async throws {
    var dice = SplitMix64(seed: seed)
    let store = try await Store.temporary(models: Parcel.self)
    let first = try await store.insert(
      Parcel.Draft(title: "t", address: .init(street: "s", city: "c"), label: "l", notes: ["n"]))
    var copies = [Copy(row: first, loaded: first.fields, seen: Set(first.fields.values))]
    var recorded: Set<Int> = []
    var number = 0
    for step in 0..<30 {
      let place = Int.random(in: copies.indices, using: &dice)
      let field = ["title", "street", "city", "label", "notes"].randomElement(using: &dice) ?? "title"
      switch Int.random(in: 0..<8, using: &dice) {
      case 0: copies.append(copies[place])
      case 1:
        let value = "theirs \(step)"
        try await Parcel.find(first.id).update { $0.set(field, value) }.execute(store)
      case 2:
        let row = try await store.find(Parcel.self, first.id)
        let shown = try await shown(store, first.id)
        copies.append(
          Copy(row: row, loaded: row.fields, seen: shown.values.reduce(into: []) { $0.formUnion($1) }))
      case 3, 4, 5:
        // Sometimes sets the current or an old value.
        let value = Bool.random(using: &dice) ? "mine \(step)" : copies[place].loaded[field] ?? ""
        number += 1
        copies[place].row.set(field, value)
        copies[place].settings.append(.init(number: number, field: field, value: value))
      default:
        let copy = copies[place]
        let isKept = Int.random(in: 0..<4, using: &dice) > 0
        let changes = copy.changes(recorded)
        let before = try await shown(store, first.id)
        do {
          try await store.write { tx in
            try tx.update(copy.row)
            // A second save writes nothing.
            try tx.update(copy.row)
            if !isKept { throw Abandoned() }
          }
        } catch is Abandoned {}
        let after = try await shown(store, first.id)
        check(isKept ? changes : [], copy.seen, before, after, "seed \(seed), step \(step)")
        guard isKept, let last = changes.map(\.number).max() else { continue }
        recorded.formUnion(changes.map(\.number))
        for place in copies.indices where copies[place].settings.contains(where: { $0.number == last }) {
          copies[place].seen.formUnion(changes.map(\.value))
        }
      }
      for copy in copies { copy.row._record.checkInvariants() }
    }
    try await store.checkInvariants()
  }

  private func check(
    _ changes: [Copy.Setting], _ seen: Set<String>, _ before: [String: Set<String>],
    _ after: [String: Set<String>], _ place: String
  ) {
    let isAllSeen = changes.allSatisfy { before[$0.field]?.isSubset(of: seen) ?? false }
    for (field, old) in before {
      let new = after[field] ?? []
      guard let change = changes.first(where: { $0.field == field }) else {
        #expect(new == old, "\(place): \(field) was not set")
        continue
      }
      #expect(new.contains(change.value), "\(place): \(field) is written")
      #expect(new.isSuperset(of: old.subtracting(seen)), "\(place): \(field) keeps what was not seen")
      #expect(new.isSubset(of: old.union([change.value])), "\(place)")
      if isAllSeen { #expect(new == [change.value], "\(place): \(field) replaces what was seen") }
    }
  }

  /// The values of each field: of the row, or of the conflict about it.
  private func shown(_ store: Store, _ id: UUID) async throws -> [String: Set<String>] {
    var shown = try await store.find(Parcel.self, id).fields.mapValues { Set([$0]) }
    for conflict in try await store.conflicts(of: Parcel.self) {
      guard let field = conflict.field else { continue }
      shown[field] = Set(
        try conflict.candidates.map {
          field == "notes"
            ? try $0.value(as: [String].JSONRepresentation.self).represented[0]
            : try $0.value(as: String.self)
        })
    }
    return shown
  }
}
