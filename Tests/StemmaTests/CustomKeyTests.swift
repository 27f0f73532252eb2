import Foundation
import Testing

@testable import Stemma

private enum Books {
  enum Standard {
    @Table struct Book {
      let id: UUID
      var title: String
      var description: String?
    }
  }
  enum Custom {
    @Table struct Book {
      @Column(primaryKey: true) let isbn: String
      var title: String
      var description: String?
    }
  }
  enum Both {
    @Table struct Book {
      @Column(primaryKey: false) let id: Int
      @Column(primaryKey: true) let isbn: String
    }
  }
  enum Composite {
    @Table struct Book {
      @Selection struct ID: Hashable {
        let isbn: String
        let title: String
      }
      @Column(primaryKey: true) let key: ID
      var description: String?
    }
  }
}

/// "Customize primary keys" of Amplify's documentation.
@Suite("Customize primary keys")
struct CustomKeyTests {
  @Test("A schema with the typical id field")
  func standard() async throws {
    let witness = try await Witness(Books.Standard.Book.self)
    let store = witness.store
    let book = try await witness.expect {
      try await store.insert(Books.Standard.Book.Draft(title: "Stemmatics"))
    } appends: {
      """
      create Book #1 title="Stemmatics"
      """
    } rows: {
      """
      books id=#1 title="Stemmatics"
      """
    }
    #expect(try await store.get(Books.Standard.Book.self, byIdentifier: book.id)?.title == "Stemmatics")
  }

  @Test("a field `id` beside the key is a column like others")
  func besideAnID() async throws {
    let witness = try await Witness(Books.Both.Book.self)
    try await witness.expect {
      try await witness.store.insert(Books.Both.Book.Draft(isbn: "A-1", id: 7))
    } appends: {
      """
      create Book A-1 id=7
      """
    } rows: {
      """
      books isbn="A-1" id=7
      """
    }
    #expect(try await witness.store.find(Books.Both.Book.self, "A-1").id == 7)
    try await witness.rebuild()
  }

  @Test("Adding @primaryKey to a field")
  func custom() async throws {
    let witness = try await Witness(Books.Custom.Book.self)
    let store = witness.store
    try await witness.expect {
      try await store.insert(Books.Custom.Book.Draft(isbn: "A-1", title: "Stemmatics"))
    } appends: {
      """
      create Book A-1 title="Stemmatics"
      """
    } rows: {
      """
      books isbn="A-1" title="Stemmatics"
      """
    }
    var book = try await store.find(Books.Custom.Book.self, "A-1")
    book.description = "about trees"
    try await witness.expect { [book] in
      try await store.update(book)
    } appends: {
      """
      update Book A-1 description="about trees"
      """
    } rows: {
      """
      books isbn="A-1" title="Stemmatics" description="about trees"
      """
    }
    try await witness.expect {
      try await store.delete(Books.Custom.Book.self, "A-1")
    } appends: {
      """
      delete Book A-1
      """
    } rows: {
      ""
    }
  }

  @Test("A composite key")
  func composite() async throws {
    let witness = try await Witness(Books.Composite.Book.self)
    let store = witness.store
    try await witness.expect {
      try await store.insert(
        Books.Composite.Book.Draft(isbn: "A-1", title: "#1 of \"two\"", description: "x"))
    } appends: {
      """
      create Book isbn=A-1 'title=#1 of "two"' description="x"
      """
    } rows: {
      #"""
      books isbn="A-1" title="#1 of \"two\"" description="x"
      """#
    }
    let key = Books.Composite.Book.ID(isbn: "A-1", title: "#1 of \"two\"")
    #expect(try await store.get(Books.Composite.Book.self, byIdentifier: key)?.description == "x")
    try await witness.rebuild()
  }
}

/// A model before and after the change.
private enum Before {
  @Table struct Note {
    let id: Int
    var body: String
  }
}
private enum After {
  @Table struct Note {
    let id: Int
    @Column("body") var text: String
    @Column(as: [String]?.JSONRepresentation.self) var tags: [String]?
    var stars = 3
  }
}

@Table(policy: .optimistic) private struct Stamped {
  let id: UUID
  var text: String?
  var createdAt: Date
  var updatedAt: Date?
}

@Suite("Names of columns, and what a model gains")
struct ColumnNameTests {
  @Test("a property that was renamed keeps its column; new ones with a default apply")
  func renamed() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("stemma-names-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: directory) } catch {} }
    do {
      let store = try await Store(at: directory, models: Before.Note.self)
      try await store.insert(Before.Note.Draft(id: 1, body: "kept"))
    }
    let witness = Witness(try await Store(at: directory, models: After.Note.self))
    let store = witness.store
    try await witness.expect {
      try await store.insert(After.Note.Draft(id: 2, text: "new", tags: ["a"]))
    } appends: {
      """
      create Note 2 body="new" stars=3 tags="[\\"a\\"]"
      """
    }
    let found = try await After.Note.where { $0.text == "kept" }.fetchAll(store)
    #expect(found.map(\.text) == ["kept"])
    #expect(found.map(\.stars) == [3])
    var old = found[0]
    old.tags = ["b"]
    try await witness.expect { [old] in
      try await store.update(old)
    } appends: {
      """
      update Note 1 tags="[\\"b\\"]"
      """
    }
  }

  @Test("the node sets createdAt and updatedAt, also where a create names every field")
  func maintained() async throws {
    let store = try await Store.temporary(models: Stamped.self)
    let stamped = try await store.insert(Stamped.Draft(text: "a"))
    #expect(stamped.updatedAt == stamped.createdAt)
    let given = Date(timeIntervalSince1970: 0)
    #expect(try await store.insert(Stamped.Draft(createdAt: given)).createdAt == given)
    let again = try await store.upsert(Stamped.Draft(id: stamped.id, text: "b"))
    #expect(again.text == "b" && again.createdAt == stamped.createdAt)
  }
}
