@testable import Stemma
import StemmaSimulation
import Testing

/// Values are copied freely, and saved more than once: each copy records what was set in it, on top of what it has seen.
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
    "a stale value that sets what somebody else has set stays in conflict with it, also when it is saved again"
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

  @Test(
    "nothing that others write is lost unseen, whatever copies are saved in which order", arguments: 0..<40)
  func random(seed: UInt64) async throws {
    var dice = SplitMix64(seed: seed)
    var copies = [read]
    for step in 0..<12 {
      let place = Int.random(in: copies.indices, using: &dice)
      switch Int.random(in: 0..<4, using: &dice) {
      case 0:
        copies.append(copies[place])
      case 1:
        // Somebody else: their title is shown, or in conflict, until a value that has seen it sets another.
        let title = "theirs \(step)"
        try await Reminder.find(read.id).update { $0.title = title }.execute(store)
        copies[place].title = "mine \(step)"
        try await store.update(copies[place])
        let shown = try await shownTitles()
        #expect(shown.contains(title) && shown.contains("mine \(step)"), "seed \(seed), step \(step)")
      case 2:
        copies[place] = try await row
      default:
        let before = try await shownTitles()
        copies[place].isDone.toggle()
        let isDone = copies[place].isDone
        #expect(try await store.update(copies[place]).isDone == isDone, "seed \(seed), step \(step)")
        #expect(try await shownTitles() == before, "seed \(seed), step \(step)")
      }
    }
  }

  /// The title of the row, or those of the conflict about it.
  private func shownTitles() async throws -> Set<String> {
    guard let conflict = try await store.conflicts(of: Reminder.self).first(where: { $0.field == "title" })
    else {
      return [try await row.title]
    }
    return Set(try conflict.candidates.map { try $0.value(as: String.self) })
  }
}
