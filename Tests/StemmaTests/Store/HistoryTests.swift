import Testing

@testable import Stemma

@Suite("The past of a store")
struct HistoryTests {
  @Test("a record's events, and the record as it was at each of them")
  func history() async throws {
    let store = try await Store.temporary(options: .init(name: "here"), models: Team.self, Member.self)
    let team = try await store.insert(Team.Draft(mantra: "One"))
    var member = try await store.insert(Member.Draft(name: "Tim", team: team))
    member.name = "Tom"
    member = try await store.update(member)
    member.setTeam(nil)
    member = try await store.update(member)
    try await store.write(author: "ana", message: "gone") { [member] in try $0.delete(member) }
    let events = try await store.history(of: member)
    #expect(events.map(\.operation) == [.create, .update, .unlink, .delete])
    #expect(events.map(\.author) == [nil, nil, nil, "ana"])
    #expect(events[2].relationship == "team")
    #expect(try events[1].value(of: "name", as: String.self) == "Tom")
    #expect(try events[2].value(of: "teamId", as: UUID?.self) == .some(nil))
    let then = try await store.get(Member.self, byIdentifier: member.id, asOf: .event(events[1]))
    #expect(then?.name == "Tom" && then?.teamId == team.id)
    #expect(try await store.get(Member.self, byIdentifier: member.id, asOf: .event(events[3])) == nil)
    await #expect(throws: StoreError.notFromStore(model: "Member")) { try await then?.team }
    // All rows of the tables at that time.
    let names = try await store.asOf(.event(events[0])) { past in
      (try past.fetchAll(Member.all).map(\.name), try past.get(Team.self, byIdentifier: team.id)?.mantra)
    }
    #expect(names.0 == ["Tim"] && names.1 == "One")
    // Going back appends a new event.
    let again = try await store.insert(Member.Draft(#require(then)))
    #expect(again.name == "Tom" && again.id == member.id)
  }

  @Test("as of a time before the first event there is nothing")
  func time() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "Rest")).id
    #expect(
      try await store.get(Reminder.self, byIdentifier: id, asOf: .time(Date(timeIntervalSince1970: 0))) == nil
    )
    for (seconds, isThere) in [
      (1e17, true), (.infinity, true), (-1e17, false), (-.infinity, false), (.nan, false),
    ] {
      let pointInTime = PointInTime.time(Date(timeIntervalSince1970: seconds))
      let found = try await store.get(Reminder.self, byIdentifier: id, asOf: pointInTime)
      #expect((found != nil) == isThere)
    }
    let now = PointInTime.time(Date(timeIntervalSinceNow: 3600))
    #expect(try await store.get(Reminder.self, byIdentifier: id, asOf: now)?.title == "Rest")
    #expect(try await store.asOf(now) { try $0.fetchAll(Reminder.count()) } == [1])
  }

  @Test("a write that names a revision is made on that state or not at all")
  func revisions() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "Rest")).id
    var stale = try await store.find(Reminder.self, id)
    let revision = try await store.revision(of: stale)
    #expect(revision.hasPrefix("1-"))
    try await Reminder.find(id).update { $0.title = "Walk" }.execute(store)
    // The value remains at its revision.
    #expect(try await store.revision(of: stale) == revision)
    var fresh = try await store.find(Reminder.self, id)
    let current = try await store.revision(of: fresh)
    stale.title = "Sleep"
    let (key, unsaved) = (id.uuidString.lowercased(), stale)
    await #expect(
      throws: StoreError.revisionMismatch(model: "Reminder", key: key, expected: revision, current: current)
    ) {
      try await store.update(unsaved, ifRevision: revision)
    }
    await #expect(throws: StoreError.self) {
      try await store.delete(unsaved, ifRevision: revision)
    }
    do { try await store.delete(unsaved, ifRevision: "") } catch let error as StoreError {
      #expect(error.description == "Reminder \(key) is at revision \(current), not at none; read it again")
    }
    fresh.isDone = true
    fresh = try await store.update(fresh, ifRevision: current)
    try await store.delete(fresh, ifRevision: store.revision(of: fresh))
    #expect(try await store.get(Reminder.self, byIdentifier: id) == nil)
  }

  @Test("a stale value that names the current revision is written on top of that, not beside it")
  func currentRevision() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    var stale = try await store.insert(Reminder.Draft(title: "Rest"))
    try await Reminder.find(stale.id).update {
      $0.title = "Walk"
      $0.isDone = true
    }.execute(store)
    stale.title = "Sleep"
    let current = try await store.revision(of: try await store.find(Reminder.self, stale.id))
    let updated = try await store.update(stale, ifRevision: current)
    #expect(updated.title == "Sleep" && updated.isDone)
    #expect(try await store.conflicts().isEmpty)
    try await store.delete(stale, ifRevision: try await store.revision(of: updated))
    #expect(try await store.conflicts().isEmpty)
  }

  @Test("a revision is read without a commit, by a store that only reads, too")
  func readOnlyRevision() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let old = try await store.insert(Reminder.Draft(title: "Rest"))
    let reader = try await Store(at: store.directory, options: .init(isReadOnly: true), models: Reminder.self)
    let same = try await reader.find(Reminder.self, old.id)
    try await Reminder.find(old.id).update { $0.title = "Walk" }.execute(store)
    let new = try await reader.find(Reminder.self, old.id)
    #expect(try await reader.revision(of: same) == store.revision(of: old))
    #expect(try await reader.revision(of: new) != reader.revision(of: same))
    try await store.delete(new)
    await #expect(throws: StoreError.self) { try await reader.revision(of: same) }
  }
}
