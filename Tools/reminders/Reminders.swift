import Foundation
import Stemma

/// A sample of an app: reminders in the terminal, in a directory, exchanged with another directory.
@main
struct Reminders {
  static let usage = """
    reminders [-C DIRECTORY] add LIST TITLE   a reminder; the list is made if it is not there
    reminders [-C DIRECTORY] show [LIST]      what is to be done, and what is done
    reminders [-C DIRECTORY] done TITLE       ticks it off
    reminders [-C DIRECTORY] remove TITLE     deletes it
    reminders [-C DIRECTORY] sync OTHER       exchanges changes with another directory
    reminders [-C DIRECTORY] conflicts        what was changed apart and could not be merged
    The directory is a node: `stemma -C DIRECTORY log` tells what happened in it. Without -C it is `reminders`.
    """

  static func main() async {
    var words = Array(CommandLine.arguments.dropFirst())
    var directory = "reminders"
    if words.count > 1, words[0] == "-C" {
      directory = words[1]
      words.removeFirst(2)
    }
    do {
      let store = try await Store(at: directory, models: RemindersList.self, Reminder.self)
      try await perform(words, store)
    } catch {
      FileHandle.standardError.write(Data("reminders: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func perform(_ words: [String], _ store: Store) async throws {
    switch (words.first, words.count) {
    case ("add", 3): try await add(words[2], to: words[1], store)
    case ("show", 1), (nil, _): try await show(RemindersList.all, store)
    case ("show", 2): try await show(RemindersList.find(words[1]), store)
    case ("conflicts", 1):
      for conflict in try await store.conflicts() {
        print("\(conflict.key) \(conflict.field ?? "existence"): \(conflict.candidates.count) candidates")
      }
    case ("done", 2):
      let title = words[1]
      try await Reminder.where { $0.title == title }.update { $0.isDone = true }.execute(store)
    case ("remove", 2):
      let title = words[1]
      try await Reminder.where { $0.title == title }.delete().execute(store)
    case ("sync", 2):
      let report = try await store.sync(with: URL(fileURLWithPath: words[1]))
      print("took \(report.pulled?.events ?? 0) events, gave \(report.pushed?.events ?? 0)")
    default: print(usage)
    }
  }

  /// One commit: the list, if need be, and the reminder.
  private static func add(_ title: String, to name: String, _ store: Store) async throws {
    try await store.write(by: NSUserName()) { tx in
      let list = try tx.upsert(RemindersList.Draft(name: name))
      try tx.insert(Reminder.Draft(title: title, list: list))
    }
  }

  private static func show(_ lists: Select<RemindersList>, _ store: Store) async throws {
    for list in try await lists.fetchAll(store) {
      print(list.name)
      for reminder in try await list.reminders.fetch() {
        print("  [\(reminder.isDone ? "x" : " ")] \(reminder.title)")
      }
    }
  }
}
