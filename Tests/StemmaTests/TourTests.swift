import Testing

@testable import Stemma

/// A tour of the library, in the order of its documentation.
@Suite("A tour of the library")
struct TourTests {
  @Test("records, relationships, lazy and eager reads, and setters")
  func relationships() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self, Book.self, Enrollment.self)
    let team = try await store.insert(Team.Draft(mantra: "Go Frontend!"))
    let otherTeam = try await store.insert(Team.Draft(mantra: "Go Fullstack!"))
    var member = try await store.insert(Member.Draft(name: "Tim", team: team))
    #expect(member.teamId == team.id)
    #expect(try await team.members.fetch().map(\.name) == ["Tim"])
    #expect(try await member.team?.mantra == "Go Frontend!")

    member.setTeam(otherTeam)
    try await store.update(member)
    #expect(try await team.members.fetch().isEmpty)
    let eager = try #require(
      try await store.get(
        Team.self, byIdentifier: otherTeam.id, including: { [$0.members, $0.members.team] }))
    #expect(try eager.loaded(\.members).map(\.name) == ["Tim"])
    #expect(try eager.loaded(\.members)[0].loaded(\.team)?.id == otherTeam.id)
    #expect(throws: StoreError.notLoaded(model: "Team", relationship: "members")) {
      try otherTeam.loaded(\.members)
    }

    member.setTeam(nil)
    try await store.update(member)
    #expect(try await store.find(Member.self, member.id).teamId == nil)
    #expect(try await member.team == nil)
  }

  @Test("own keys and keys of several parts")
  func keys() async throws {
    let store = try await Store.temporary(models: Book.self, Enrollment.self)
    try await store.insert(Book(isbn: "978-1", title: "One"))
    #expect(try await store.find(Book.self, "978-1").title == "One")
    let key = Enrollment.ID(courseID: 7, studentID: 3)
    try await store.insert(Enrollment.Draft(courseID: 7, studentID: 3, grade: "A"))
    #expect(try await store.find(Enrollment.self, key).grade == "A")
    await #expect(throws: StoreError.alreadyExists(model: "Book", key: "978-1")) {
      try await store.insert(Book.Draft(isbn: "978-1", title: "Two"))
    }
    await #expect(throws: StoreError.notFound(model: "Book", key: "978-2")) {
      try await store.find(Book.self, "978-2")
    }
  }

  @Test("statements")
  func statements() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    try await Reminder.insert { Reminder.Draft(title: "Get groceries") }.execute(store)
    try await Reminder.insert {
      Reminder.Draft(title: "Water the plants")
      Reminder.Draft(title: "Call Ana")
    }.execute(store)
    let id = try #require(
      try await Reminder.where { $0.title == "Get groceries" }.fetchOne(store)
    ).id
    try await Reminder.find(id).update { $0.isDone = true }.execute(store)
    let open = try await Reminder.where { !$0.isDone }.order { $0.title }.fetchAll(store)
    #expect(open.map(\.title) == ["Call Ana", "Water the plants"])
    try await store.write { tx in
      for reminder in try Reminder.all.fetchAll(tx) { try tx.delete(reminder) }
      try tx.insert(Reminder.Draft(title: "Rest"))
    }
    for try await rows in store.observe(Reminder.all) {
      #expect(rows.map(\.title) == ["Rest"])
      break
    }
  }

  @Test("a copy that was read before another's edit is saved beside it, not over it")
  func staleCopies() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "Rest")).id
    var first = try await store.find(Reminder.self, id)
    var second = try await store.find(Reminder.self, id)
    var third = try await store.find(Reminder.self, id)
    first.title = "Rest well"
    try await store.update(first)
    second.isDone = true
    let merged = try await store.update(second)
    #expect(merged.title == "Rest well")
    #expect(merged.isDone)
    third.title = "Sleep"
    try await store.update(third)
    let open = try await store.writer.access { node in
      var fields: [String?] = []
      try node.conflicts() { fields.append($0.field) }
      return fields
    }
    #expect(open == ["title"])
  }

  @Test("a write that throws leaves nothing, and its values may be saved again")
  func failedWrites() async throws {
    struct Refusal: Error {}
    let store = try await Store.temporary(models: Reminder.self)
    var reminder = try await store.insert(Reminder.Draft(title: "Rest"))
    reminder.isDone = true
    await #expect(throws: Refusal.self) {
      try await store.write { [reminder] tx in
        try tx.update(reminder)
        throw Refusal()
      }
    }
    #expect(try await store.find(Reminder.self, reminder.id).isDone == false)
    #expect(try await store.update(reminder).isDone)
  }
}
