import Testing

@testable import Stemma

/// What structured-queries' article "Primary keyed tables" shows, here.
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
