import Stemma
import Testing

@testable import reminders

/// What the sample app prints.
@Suite("Reminders, the sample app")
struct SampleTests {
  @Test("two directories make the same list apart, and show the same after a sync")
  func syncs() async throws {
    let laptop = try await Store.temporary(models: reminders.RemindersList.self, reminders.Reminder.self)
    let phone = try await Store.temporary(models: reminders.RemindersList.self, reminders.Reminder.self)
    #expect(try await Reminders.perform(["add", "Shopping", "Milk"], laptop) == [])
    #expect(try await Reminders.perform(["add", "Shopping", "Bread"], phone) == [])
    #expect(
      try await Reminders.perform(["sync", phone.directory.path], laptop) == ["took 2 events, gave 2"])
    #expect(try await Reminders.perform(["done", "Milk"], phone) == [])
    #expect(
      try await Reminders.perform(["sync", laptop.directory.path], phone) == ["took 0 events, gave 1"])
    let shown = try await Reminders.perform(["show"], laptop)
    #expect(shown == ["Shopping", "  [x] Milk", "  [ ] Bread"])
    #expect(try await Reminders.perform(["show", "Shopping"], phone) == shown)
    #expect(try await Reminders.perform(["conflicts"], phone) == [])
  }
}
