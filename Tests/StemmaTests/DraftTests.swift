import Testing

@testable import Stemma

private enum Numbered {
  @Table struct Reminder {
    // Automatically inferred '@Column(primaryKey: true)'
    let id: Int
    var title: String
  }
}

/// The examples of structured-queries' article "Primary keyed tables" with this library.
@Suite("Primary keyed tables")
struct PrimaryKeyedTableTests {
  @Test("Specifying a primary key: a marked property, or one that is named id")
  func primaryKey() async throws {
    let witness = try await Witness(Book.self, Reminder.self)
    try await witness.expect {
      try await witness.store.insert(Book(isbn: "978-1", title: "One"))
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

  @Test("Primary key, drafts, updates and deletions with a number as the id")
  func numbers() async throws {
    typealias Reminder = Numbered.Reminder
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    let draft = Reminder.Draft(title: "Get groceries")
    #expect(draft.id == nil)
    let made = try await witness.expect {
      try await Reminder.insert(draft).returning(\.self).fetchOne(store)
    } appends: {
      """
      create Reminder #1 title="Get groceries"
      """
    } rows: {
      """
      reminders id=#1 title="Get groceries"
      """
    }
    var reminder = try #require(made)
    try await witness.expect {
      reminder.title = "Get food"
      reminder = try #require(try await Reminder.update(reminder).returning(\.self).fetchOne(store))
      try await Reminder.find(reminder.id).update { $0.title += "!" }.execute(store)
      try await Reminder.upsert { Reminder.Draft(id: 7, title: "Rest") }.execute(store)
    } appends: {
      """
      update Reminder #1 title="Get food"
      update Reminder #1 title="Get food!"
      create Reminder 7 title="Rest"
      """
    } rows: {
      """
      reminders id=7 title="Rest"
      reminders id=#1 title="Get food!"
      """
    }
    try await witness.expect {
      try await Reminder.find([7, reminder.id]).delete().execute(store)
    } appends: {
      """
      delete Reminder 7
      delete Reminder #1
      """
    } rows: {
      ""
    }
  }

  @Test("Drafts: the id is left out and minted")
  func drafts() async throws {
    let witness = try await Witness(Reminder.self)
    let draft = Reminder.Draft(title: "Get groceries")
    #expect(draft.id == nil)
    try await witness.expect {
      try await Reminder.insert(draft).execute(witness.store)
    } appends: {
      """
      create Reminder #1 isDone=false title="Get groceries"
      """
    } rows: {
      """
      reminders id=#1 title="Get groceries" isDone=0
      """
    }
    try await witness.rebuild()
  }
}
