import Dispatch
import StemmaLog
import Synchronization
import Testing

@testable import Stemma

/// Real files. A test counts their syncs and can hold one back.
private final class HeldFileSystem: FileSystem {
  private struct State {
    var syncs = 0
    var isHeld = false
    var isFailing = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let base = POSIXFileSystem()
  private let state = Mutex(State())
  private let gate = DispatchSemaphore(value: 0)

  var syncs: Int { state.withLock { $0.syncs } }

  /// The next sync waits until `release`.
  func hold() { state.withLock { $0.isHeld = true } }

  /// Returns as soon as a sync waits.
  func isHolding() async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if !state.isHeld { return true }
        state.waiting = continuation
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func release() { gate.signal() }

  /// All further syncs fail.
  func fail() { state.withLock { $0.isFailing = true } }

  fileprivate func sync(_ path: String) throws(LogError) {
    // EIO.
    if state.withLock({ $0.isFailing }) { throw .system(path: path, operation: "fdatasync", errno: 5) }
    let (isHeld, waiting) = state.withLock { state in
      state.syncs += 1
      defer { (state.isHeld, state.waiting) = (false, nil) }
      return (state.isHeld, state.waiting)
    }
    guard isHeld else { return }
    waiting?.resume()
    gate.wait()
  }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    HeldFile(try base.open(path, access), path, self)
  }
  func list(_ directory: String) throws(LogError) -> [String] { try base.list(directory) }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
  func isOwn(_ directory: String) throws(LogError) -> Bool { try base.isOwn(directory) }
}

private final class HeldFile: File {
  private let base: any File
  private let path: String
  private let system: HeldFileSystem

  init(_ base: any File, _ path: String, _ system: HeldFileSystem) {
    self.base = base
    self.path = path
    self.system = system
  }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    try base.read(at: offset, count: count)
  }
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) { try base.write(bytes, at: offset) }
  func sync() throws(LogError) {
    try system.sync(path)
    try base.sync()
  }
  func truncate(to size: UInt64) throws(LogError) { try base.truncate(to: size) }
  func size() throws(LogError) -> UInt64 { try base.size() }
  func identity() throws(LogError) -> FileIdentity { try base.identity() }
  func tryLock() throws(LogError) -> Bool { try base.tryLock() }
  func enqueue() throws(LogError) { try base.enqueue() }
  func isBehindOthers() throws(LogError) -> Bool { try base.isBehindOthers() }
  func close() { base.close() }
}

@Suite("Writers and readers of a slow disk", .timeLimit(.minutes(20)))
struct SharedSyncTests {
  @Test("reads see the last commit while one is being made; commits that wait meanwhile share their syncs")
  func slowDisk() async throws {
    let files = HeldFileSystem()
    var options = Store.Options()
    options.ports.fileSystem = files
    let store = try await Store.temporary(options: options, models: Reminder.self)
    let rest = try await store.insert(Reminder.Draft(title: "Rest"))
    let before = files.syncs
    try await Reminder.find(rest.id).update { $0.isDone = true }.execute(store)
    let syncsOfOne = files.syncs - before
    #expect(syncsOfOne > 0)

    var counts = store.observe(Reminder.count()).makeAsyncIterator()
    #expect(try await counts.next() == [1])

    files.hold()
    let start = files.syncs
    let commits = 40
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await store.insert(Reminder.Draft(title: "slow")) }
      await files.isHolding()
      for number in 0..<commits {
        group.addTask { try await store.insert(Reminder.Draft(title: "\(number)")) }
      }
      // The disk is busy, so no commit proceeds, but reads do.
      while store.writer.waitingCount < commits { await Task.yield() }
      #expect(try await Reminder.all.fetchAll(store).map(\.title) == ["Rest"])
      #expect(try await store.find(Reminder.self, rest.id).isDone)
      #expect(try await store.read { try Reminder.all.fetchCount($0) } == 1)
      files.release()
      try await group.waitForAll()
    }
    #expect(try await Reminder.all.fetchCount(store) == commits + 2)
    try await store.checkInvariants()
    // The syncs of the slow commit, and of one group.
    #expect(files.syncs - start <= 3 * syncsOfOne, "\(files.syncs - start) syncs")
    // The observer saw each commit separately.
    for count in 2...commits + 2 { #expect(try await counts.next() == [count]) }
  }

  @Test("a relaxed commit returns and is shown before it is synced, and the sync needs no request")
  func relaxed() async throws {
    let files = HeldFileSystem()
    var options = Store.Options()
    options.ports.fileSystem = files
    options.durability = .relaxed
    let store = try await Store.temporary(options: options, models: Reminder.self)
    for number in 0..<3 {
      // A commit that waited for the sync would never return.
      files.hold()
      let made = try await store.insert(Reminder.Draft(title: "\(number)"))
      #expect(try await store.find(Reminder.self, made.id).title == "\(number)")
      await files.isHolding()
      #expect(try await Reminder.all.fetchCount(store) == number + 1)
      files.release()
    }
    let before = files.syncs
    try await store.write(durability: .strict) { tx in try tx.insert(Reminder.Draft(title: "strict")) }
    #expect(files.syncs > before)
    try await store.insert(Reminder.Draft(title: "last"))
    try await store.checkInvariants()
    try await store.insert(Reminder.Draft(title: "very last"))
    await store.close()
    let after = files.syncs
    #expect(after > before + 1)
  }

  /// Each commit restores the state that it found, so the last one must restore first.
  @Test(
    "when a group of commits fails as a whole, a value that two of them save has seen what it had seen before"
  )
  func failingGroup() async throws {
    let files = HeldFileSystem()
    var options = Store.Options()
    options.ports.fileSystem = files
    let store = try await Store.temporary(options: options, models: Reminder.self)
    var copy = try await store.insert(Reminder.Draft(title: "old"))
    let seen = copy._record.view
    copy.title = "new"
    let titled = copy
    copy.title = "old"
    copy.isDone = true
    let done = copy

    var titles = store.observe(Reminder.select { $0.title }).makeAsyncIterator()
    #expect(try await titles.next() == ["old"])

    let gate = DispatchSemaphore(value: 0)
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    let first = Task {
      try await store.write { _ in
        begin.finish()
        gate.wait()
      }
    }
    for await _ in begun {}
    var group: [Task<Reminder, any Error>] = []
    // The first update does not record the title, because it equals the old one. The third one
    // does, because the second has recorded another title.
    for row in [done, titled, done] {
      group.append(Task { try await store.update(row) })
      while store.writer.waitingCount < group.count { await Task.yield() }
    }
    files.fail()
    gate.signal()
    _ = await first.result
    for commit in group { await #expect(throws: StoreError.self) { try await commit.value } }
    for row in [titled, done] { row._record.checkInvariants() }
    #expect(done._record.view == seen)
    #expect(titled._record.view == seen)
    // Observers do not see abandoned commits.
    #expect(try titles.pending?.takeFirst() == nil)
  }
}
