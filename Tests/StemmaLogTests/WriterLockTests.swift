import Foundation
import StemmaLog
import StemmaSimulation
import Synchronization
import Testing

/// Writers that wait for each other.
@Suite struct WriterLockTests {
  /// A free lock must not go to a waiter at random.
  @Test func theLockGoesToTheFirstInTheQueue() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    let system = ObservedFileSystem()
    let failures = Mutex<[String]>([])
    let group = DispatchGroup()
    let held = try WriterLock(path, fileSystem: POSIXFileSystem(), wait: 0)
    for _ in 0..<20 {
      group.enter()
      Thread.detachNewThread {
        defer { group.leave() }
        do { try WriterLock(path, fileSystem: system, wait: 600_000).release() } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    while system.orders.queued.count < 20, failures.withLock({ $0.isEmpty }) { sched_yield() }
    held.release()
    group.wait()
    try FileManager.default.removeItem(atPath: path)
    #expect(failures.withLock { $0 } == [])
    let (queued, served) = system.orders
    #expect(queued.count == 20)
    #expect(served == queued)
  }

  #if os(Linux)
    /// An app that starts a program while it writes passes the descriptor to the child until its
    /// exec. The next writer, without a wait, found the lock held by the app itself.
    @Test func aCopyOfTheDescriptorDoesNotKeepTheLock() throws {
      let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
      let held = try WriterLock(path, fileSystem: POSIXFileSystem(), wait: 0)
      let numbers = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap(
        Int32.init)
      let number = try #require(
        numbers.first { readlink($0) == path }, "the lock file is open")
      let copy = dup(number)
      #expect(throws: LogError.inUse(path: path, pid: getpid())) {
        try WriterLock(path, fileSystem: POSIXFileSystem(), wait: 0)
      }
      held.release()
      try WriterLock(path, fileSystem: POSIXFileSystem(), wait: 0).release()
      close(copy)
      try FileManager.default.removeItem(atPath: path)
    }

    private func readlink(_ descriptor: Int32) -> String? {
      do {
        return try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
      } catch {
        return nil
      }
    }
  #endif

  @Test func aWaiterThatIsStoppedHoldsUpTheOthersForHalfOfTheirTime() throws {
    let disk = SimulatedFileSystem()
    let stopped = try disk.open("/lock", .openOrCreate)
    try stopped.enqueue()
    var before = disk.operations.count
    try WriterLock("/lock", fileSystem: disk, wait: 40).release()
    let asked = disk.operations[before...]
    let patient = asked.prefix { !$0.hasPrefix("flock") }.count { $0.hasPrefix("fcntl") }
    #expect(patient > 1)
    // The stopped process is killed.
    stopped.close()
    before = disk.operations.count
    try WriterLock("/lock", fileSystem: disk, wait: 40).release()
    #expect(disk.operations[before...].count { $0.hasPrefix("fcntl") } == 1)
    // A writer that does not wait ignores the queue.
    before = disk.operations.count
    try WriterLock("/lock", fileSystem: disk, wait: 0).release()
    #expect(disk.operations[before...].count { $0.hasPrefix("fcntl") } == 0)
  }
}

/// Real files that record the order in which their locks were requested and acquired.
private final class ObservedFileSystem: FileSystem {
  struct Orders {
    var queued: [ObjectIdentifier] = []
    var served: [ObjectIdentifier] = []
    /// Kept alive, so that each has a unique identifier.
    var files: [any File] = []
  }

  private let base = POSIXFileSystem()
  fileprivate let state = Mutex(Orders())

  var orders: (queued: [ObjectIdentifier], served: [ObjectIdentifier]) {
    state.withLock { ($0.queued, $0.served) }
  }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    let file = ObservedFile(try base.open(path, access), self)
    state.withLock { $0.files.append(file) }
    return file
  }
  func list(_ directory: String) throws(LogError) -> [String] { try base.list(directory) }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
  func isOwn(_ directory: String) throws(LogError) -> Bool { try base.isOwn(directory) }
}

private final class ObservedFile: File {
  private let base: any File
  private unowned let system: ObservedFileSystem

  init(_ base: any File, _ system: ObservedFileSystem) {
    self.base = base
    self.system = system
  }

  func tryLock() throws(LogError) -> Bool {
    guard try base.tryLock() else { return false }
    system.state.withLock { $0.served.append(ObjectIdentifier(self)) }
    return true
  }
  func enqueue() throws(LogError) {
    let outcome = system.state.withLock { state in
      let outcome = Result { () throws(LogError) in try base.enqueue() }
      state.queued.append(ObjectIdentifier(self))
      return outcome
    }
    try outcome.get()
  }
  func isBehindOthers() throws(LogError) -> Bool { try base.isBehindOthers() }
  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    try base.read(at: offset, count: count)
  }
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) { try base.write(bytes, at: offset) }
  func sync() throws(LogError) { try base.sync() }
  func truncate(to size: UInt64) throws(LogError) { try base.truncate(to: size) }
  func size() throws(LogError) -> UInt64 { try base.size() }
  func identity() throws(LogError) -> FileIdentity { try base.identity() }
  func close() { base.close() }
}
