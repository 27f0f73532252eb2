import Foundation
import Synchronization
import Testing

@testable import Stemma

/// A canceled task ends its read, and begins no write.
@Suite("Cancelled tasks")
struct CancellationTests {
  /// One row that takes minutes.
  private static let endless = SQL<Int>(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n"
  )

  @Test("a read that makes no row ends, and the connection reads on")
  func endlessRead() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    try await store.insert(Reminder.Draft(title: "Rest"))
    for _ in 0..<5 {
      let reads = [
        Task { try await Self.endless.fetchOne(store) },
        Task { try await store.read { try Self.endless.fetchOne($0) } },
        Task {
          try await store.asOf(.time(Date(timeIntervalSinceNow: 3600))) {
            try $0.fetchAll(Self.endless).first
          }
        },
      ]
      for read in reads { read.cancel() }
      for read in reads { await #expect(throws: CancellationError.self) { try await read.value } }
      #expect(try await Reminder.all.fetchCount(store) == 1)
    }
    try await store.checkInvariants()
  }

  @Test("a read that is under way ends")
  func readUnderWay() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
    let read = Task {
      try await store.read { tx in
        continuation.yield()
        return try Self.endless.fetchOne(tx)
      }
    }
    var iterator = begun.makeAsyncIterator()
    await iterator.next()
    read.cancel()
    await #expect(throws: CancellationError.self) { try await read.value }
    try await store.checkInvariants()
  }

  @Test("an observation of a cancelled task ends")
  func observation() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let task = Task {
      var elements = 0
      for try await _ in store.observe(Self.endless) { elements += 1 }
      return elements
    }
    task.cancel()
    #expect(try await task.value == 0)
  }

  @Test("a write of a cancelled task is not begun, one that is begun is finished")
  func writes() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.insert(Reminder.Draft(title: "early"))
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    // Canceled while it waits for another commit.
    let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
    let isFree = Mutex(false)
    let first = Task {
      try await store.write { tx in
        continuation.yield()
        while !isFree.withLock({ $0 }) {}
        _ = try tx.insert(Reminder.Draft(title: "first"))
      }
    }
    var iterator = begun.makeAsyncIterator()
    await iterator.next()
    let waiting = Task { try await store.insert(Reminder.Draft(title: "waiting")) }
    while store.writer.waitingCount == 0 { await Task.yield() }
    waiting.cancel()
    first.cancel()
    isFree.withLock { $0 = true }
    try await first.value
    await #expect(throws: CancellationError.self) { try await waiting.value }
    #expect(try await Reminder.all.fetchAll(store).map(\.title) == ["first"])
    try await store.checkInvariants()
  }
}
