import Foundation
import StemmaEvents
import StemmaLog
import StemmaSimulation
import Testing

/// The contract of every conformer of `FileSystem`.
@Suite struct FileSystemConformanceTests {
  enum Conformer: CaseIterable { case posix, simulated }

  /// Runs `body` with an empty directory of a conformer.
  private func withDirectory(_ conformer: Conformer, _ body: (any FileSystem, String) throws -> Void) throws {
    switch conformer {
    case .simulated: try body(SimulatedFileSystem(), "")
    case .posix:
      let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
      defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: directory) } }
      try body(POSIXFileSystem(), directory)
    }
  }

  private func errno(_ body: () throws -> Void) -> Int32? {
    do { try body() } catch LogError.system(_, _, let errno) { return errno } catch {
      Issue.record("an error of another kind: \(error)")
    }
    return nil
  }

  @Test(arguments: Conformer.allCases) func filesAreWrittenAndReadAtOffsets(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let file = try system.open(directory + "/f", .create)
      #expect(try file.size() == 0)
      try file.write([1, 2, 3], at: 0)
      try file.write([9, 8], at: 5)
      #expect(try file.size() == 7)
      #expect(try file.read(at: 0, count: 7) == [1, 2, 3, 0, 0, 9, 8])
      #expect(try file.read(at: 6, count: 10) == [8])
      #expect(try file.read(at: 7, count: 10) == [])
      #expect(try file.read(at: 100, count: 10) == [])
      try file.write([], at: 50)
      #expect(try file.size() == 7)
      try file.truncate(to: 2)
      #expect(try file.read(at: 0, count: 9) == [1, 2])
      try file.truncate(to: 4)
      #expect(try file.read(at: 0, count: 9) == [1, 2, 0, 0])
      try file.sync()
      let again = try system.open(directory + "/f", .read)
      #expect(try again.read(at: 0, count: 9) == [1, 2, 0, 0])
      #expect(try again.identity() == file.identity())
      #expect(errno { try again.write([1], at: 0) } == System.badDescriptor)
    }
  }

  @Test(arguments: Conformer.allCases) func accessSaysWhetherAFileMayOrMustExist(_ conformer: Conformer)
    throws
  {
    try withDirectory(conformer) { system, directory in
      let path = directory + "/f"
      #expect(errno { _ = try system.open(path, .read) } == System.notFound)
      #expect(errno { _ = try system.open(path, .write) } == System.notFound)
      try system.open(path, .openOrCreate).write([1], at: 0)
      #expect(errno { _ = try system.open(path, .create) } == System.alreadyExists)
      #expect(try system.open(path, .openOrCreate).size() == 1)
      #expect(try system.open(path, .write).size() == 1)
      #expect(errno { _ = try system.open(directory + "/none/f", .create) } == System.notFound)
    }
  }

  @Test(arguments: Conformer.allCases) func aDirectoryIsNoFile(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let path = directory + "/d"
      try system.createDirectory(path)
      for access in [FileAccess.read, .write] {
        #expect(throws: LogError.notAFile(path: path, .directory)) { _ = try system.open(path, access) }
      }
    }
  }

  /// Opening a pipe must not wait for its other end.
  @Test func whatIsNoFileIsNamedAndNobodyWaitsForIt() throws {
    try withDirectory(.posix) { system, directory in
      func path(_ name: String) -> String { directory + "/" + name }
      #expect(mkfifo(path("pipe"), 0o600) == 0)
      try FileManager.default.createSymbolicLink(atPath: path("loop"), withDestinationPath: "loop")
      try FileManager.default.createSymbolicLink(atPath: path("device"), withDestinationPath: "/dev/zero")
      try FileManager.default.createSymbolicLink(atPath: path("nothing"), withDestinationPath: "gone")
      let kinds: [(String, NotAFile)] = [
        ("pipe", .pipe), ("loop", .linkLoop), ("device", .device), ("nothing", .deadLink),
      ]
      for (name, kind) in kinds {
        let error = #expect(throws: LogError.self) { _ = try system.open(path(name), .read) }
        #expect(error == .notAFile(path: path(name), kind))
        #expect(error?.description.contains("not a file; move it away") == true)
      }
      #expect(errno { _ = try system.open(path("gone"), .read) } == System.notFound)
    }
  }

  @Test(arguments: Conformer.allCases) func namesAreListedRenamedAndRemoved(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let base = directory + "/d"
      try system.createDirectory(base)
      #expect(errno { try system.createDirectory(base) } == System.alreadyExists)
      #expect(try system.list(base) == [])
      for name in ["b", "a", "B"] { _ = try system.open(base + "/" + name, .create) }
      #expect(try system.list(base) == ["B", "a", "b"])
      try system.open(base + "/a", .write).write([7], at: 0)
      let old = try system.open(base + "/b", .read)
      try system.rename(base + "/a", to: base + "/b")
      #expect(try system.list(base) == ["B", "b"])
      #expect(try system.open(base + "/b", .read).read(at: 0, count: 9) == [7])
      #expect(try old.read(at: 0, count: 9) == [])
      let open = try system.open(base + "/b", .read)
      try system.remove(base + "/b")
      #expect(try open.read(at: 0, count: 9) == [7])
      #expect(errno { try system.remove(base + "/b") } == System.notFound)
      #expect(errno { try system.rename(base + "/b", to: base + "/c") } == System.notFound)
      try system.syncDirectory(base)
      #expect(errno { _ = try system.list(directory + "/none") } == System.notFound)
      #expect(errno { try system.syncDirectory(directory + "/none") } == System.notFound)
    }
  }

  @Test(arguments: Conformer.allCases) func oneOpenFileHoldsTheLock(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let first = try system.open(directory + "/lock", .openOrCreate)
      let second = try system.open(directory + "/lock", .openOrCreate)
      #expect(try first.tryLock())
      #expect(try first.tryLock())
      #expect(try !second.tryLock())
      first.close()
      #expect(try second.tryLock())
    }
  }

  @Test(arguments: Conformer.allCases) func openFilesQueueForTheLock(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let files = try (0..<3).map { _ in try system.open(directory + "/lock", .openOrCreate) }
      #expect(try files.map { try $0.isBehindOthers() } == [false, false, false])
      try files[1].enqueue()
      try files[0].enqueue()
      #expect(try files.map { try $0.isBehindOthers() } == [true, false, true])
      // The lock itself is independent of the queue.
      #expect(try files[2].tryLock())
      #expect(try files.map { try $0.isBehindOthers() } == [true, false, true])
      files[1].close()
      #expect(try !files[0].isBehindOthers())
      files[0].close()
      #expect(try !files[2].isBehindOthers())
    }
  }

  @Test(arguments: Conformer.allCases) func aClosedFileIsOfNoUse(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let file = try system.open(directory + "/f", .create)
      file.close()
      file.close()
      #expect(errno { _ = try file.read(at: 0, count: 1) } == System.badDescriptor)
      #expect(errno { try file.write([1], at: 0) } == System.badDescriptor)
      #expect(errno { try file.sync() } == System.badDescriptor)
    }
  }

  @Test(arguments: Conformer.allCases) func theWriterLockNamesItsHolder(_ conformer: Conformer) throws {
    try withDirectory(conformer) { system, directory in
      let path = directory + "/lock"
      let first = try WriterLock(path, fileSystem: system, wait: 0, pid: 4711)
      try first.checkInvariants()
      #expect(throws: LogError.inUse(path: path, pid: 4711)) {
        _ = try WriterLock(path, fileSystem: system, wait: 3, pid: 12)
      }
      first.release()
      let second = try WriterLock(path, fileSystem: system, wait: 0, pid: 12)
      #expect(throws: LogError.inUse(path: path, pid: 12)) {
        _ = try WriterLock(path, fileSystem: system, wait: 0, pid: 13)
      }
      second.release()
    }
  }

  @Test(arguments: Conformer.allCases) func aWriterLockTellsWhetherAnybodyElseHeldIt(
    _ conformer: Conformer
  ) throws {
    try withDirectory(conformer) { system, directory in
      let path = directory + "/lock"
      let random = SystemRandomSource()
      let (one, two) = (WriterLock.Holder(random: random), WriterLock.Holder(random: random))
      /// Whether the holder was also the previous one. All have the same pid, as in containers.
      func isReturning(_ holder: WriterLock.Holder?) throws -> Bool {
        let lock = try WriterLock(path, fileSystem: system, wait: 0, pid: 1, holder: holder)
        try lock.checkInvariants()
        defer { lock.release() }
        return lock.isReturning
      }
      let found = try [one, one, two, one, one].map(isReturning)
      #expect(found == [false, true, false, false, true])
      // An anonymous holder is detected too.
      let later = try [nil, one, one].map(isReturning)
      #expect(later == [false, false, true])
    }
  }
}

/// Behavior that only the simulated file system can show.
@Suite struct SimulatedFileSystemTests {
  @Test func whatWasSyncedOutlivesACrash() throws {
    for seed in 1...50 as ClosedRange<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      let file = try disk.open("/f", .create)
      try file.write(Array("durable".utf8), at: 0)
      try file.sync()
      try disk.syncDirectory("/")
      try file.write(Array("volatile".utf8), at: 7)
      disk.crash()
      #expect(throws: LogError.self) { try file.sync() }
      let bytes = try #require(disk.contents("/f"))
      #expect(bytes.prefix(7) == Array("durable".utf8)[...])
      #expect(bytes.count <= 15)
    }
  }

  @Test func unsyncedChangesAreKeptLostOrTorn() throws {
    var outcomes: Set<[UInt8]?> = []
    for seed in 1...200 as ClosedRange<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      let file = try disk.open("/f", .create)
      try file.write([1, 2, 3], at: 0)
      try disk.syncDirectory("/")
      disk.crash()
      outcomes.insert(disk.contents("/f"))
    }
    #expect(outcomes.contains([]) && outcomes.contains([1, 2, 3]) && outcomes.contains([1]))
    #expect(outcomes.contains([1, 0, 0]))
  }

  @Test func aNameWithoutASyncOfItsDirectoryMayBeLost() throws {
    let kept = try (1...50 as ClosedRange<UInt64>).map { seed in
      let disk = SimulatedFileSystem(seed: seed)
      let file = try disk.open("/f", .create)
      try file.sync()
      disk.crash()
      return disk.contents("/f") != nil
    }
    #expect(kept.contains(true) && kept.contains(false))
  }

  /// The contents of a file "old" after [1, 2, 3, 4] were written at 3, a sync failed, and the next
  /// one succeeded. First as readers see it, then after a power failure. With `isWrittenAgain`, the
  /// same bytes are written and synced once more before the failure.
  private func outcomes(
    _ pages: SimulatedFileSystem.DroppedPages = .forgotten, isWrittenAgain: Bool,
    lie: SimulatedFileSystem.Lie? = nil
  ) throws -> Set<[[UInt8]]> {
    var outcomes: Set<[[UInt8]]> = []
    for seed in 1...100 as ClosedRange<UInt64> {
      let disk = SimulatedFileSystem(seed: seed, lie: lie)
      let file = try disk.open("/f", .create)
      try file.write(Array("old".utf8), at: 0)
      try file.sync()
      try disk.syncDirectory("/")
      try file.write([1, 2, 3, 4], at: 3)
      disk.inject([
        .init(operation: disk.operations.count + 1, errno: System.inputOutput, pages: pages)
      ])
      #expect(throws: LogError.system(path: "/f", operation: "fdatasync", errno: System.inputOutput)) {
        try file.sync()
      }
      let seen = try file.read(at: 0, count: 9)
      if isWrittenAgain { try file.write([1, 2, 3, 4], at: 3) }
      try file.sync()
      disk.checkInvariants()
      disk.crash()
      outcomes.insert([seen, disk.contents("/f") ?? []].map { Array($0.dropFirst(3)) })
    }
    return outcomes
  }

  @Test func aFailedSyncLosesWhatItShouldHaveWrittenThoughTheNextOneSucceeds() throws {
    let kept = try outcomes(.kept, isWrittenAgain: false)
    #expect(kept.allSatisfy { $0[0] == [1, 2, 3, 4] })
    #expect(
      kept.isSuperset(of: [[[1, 2, 3, 4], []], [[1, 2, 3, 4], [1]], [[1, 2, 3, 4], [1, 2, 3, 4]]]))
    let forgotten = try outcomes(isWrittenAgain: false)
    // The file may keep its length for readers.
    #expect(
      forgotten.allSatisfy {
        $0[0].starts(with: $0[1]) && $0[0].dropFirst($0[1].count).allSatisfy { $0 == 0 }
      })
    #expect(
      forgotten.isSuperset(of: [
        [[], []], [[0, 0, 0, 0], []], [[1, 2, 3, 0], [1, 2, 3]], [[1, 2], [1, 2]],
      ]))
  }

  @Test(arguments: SimulatedFileSystem.DroppedPages.allCases)
  func whatIsWrittenAgainAfterAFailedSyncLasts(pages: SimulatedFileSystem.DroppedPages) throws {
    #expect(try outcomes(pages, isWrittenAgain: true).allSatisfy { $0[1] == [1, 2, 3, 4] })
    let lost = try outcomes(pages, isWrittenAgain: true, lie: .writesOverDroppedPages)
    #expect(lost.contains([[1, 2, 3, 4], [0, 0, 0, 0]]) && lost.allSatisfy { $0[0] == [1, 2, 3, 4] })
  }
}
