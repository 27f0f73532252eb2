import Observation
import StemmaSimulation
import Synchronization
import Testing

@testable import Stemma

enum Graded {
  enum Grade: String, ColumnValue {
    case low, high
  }
  @Table struct Task {
    let id: UUID
    var grade: Grade
  }
  /// The same model in a program that knows more grades.
  @Table(model: "Task") struct AnyTask {
    let id: UUID
    var grade: String
  }
}

@Suite("Observing a store")
struct ObservationTests {
  @Test("an element now, and one for each commit that changes the rows; others go unnoticed")
  func rows() async throws {
    let store = try await Store.temporary(models: Reminder.self, Book.self)
    var open = store.observe(Reminder.where { !$0.isDone }.order { $0.title }).makeAsyncIterator()
    #expect(try await open.next()?.isEmpty == true)
    let rest = try await store.insert(Reminder.Draft(title: "Rest"))
    #expect(try await open.next()?.map(\.title) == ["Rest"])
    // Changes of another table, or of a row outside of the statement, cause no element.
    try await store.insert(Book(isbn: "1", title: "One"))
    try await store.insert(Reminder.Draft(title: "Done", isDone: true))
    try await store.write { tx in
      try tx.insert(Reminder.Draft(title: "Sleep"))
      try tx.insert(Reminder.Draft(title: "Walk"))
    }
    #expect(try await open.next()?.map(\.title) == ["Rest", "Sleep", "Walk"])
    try await Reminder.find(rest.id).update { $0.isDone = true }.execute(store)
    #expect(try await open.next()?.map(\.title) == ["Sleep", "Walk"])
  }

  @Test(
    "who takes each element before the next commit gets one for each that changes the rows, and none for others",
    arguments: 1...4)
  func eachCommit(seed: UInt64) async throws {
    print("seed \(seed)")
    var chance = SplitMix64(seed: seed)
    let store = try await Store.temporary(models: Reminder.self, Book.self)
    let peer = try await Store.temporary(models: Reminder.self, Book.self)
    let query = Reminder.where { !$0.isDone }.order { $0.title }.limit(4)
    // Elements are collected as they come, so that an unexpected one is noticed.
    let (taken, continuation) = AsyncStream.makeStream(of: [String].self)
    let task = Task {
      for try await rows in store.observe(query) { continuation.yield(rows.map(\.title)) }
      continuation.finish()
    }
    var elements = taken.makeAsyncIterator()
    var shown: [String] = []
    #expect(await elements.next() == shown)
    var (changes, others) = (0, 0)
    for step in 1...80 {
      if chance.below(6) == 0 {
        for _ in 0..<chance.below(3) { try await peer.insert(chance.reminder(step)) }
        try await store.sync(with: peer)
      } else {
        let some = try await chance.some(of: Reminder.all.fetchAll(store))
        let commit = chance.commit(step, some)
        try await store.write(commit)
      }
      // Titles are unique, so different rows have different titles.
      let now = try await query.fetchAll(store).map(\.title)
      guard now != shown else {
        others += 1
        continue
      }
      changes += 1
      shown = now
      try #require(await elements.next() == shown, "\(seed).\(step)")
    }
    #expect(changes > 20 && others > 20)
    task.cancel()
    try await task.value
    #expect(await elements.next() == nil)
  }

  @Test("columns and counts can be observed like rows")
  func columns() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    var count = store.observe(Reminder.count()).makeAsyncIterator()
    #expect(try await count.next() == [0])
    try await store.insert(Reminder.Draft(title: "Rest"))
    #expect(try await count.next() == [1])
  }

  @Test("commits of another store on the same directory, and a rebuild, are noticed")
  func others() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let other = try await Store(at: store.directory, models: Reminder.self)
    var rows = store.observe(Reminder.all).makeAsyncIterator()
    #expect(try await rows.next()?.isEmpty == true)
    try await other.insert(Reminder.Draft(title: "Rest"))
    #expect(try await rows.next()?.map(\.title) == ["Rest"])
    _ = try await other.writer.access { node in try node.rebuild { _, _ in } }
    try await other.insert(Reminder.Draft(title: "Sleep"))
    #expect(try await rows.next()?.map(\.title) == ["Rest", "Sleep"])
  }

  @Test("events come once each, in the order of the log, others' too")
  func events() async throws {
    let store = try await Store.temporary(options: .init(name: "here"), models: Reminder.self)
    let peer = try await Store.temporary(options: .init(name: "there"), models: Reminder.self)
    try await store.insert(Reminder.Draft(title: "before"))
    var events = try await store.observeEvents().makeAsyncIterator()
    var reminder = try await store.write(author: "ana", message: "why") {
      try $0.insert(Reminder.Draft(title: "Rest"))
    }
    reminder.title = "Walk"
    try await store.update(reminder)
    try await peer.insert(Reminder.Draft(title: "Sleep"))
    try await store.sync(with: peer)
    let first = try #require(try await events.next())
    #expect(
      first.operation == .create && first.author == "ana" && first.message == "why" && first.origin == "here")
    #expect(try first.value(of: "title", as: String.self) == "Rest")
    let second = try #require(try await events.next())
    #expect(second.operation == .update && second.fields.count == 1)
    #expect(try await events.next()?.origin == "there")
    // Starts after an event.
    var later = try await store.observeEvents(after: first).makeAsyncIterator()
    #expect(try await later.next()?.name == second.name)
  }

  @Test("conflicts come as they arise and go")
  func conflicts() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "Rest")).id
    var open = store.observeConflicts().makeAsyncIterator()
    #expect(try await open.next()?.isEmpty == true)
    var (first, second) = (try await store.find(Reminder.self, id), try await store.find(Reminder.self, id))
    first.title = "one"
    second.title = "two"
    try await store.update(first)
    try await store.update(second)
    let found = try #require(try await open.next())
    #expect(found.map(\.field) == ["title"])
    try await store.resolve(found[0], .set("three"))
    #expect(try await open.next()?.isEmpty == true)
    #expect(try await store.find(Reminder.self, id).title == "three")
  }

  @Test("closing ends observations and refuses everything else")
  func closing() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    var rows = store.observe(Reminder.all).makeAsyncIterator()
    _ = try await rows.next()
    await store.close()
    #expect(try await rows.next() == nil)
    await #expect(throws: StoreError.closed) { try await store.insert(Reminder.Draft(title: "Rest")) }
    await #expect(throws: StoreError.closed) { try await Reminder.all.fetchAll(store) }
    await #expect(throws: StoreError.closed) { try await store.get(Reminder.self, byIdentifier: UUID()) }
    await #expect(throws: StoreError.closed) { try await store.conflicts() }
  }

  @Test("a task that is cancelled stops observing")
  func cancellation() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let (seen, continuation) = AsyncStream.makeStream(of: Int.self)
    let task = Task {
      for try await rows in store.observe(Reminder.all) { continuation.yield(rows.count) }
      continuation.finish()
    }
    var counts = seen.makeAsyncIterator()
    #expect(await counts.next() == 0)
    task.cancel()
    try await task.value
    #expect(await counts.next() == nil)
  }

  @Test("a holder of rows notifies views when they change")
  @MainActor
  func live() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let reminders = store.live(Reminder.order { $0.title })
    reminders.checkInvariants()
    try await changed { reminders.isLoaded }
    #expect(reminders.rows.isEmpty)
    try await store.insert(Reminder.Draft(title: "Rest"))
    try await changed { !reminders.rows.isEmpty }
    #expect(reminders.rows.map(\.title) == ["Rest"])
    #expect(reminders.error == nil)
    reminders.checkInvariants()
    try await store.checkInvariants()
  }

  @Test("a holder shows why rows cannot be read, and the rows as soon as they can")
  @MainActor
  func liveAfterAnError() async throws {
    let store = try await Store.temporary(models: Graded.Task.self)
    let other = try await Store(at: store.directory, models: Graded.AnyTask.self)
    let id = try await store.insert(Graded.Task.Draft(grade: .low)).id
    let tasks = store.live(Graded.Task.all)
    try await changed { tasks.isLoaded }
    try await Graded.AnyTask.find(id).update { $0.grade = "unheard of" }.execute(other)
    try await changed { tasks.error != nil }
    #expect(tasks.rows.map(\.grade) == [.low])
    try await Graded.AnyTask.find(id).update { $0.grade = "high" }.execute(other)
    try await changed { tasks.error == nil }
    #expect(tasks.rows.map(\.grade) == [.high])
  }

  /// Waits until an observable condition holds.
  @MainActor
  private func changed(_ condition: @MainActor () -> Bool) async throws {
    while true {
      let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
      let holds = withObservationTracking(condition) { continuation.yield() }
      if holds { return }
      for await _ in changes { break }
    }
  }
}

extension SplitMix64 {
  fileprivate mutating func reminder(_ step: Int) -> Reminder.Draft {
    Reminder.Draft(title: "\(below(1000)).\(step).\(next())", isDone: below(3) == 0)
  }

  /// At most three, each only once. A change that the same commit reverts still changes the
  /// history.
  fileprivate mutating func some(of reminders: [Reminder]) -> [Reminder] {
    Array(reminders.shuffled(using: &self).prefix(below(4)))
  }

  /// A commit that creates reminders or books, changes or deletes reminders, or does nothing.
  fileprivate mutating func commit(
    _ step: Int, _ reminders: [Reminder]
  ) -> @Sendable (Store.Transaction) throws -> Void {
    let (draft, kind) = (reminder(step), below(6))
    return { tx in
      switch kind {
      case 0: try tx.insert(draft)
      case 1: try tx.insert(Book(isbn: "\(step)", title: "A book"))
      case 2: for reminder in reminders { try tx.delete(reminder) }
      default:
        for var reminder in reminders {
          if kind == 3 { reminder.isDone.toggle() }
          if kind == 4 { reminder.title += "." }
          try tx.update(reminder)
        }
        if kind == 5, !reminders.isEmpty { try tx.insert(draft) }
      }
    }
  }
}
