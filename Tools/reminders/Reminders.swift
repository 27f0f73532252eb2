import Foundation
import Stemma
import StemmaHTTP

/// A sample app: reminders in the terminal, stored in a directory and synced with another
/// directory or a server.
@main
struct Reminders {
  /// As in sysexits.h.
  private static let usageError: Int32 = 64

  /// An error message.
  struct Failure: Error, Equatable, CustomStringConvertible {
    var description: String
  }

  static func main() async {
    var words = Array(CommandLine.arguments.dropFirst())
    var directory = "reminders"
    if words.count > 1, words[0] == "-C" {
      directory = words[1]
      words.removeFirst(2)
    }
    guard let command = Command(words) else {
      complain(Command.usage)
      exit(usageError)
    }
    if command == .help { return print(Command.usage) }
    do {
      let store = try await Store(at: directory, models: RemindersList.self, Reminder.self)
      let token = ProcessInfo.processInfo.environment["REMINDERS_TOKEN"]
      for line in try await perform(command, store, token: token) { print(line) }
    } catch {
      complain("reminders: \(error)")
      exit(1)
    }
  }

  private static func complain(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

  /// Performs a command and returns the lines to print.
  ///
  /// - Parameter token: the secret for a server; nil: none.
  static func perform(_ command: Command, _ store: Store, token: String? = nil) async throws -> [String] {
    switch command {
    case .add(let list, let title): try await add(title, to: list, store)
    case .show(nil): return try await show(RemindersList.all, store)
    case .show(let list?):
      let lines = try await show(RemindersList.find(list), store)
      if lines.isEmpty { throw Failure(description: "there is no list \(list)") }
      return lines
    case .conflicts:
      return try await store.conflicts().map {
        "\($0.key) \($0.field ?? "existence"): \($0.candidates.count) candidates"
      }
    case .done(let title):
      let done = try await Reminder.where { $0.title == title }.update { $0.isDone = true }.returning(\.id)
        .fetchAll(store)
      if done.isEmpty { throw Failure(description: "there is no reminder \(title)") }
    case .remove(let title):
      let removed = try await Reminder.where { $0.title == title }.delete().returning(\.id).fetchAll(store)
      if removed.isEmpty { throw Failure(description: "there is no reminder \(title)") }
    case .sync(let other):
      let report = try await store.sync(with: try peer(other, token))
      let (taken, given) = (report.pulled?.events ?? 0, report.pushed?.events ?? 0)
      return ["took \(taken) \(taken == 1 ? "event" : "events"), gave \(given)"]
    case .help: return [Command.usage]
    }
    return []
  }

  private static func peer(_ text: String, _ token: String?) throws -> SyncPeer {
    guard text.hasPrefix("http://") || text.hasPrefix("https://") else {
      return .directory(URL(fileURLWithPath: text))
    }
    guard let url = URL(string: text) else { throw Failure(description: "\(text) is not a URL") }
    return .http(url, token: token)
  }

  /// One commit creates the reminder and, if necessary, the list.
  private static func add(_ title: String, to name: String, _ store: Store) async throws {
    try await store.write(author: NSUserName()) { tx in
      let list = try tx.upsert(RemindersList.Draft(name: name))
      try tx.insert(Reminder.Draft(title: title, list: list))
    }
  }

  private static func show(_ lists: Select<RemindersList>, _ store: Store) async throws -> [String] {
    var lines: [String] = []
    for list in try await lists.fetchAll(store) {
      lines.append(list.name)
      lines += try await list.reminders.fetch().map { "  [\($0.isDone ? "x" : " ")] \($0.title)" }
    }
    return lines
  }
}
