import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Stemma

/// A commit meets a changed byte in the tables. The library rebuilds the tables from the log and
/// runs the commits of the group again.
@Suite("Commits that meet corruption of the tables")
struct CorruptTablesTests {
  private struct Abandoned: Error {}

  let store: Store
  let rest: Reminder
  let walk: Reminder

  init() async throws {
    store = try await Store.temporary(models: Reminder.self)
    rest = try await store.insert(Reminder.Draft(title: "Rest"))
    walk = try await store.insert(Reminder.Draft(title: "Walk"))
  }

  private var tables: URL { store.directory.appendingPathComponent("tables.sqlite") }

  /// Changes the row of `rest` without the store's participation.
  private func spoil() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "sqlite3", tables.path, "UPDATE reminders SET title = 'forged' WHERE title = 'Rest'",
    ]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }

  private func titles() async throws -> [String] {
    try await Reminder.all.order { $0.title }.fetchAll(store).map(\.title)
  }

  /// Runs `bodies` as one group of commits.
  private func group(
    _ bodies: [@Sendable (Store.Transaction) throws -> Void]
  ) async throws -> [Result<Void, any Error>] {
    let gate = DispatchSemaphore(value: 0)
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    async let first: Void = store.write { _ in
      begin.finish()
      gate.wait()
      // It belongs to the same group, so it may run as often as the others.
      gate.signal()
    }
    for await _ in begun {}
    var tasks: [Task<Void, any Error>] = []
    for (index, body) in bodies.enumerated() {
      tasks.append(Task { [store] in try await store.write { tx in try body(tx) } })
      while store.writer.waitingCount <= index { await Task.yield() }
    }
    gate.signal()
    try await first
    var results: [Result<Void, any Error>] = []
    for task in tasks { results.append(await task.result) }
    return results
  }

  @Test("all commits of a group are made in rebuilt tables, and one that fails keeps its own error")
  func group() async throws {
    var copy = walk
    copy.title = "Walk far"
    let (saved, rest) = (copy, self.rest)
    try spoil()
    let calls = Mutex<[String]>([])
    let results = try await group([
      { tx in
        calls.withLock { $0.append("other") }
        try tx.update(saved)
      },
      { tx in
        calls.withLock { $0.append("forged") }
        var rest = rest
        rest.isDone = true
        try tx.update(rest)
      },
      { _ in
        calls.withLock { $0.append("failing") }
        throw Abandoned()
      },
    ])
    #expect(calls.withLock { $0 } == ["other", "forged", "other", "forged", "failing"])
    #expect(throws: Never.self) { try results[0].get() }
    #expect(throws: Never.self) { try results[1].get() }
    #expect(throws: Abandoned.self) { try results[2].get() }
    #expect(try await titles() == ["Rest", "Walk far"])
    #expect(try await store.find(Reminder.self, rest.id).isDone)
    // The value knows its recorded change only once.
    copy.isDone = true
    try await store.update(copy)
    #expect(try await store.history(of: walk).map { $0.fields.count { $0.key == "title" } } == [1, 1, 0])
    #expect(try await store.conflicts().isEmpty)
    try await store.checkInvariants()
  }

  @Test("a row that is read in the commit, behind a change, belongs to the call that was made")
  func copies() async throws {
    try spoil()
    var made = try await store.write { [walk, rest] tx in
      var walk = walk
      walk.title = "Walk far"
      walk = try tx.update(walk)
      var rest = rest
      rest.isDone = true
      try tx.update(rest)
      return walk
    }
    made.isDone = true
    #expect(try await store.update(made).title == "Walk far")
  }

  @Test("a closure that goes on as if nothing were there is called again")
  func swallowed() async throws {
    try spoil()
    try await store.write { [rest] tx in
      var rest = rest
      rest.isDone = true
      do { try tx.update(rest) } catch { try tx.insert(Reminder.Draft(title: "\(error)")) }
    }
    #expect(try await titles() == ["Rest", "Walk"])
    #expect(try await store.find(Reminder.self, rest.id).isDone)
  }

  @Test("a page that SQLite cannot read is met by a statement of the commit")
  func statement() async throws {
    let root = try await store.writer.access { node in
      _ = try node.rebuild { _, _ in }
      var root = 0
      try node.query("SELECT rootpage FROM sqlite_schema WHERE name = 'reminders'") { _, row in
        root = row.compactMap { Int("\($0)".filter(\.isNumber)) }.first ?? 0
      }
      return root
    }
    #expect(root > 1)
    // Another store reads the file again. `store` keeps the directory.
    let other = try await Store(at: store.directory, models: Reminder.self)
    let handle = try FileHandle(forUpdating: tables)
    try handle.seek(toOffset: UInt64(root - 1) * 4096)
    try handle.write(contentsOf: Data([0xFF]))
    try handle.close()
    let calls = Atomic<Int>(0)
    let count = try await other.write { tx in
      calls.add(1, ordering: .relaxed)
      return try Reminder.all.fetchAll(tx).count
    }
    #expect(count == 2)
    #expect(calls.load(ordering: .relaxed) == 2)
    try await other.checkInvariants()
  }
}
