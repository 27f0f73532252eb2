import Foundation
import Testing

@testable import Stemma

@Table private struct Site {
  @Selection struct ID: Hashable {
    let country: String
    let city: String
  }
  let id: ID
}

@Table private struct Shipment {
  @Selection struct ID: Hashable {
    let depot: String
    let at: Date
  }
  let id: ID
  var title: String
  @Column("weight_in_grams") var weight: Int?
  @Column(as: [Int].JSONRepresentation.self) var sizes: [Int] = []
  var reminderId: UUID?
  @BelongsTo("reminderId") var reminder: Reminder?
  var country: String?
  var city: String?
  @BelongsTo("country", "city") var site: Site?
}

/// The values of conflicts and events, in the types of a model's properties.
@Suite("Keys and values of conflicts and events")
struct TypedConflictTests {
  private static let key = Shipment.ID(depot: "a,b", at: Date(timeIntervalSince1970: 1_700_000_000.125))

  /// Two stores that changed the same records concurrently.
  private func stores(
    _ changes: [@Sendable (inout Shipment) -> Void]
  ) async throws -> (here: Store, there: Store) {
    let here = try await Store.temporary(models: Shipment.self)
    let there = try await Store.temporary(models: Shipment.self)
    try await here.insert(Shipment(id: Self.key, title: "Rest"))
    try await here.sync(with: there)
    for (store, change) in zip([here, there], changes) {
      try await Shipment.find(Self.key).update { change(&$0) }.execute(store)
    }
    try await here.sync(with: there)
    return (here, there)
  }

  @Test("a conflict gives the record's key, and each candidate the value of its property")
  func conflict() async throws {
    let pair = try await stores([
      {
        $0.weight = 1
        $0.sizes = [1]
        $0.title = "here"
      },
      {
        $0.weight = 2
        $0.sizes = [2, 3]
        $0.title = "there"
      },
    ])
    let conflicts = try await pair.here.conflicts(of: Shipment.self)
    #expect(conflicts.count == 3)
    for conflict in conflicts { #expect(try conflict.key(of: Shipment.self) == Self.key) }
    let weight = try #require(conflicts.first { $0.field == "weight_in_grams" })
    let weights = try weight.candidates.map { try $0.value(\.weight, of: Shipment.self) }
    #expect(Set(weights) == [1, 2])
    #expect(try weight.candidates[0].value(\Shipment.Columns.title) == nil)
    let sizes = try #require(conflicts.first { $0.field == "sizes" })
    let found = try sizes.candidates.map { try $0.value(\.sizes, of: Shipment.self) }
    #expect(Set(found) == [[1], [2, 3]])
    #expect(throws: StoreError.models("a record of Shipment has no key of Reminder")) {
      try weight.key(of: Reminder.self)
    }
  }

  @Test("of a reference of several fields that is in conflict each candidate gives the value of each field")
  func longReference() async throws {
    let (here, _) = try await stores([
      {
        $0.country = "de"
        $0.city = "Ulm"
      },
      {
        $0.country = "fr"
        $0.city = "Metz"
      },
    ])
    let conflict = try #require(try await here.conflicts(of: Shipment.self).first { $0.kind == .value })
    #expect(conflict.field == "site" && conflict.candidates.count == 2)
    for candidate in conflict.candidates {
      let city = try candidate.value(\.city, of: Shipment.self)
      let country = try candidate.value(\.country, of: Shipment.self)
      #expect(city == "Ulm" && country == "de" || city == "Metz" && country == "fr")
      #expect(try candidate.value(\.title, of: Shipment.self) == nil)
    }
  }

  @Test("of a reference of one field that is in conflict each candidate gives its value")
  func reference() async throws {
    let ids = [UUID(), UUID()]
    let (here, _) = try await stores([{ $0.reminderId = ids[0] }, { $0.reminderId = ids[1] }])
    let conflict = try #require(try await here.conflicts(of: Shipment.self).first { $0.kind == .value })
    let values = try conflict.candidates.map { try $0.value(\.reminderId, of: Shipment.self) }
    #expect(Set(values) == Set(ids.map { $0 }))
  }

  @Test("a conflict is the same one when it is listed again, and another value with another candidate")
  func identity() async throws {
    let (here, there) = try await stores([{ $0.title = "a" }, { $0.title = "b" }])
    let first = try #require(try await here.conflicts().first)
    let again = try #require(try await there.conflicts().first)
    #expect(first.id == again.id)
    #expect(first == (try await here.conflicts().first))
    let third = try await Store.temporary(models: Shipment.self)
    try await third.insert(Shipment(id: Self.key, title: "c"))
    try await here.sync(with: third)
    let more = try #require(try await here.conflicts().first { $0.id == first.id })
    #expect(more.candidates.count == 3 && more != first)
    #expect(Set(more.candidates.map(\.id)).count == 3)
    #expect(Set([first, more, first]).count == 2)
  }

  @Test("an event gives the record's key and the values of properties")
  func event() async throws {
    let (here, _) = try await stores([{ $0.sizes = [7] }, { $0.weight = 5 }])
    let events = try await here.history(of: Shipment.self, Self.key)
    #expect(Set(events.map(\.id)).count == 3)
    for event in events { #expect(try event.key(of: Shipment.self) == Self.key) }
    #expect(try events.compactMap { try $0.value(\.sizes, of: Shipment.self) } == [[], [7]])
    #expect(try events.map { try $0.value(\.title, of: Shipment.self) } == ["Rest", nil, nil])
    #expect(try events[0].value(\.title, of: Reminder.self) == nil)
    #expect(throws: StoreError.self) { try events[0].key(of: Reminder.self) }
  }
}
