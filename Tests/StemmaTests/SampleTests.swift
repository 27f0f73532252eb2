import Stemma
import Testing

@testable import reminders

/// The output of the sample app.
@Suite("Reminders, the sample app")
struct SampleTests {
  @Test("two directories make the same list apart, and show the same after a sync")
  func syncs() async throws {
    let laptop = try await Store.temporary(models: reminders.RemindersList.self, reminders.Reminder.self)
    let phone = try await Store.temporary(models: reminders.RemindersList.self, reminders.Reminder.self)
    func run(_ words: String..., on store: Store) async throws -> [String] {
      try await Reminders.perform(try #require(Command(words)), store)
    }
    #expect(try await run("add", "Shopping", "Milk", on: laptop) == [])
    #expect(try await run("add", "Shopping", "Bread", on: phone) == [])
    #expect(try await run("sync", phone.directory.path, on: laptop) == ["took 2 events, gave 2"])
    #expect(try await run("done", "Milk", on: phone) == [])
    #expect(try await run("sync", phone.directory.path, on: laptop) == ["took 1 event, gave 0"])
    let shown = try await run("show", on: laptop)
    #expect(shown == ["Shopping", "  [x] Milk", "  [ ] Bread"])
    #expect(try await run("show", "Shopping", on: phone) == shown)
    #expect(try await run("conflicts", on: phone) == [])
    for words in [["done", "Tea"], ["remove", "Tea"]] {
      await #expect(throws: Reminders.Failure(description: "there is no reminder Tea")) {
        try await Reminders.perform(#require(Command(words)), phone)
      }
    }
    #expect(try await run("remove", "Bread", on: phone) == [])
    #expect(try await run("show", on: phone) == ["Shopping", "  [x] Milk"])
  }

  @Test("a laptop syncs with a server, with the token of the environment")
  func syncsWithServer() async throws {
    let laptop = try await Store.temporary(models: reminders.RemindersList.self, reminders.Reminder.self)
    let shared = try await Store.temporary(models: reminders.RemindersList.self, reminders.Reminder.self)
    _ = try await Reminders.perform(.add(list: "Shopping", title: "Milk"), laptop)
    let token = try shared.token()
    try await serving(shared) { url in
      let sync = try #require(Command(["sync", url.absoluteString]))
      await #expect(throws: StoreError.self) { try await Reminders.perform(sync, laptop) }
      #expect(try await Reminders.perform(sync, laptop, token: token) == ["took 0 events, gave 2"])
    }
    #expect(try await Reminders.perform(.show(list: nil), shared) == ["Shopping", "  [ ] Milk"])
    #expect(Command.usage.contains("REMINDERS_TOKEN"))
    await #expect(throws: Reminders.Failure(description: "http://[ is not a URL")) {
      try await Reminders.perform(.sync(peer: "http://["), laptop)
    }
  }

  @Test(
    "words that ask for nothing are no command",
    arguments: [["bogus"], ["-C"], ["add", "x"], ["show", "a", "b"]])
  func usage(_ words: [String]) {
    #expect(Command(words) == nil)
    #expect(Command([]) == .show(list: nil))
    #expect(Command(["--help"]) == .help)
  }
}
