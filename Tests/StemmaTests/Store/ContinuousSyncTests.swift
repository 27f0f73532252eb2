import Foundation
import Logging
import ServiceLifecycle
import Stemma
import Testing

/// Stores that are kept in sync. Peers are asked every 30 seconds, so the tests would take long if
/// no hint arrived.
@Suite("A store that is kept in sync", .timeLimit(.minutes(10)))
struct ContinuousSyncTests {
  private func store(_ name: String) async throws -> Store {
    try await Store.temporary(options: .init(name: name), models: Reminder.self)
  }

  /// The next status with a property.
  private func next(
    _ statuses: inout AsyncStream<ContinuousSync.Status>.Iterator,
    _ isExpected: (ContinuousSync.State) -> Bool
  ) async throws -> ContinuousSync.Status {
    while let status = await statuses.next() {
      if isExpected(status.state) { return status }
    }
    struct Ended: Error {}
    throw Ended()
  }

  private func isSynced(_ state: ContinuousSync.State) -> Bool {
    if case .synced = state { true } else { false }
  }

  /// Whether there is no peer. A reader that meets the move may find other errors before.
  private func isAway(_ state: ContinuousSync.State) -> Bool {
    if case .offline(_, .failed(.unreachable, _)) = state { true } else { false }
  }

  @Test("commits on either side arrive at the other by observation, until the task is cancelled")
  func directory() async throws {
    let (here, there) = (try await store("here"), try await store("there"))
    try await there.write { tx in
      try tx.insert(Reminder.Draft(title: "a"))
      try tx.insert(Reminder.Draft(title: "b"))
    }
    let sync = here.keepInSync(with: .directory(there.directory))
    var statuses = sync.statuses.makeAsyncIterator()
    let running = Task { try await sync.run() }
    #expect(await statuses.next()?.state == .behind(events: 2))
    let first = try #require(await statuses.next())
    #expect(isSynced(first.state) && first.peer == there.directory.path && first.notices == [])

    var (hereRows, thereRows) = (
      here.observe(Reminder.all.order { $0.title }).makeAsyncIterator(),
      there.observe(Reminder.all.order { $0.title }).makeAsyncIterator()
    )
    #expect(try await hereRows.next()?.map(\.title) == ["a", "b"])
    #expect(try await thereRows.next()?.map(\.title) == ["a", "b"])
    try await here.insert(Reminder.Draft(title: "c"))
    #expect(try await thereRows.next()?.map(\.title) == ["a", "b", "c"])
    #expect(try await hereRows.next()?.map(\.title) == ["a", "b", "c"])
    try await there.insert(Reminder.Draft(title: "d"))
    #expect(try await hereRows.next()?.map(\.title) == ["a", "b", "c", "d"])

    running.cancel()
    try await running.value
    while await statuses.next() != nil {}
    // The last status is there for a later reader.
    var later = sync.statuses.makeAsyncIterator()
    #expect(await later.next().map { isSynced($0.state) } == true)
  }

  @Test("a peer whose directory is away is offline, and is synced when that is back")
  func away() async throws {
    let (here, there) = (try await store("here"), try await store("there"))
    let sync = here.keepInSync(with: .directory(there.directory))
    var statuses = sync.statuses.makeAsyncIterator()
    let running = Task { try await sync.run() }
    _ = try await next(&statuses, isSynced)
    let aside = there.directory.appendingPathExtension("aside")
    try FileManager.default.moveItem(at: there.directory, to: aside)
    let offline = try await next(&statuses, isAway)
    guard case .offline(let since, .failed(.unreachable, let what)) = offline.state else {
      Issue.record("\(offline)")
      return
    }
    #expect(what == "\(there.directory.path): there is no node in that directory" && since <= Date())
    try await here.insert(Reminder.Draft(title: "Rest"))
    try FileManager.default.moveItem(at: aside, to: there.directory)
    _ = try await next(&statuses, isSynced)
    #expect(try await Reminder.all.fetchAll(there).map(\.title) == ["Rest"])
    running.cancel()
    try await running.value
  }

  @Test("resolvers decide the conflicts that arrive, and a status reports a failed decision once")
  func resolvers() async throws {
    let (here, there) = (try await store("here"), try await store("there"))
    var (mine, other) = (
      try await here.insert(Reminder.Draft(title: "Rest")),
      try await here.insert(Reminder.Draft(title: "Walk"))
    )
    try await here.sync(with: there)
    let (yours, yourOther) = (
      try await there.find(Reminder.self, mine.id), try await there.find(Reminder.self, other.id)
    )
    try await here.resolveConflicts(of: Reminder.self) { [id = mine.id] conflict in
      conflict.key.contains(id.uuidString.lowercased()) ? .set("decided") : .set(7)
    }
    for (store, mark, pair) in [(here, "1", (mine, other)), (there, "2", (yours, yourOther))] {
      try await store.write { tx in
        for var reminder in [pair.0, pair.1] {
          reminder.title += mark
          _ = try tx.update(reminder)
        }
      }
    }
    let sync = here.keepInSync(with: .directory(there.directory))
    var statuses = sync.statuses.makeAsyncIterator()
    let running = Task { try await sync.run() }
    let status = try await next(&statuses, isSynced)
    #expect(status.notices.count == 1 && status.notices.first?.contains("stays open") == true, "\(status)")
    mine = try await here.find(Reminder.self, mine.id)
    other = try await here.find(Reminder.self, other.id)
    #expect(mine.title == "decided" && other.title.hasPrefix("Walk"))
    #expect(try await here.conflicts().count == 1)
    running.cancel()
    try await running.value
  }

  @Test("it is a service that ends at a graceful shutdown")
  func service() async throws {
    let (here, there) = (try await store("here"), try await store("there"))
    let sync = here.keepInSync(with: .directory(there.directory))
    var statuses = sync.statuses.makeAsyncIterator()
    let group = ServiceGroup(
      configuration: .init(
        services: [sync], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    let running = Task { try await group.run() }
    _ = try await next(&statuses, isSynced)
    await group.triggerGracefulShutdown()
    try await running.value
    while await statuses.next() != nil {}
  }

  @Test("it ends when its store is closed, and fails before it begins for an impossible pattern")
  func closed() async throws {
    let (here, there) = (try await store("here"), try await store("there"))
    await #expect(throws: StoreError.self) {
      try await here.keepInSync(with: .directory(there.directory), partitions: ["Remainder"]).run()
    }
    let sync = here.keepInSync(with: .directory(there.directory), partitions: ["Reminder"])
    var statuses = sync.statuses.makeAsyncIterator()
    let running = Task { try await sync.run() }
    _ = try await next(&statuses, isSynced)
    await here.close()
    await #expect(throws: StoreError.closed) { try await running.value }
  }

  @Test("through a transport, and a cancellation ends a session with a silent peer")
  func transport() async throws {
    let (here, there) = (try await store("here"), try await store("there"))
    try await here.insert(Reminder.Draft(title: "Rest"))
    let (calls, call) = AsyncStream.makeStream(of: PipeEnd.self)
    let peer = SyncPeer.transport("there") {
      let (end, other) = PipeEnd.pair()
      call.yield(other)
      return end
    }
    let sync = here.keepInSync(with: peer)
    var statuses = sync.statuses.makeAsyncIterator()
    let running = Task { try await sync.run() }
    var incoming = calls.makeAsyncIterator()
    try await there.answer(try #require(await incoming.next()))
    #expect(try await next(&statuses, isSynced).peer == "there")
    #expect(try await Reminder.all.fetchAll(there).map(\.title) == ["Rest"])
    try await here.insert(Reminder.Draft(title: "Walk"))
    // Nothing answers the second session.
    _ = try #require(await incoming.next())
    running.cancel()
    try await running.value
  }
}
