import Testing

@testable import Stemma

/// The events that changing statements append, and the resulting rows.
@Suite("Statements that change")
struct ChangeStatementTests {
  @Test("Primary keyed tables: specifying a primary key")
  func ownKey() async throws {
    let witness = try await Witness(Book.self)
    try await witness.expect {
      try await Book.insert { Book(isbn: "978-1", title: "One") }.execute(witness.store)
    } appends: {
      """
      create Book 978-1 title="One"
      """
    } rows: {
      """
      books isbn="978-1" title="One"
      """
    }
  }

  @Test("Primary keyed tables: drafts, updates and deletions")
  func articles() async throws {
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    try await witness.expect {
      try await Reminder.insert(Reminder.Draft(title: "Get groceries")).execute(store)
      try await Reminder.insert {
        Reminder.Draft(title: "Take a walk")
        Reminder.Draft(title: "Get haircut", isDone: true)
      }.execute(store)
    } appends: {
      """
      create Reminder #1 isDone=false title="Get groceries"
      create Reminder #2 isDone=false title="Take a walk"
      create Reminder #3 isDone=true title="Get haircut"
      """
    } rows: {
      """
      reminders id=#1 title="Get groceries" isDone=0
      reminders id=#2 title="Take a walk" isDone=0
      reminders id=#3 title="Get haircut" isDone=1
      """
    }
    let reminders = try await Reminder.all.fetchAll(store)
    // update(row), find(id).update { }, find([ids]).update { }
    try await witness.expect {
      var first = reminders[0]
      first.title = "Get food"
      try await Reminder.update(first).execute(store)
      try await Reminder.find(reminders[1].id).update { $0.isDone.toggle() }.execute(store)
      try await Reminder.find([reminders[0].id, reminders[2].id]).update { $0.isDone = true }.execute(store)
    } appends: {
      """
      update Reminder #1 title="Get food"
      update Reminder #2 isDone=true
      update Reminder #1 isDone=true
      """
    } rows: {
      """
      reminders id=#1 title="Get food" isDone=1
      reminders id=#2 title="Take a walk" isDone=1
      reminders id=#3 title="Get haircut" isDone=1
      """
    }
    // upsert { draft } of a row, and of one that is new
    try await witness.expect {
      var draft = Reminder.Draft(reminders[2])
      draft.title = "Get a haircut"
      try await Reminder.upsert { [draft, Reminder.Draft(title: "Rest")] }.execute(store)
    } appends: {
      """
      update Reminder #3 title="Get a haircut"
      create Reminder #4 isDone=false title="Rest"
      """
    }
    // delete(row), find(id).delete(), where { }.delete()
    try await witness.expect {
      try await Reminder.delete(reminders[0]).execute(store)
      try await Reminder.find(reminders[1].id).delete().execute(store)
      try await Reminder.where { $0.title.hasPrefix("Get") }.delete().execute(store)
    } appends: {
      """
      delete Reminder #1
      delete Reminder #2
      delete Reminder #3
      """
    } rows: {
      """
      reminders id=#4 title="Rest" isDone=0
      """
    }
  }

  @Test("a change gives what it leaves")
  func returning() async throws {
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    let rest = try #require(
      try await witness.expect {
        try await Reminder.insert(Reminder.Draft(title: "Rest")).returning(\.self).fetchOne(store)
      } appends: {
        """
        create Reminder #1 isDone=false title="Rest"
        """
      })
    #expect(rest.title == "Rest")
    let ids = try await witness.expect {
      try await Reminder.insert {
        Reminder.Draft(title: "Walk")
        Reminder.Draft(title: "Run")
      }.returning(\.id).fetchAll(store)
    } appends: {
      """
      create Reminder #2 isDone=false title="Walk"
      create Reminder #3 isDone=false title="Run"
      """
    }
    #expect(ids == ids.sorted { $0.uuidString < $1.uuidString })
    try await witness.expect {
      let titles = try await Reminder.find(ids).update { $0.title += "!" }
        .returning { ($0.title, $0.isDone) }.fetchAll(store)
      #expect(titles.map(\.0) == ["Walk!", "Run!"])
    } appends: {
      """
      update Reminder #2 title="Walk!"
      update Reminder #3 title="Run!"
      """
    }
    // A returned row is as current as a fetched one, and can be saved again.
    try await witness.expect {
      var again = try #require(
        try await Reminder.upsert { Reminder.Draft(rest) }.returning(\.self).fetchOne(store))
      again.isDone = true
      #expect(try await Reminder.update(again).returning(\.isDone).fetchOne(store) == true)
    } appends: {
      """
      update Reminder #1 isDone=true
      """
    } rows: {
      """
      reminders id=#1 title="Rest" isDone=1
      reminders id=#2 title="Walk!" isDone=0
      reminders id=#3 title="Run!" isDone=0
      """
    }
    try await witness.expect {
      let gone = try await Reminder.delete().returning(\.title).fetchAll(store)
      #expect(gone == ["Rest", "Walk!", "Run!"])
    } appends: {
      """
      delete Reminder #1
      delete Reminder #2
      delete Reminder #3
      """
    } rows: {
      ""
    }
  }

  @Test("where a key is taken, a closure says what becomes of the record")
  func conflicts() async throws {
    let witness = try await Witness(Book.self)
    let store = witness.store
    try await Book.insert { Book(isbn: "1", title: "One") }.execute(store)
    try await witness.expect {
      try await Book.insert {
        Book.Draft(isbn: "1", title: "Uno")
        Book.Draft(isbn: "2", title: "Due")
      } onConflictDoUpdate: { book, draft in
        book.title += " / \(draft.title)"
      }.execute(store)
    } appends: {
      """
      update Book 1 title="One / Uno"
      create Book 2 title="Due"
      """
    }
    await #expect(throws: StoreError.alreadyExists(model: "Book", key: "2")) {
      try await Book.insert {
        Book.Draft(isbn: "3", title: "Tre")
        Book.Draft(isbn: "2", title: "Due")
      }.execute(store)
    }
    #expect(try await Book.select { $0.isbn }.fetchAll(store) == ["1", "2"])
  }

  @Test("a change of many rows is one commit with one event for each that differs")
  func sets() async throws {
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    try await Reminder.insert { (1...5).map { Reminder.Draft(title: "\($0)", isDone: $0 > 3) } }.execute(
      store)
    try await witness.expect {
      try await Reminder.update { $0.isDone = true }.execute(store)
    } appends: {
      """
      update Reminder #1 isDone=true
      update Reminder #2 isDone=true
      update Reminder #3 isDone=true
      """
    }
    struct Refusal: Error {}
    try await witness.expect {
      await #expect(throws: Refusal.self) {
        try await Reminder.update { reminder in
          reminder.isDone = false
          if reminder.title == "4" { throw Refusal() }
        }.execute(store)
      }
    } appends: {
      ""
    }
    try await witness.rebuild()
  }

  @Test("deleting rows of which one takes others along")
  func cascade() async throws {
    let witness = try await Witness(Worker.self, Chore.self)
    let store = witness.store
    try await store.write { tx in
      try tx.insert(Worker(id: 1, name: "Ana", bossId: nil))
      try tx.insert(Worker(id: 2, name: "Ben", bossId: 1))
    }
    try await witness.expect {
      try await Worker.delete().execute(store)
    } appends: {
      """
      unlink Worker 2 boss: bossId=null
      delete Worker 1
      delete Worker 2
      """
    }
    // The second deletion has seen the effect of the first.
    #expect(try await store.conflicts().map(\.key) == [])
    try await store.write { tx in
      try tx.insert(Worker(id: 1, name: "Ana", bossId: nil))
      try tx.insert(Worker(id: 2, name: "Ben", bossId: 1))
    }
    #expect(try await Worker.delete().returning(\.name).fetchAll(store) == ["Ana", "Ben"])
    #expect(try await store.conflicts().map(\.key) == [])
  }
}
