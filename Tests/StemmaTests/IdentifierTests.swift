import Foundation
import StemmaNode
import Testing

@testable import Stemma

typealias MemoID = UUID
typealias PageNumber = Int
typealias CardID = String.ID

@Table private struct Memo {
  let id: MemoID
  var title: String
}

@Table private struct BookPage {
  @Selection struct ID: Hashable {
    let book: String
    let id: PageNumber
  }
  let id: ID
  var text: String
}

@Table private struct Card {
  let id: CardID
  var title: String
}

@Table private struct CardBack {
  @Selection struct ID: Hashable {
    let box: String
    let id: Card.ID
  }
  let id: ID
}

/// A type that the library does not mint.
struct Shelfmark: KeyValue {
  static var columnType: ColumnType { .text }
  var text: String
  var datum: Datum { .text(text) }
  init(_ text: String) { self.text = text }
  init(datum: Datum) throws(StoreError) { text = try String(datum: datum) }
}

@Table private struct Volume {
  let id: Shelfmark
  var title: String
}

/// The rows of the table in Amplify's documentation, as Swift declarations.
private enum Identifiers {
  enum Implied {
    @Table struct Customer {
      let id: String.ID
      var firstName: String?
      var lastName: String?
    }
  }
  enum Explicit {
    @Table struct Customer {
      let id: UUID
      var firstName: String?
      var lastName: String?
    }
  }
  enum Text {
    @Table struct Customer {
      let id: String
      var firstName: String?
      var lastName: String?
    }
  }
  enum Number {
    @Table struct Customer {
      let id: Int
      var firstName: String?
      var lastName: String?
    }
  }
  enum Custom {
    @Table struct Customer {
      @Column(primaryKey: true) let customerId: String
      var firstName: String?
      var lastName: String?
    }
  }
  enum Marked {
    @Table struct Customer {
      @Column(primaryKey: true) let id: UUID
      var dob: Date
      var firstName: String?
      var lastName: String?
    }
  }
  enum WithSortKey {
    @Table struct Customer {
      @Selection struct ID: Hashable {
        let id: UUID
        let dob: Date
      }
      let id: ID
      var firstName: String?
      var lastName: String?
    }
  }
  enum InSortKey {
    @Table struct Customer {
      @Selection struct ID: Hashable {
        let country: String
        let id: UUID
      }
      let id: ID
      var firstName: String?
      var lastName: String?
    }
  }
  enum Without {
    @Table struct Customer {
      @Selection struct Key: Hashable {
        let zip: String
        let username: String
      }
      @Column(primaryKey: true) let key: Key
      var firstName: String?
      var lastName: String?
    }
  }
}

/// "Determine when the primary key field is auto-populated upon record creation"
@Suite("Identifiers: what is minted")
struct MintingTests {
  private let dob = Date(timeIntervalSince1970: 946_684_800)

  @Test("an id of a type with another name is minted; one of a type of one's own is given")
  func otherNames() async throws {
    let store = try await Store.temporary(
      models: Memo.self, BookPage.self, Volume.self, Card.self, CardBack.self)
    let memo = try await store.insert(Memo.Draft(title: "a"))
    #expect(memo.id.uuidString.dropFirst(14).first == "7")
    let given = UUID()
    #expect(try await store.insert(Memo.Draft(id: given, title: "b")).id == given)
    let page = try await store.insert(BookPage.Draft(book: "b", text: "t"))
    #expect(page.id.id > 0)
    #expect(try await store.insert(BookPage.Draft(book: "b", id: 7, text: "t")).id.id == 7)
    let draft = Volume.Draft(id: Shelfmark("x"), title: "c")
    #expect(draft.id.text == "x")
    #expect(try await store.insert(draft).id.text == "x")
    #expect(Memo.Draft(memo).id == memo.id)
    #expect(Memo.Draft(title: "d").id == nil)
    let card = try await store.insert(Card.Draft(title: "a"))
    #expect(UUID(uuidString: card.id.description)?.uuidString.lowercased() == card.id.description)
    #expect(try await store.insert(Card.Draft(id: "own", title: "b")).id == "own")
    let back = try await store.insert(CardBack.Draft(box: "b"))
    #expect(UUID(uuidString: back.id.id.description) != nil)
    #expect(Card.Draft(title: "c").id == nil && Card.Draft(card).id == card.id)
  }

  @Test("without any key in the schema, which implies an id: yes, a UUID")
  func impliedID() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("stemma-ids-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: directory) } catch {} }
    let schema = "type Customer @model { firstName: String lastName: String }"
    let made = try Node.create(at: directory.path, schema: schema).schema
    let witness = Witness(try await Store(at: directory, models: Identifiers.Implied.Customer.self))
    let customer = try await witness.expect {
      try await witness.store.insert(Identifiers.Implied.Customer.Draft(firstName: "Ana"))
    } appends: {
      """
      create Customer #1 firstName="Ana"
      """
    } rows: {
      """
      customers id=#1 firstName="Ana"
      """
    }
    #expect(UUID(uuidString: customer.id.description).map { $0.uuid.6 >> 4 } == 7)
    #expect(
      try await witness.store.writer.access { $0.schema.model(named: "Customer") }
        == made.model(named: "Customer"))
  }

  @Test("without a marked key and with an explicit id: yes, a UUID")
  func explicitID() async throws {
    let witness = try await Witness(Identifiers.Explicit.Customer.self)
    let customer = try await witness.expect {
      try await witness.store.insert(Identifiers.Explicit.Customer.Draft(firstName: "Ana"))
    } appends: {
      """
      create Customer #1 firstName="Ana"
      """
    } rows: {
      """
      customers id=#1 firstName="Ana"
      """
    }
    #expect(customer.id.uuid.6 >> 4 == 7)
  }

  @Test("an id of type String is minted, too, as the text of a UUID; one that is given is kept")
  func textID() async throws {
    let witness = try await Witness(Identifiers.Text.Customer.self)
    try await witness.expect {
      try await witness.store.insert(Identifiers.Text.Customer.Draft(firstName: "Ana"))
      try await witness.store.insert(Identifiers.Text.Customer.Draft(id: "x", firstName: "Ben"))
    } appends: {
      """
      create Customer #1 firstName="Ana"
      create Customer x firstName="Ben"
      """
    } rows: {
      """
      customers id=#1 firstName="Ana"
      customers id="x" firstName="Ben"
      """
    }
  }

  @Test("an id of type Int is minted by the node")
  func numberID() async throws {
    let witness = try await Witness(Identifiers.Number.Customer.self)
    let (ana, ben) = try await witness.expect {
      try await witness.store.write { tx in
        (
          try tx.insert(Identifiers.Number.Customer.Draft(firstName: "Ana")),
          try tx.insert(Identifiers.Number.Customer.Draft(firstName: "Ben"))
        )
      }
    } appends: {
      """
      create Customer #1 firstName="Ana"
      create Customer #2 firstName="Ben"
      """
    } rows: {
      """
      customers id=#1 firstName="Ana"
      customers id=#2 firstName="Ben"
      """
    }
    #expect(ben.id == ana.id + 1)
    try await witness.rebuild()
  }

  @Test("minted numbers go on behind those of earlier openings, and differ between nodes")
  func numbersAreUnique() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("stemma-ids-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: directory) } catch {} }
    var ids: [Int] = []
    for _ in 0..<3 {
      let store = try await Store(at: directory, models: Identifiers.Number.Customer.self)
      // The number of a deleted record is not reused.
      let gone = try await store.insert(Identifiers.Number.Customer.Draft(firstName: "Ana"))
      try await store.delete(gone)
      ids.append(gone.id)
      ids.append(try await store.insert(Identifiers.Number.Customer.Draft(firstName: "Ben")).id)
    }
    #expect(ids == ids.sorted() && Set(ids).count == ids.count)
    let other = try await Store.temporary(models: Identifiers.Number.Customer.self)
    let id = try await other.insert(Identifiers.Number.Customer.Draft()).id
    #expect(id >> 27 != ids[0] >> 27)
  }

  @Test("a marked key on another property: no, it is demanded")
  func customKey() async throws {
    let witness = try await Witness(Identifiers.Custom.Customer.self)
    try await witness.expect {
      try await witness.store.insert(Identifiers.Custom.Customer.Draft(customerId: "C-1", firstName: "Ana"))
    } appends: {
      """
      create Customer C-1 firstName="Ana"
      """
    } rows: {
      """
      customers customerId="C-1" firstName="Ana"
      """
    }
  }

  @Test("a marked id: yes")
  func markedID() async throws {
    let witness = try await Witness(Identifiers.Marked.Customer.self)
    try await witness.expect {
      try await witness.store.insert(Identifiers.Marked.Customer.Draft(dob: dob, firstName: "Ana"))
    } appends: {
      """
      create Customer #1 dob="2000-01-01T00:00:00Z" firstName="Ana"
      """
    } rows: {
      """
      customers id=#1 dob="2000-01-01T00:00:00Z" firstName="Ana"
      """
    }
  }

  @Test("an id with a sort key: yes, the other part is demanded")
  func idWithSortKey() async throws {
    let witness = try await Witness(Identifiers.WithSortKey.Customer.self)
    let customer = try await witness.expect {
      try await witness.store.insert(Identifiers.WithSortKey.Customer.Draft(dob: dob, firstName: "Ana"))
    } appends: {
      """
      create Customer id=#1 dob=2000-01-01T00:00:00Z firstName="Ana"
      """
    } rows: {
      """
      customers id=#1 dob="2000-01-01T00:00:00Z" firstName="Ana"
      """
    }
    #expect(
      try await witness.store.find(Identifiers.WithSortKey.Customer.self, customer.id).firstName == "Ana")
  }

  @Test("an id in the sort key: yes")
  func idInSortKey() async throws {
    let witness = try await Witness(Identifiers.InSortKey.Customer.self)
    try await witness.expect {
      try await witness.store.insert(Identifiers.InSortKey.Customer.Draft(country: "CH", firstName: "Ana"))
    } appends: {
      """
      create Customer country=CH id=#1 firstName="Ana"
      """
    } rows: {
      """
      customers country="CH" id=#1 firstName="Ana"
      """
    }
    try await witness.rebuild()
  }

  @Test("a composite key without an id: no, both parts are demanded")
  func withoutID() async throws {
    let witness = try await Witness(Identifiers.Without.Customer.self)
    let customer = try await witness.expect {
      try await witness.store.insert(
        Identifiers.Without.Customer.Draft(zip: "8000", username: "ana", firstName: "Ana"))
    } appends: {
      """
      create Customer zip=8000 username=ana firstName="Ana"
      """
    } rows: {
      """
      customers zip="8000" username="ana" firstName="Ana"
      """
    }
    #expect(customer.key == Identifiers.Without.Customer.Key(zip: "8000", username: "ana"))
  }

  @Test("a key beyond the limit is refused, with model and rule")
  func longKey() async throws {
    let store = try await Store.temporary(models: Identifiers.Custom.Customer.self)
    let longest = String(repeating: "x", count: 4094)
    try await store.insert(Identifiers.Custom.Customer.Draft(customerId: longest))
    let error = await #expect(throws: StoreError.self) {
      try await store.insert(Identifiers.Custom.Customer.Draft(customerId: longest + "x"))
    }
    #expect(error?.description.contains("a key has at most 4096 bytes") == true)
  }
}
