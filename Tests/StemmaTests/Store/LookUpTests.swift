import Foundation
import Testing

@testable import Stemma

/// A look-up by key uses the state of the previous look-up if there was no commit in between.
@Suite("Look-ups by key")
struct LookUpTests {
  @Test("show every commit that has returned, of this store and of another one on the directory")
  func fresh() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let other = try await Store(at: store.directory, models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "0")).id
    for number in 1...60 {
      let writer = number.isMultiple(of: 3) ? store : other
      try await Reminder.find(id).update { $0.title = "\(number)" }.execute(writer)
      for reader in [store, other, store] {
        #expect(try await reader.find(Reminder.self, id).title == "\(number)")
        #expect(try await Reminder.select { $0.title }.fetchAll(reader) == ["\(number)"])
      }
    }
    try await store.delete(try await store.find(Reminder.self, id))
    #expect(try await other.get(Reminder.self, byIdentifier: id) == nil)
  }

  @Test("show the rows of rebuilt tables")
  func rebuilt() async throws {
    let witness = try await Witness(Reminder.self)
    let id = try await witness.store.insert(Reminder.Draft(title: "a")).id
    for title in ["b", "c"] {
      #expect(try await witness.store.find(Reminder.self, id).title != title)
      try await witness.rebuild()
      try await Reminder.find(id).update { $0.title = title }.execute(witness.store)
      #expect(try await witness.store.find(Reminder.self, id).title == title)
    }
  }

  @Test("several in one read see the same state, whatever is written meanwhile")
  func several() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "old")).id
    let (begun, written) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    async let titles = store.read { tx in
      let first = try tx.find(Reminder.self, id).title
      begun.continuation.yield()
      written.wait()
      return [first, try tx.find(Reminder.self, id).title, try Reminder.find(id).fetchOne(tx)?.title]
    }
    for await _ in begun.stream { break }
    try await Reminder.find(id).update { $0.title = "new" }.execute(store)
    #expect(try await store.find(Reminder.self, id).title == "new")
    written.signal()
    #expect(try await titles == ["old", "old", "old"])
    let missing = UUID()
    await #expect(throws: StoreError.notFound(model: "Reminder", key: missing.uuidString.lowercased())) {
      try await store.read { try $0.find(Reminder.self, missing).title }
    }
  }
}
