import Foundation
import StemmaNode
import StemmaSchema
import Testing

@testable import Stemma

/// Models with the same names as others, as another version of the program declares them.
enum Older {
  @Table("notes") struct Note {
    let id: UUID
    var text: String
  }
}

enum Newer {
  @Table("notes") struct Note {
    let id: UUID
    var text: String
    var color: String?
    var stars = 0
  }
}

enum Foreign {
  @Table("notes") struct Note {
    @Column(primaryKey: true) let number: Int
    var text: String
  }
}

enum Retyped {
  @Table("notes") struct Note {
    let id: UUID
    var text: Int
  }
}

@Suite("Opening a store")
struct OpeningTests {
  private func directory() -> URL {
    FileManager.default.temporaryDirectory.appendingPathComponent("stemma-\(UUID().uuidString)")
  }

  @Test("an older program keeps what a newer one has declared, and the other way round")
  func versions() async throws {
    let directory = directory()
    let older = try await Store(at: directory, models: Older.Note.self)
    let id = try await older.insert(Older.Note.Draft(text: "one")).id
    let newer = try await Store(at: directory, models: Newer.Note.self)
    var note = try await newer.find(Newer.Note.self, id)
    #expect(note.color == nil && note.stars == 0)
    note.color = "red"
    note.stars = 3
    try await newer.update(note)
    // The open store continues with the changed schema.
    var old = try await older.find(Older.Note.self, id)
    old.text = "two"
    try await older.update(old)
    try await older.insert(Older.Note.Draft(text: "three"))
    // The older program opens the node again and hides nothing.
    let again = try await Store(at: directory, models: Older.Note.self)
    try await again.insert(Older.Note.Draft(text: "four"))
    let notes = try await Newer.Note.all.fetchAll(newer)
    #expect(notes.map(\.text) == ["two", "three", "four"])
    #expect(notes.map(\.color) == ["red", nil, nil])
    #expect(notes.map(\.stars) == [3, 0, 0])
    try await statementsSeeDefaults(newer)
    try FileManager.default.removeItem(at: directory)
  }

  /// For rows older than a column, statements use the same values as reads.
  private func statementsSeeDefaults(_ store: Store) async throws {
    typealias Note = Newer.Note
    #expect(try await Note.where { $0.stars == 0 }.fetchAll(store).map(\.text) == ["three", "four"])
    #expect(try await Note.where { $0.stars < 3 }.fetchCount(store) == 2)
    #expect(try await Note.where { $0.stars.in([0, 7]) }.fetchCount(store) == 2)
    #expect(try await Note.order { $0.stars }.fetchAll(store).map(\.text) == ["three", "four", "two"])
    #expect(try await Note.select { $0.stars }.fetchAll(store) == [3, 0, 0])
    #expect(try await Note.select { $0.stars.min() }.fetchOne(store) == 0)
    #expect(try await Note.where { $0.color == nil }.fetchCount(store) == 2)
    let groups = try await Note.group { $0.stars }.select { ($0.stars, $0.id.count()) }.fetchAll(store)
    #expect(groups.map(\.0) == [0, 3] && groups.map(\.1) == [2, 1])
    // A join without a matching row gives nil, not the default.
    let pairs = try await Note.all.leftJoin(Note.self) { $0.text == $1.color }.select { ($0.stars, $1.stars) }
      .fetchAll(store)
    #expect(pairs.map(\.0) == [3, 0, 0] && pairs.map(\.1) == [nil, nil, nil])
    // Setting a field to its default is no change. Statements in a commit also see defaults.
    let before = try await store.status().events
    let seen = try await store.write { tx in
      try Note.where { $0.stars == 0 }.update { $0.stars = 0 }.execute(tx)
      return try Note.where { $0.stars == 0 }.fetchCount(tx)
    }
    #expect(try await store.status().events == before)
    #expect(seen == 2)
  }

  @Test("what cannot hold for the events that are there is refused with both sides named")
  func refusals() async throws {
    let directory = directory()
    let store = try await Store(at: directory, models: Older.Note.self)
    try await store.insert(Older.Note.Draft(text: "one"))
    func refusal(_ open: () async throws -> Store) async -> String {
      do {
        _ = try await open()
        return "nothing"
      } catch StoreError.models(let what) { return what } catch { return "\(error)" }
    }
    let key = await refusal { try await Store(at: directory, models: Foreign.Note.self) }
    #expect(key.contains("Note") && key.contains("(id: ID)") && key.contains("(number: Int)"), "\(key)")
    let type = await refusal { try await Store(at: directory, models: Retyped.Note.self) }
    #expect(type.contains("Note.text") && type.contains("from String to Int"), "\(type)")
    let two = await refusal { try await Store(at: directory, models: Older.Note.self, Newer.Note.self) }
    #expect(two.contains("two types declare the model Note"), "\(two)")
    try FileManager.default.removeItem(at: directory)
  }

  @Test("a field that the node requires and the program does not know is said")
  func requiredField() async throws {
    let directory = directory()
    _ = try Node.create(
      at: directory.path, schema: "type Note @model { id: ID! text: String! author: String! }")
    await #expect(
      throws: StoreError.models(
        "Note.author is required in the node's schema, and the type Note has no property for it; add one")
    ) { try await Store(at: directory, models: Older.Note.self) }
    try FileManager.default.removeItem(at: directory)
  }

  @Test("an index of the model names properties of a group")
  func indexedGroup() async throws {
    let store = try await Store.temporary(models: Indexed.Place.self)
    let text = SDL.print(try await store.writer.access { $0.schema })
    let index = #"@index(name: "byCityAndNumber", sortKeyFields: ["number"])"#
    #expect(text.contains("  city: String! \(index)\n"), "\(text)")
  }

  @Test("stricter types, enums, indexes, relationships and models of the node stay")
  func strictNode() async throws {
    let directory = directory()
    let schema = """
      enum Mood { GOOD BAD }
      type Note @model {
        id: ID!
        text: AWSEmail! @index(name: "byText")
        mood: Mood
        owner: Owner @belongsTo(references: ["ownerId"])
        ownerId: ID
      }
      type Owner @model { id: ID! notes: [Note] @hasMany(references: ["ownerId"]) }
      """
    let made = try Node.create(at: directory.path, schema: schema)
    let store = try await Store(at: directory, models: Older.Note.self)
    let after = try await store.writer.access { $0.schema }
    #expect(
      after.model(named: "Note")
        == made.schema.model(named: "Note").map { model in
          var model = model
          model.tableName = "notes"
          return model
        })
    #expect(after.model(named: "Owner") == made.schema.model(named: "Owner"))
    await #expect(throws: StoreError.self) { try await store.insert(Older.Note.Draft(text: "no address")) }
    try await store.insert(Older.Note.Draft(text: "ana@example.com"))
    try FileManager.default.removeItem(at: directory)
  }

  @Test("a join model that a schema implies stays implied")
  func impliedJoin() async throws {
    let directory = directory()
    let schema = """
      type Note @model { id: ID! text: String! labels: [Label] @manyToMany(relationName: "NoteLabels") }
      type Label @model { id: ID! notes: [Note] @manyToMany(relationName: "NoteLabels") }
      """
    let made = try Node.create(at: directory.path, schema: schema)
    let store = try await Store(at: directory, models: Older.Note.self)
    #expect(try await store.writer.access { $0.schema } == made.schema)
    try FileManager.default.removeItem(at: directory)
  }

  @Test("for reading only: rows and relationships, no writes, nothing applied")
  func readOnly() async throws {
    let directory = directory()
    let store = try await Store(at: directory, models: Older.Note.self)
    try await store.insert(Older.Note.Draft(text: "one"))
    let reading = try await Store(at: directory, options: .init(isReadOnly: true), models: Older.Note.self)
    #expect(try await Older.Note.all.fetchAll(reading).map(\.text) == ["one"])
    await #expect(throws: StoreError.readOnly) { try await reading.insert(Older.Note.Draft(text: "two")) }
    await #expect(throws: StoreError.readOnly) { try await reading.sync() }
    await #expect(
      throws: StoreError.models("the node has no field Note.color, and the store was opened for reading only")
    ) { try await Store(at: directory, options: .init(isReadOnly: true), models: Newer.Note.self) }
    let missing = self.directory()
    await #expect(throws: StoreError.self) {
      try await Store(at: missing, options: .init(isReadOnly: true), models: Older.Note.self)
    }
    #expect(!FileManager.default.fileExists(atPath: missing.path))
    try FileManager.default.removeItem(at: directory)
  }

  @Test("any wait is one", arguments: [-.infinity, -1, 0, 1e12, .infinity, .nan])
  func waits(_ wait: Double) async throws {
    let store = try await Store.temporary(options: .init(wait: wait), models: Older.Note.self)
    try await store.insert(Older.Note.Draft(text: "one"))
    try await store.addRemote("me", at: store.directory)
    #expect(try await Older.Note.all.fetchCount(store) == 1)
  }

  @Test("a place where no store can be made is reported in words")
  func places() async throws {
    let directory = directory()
    let deep = directory.appendingPathComponent("a/b/")
    await #expect(
      throws: StoreError.failed(
        .cannotCreate, "there is no directory \(directory.path)/a to make the store in; make that first")
    ) { try await Store(at: deep, models: Older.Note.self) }
    try Data().write(to: directory)
    await #expect(
      throws: StoreError.failed(
        .cannotCreate, "\(directory.path) is a file; a store is a directory: name another one")
    ) { try await Store(at: directory, models: Older.Note.self) }
    try FileManager.default.removeItem(at: directory)
    await #expect(
      throws: StoreError.failed(
        .noNode, "there is no node in \(directory.path); a store that is opened for writing makes one")
    ) { try await Store(at: directory, options: .init(isReadOnly: true), models: Older.Note.self) }
  }

  @Test("a place that cannot be reached is reported as such")
  func unreachablePlaces() async throws {
    let loop = directory()
    let files = FileManager.default
    try files.createSymbolicLink(at: loop, withDestinationURL: loop)
    defer { #expect(throws: Never.self) { try files.removeItem(at: loop) } }
    let error = await #expect(throws: StoreError.self) {
      try await Store(at: loop.appendingPathComponent("a/b"), models: Older.Note.self)
    }
    let words = "\(error as Any)"
    #expect(words.contains("symbolic link") && !words.contains("there is no directory"), "\(words)")
  }

  @Test("models that others lead to need not be named")
  func reachableModels() async throws {
    let store = try await Store.temporary(models: Team.self)
    let team = try await store.insert(Team.Draft(mantra: "One"))
    try await store.insert(Member.Draft(name: "Tim", team: team))
    #expect(try await team.members.count() == 1)
  }

  @Test("a type that was not declared is neither read nor written, and both say so")
  func undeclared() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    func refusal(_ body: () async throws -> Void) async -> String {
      do {
        try await body()
        return "nothing"
      } catch StoreError.models(let what) { return what } catch { return "\(error)" }
    }
    let reads = [
      await refusal { _ = try await Book.all.fetchAll(store) },
      await refusal { _ = try await store.get(Book.self, byIdentifier: "1") },
      await refusal { _ = try await store.read { try Book.count().fetchAll($0) } },
      await refusal { _ = try await store.write { try Book.count().fetchAll($0) } },
    ]
    let what = "no model has the table books: it was not among those that the store was opened with"
    #expect(reads == Array(repeating: what, count: 4))
    #expect(
      await refusal { try await store.insert(Book(isbn: "1", title: "One")) }
        == "Book was not among the models that the store was opened with")
  }

  @Test("a transaction that outlives its closure reads and writes nothing")
  func endedTransactions() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    // The compiler forbids this escape. If it is forced, the call throws.
    nonisolated(unsafe) var kept: [Store.ReadTransaction] = []
    nonisolated(unsafe) var write: Store.Transaction?
    try await store.write { tx in
      write = tx
      kept.append(tx)
    }
    try await store.read { kept.append($0) }
    for transaction in kept {
      #expect(throws: StoreError.ended) { try Reminder.all.fetchAll(transaction) }
      #expect(throws: StoreError.ended) { try transaction.get(Reminder.self, byIdentifier: UUID()) }
    }
    #expect(throws: StoreError.ended) { try write?.insert(Reminder.Draft(title: "late")) }
    #expect(try await Reminder.all.fetchCount(store) == 0)
  }

  @Test("what is wrong with declared models is said of model and property")
  func wrongModels() async throws {
    let mail = await wrong(Wrong.Child.self)
    #expect(mail?.hasPrefix("the declared models are wrong: Child.mail: ") == true, "\(mail ?? "")")
  }

  @Test("a join model that does not belong to both sides is refused")
  func wrongJoin() async throws {
    #expect(
      await wrong(Wrong.Reader.self)
        == "Reader.books leads through Loan, which does not belong to both Reader and Novel")
    #expect(
      await wrong(Wrong.Friend.self)
        == "Friend.friends leads through Friendship, which does not belong to both Friend and Friend, to Friend by `none`"
    )
  }

  private func wrong(_ model: any Table.Type) async -> String? {
    do { _ = try await Store.temporary(models: [model]) } catch StoreError.models(let what) {
      return what
    } catch { return "\(error)" }
    return nil
  }
}

/// Models that compile but that no store opens.
enum Wrong {
  @Table struct Child {
    let id: UUID
    var mail: String.AWSEmail = "nowhere"
  }

  @Table struct Reader {
    let id: UUID
    @ManyToMany(through: Loan.self) var books: Related<Novel>
  }
  @Table struct Novel { let id: UUID }
  @Table struct Loan {
    @Selection struct ID: Hashable {
      let readerId: UUID
      let other: Int
    }
    let id: ID
    @BelongsTo("readerId") var reader: Reader
  }

  @Table struct Friend {
    let id: UUID
    @ManyToMany(through: Friendship.self, by: "none") var friends: Related<Friend>
  }
  @Table struct Friendship {
    @Selection struct ID: Hashable {
      let oneId: UUID
      let otherId: UUID
    }
    let id: ID
    @BelongsTo("oneId") var one: Friend
    @BelongsTo("otherId") var other: Friend
  }
}

private enum Indexed {
  @Table @Index("city", "number") struct Place {
    @Selection struct Address {
      var city: String
      var number: Int
    }
    let id: UUID
    var address: Address
  }
}
