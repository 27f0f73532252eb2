import Foundation
import Shapes
import Stemma
import Testing

/// Models of an imported module.
@Suite("Public models of another module")
struct PublicModelTests {
  @Test("drafts, values, setters, relationships, statements and keys")
  func use() async throws {
    let store = try await Store.temporary(models: Crew.self, Sailor.self, Berth.self)
    let crew = try await store.insert(Crew.Draft(name: "Blue"))
    let red = try await store.insert(Crew(id: UUID(), name: "Red"))
    var sailor = try await store.insert(
      Sailor.Draft(name: "Ann", rank: Sailor.Rank(title: "Mate"), crew: crew))
    sailor.rank.grade = 3
    sailor = try await store.update(sailor)
    #expect(try await sailor.crew?.name == "Blue")
    #expect(try await crew.sailors.fetch().map(\.rank.grade) == [3])
    sailor.setCrew(red)
    sailor = try await store.update(sailor)
    let eager = try await store.get(Crew.self, byIdentifier: red.id, including: { [$0.sailors] })
    #expect(try eager?.loaded(\.sailors) == [sailor])
    sailor.setCrew(nil)
    try await store.update(sailor)
    let found = Sailor.where { $0.rank.grade > 2 && $0.crewId == nil }.order { $0.name }
    #expect(try await found.fetchAll(store).map(\.name) == ["Ann"])
    #expect(Sailor.Draft(sailor).rank.title == "Mate")
    let berth = try await store.insert(Berth.Draft(deck: 1, number: 7))
    #expect(berth.deck == 1 && berth.note == nil)
    #expect(try await store.find(Berth.self, Berth.ID(deck: 1, number: 7)).number == 7)
  }

  @Test(
    "a value of a model with relationships is encoded without them, and what is decoded is a value like any other"
  )
  func codable() async throws {
    let store = try await Store.temporary(
      models: Choir.self, Singer.self, Lesson.self, Songbook.self)
    let choir = try await store.insert(Choir(id: 1, name: "Low"))
    let singer = try await store.insert(Singer(id: 2, choirId: choir.id))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let text = try encoder.encode(singer)
    #expect(String(decoding: text, as: UTF8.self) == #"{"choirId":1,"id":2}"#)
    var decoded = try JSONDecoder().decode(Singer.self, from: text)
    #expect(decoded == singer)
    #expect(try await singer.choir?.name == "Low")
    // A decoded record belongs to no store.
    await #expect(throws: StoreError.self) { try await decoded.choir }
    decoded.setChoir(nil)
    #expect(decoded.choirId == nil)
  }

  @Test("what its own module alone knows of a model is stored like the rest, and others save the rest")
  func hiddenColumns() async throws {
    let witness = try await Witness(Consignment.self)
    var parcel = try await witness.expect {
      try await witness.store.insert(Consignment.draft("a"))
    } appends: {
      """
      create Consignment #1 grade="high" grades="[]" label="a" notes=[] quality="low" unit="low" width=1
      """
    }
    try await witness.expect {
      parcel.label = "b"
      parcel = try await witness.store.update(parcel)
    } appends: {
      """
      update Consignment #1 label="b"
      """
    }
    #expect(try await Consignment.where { $0.size.width == 1 }.fetchAll(witness.store).map(\.label) == ["b"])
  }
}
