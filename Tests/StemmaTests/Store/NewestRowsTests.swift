import Testing

@testable import Stemma

@Suite("The newest rows of an observed statement")
struct NewestRowsTests {
  @Test("commits that were not seen are one element, and no commit reads the rows")
  func newest() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    var rows = store.observe(Reminder.order { $0.title }).newest.makeAsyncIterator()
    #expect(try await rows.next()?.isEmpty == true)
    for number in 0..<5 { try await store.insert(Reminder.Draft(title: "\(number)")) }
    #expect(!store.rows.hasObservers)
    #expect(try await rows.next()?.map(\.title) == ["0", "1", "2", "3", "4"])
    try await Reminder.where { $0.title == "3" }.delete().execute(store)
    #expect(try await rows.next()?.map(\.title) == ["0", "1", "2", "4"])
    await store.close()
    #expect(try await rows.next() == nil)
  }
}
