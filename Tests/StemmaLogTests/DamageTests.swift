import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Bytes that are not what was written: an error that names file and offset, or a reported cut of the tail;
/// never a wrong event.
@Suite struct DamageTests {
  /// A log of two segments (one adopted, one that replaces another) and a journal, closed.
  private func smallLog() throws -> (SimulatedFileSystem, [Event]) {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 11)
    maker.partitions = ["a", "b"]
    let log = try Log.create(
      in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 2000, level: 6))
    var events = maker.commit(8)
    _ = try log.append([Commit(events, note: CommitNote(by: "tim", note: "first"))])
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

  /// Every event that can be read, and the error that ended it.
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
    case .damaged(let path, _, _), .newerFormat(let path, _, _), .foreignLog(let path, _, _): path
    default: nil
    }
  }

  private func checkFlipped(
    _ disk: SimulatedFileSystem, _ name: String, _ events: [Event], _ comment: Comment
  ) throws {
    for mode in [Log.Mode.readOnly, .readWrite] {
      let copy = disk.copy()
      let log = try Log.open(in: "/log", id: testLog, fileSystem: copy, options: .init(mode: mode))
      let (found, error) = read(log.events())
      if let error {
        #expect(path(of: error)?.hasSuffix(name) == true, comment)
        // What came before the damage is a prefix; nothing is out of its place.
        #expect(events.starts(with: found), comment)
      } else {
        // Nothing was lost; or the tail was cut, which is reported.
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
      let damage = try log.verify()
      if mode == .readOnly, error != nil || name != "00000004.journal" {
        #expect(damage.contains { $0.path.hasSuffix(name) }, comment)
      }
      if mode == .readWrite, !log.recovery.damage.isEmpty { try checkAppending(to: log, copy, comment) }
    }
  }

  /// A damaged log can be appended to, and does not forget the damage by it.
  private func checkAppending(to log: Log, _ disk: SimulatedFileSystem, _ comment: Comment) throws {
    var maker = EventMaker(seed: 1234)
    maker.partitions = ["new"]
    let events = maker.commit(1, origin: Origin(77))
    _ = try log.append([Commit(events)])
    try log.sync()
    let before = log.recovery.damage.map(\.offset)
    log.checkInvariants()
    log.close()
    let again = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(again.recovery.damage.map(\.offset) == before, comment)
    let omissions = Omissions()
    let (found, error) = read(again.events(around: omissions))
    #expect(error == nil && found.last == events[0] && !omissions.isEmpty, comment)
    again.checkInvariants()
  }

  @Test func aFlippedBitInAnyByteIsFoundAndNamed() throws {
    let (disk, events) = try smallLog()
    let names = try disk.list("/log")
    #expect(names == ["00000002.segment", "00000003.segment", "00000004.journal", "watermark"])
    for name in names {
      let path = "/log/" + name
      let bytes = try #require(disk.contents(path))
      for index in bytes.indices {
        // One bit of each byte: a checksum does not care which.
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
        let log = try Log.open(in: "/log", id: testLog, fileSystem: copy)
        let (found, error) = read(log.events())
        #expect(events.starts(with: found), "\(name) cut to \(count)")
        // The watermark says that the journal was longer.
        #expect(self.path(of: error) == path, "\(name) cut to \(count)")
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
    // With the watermark: corruption.
    let corrupt = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(corrupt.recovery.cuts == [])
    #expect(corrupt.recovery.damage.map(\.offset) == [second])
    #expect(disk.contents(path) == bytes)
    let (found, error) = read(corrupt.events())
    #expect(found == events[0])
    #expect(path == self.path(of: error))
    // Without it nobody knows that the last group was acknowledged: the one stated limit.
    try unmarked.remove("/log/watermark")
    let torn = try Log.open(in: "/log", id: testLog, fileSystem: unmarked)
    #expect(torn.recovery.cuts.map(\.offset) == [second])
    #expect(try torn.allEvents() == events[0])
    // A later frame says it too.
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
    let holed = try Log.open(in: "/log", id: testLog, fileSystem: confirmed)
    #expect(holed.recovery.cuts == [])
    #expect(holed.recovery.damage.map(\.offset) == [64])
    let omissions = Omissions()
    #expect(read(holed.events(around: omissions)).0 == events[1])
    #expect(omissions.damage == holed.recovery.damage)
  }

  @Test func missingAndForeignFilesAreNamed() throws {
    let (disk, _) = try smallLog()
    let gone = disk.copy()
    try gone.remove("/log/00000002.segment")
    let log = try Log.open(in: "/log", id: testLog, fileSystem: gone)
    #expect(log.recovery.damage == [Damage(path: "/log/00000002.segment", offset: 0, flaw: .missing)])
    #expect(path(of: read(log.events()).1) == "/log/00000002.segment")
    let last = disk.copy()
    try last.remove("/log/00000004.journal")
    // Opening must not make others forget it. Later on nobody knows what kind of file it was.
    for kind in ["journal", "segment"] {
      let log = try Log.open(in: "/log", id: testLog, fileSystem: last)
      #expect(log.recovery.damage == [Damage(path: "/log/00000004.\(kind)", offset: 0, flaw: .missing)])
      #expect(path(of: read(log.events()).1) == "/log/00000004.\(kind)")
    }
    for (bytes, flaw) in [([], Flaw.empty), (Array("SQLite format 3\0 and so on".utf8), .notThisFormat)] {
      for name in ["00000003.segment", "00000004.journal"] {
        let copy = disk.copy()
        copy.plant(bytes, at: "/log/" + name)
        let log = try Log.open(in: "/log", id: testLog, fileSystem: copy)
        #expect(log.recovery.damage == [Damage(path: "/log/" + name, offset: 0, flaw: flaw)])
      }
    }
    #expect(throws: LogError.foreignLog(path: "/log/00000002.segment", expected: LogID(1), found: testLog)) {
      _ = try Log.open(in: "/log", id: LogID(1), fileSystem: disk)
    }
    #expect(throws: LogError.noLog(path: "/nothing")) {
      _ = try Log.open(in: "/nothing", id: testLog, fileSystem: disk)
    }
    #expect(throws: LogError.logExists(path: "/log")) {
      _ = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    }
  }

  /// The watermark of a creation that failed later was moved aside like something that somebody had put there.
  @Test func anUnfinishedCreationLeavesNothingToTheNextOne() throws {
    var failures = 0
    for operation in 1... {
      let disk = SimulatedFileSystem()
      disk.inject([.init(operation: operation, errno: System.noSpace)])
      do throws(LogError) {
        _ = try Log.create(in: "/log", id: LogID(1), fileSystem: disk)
        break
      } catch { failures += 1 }
      // Nor does a second failure.
      disk.inject([.init(operation: disk.operations.count + operation, errno: System.noSpace)])
      do throws(LogError) { _ = try Log.create(in: "/log", id: LogID(2), fileSystem: disk) } catch {}
      _ = try Log.create(in: "/log", id: testLog, fileSystem: disk)
      #expect(try disk.list("/log") == ["00000001.journal", "watermark"], "operation \(operation)")
      let log = try Log.open(in: "/log", id: testLog, fileSystem: disk)
      #expect(log.recovery.damage == [], "operation \(operation)")
    }
    #expect(failures > 8)
    // What tells of a journal that has had events is no such thing.
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: LogID(1), fileSystem: disk)
    var maker = EventMaker(seed: 5)
    _ = try log.append([Commit(maker.commit(3))])
    try log.sync()
    log.close()
    try disk.remove("/log/00000001.journal")
    _ = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    #expect(try disk.list("/log") == ["00000001.journal", "watermark", "watermark.aside0"])
  }

  @Test func newerFormatsAreRefusedBeforeAByteIsWritten() throws {
    let (disk, _) = try smallLog()
    for name in try disk.list("/log") {
      let path = "/log/" + name
      let copy = disk.copy()
      var bytes = try #require(copy.contents(path))
      bytes[8] = 2
      let crc = Array(bytes[..<12]).crc32c
      bytes.replaceSubrange(12..<16, with: withUnsafeBytes(of: crc.bigEndian, Array.init))
      copy.plant(bytes, at: path)
      copy.plant([1, 2, 3], at: "/log/00000009.segment.partial")
      for mode in [Log.Mode.readOnly, .readWrite] {
        #expect(throws: LogError.newerFormat(path: path, found: 2, supported: 1)) {
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

  @Test func theSegmentWinsOverItsJournalIfItsDigestHolds() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 13)
    let events = maker.commit(9)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    _ = try log.append([Commit(events)])
    try log.sync()
    let journal = try #require(disk.contents("/log/00000001.journal"))
    try log.seal()
    log.close()
    disk.plant(journal, at: "/log/00000001.journal")
    let opened = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(try opened.allEvents() == events)
    #expect(try disk.list("/log") == ["00000001.segment", "00000002.journal", "watermark"])
    opened.close()
    var segment = try #require(disk.contents("/log/00000001.segment"))
    for index in segment.indices {
      segment[index] ^= 4
      let copy = disk.copy()
      copy.plant(journal, at: "/log/00000001.journal")
      copy.plant(segment, at: "/log/00000001.segment")
      let opened = try Log.open(in: "/log", id: testLog, fileSystem: copy)
      #expect(try opened.allEvents() == events, "byte \(index)")
      try opened.seal()
      #expect(try opened.allEvents() == events)
      #expect(try opened.verify() == [])
      segment[index] ^= 4
    }
  }

  /// A power failure between the renaming of a segment and the deletion of the one that it replaces.
  @Test func aReplacedFileIsDeletedAtOpen() throws {
    let (disk, events) = try smallLog()
    let replacing = try #require(try disk.list("/log").first { $0.hasSuffix(".segment") })
    let before = SimulatedFileSystem()
    var maker = EventMaker(seed: 11)
    maker.partitions = ["a", "b"]
    let log = try Log.create(
      in: "/log", id: testLog, fileSystem: before, options: .init(segmentSize: 2000, level: 6))
    _ = try log.append([Commit(maker.commit(8), note: CommitNote(by: "tim", note: "first"))])
    try log.seal()
    log.close()
    let replaced = try #require(before.contents("/log/00000001.segment"))
    #expect(replacing != "00000001.segment")
    let files = try disk.list("/log")
    disk.plant(replaced, at: "/log/00000001.segment")
    for mode in [Log.Mode.readOnly, .readWrite] {
      let opened = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: mode))
      #expect(try opened.allEvents() == events)
      #expect(try opened.verify() == [])
      opened.close()
    }
    #expect(try disk.list("/log") == files)
  }

  /// The space behind the last frame of a journal may hold frames of what stood there before: of another log, of
  /// another journal of this log, of another place in this journal. Each is whole, and none of them counts.
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
        #expect(opened.recovery.damage.isEmpty)
        #expect(opened.recovery.cuts.map(\.bytes) == [UInt64(other.count - start)])
        opened.close()
      }
    }
  }
}
