import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Corrupt bytes cause an error with file and offset, or a reported cut of the tail, but never a
/// wrong event.
@Suite struct CorruptionTests {
  /// A closed log of two segments (one adopted, one that replaces another) and a journal.
  private func smallLog() throws -> (SimulatedFileSystem, [Event]) {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 11)
    maker.partitions = ["a", "b"]
    let log = try Log.create(
      in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 2000, level: 6))
    var events = maker.commit(8)
    _ = try log.append([Commit(events, message: CommitMessage(author: "tim", text: "first"))])
    try log.seal()
    try log.purge { $0 == Partition("tenant=b") }
    events.removeAll { $0.partition == Partition("tenant=b") }
    maker.partitions = ["a", "c"]
    let adopted = maker.commit(6, origin: Origin(9))
    _ = try log.adopt(AdoptedEvents(adopted))
    events += adopted
    for _ in 0..<2 {
      let commit = maker.commit(2)
      _ = try log.append([Commit(commit)])
      try log.sync()
      events += commit
    }
    log.close()
    return (disk, events)
  }

  /// Every readable event, and the error that ended the read.
  private func read(_ reader: EventReader) -> ([Event], LogError?) {
    var reader = reader
    var events: [Event] = []
    do throws(LogError) {
      while let event = try reader.next() { events.append(event.event) }
      return (events, nil)
    } catch { return (events, error) }
  }

  private func path(of error: LogError?) -> String? {
    switch error {
    case .corrupt(let path, _, _), .newerFormat(let path, _, _), .foreignLog(let path, _, _): path
    case .noManifest(let path, _): path
    default: nil
    }
  }

  /// nil: opening fails with an error about the manifest, because the previous one is outdated.
  private func open(
    _ disk: SimulatedFileSystem, _ mode: Log.Mode, _ name: String, _ comment: Comment
  ) throws -> Log? {
    do throws(LogError) {
      return try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: mode))
    } catch {
      #expect(name == "manifest" && path(of: error) == "/log/manifest", comment)
      return nil
    }
  }

  private func checkFlipped(
    _ disk: SimulatedFileSystem, _ name: String, _ events: [Event], _ comment: Comment
  ) throws {
    for mode in [Log.Mode.readOnly, .readWrite] {
      let copy = disk.copy()
      guard let log = try open(copy, mode, name, comment) else { continue }
      let (found, error) = read(log.events())
      if let error {
        #expect(path(of: error)?.hasSuffix(name) == true, comment)
        // The events before the corruption are a prefix, in the right order.
        #expect(events.starts(with: found), comment)
      } else {
        // Nothing was lost, or the tail was cut, which is reported.
        #expect(events.starts(with: found), comment)
        if found.count < events.count { #expect(mode == .readOnly || !log.recovery.cuts.isEmpty, comment) }
      }
      let set = Set(events)
      for reader in [log.eventsNewestFirst(), try? log.eventsByKey()] {
        guard let reader else { continue }
        let (others, otherError) = read(reader)
        #expect(set.isSuperset(of: others), comment)
        #expect((otherError == nil) == (error == nil), comment)
      }
      let corruption = try log.verify()
      if mode == .readOnly, error != nil || !name.hasSuffix(".journal") {
        #expect(corruption.contains { $0.path.hasSuffix(name) }, comment)
      }
      if mode == .readWrite, !log.recovery.corruption.isEmpty { try checkAppending(to: log, copy, comment) }
    }
  }

  /// A corrupt log accepts new events and still records the corruption.
  private func checkAppending(to log: Log, _ disk: SimulatedFileSystem, _ comment: Comment) throws {
    var maker = EventMaker(seed: 1234)
    maker.partitions = ["new"]
    let events = maker.commit(1, origin: Origin(77))
    _ = try log.append([Commit(events)])
    try log.sync()
    let before = log.recovery.corruption.map(\.offset)
    log.checkInvariants()
    log.close()
    let again = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(again.recovery.corruption.map(\.offset) == before, comment)
    let omissions = Omissions()
    let (found, error) = read(again.events(around: omissions))
    #expect(error == nil && found.last == events[0] && !omissions.isEmpty, comment)
    again.checkInvariants()
  }

  @Test func aFlippedBitInAnyByteIsFoundAndNamed() throws {
    let (disk, events) = try smallLog()
    let names = try disk.list("/log")
    #expect(
      names == [
        "00000002.segment", "00000003.journal", "00000003.segment", "manifest", "manifest.previous",
        "watermark",
      ])
    for name in names {
      let path = "/log/" + name
      let bytes = try #require(disk.contents(path))
      for index in bytes.indices {
        // One bit of each byte, because checksums detect every bit equally.
        var flipped = bytes
        flipped[index] ^= 1 << UInt8(index % 8)
        let copy = disk.copy()
        copy.plant(flipped, at: path)
        try checkFlipped(copy, name, events, "\(name), byte \(index)")
      }
    }
  }

  @Test func everyCutIsFoundOrReported() throws {
    let (disk, events) = try smallLog()
    for name in try disk.list("/log") where name != LogFileName.watermarkName {
      let path = "/log/" + name
      let bytes = try #require(disk.contents(path))
      for count in bytes.indices {
        let copy = disk.copy()
        copy.plant(Array(bytes[..<count]), at: path)
        guard let log = try open(copy, .readWrite, name, "\(name) cut to \(count)") else { continue }
        let (found, error) = read(log.events())
        #expect(events.starts(with: found), "\(name) cut to \(count)")
        // The watermark records that the journal was longer.
        if name != "manifest.previous" { #expect(self.path(of: error) == path, "\(name) cut to \(count)") }
        #expect(try log.verify().contains { $0.path == path })
      }
    }
  }

  @Test func aBadByteBelowTheWatermarkIsNeverCut() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 12)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    let events = [maker.commit(2), maker.commit(2)]
    for commit in events {
      _ = try log.append([Commit(commit)])
      try log.sync()
    }
    let path = "/log/00000001.journal"
    let second = log.journals[0].marks[1].offset
    log.close()
    var bytes = try #require(disk.contents(path))
    bytes[bytes.count - 1] ^= 1
    disk.plant(bytes, at: path)
    let unmarked = disk.copy()
    // With the watermark it is corruption.
    let corrupt = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(corrupt.recovery.cuts == [])
    #expect(corrupt.recovery.corruption.map(\.offset) == [second])
    #expect(disk.contents(path) == bytes)
    let (found, error) = read(corrupt.events())
    #expect(found == events[0])
    #expect(path == self.path(of: error))
    // Without the watermark, nothing shows that the last group was acknowledged. This is the only
    // stated limit.
    try unmarked.remove("/log/watermark")
    let torn = try Log.open(in: "/log", id: testLog, fileSystem: unmarked)
    #expect(torn.recovery.cuts.map(\.offset) == [second])
    #expect(try torn.allEvents() == events[0])
    // A later frame confirms it too.
    let confirmed = SimulatedFileSystem()
    let other = try Log.create(in: "/log", id: testLog, fileSystem: confirmed)
    for commit in events {
      _ = try other.append([Commit(commit)])
      try other.sync()
    }
    other.close()
    try confirmed.remove("/log/watermark")
    bytes = try #require(confirmed.contents(path))
    bytes[100] ^= 1
    confirmed.plant(bytes, at: path)
    let withGap = try Log.open(in: "/log", id: testLog, fileSystem: confirmed)
    #expect(withGap.recovery.cuts == [])
    #expect(withGap.recovery.corruption.map(\.offset) == [UInt64(JournalHeader.size)])
    let omissions = Omissions()
    #expect(read(withGap.events(around: omissions)).0 == events[1])
    #expect(omissions.corruption == withGap.recovery.corruption)
  }

  @Test func missingAndForeignFilesAreNamed() throws {
    let (disk, events) = try smallLog()
    let names = try disk.list("/log")
    let segment = "/log/" + (try #require(names.first { $0.hasSuffix(".segment") }))
    let journal = "/log/" + (try #require(names.first { $0.hasSuffix(".journal") }))
    let gone = disk.copy()
    try gone.remove(segment)
    // A segment is opened when it is read.
    let log = try Log.open(in: "/log", id: testLog, fileSystem: gone)
    #expect(log.recovery.corruption == [])
    #expect(read(log.events()).1 == Corruption(path: segment, offset: 0, flaw: .missing).error)
    #expect(try log.verify() == [Corruption(path: segment, offset: 0, flaw: .missing)])
    let last = disk.copy()
    try last.remove(journal)
    // Opening must not hide the corruption from later openings.
    for _ in 0..<2 {
      let log = try Log.open(in: "/log", id: testLog, fileSystem: last)
      #expect(log.recovery.corruption == [Corruption(path: journal, offset: 0, flaw: .missing)])
      #expect(path(of: read(log.events()).1) == journal)
      // New events get positions that the lost events cannot have had.
      #expect(log.end.rawValue > UInt64(events.count) + 1000)
    }
    for (bytes, flaw) in [([], Flaw.empty), (Array("SQLite format 3\0 and so on".utf8), .notThisFormat)] {
      let copy = disk.copy()
      copy.plant(bytes, at: journal)
      let log = try Log.open(in: "/log", id: testLog, fileSystem: copy)
      #expect(log.recovery.corruption == [Corruption(path: journal, offset: 0, flaw: flaw)])
    }
    #expect(throws: LogError.foreignLog(path: "/log/manifest", expected: LogID(1), found: testLog)) {
      _ = try Log.open(in: "/log", id: LogID(1), fileSystem: disk)
    }
    #expect(throws: LogError.noLog(path: "/nothing")) {
      _ = try Log.open(in: "/nothing", id: testLog, fileSystem: disk)
    }
    #expect(throws: LogError.logExists(path: "/log")) {
      _ = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    }
  }

  /// The watermark of a failed creation must not be mistaken for an unrecognized file.
  @Test func anUnfinishedCreationLeavesNothingToTheNextOne() throws {
    var failures = 0
    for operation in 1... {
      let disk = SimulatedFileSystem()
      disk.inject([.init(operation: operation, errno: System.noSpace)])
      do throws(LogError) {
        _ = try Log.create(in: "/log", id: LogID(1), fileSystem: disk)
        break
      } catch { failures += 1 }
      // A second failure leaves nothing either.
      disk.inject([.init(operation: disk.operations.count + operation, errno: System.noSpace)])
      do throws(LogError) { _ = try Log.create(in: "/log", id: LogID(2), fileSystem: disk) } catch {}
      _ = try Log.create(in: "/log", id: testLog, fileSystem: disk)
      #expect(
        try disk.list("/log") == ["00000001.journal", "manifest", "watermark"], "operation \(operation)")
      let log = try Log.open(in: "/log", id: testLog, fileSystem: disk)
      #expect(log.recovery.corruption == [], "operation \(operation)")
    }
    #expect(failures > 8)
    // `create` replaces a log without events, which a caller without room for its own files left
    // behind. It does not replace a log with an event.
    let disk = SimulatedFileSystem()
    for number in 1...2 { try Log.create(in: "/log", id: LogID(UInt64(number)), fileSystem: disk).close() }
    let log = try Log.open(in: "/log", id: LogID(2), fileSystem: disk)
    var maker = EventMaker(seed: 1)
    _ = try log.append([Commit(maker.commit(1))])
    try log.sync()
    log.close()
    #expect(throws: LogError.logExists(path: "/log")) {
      _ = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    }
  }

  @Test func newerFormatsAreRefusedBeforeAByteIsWritten() throws {
    let (disk, _) = try smallLog()
    for name in try disk.list("/log") where !name.hasSuffix(".segment") && name != "manifest.previous" {
      let path = "/log/" + name
      let copy = disk.copy()
      var bytes = try #require(copy.contents(path))
      bytes[8] = 3
      let crc = Array(bytes[..<12]).crc32c
      bytes.replaceSubrange(12..<16, with: withUnsafeBytes(of: crc.bigEndian, Array.init))
      copy.plant(bytes, at: path)
      copy.plant([1, 2, 3], at: "/log/00000009.segment.partial")
      for mode in [Log.Mode.readOnly, .readWrite] {
        #expect(throws: LogError.newerFormat(path: path, found: 3, supported: 2)) {
          _ = try Log.open(in: "/log", id: testLog, fileSystem: copy, options: .init(mode: mode))
        }
      }
      let writes = copy.operations.filter { line in
        ["pwrite", "ftruncate", "unlink", "rename", "fdatasync", "fsync", "mkdir"].contains {
          line.hasPrefix($0)
        }
      }
      #expect(writes == [])
    }
  }

  /// A file that the manifest does not list is unrecognized, whatever its name and content. It is
  /// reported and kept unchanged.
  @Test func aFileThatIsNotListedIsNeitherReadNorTouched() throws {
    let (disk, events) = try smallLog()
    let names = try disk.list("/log")
    let segment = try #require(names.first { $0.hasSuffix(".segment") })
    let journal = try #require(names.first { $0.hasSuffix(".journal") })
    let strangers = ["00000077.segment", "00000099.journal", "notes.txt"]
    func model(of name: String) -> String { "/log/" + (name.hasSuffix("journal") ? journal : segment) }
    for name in strangers { disk.plant(try #require(disk.contents(model(of: name))), at: "/log/" + name) }
    for mode in [Log.Mode.readOnly, .readWrite] {
      let log = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: mode))
      #expect(try log.allEvents() == events)
      #expect(try log.verify() == [])
      #expect(try log.unrecognizedFiles() == strangers)
      if mode == .readWrite {
        try log.seal()
        try log.purge { $0 == Partition("tenant=c") }
        #expect(try log.unrecognizedFiles() == strangers)
      }
      log.close()
    }
    for name in strangers {
      let original = try #require(try smallLog().0.contents(model(of: name)))
      #expect(disk.contents("/log/" + name) == original)
    }
  }

  /// The previous manifest is valid if the last one is lost before its writer could remove obsolete
  /// files. Otherwise the manifest is rebuilt on demand, from the files alone.
  @Test func aLostManifestIsMadeAnewFromTheFiles() throws {
    let (disk, events) = try smallLog()
    let whole = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    let manifest = whole.manifest
    whole.close()
    for bytes in [nil, [], Array("nothing of a manifest".utf8)] as [[UInt8]?] {
      let copy = disk.copy()
      for name in ["manifest", "manifest.previous"] {
        if let bytes { copy.plant(bytes, at: "/log/" + name) } else { try copy.remove("/log/" + name) }
      }
      let flaw = bytes == nil ? Flaw.missing : bytes == [] ? .empty : .notThisFormat
      #expect(throws: LogError.noManifest(path: "/log/manifest", bytes?.count == 21 ? .notThisFormat : flaw))
      {
        _ = try Log.open(in: "/log", id: testLog, fileSystem: copy)
      }
      let files = try Log.remakeManifest(in: "/log", id: testLog, fileSystem: copy).files
      #expect(
        files
          == (try disk.list("/log").filter { $0.hasPrefix("0") }.sorted { a, b in
            a.hasSuffix("segment") && (b.hasSuffix("journal") || a < b)
          }))
      let log = try Log.open(in: "/log", id: testLog, fileSystem: copy)
      #expect(try log.allEvents() == events)
      #expect(try log.verify() == [])
      #expect(log.manifest.segments == manifest.segments && log.manifest.start == manifest.start)
      #expect(log.manifest.firstJournal == manifest.firstJournal)
    }
    // Of two segments for the same positions, the later one is valid. (A purged segment without a
    // replacement returns, because only the manifest recorded its removal.)
    let purged = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    try purged.seal()
    let before = disk.copy()
    let old = purged.manifest.segments
    try purged.purge { $0 == Partition("tenant=c") }
    let left = try purged.allEvents()
    let new = purged.manifest.segments
    purged.close()
    var replaced = 0
    for entry in old where new.contains(where: { $0.base < entry.past && entry.base < $0.past }) {
      let path = LogFileName.segment(entry.number).path(in: "/log")
      if disk.contents(path) == nil { replaced += 1 }
      disk.plant(try #require(before.contents(path)), at: path)
    }
    #expect(replaced > 0)
    for name in ["manifest", "manifest.previous"] { try disk.remove("/log/" + name) }
    let made = try Log.remakeManifest(in: "/log", id: testLog, fileSystem: disk)
    // A segment of which everything was purged looks like a lost one.
    let gone = old.filter { entry in !new.contains { $0.base < entry.past && entry.base < $0.past } }
    #expect(made.missing.count == gone.count)
    let again = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    let omissions = Omissions()
    let (found, _) = read(again.events(around: omissions))
    #expect(found == left, "\(found.count) of \(left.count), \(again.manifest) \(new)")
    #expect(omissions.corruption.count == gone.count)
  }

  /// The space after the last frame of a journal may hold old frames. They belong to another log,
  /// another journal of this log, or another offset. Each is intact, but none is valid here.
  @Test func aStaleFrameIsNeverValid() throws {
    func journal(_ id: LogID, seals: Int) throws -> (SimulatedFileSystem, String, [Event]) {
      let disk = SimulatedFileSystem()
      var maker = EventMaker(seed: 17)
      let log = try Log.create(in: "/log", id: id, fileSystem: disk)
      for _ in 0..<seals {
        _ = try log.append([Commit(maker.commit(3))])
        try log.seal()
      }
      var events = try log.allEvents()
      for _ in 0..<3 {
        let commit = maker.commit(3)
        _ = try log.append([Commit(commit)])
        try log.sync()
        events += commit
      }
      log.close()
      let name = try #require(try disk.list("/log").first { $0.hasSuffix(".journal") })
      return (disk, "/log/" + name, events)
    }
    let (disk, path, events) = try journal(testLog, seals: 1)
    let own = try #require(disk.contents(path))
    let (foreign, foreignPath, _) = try journal(LogID(testLog.rawValue &+ 1), seals: 1)
    let (older, olderPath, _) = try journal(testLog, seals: 0)
    let others = [try #require(foreign.contents(foreignPath)), try #require(older.contents(olderPath)), own]
    for (which, other) in others.enumerated() {
      for start in JournalHeader.size..<other.count {
        let copy = disk.copy()
        copy.plant(own + other[start...], at: path)
        let opened = try Log.open(in: "/log", id: testLog, fileSystem: copy)
        #expect(try opened.allEvents() == events, "journal \(which) from byte \(start)")
        #expect(opened.recovery.corruption.isEmpty)
        #expect(opened.recovery.cuts.map(\.bytes) == [UInt64(other.count - start)])
        opened.close()
      }
    }
  }
}
