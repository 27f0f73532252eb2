import Testing

@testable import Stemma

/// The elements that a slow observer gets.
@Suite("Commits that were not looked at")
struct PendingRowsTests {
  private let titles = Reminder.where { !$0.isDone }.order { $0.title }.select { $0.title }

  @Test("each commit that changes the rows gives an element, in their order, also while no observer iterates")
  func eachCommit() async throws {
    let store = try await Store.temporary(models: Reminder.self, Book.self)
    var rows = store.observe(titles).makeAsyncIterator()
    #expect(try await rows.next() == [])
    let first = try await store.insert(Reminder.Draft(title: "a"))
    try await store.insert(Book(isbn: "1", title: "One"))
    try await store.insert(Reminder.Draft(title: "b"))
    try await store.insert(Reminder.Draft(title: "done", isDone: true))
    try await store.write { tx in
      try tx.insert(Reminder.Draft(title: "c"))
      try tx.insert(Reminder.Draft(title: "d"))
    }
    await #expect(throws: StoreError.self) {
      try await store.write { tx in
        try tx.insert(Reminder.Draft(title: "not made"))
        try tx.insert(first)
      }
    }
    try await store.delete(first)
    try await store.insert(first)
    let expected = [["a"], ["a", "b"], ["a", "b", "c", "d"], ["b", "c", "d"], ["a", "b", "c", "d"]]
    rows.pending?.checkInvariants()
    // All elements are available without waiting.
    var found: [[String]] = []
    while let element = try rows.pending?.takeFirst() { found.append(element) }
    #expect(found == expected)
  }

  @Test("rows of a commit that was not looked at can be saved like others, on top of what was seen")
  func records() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    var rows = store.observe(Reminder.all).makeAsyncIterator()
    _ = try await rows.next()
    let id = try await store.insert(Reminder.Draft(title: "a")).id
    try await Reminder.find(id).update { $0.title = "b" }.execute(store)
    var old = try #require(try await rows.next()?.first)
    #expect(old.title == "a")
    old.isDone = true
    let saved = try await store.update(old)
    #expect(saved.title == "b" && saved.isDone)
    #expect(try await rows.next()?.map(\.title) == ["b"])
    #expect(try await rows.next()?.map(\.isDone) == [true])
    #expect(try await store.conflicts().isEmpty)
  }

  @Test("a sync is an element, and what a resolver decides then is one of its own")
  func others() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let peer = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "a")).id
    try await store.sync(with: peer)
    try await store.resolveConflicts(of: Reminder.self) { _ in .set("decided") }
    var rows = store.observe(titles).makeAsyncIterator()
    #expect(try await rows.next() == ["a"])
    for (place, title) in [(store, "here"), (peer, "there")] {
      try await Reminder.find(id).update { $0.title = title }.execute(place)
    }
    try await peer.insert(Reminder.Draft(title: "z"))
    try await store.sync(with: peer)
    try await store.insert(Reminder.Draft(title: "y"))
    #expect(try await rows.next() == ["here"])
    #expect(try await rows.next()?.last == "z")
    #expect(try await rows.next() == ["decided", "z"])
    #expect(try await rows.next() == ["decided", "y", "z"])
  }

  @Test("what another store on the same directory commits is seen before the next commit of this one")
  func sameDirectory() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let other = try await Store(at: store.directory, models: Reminder.self)
    var rows = store.observe(titles).makeAsyncIterator()
    #expect(try await rows.next() == [])
    try await other.insert(Reminder.Draft(title: "a"))
    #expect(try await rows.next() == ["a"])
    try await store.insert(Reminder.Draft(title: "b"))
    #expect(try await rows.next() == ["a", "b"])
  }

  @Test("so many elements wait, and so many rows; then the oldest go")
  func limits() async throws {
    for (elements, limit) in [(2, 3), (3, 3), (4, 3)] {
      let store = try await Store.temporary(models: Reminder.self)
      var observation = store.observe(Reminder.count())
      observation.limits.elements = limit
      var counts = observation.makeAsyncIterator()
      _ = try await counts.next()
      for number in 1...elements {
        try await store.insert(Reminder.Draft(title: "\(number)"))
        counts.pending?.checkInvariants()
      }
      for count in max(1, elements - limit + 1)...elements { #expect(try await counts.next() == [count]) }
      #expect(try counts.pending?.takeFirst() == nil)
    }
    // One, two and three rows are six.
    for (limit, first) in [(5, 2), (6, 1), (7, 1), (1, 3)] {
      let store = try await Store.temporary(models: Reminder.self)
      var observation = store.observe(titles)
      observation.limits.rows = limit
      var rows = observation.makeAsyncIterator()
      _ = try await rows.next()
      for number in 1...3 {
        try await store.insert(Reminder.Draft(title: "\(number)"))
        rows.pending?.checkInvariants()
      }
      for count in first...3 { #expect(try await rows.next()?.count == count) }
      #expect(try rows.pending?.takeFirst() == nil)
    }
  }

  @Test("a row that cannot be read is reported for its commit, and the next ones are read again")
  func unreadable() async throws {
    let store = try await Store.temporary(models: Graded.Task.self)
    let other = try await Store(at: store.directory, models: Graded.AnyTask.self)
    let id = try await store.insert(Graded.Task.Draft(grade: .low)).id
    var tasks = store.observe(Graded.Task.all).makeAsyncIterator()
    #expect(try await tasks.next()?.map(\.grade) == [.low])
    try await Graded.AnyTask.find(id).update { $0.grade = "unheard of" }.execute(other)
    await #expect(throws: StoreError.self) { try await tasks.next() }
    // Each commit reports it once, and the next commit is another one.
    try await store.insert(Graded.Task.Draft(grade: .low))
    await #expect(throws: StoreError.self) { try await tasks.next() }
    #expect(try tasks.pending?.takeFirst() == nil)
    try await Graded.AnyTask.find(id).update { $0.grade = "high" }.execute(other)
    #expect(Set(try await tasks.next()?.map(\.grade) ?? []) == [.high, .low])
  }

  @Test("nothing is kept for an observer that has stopped")
  func stopped() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    weak var pending: PendingRows<String>?
    do {
      var rows = store.observe(titles).makeAsyncIterator()
      _ = try await rows.next()
      pending = rows.pending
      #expect(store.rows.isLookDue)
    }
    #expect(pending == nil && !store.rows.isLookDue)
  }
}
