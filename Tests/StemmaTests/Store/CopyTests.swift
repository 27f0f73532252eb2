import Dispatch
import Synchronization
import Testing

@testable import Stemma

/// Values can be copied and saved more than once. Each copy records its own changes, on top of the
/// events that it has seen.
@Suite("Copies of a value")
struct CopyTests {
  let store: Store
  let read: Reminder

  init() async throws {
    store = try await Store.temporary(models: Reminder.self)
    read = try await store.insert(Reminder.Draft(title: "old"))
  }

  private var row: Reminder { get async throws { try await store.find(Reminder.self, read.id) } }

  private func recorded(_ field: String) async throws -> Int {
    var count = -1  // the creation
    for event in try await store.history(of: read) where event.fields[field] != nil { count += 1 }
    return count
  }

  @Test("a copy that was read earlier takes nothing back of what another copy has recorded")
  func earlierCopy() async throws {
    var title = read
    title.title = "new"
    try await store.update(title)
    var done = read
    done.isDone = true
    #expect(try await store.update(done).title == "new")
    try await store.update(read)
    #expect(try await row.title == "new")
    #expect(try await row.isDone)
    #expect(try await recorded("title") == 1)
    #expect(try await store.conflicts().isEmpty)
  }

  @Test("a value that is set there and back is recorded each time")
  func thereAndBack() async throws {
    var copy = read
    for isDone in [true, false, true, false] {
      copy.isDone = isDone
      try await store.update(copy)
      #expect(try await row.isDone == isDone)
    }
    #expect(try await recorded("isDone") == 4)
  }

  @Test("what is set to the value that it had is not recorded")
  func unchanged() async throws {
    var copy = read
    copy.title = "new"
    copy.title = "old"
    try await store.update(copy)
    #expect(try await recorded("title") == 0)
  }

  @Test("a stale value that is saved twice is in no conflict with itself, and records each change once")
  func staleTwice() async throws {
    var copy = read
    try await Reminder.find(read.id).update { $0.isDone = true }.execute(store)
    copy.title = "one"
    try await store.update(copy)
    copy.title = "two"
    try await store.update(copy)
    #expect(try await store.conflicts().isEmpty)
    #expect(try await row.title == "two")
    #expect(try await row.isDone)
    copy.title = "old"
    try await store.update(copy)
    #expect(try await row.title == "old")
    #expect(try await recorded("title") == 3)
  }

  @Test(
    "a stale value that sets what another author has set stays in conflict with it, also when it is saved again"
  )
  func conflict() async throws {
    var copy = read
    try await Reminder.find(read.id).update { $0.title = "theirs" }.execute(store)
    copy.title = "mine"
    try await store.update(copy)
    copy.isDone = true
    try await store.update(copy)
    let conflict = try #require(try await store.conflicts(of: Reminder.self).first)
    #expect(conflict.field == "title")
    #expect(try await recorded("title") == 2)
    #expect(try await recorded("isDone") == 1)
  }

  @Test("a copy that has set what another one has recorded since is in conflict with it")
  func copies() async throws {
    var (one, two) = (read, read)
    one.title = "one"
    two.title = "two"
    try await store.update(one)
    try await store.update(two)
    let conflict = try #require(try await store.conflicts(of: Reminder.self).first)
    #expect(Set(try conflict.candidates.map { try $0.value(as: String.self) }) == ["one", "two"])
  }

  @Test("what is set back to what this copy was read with takes nothing back of what another has recorded")
  func setBack() async throws {
    var (copy, other) = (read, read)
    other.title = "new"
    try await store.update(other)
    copy.title = "new"
    copy.title = "old"
    try await store.update(copy)
    copy.title += ""
    #expect(try await store.update(copy).title == "new")
    #expect(try await recorded("title") == 1)
    #expect(try await store.conflicts().isEmpty)
  }

  /// Sets a field before others are saved, without saving it. It gets its old value, as a binding
  /// may do.
  @Test("a value is in no conflict with itself, whenever its fields were set")
  func savedLate() async throws {
    var copy = read
    copy.title += ""
    let early = copy
    copy.isDone = true
    try await store.update(copy)
    copy.title = "one"
    try await store.update(copy)
    copy.isDone = false
    try await store.update(copy)
    copy.title = "two"
    #expect(try await store.update(copy).title == "two")
    #expect(try await store.conflicts().isEmpty)
    // The earlier copy has not seen the other copy's change.
    var other = early
    other.title = "three"
    try await store.update(other)
    let conflict = try #require(try await store.conflicts(of: Reminder.self).first)
    #expect(Set(try conflict.candidates.map { try $0.value(as: String.self) }) == ["two", "three"])
  }

  @Test("what was set between two saves is compared with the first, not with what was read")
  func setBackBetween() async throws {
    var copy = read
    copy.title = "new"
    let saved = copy
    copy.title = "old"
    try await store.update(saved)
    #expect(try await store.update(copy).title == "old")
    #expect(try await recorded("title") == 2)
    #expect(try await store.conflicts().isEmpty)
  }

  @Test("a value that is set very often, in a copy each time, is recorded as it is at last")
  func often() async throws {
    var copy = read
    var saved: Reminder?
    for step in 0..<200 {
      var next = copy
      next.title = "\(step)"
      copy = next
      if step == 20 { saved = copy }
    }
    copy.title = "old"
    try await store.update(try #require(saved))
    try await store.update(copy)
    let conflicts = try await store.conflicts(of: Reminder.self)
    let shown = try conflicts.flatMap(\.candidates).map { try $0.value(as: String.self) }
    #expect(Set(shown + [try await row.title]).contains("old"))
    copy.title = "last"
    #expect(try await store.update(copy).title == "last")
  }

  // MARK: Commits that are not made

  private struct Abandoned: Error {}

  @Test("what a failing commit has recorded of a value is recorded by the next one that saves it")
  func failing() async throws {
    var copy = read
    copy.title = "new"
    let saved = copy
    await #expect(throws: Abandoned.self) {
      try await store.write { tx in
        try tx.update(saved)
        throw Abandoned()
      }
    }
    #expect(try await store.update(copy).title == "new")
    copy.title = "newer"
    #expect(try await store.update(copy).title == "newer")
    #expect(try await recorded("title") == 2)
    #expect(try await store.conflicts().isEmpty)
  }

  @Test(
    "a value that shows changes of a failing commit is refused: others' events have the names of those it has seen"
  )
  func escaped() async throws {
    let escaped = Mutex<[Reminder]>([])
    let early = Mutex<Reminder?>(nil)
    await #expect(throws: Abandoned.self) {
      try await store.write { [read] tx in
        let before = try tx.find(Reminder.self, read.id)
        early.withLock { $0 = before }
        var copy = read
        copy.title = "never"
        let updated = try tx.update(copy)
        let found = try tx.find(Reminder.self, read.id)
        let listed = try Reminder.all.fetchAll(tx)
        escaped.withLock { $0 = [updated, found] + listed }
        throw Abandoned()
      }
    }
    // Takes the sequence number of the abandoned event.
    try await Reminder.find(read.id).update { $0.title = "theirs" }.execute(store)
    for var row in escaped.withLock({ $0 }) {
      #expect(row.title == "never")
      let refusal = StoreError.notCommitted(model: "Reminder")
      await #expect(throws: refusal) { try await store.revision(of: row) }
      await #expect(throws: refusal) { try await store.delete(row) }
      row.title = "mine"
      let changed = row
      await #expect(throws: refusal) { try await store.update(changed) }
    }
    #expect(try await row.title == "theirs")
    #expect(try await store.conflicts().isEmpty)
    // A value that was read before the first change is valid without the commit.
    var before = try #require(early.withLock { $0 })
    before.title = "mine"
    try await store.update(before)
    let conflict = try #require(try await store.conflicts(of: Reminder.self).first)
    #expect(Set(try conflict.candidates.map { try $0.value(as: String.self) }) == ["theirs", "mine"])
  }

  @Test("a value that was read behind changes of a commit that is made goes on from there")
  func kept() async throws {
    var updated = try await store.write { [read] tx in
      var copy = read
      copy.title = "new"
      try tx.update(copy)
      return try tx.find(Reminder.self, read.id)
    }
    updated.title = "newer"
    #expect(try await store.update(updated).title == "newer")
    #expect(try await store.conflicts().isEmpty)
  }

  @Test("a commit in the same group as one that fails records the copy that both save")
  func failingBeside() async throws {
    var copy = read
    copy.title = "new"
    let saved = copy
    let gate = DispatchSemaphore(value: 0)
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    async let first: Void = store.write { _ in
      begin.finish()
      gate.wait()
    }
    for await _ in begun {}
    let failing = Task { [store] in
      try await store.write { tx in
        try tx.update(saved)
        throw Abandoned()
      }
    }
    while store.writer.waitingCount < 1 { await Task.yield() }
    async let succeeding = store.update(saved)
    while store.writer.waitingCount < 2 { await Task.yield() }
    gate.signal()
    try await first
    await #expect(throws: Abandoned.self) { try await failing.value }
    #expect(try await succeeding.title == "new")
    copy.isDone = true
    try await store.update(copy)
    #expect(try await recorded("title") == 1)
    #expect(try await store.conflicts().isEmpty)
  }
}
