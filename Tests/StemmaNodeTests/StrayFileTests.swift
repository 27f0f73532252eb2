import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// Files of a log under names of others, copies of them, and what is no file at all.
@Suite struct StrayFileTests {
  private static let rows = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String }
    """
  private static let text = String(repeating: "text ", count: 600)

  /// Two equal nodes, `a` and `b`, with sealed files and an open journal that holds an event.
  private struct Pair {
    let bench: Bench
    let digests: [String]
    let history: [String]

    init() throws {
      bench = try Bench(segmentSize: 5000)
      let a = try bench.node("a", StrayFileTests.rows)
      for number in 0..<4 {
        try a.commit(StrayFileTests.row(number))
        try a.sealIfWanted()
      }
      try a.commit(#"{"op":"create","model":"Row","key":{"tenant":"t9","n":0}}"#)
      try a.sync(try bench.node("b", StrayFileTests.rows))
      (digests, history) = (try a.digestTexts, try a.history)
      #expect(try names.contains("00000002.segment"))
    }

    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: path("")).sorted() }
    }

    func path(_ name: String) -> String { bench.path("a/log/" + name) }

    func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path(name))) }

    /// Of the node that it exchanges with.
    var foreignJournal: Data {
      get throws {
        let folder = bench.path("b/log/")
        let name = try FileManager.default.contentsOfDirectory(atPath: folder).first {
          $0.hasSuffix(".journal")
        }
        return try Data(contentsOf: URL(fileURLWithPath: folder + #require(name)))
      }
    }

    func verify() throws -> Node.VerificationReport {
      try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    }

    /// The open journal.
    var journal: (name: String, number: UInt64) {
      get throws {
        let name = try #require(try names.last { $0.hasSuffix(".journal") })
        return (name, try #require(UInt64(name.prefix(8))))
      }
    }
  }

  private static func row(_ number: Int) -> String {
    #"{"op":"create","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  private static func name(_ number: UInt64, _ kind: String) -> String {
    let digits = String(number)
    return String(repeating: "0", count: 8 - digits.count) + digits + "." + kind
  }

  /// A copy that somebody left under a number which the log came to later was written over.
  @Test(arguments: [("segment", 0), ("segment", 1), ("journal", 1)])
  func whatHasTheNameOfANewFileIsMovedAside(kind: String, ahead: UInt64) throws {
    let pair = try Pair()
    let journal = try pair.journal
    let stray = Self.name(journal.number + ahead, kind)
    try FileManager.default.copyItem(
      atPath: pair.path(kind == "journal" ? journal.name : "00000001.segment"), toPath: pair.path(stray))
    let bytes = try pair.bytes(stray)
    let before = try pair.verify()
    #expect(before.damage.map(\.file) == [pair.path(stray)] && !before.isDamaged)
    let notices = try pair.bench.open("a", .read).status().notices
    #expect(notices == ["log/ contains 1 unrecognized file: \(stray); `stemma verify` describes it"])
    do {
      let a = try pair.bench.open("a")
      for number in 10..<16 {
        try a.commit(Self.row(number))
        try a.sealIfWanted()
      }
      #expect(try a.history.count == pair.history.count + 6)
    }
    #expect(try pair.names.contains(Self.name(journal.number + ahead, "segment")))
    #expect(try pair.bytes(stray + ".aside0") == bytes)
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [pair.path(stray + ".aside0")] && !report.isDamaged)
    #expect(report.damage[0].what.contains("moved aside"))
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    try a.sync(try pair.bench.open("b"))
    #expect(try a.digestTexts == pair.bench.open("b").digestTexts)
  }

  /// The numbers between the journal's own and the one that it had now counted as missing, and a repair wrote empty files
  /// for them.
  @Test(arguments: [1, 2, 90]) func aRenamedJournalIsReadAndGetsItsNameBack(by distance: UInt64) throws {
    let pair = try Pair()
    let (files, journal) = (try pair.names, try pair.journal)
    let other = Self.name(journal.number + distance, "journal")
    try FileManager.default.moveItem(atPath: pair.path(journal.name), toPath: pair.path(other))
    let renamed = try pair.names
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [pair.path(other)] && !report.isDamaged && report.losses.isEmpty)
    #expect(report.damage[0].what.contains("this is \(journal.name) under another name"))
    #expect(report.events == UInt64(pair.history.count))
    #expect(try pair.bench.open("a", .read).history == pair.history && pair.names == renamed)
    let repaired = try pair.bench.open("a").repair(from: []) { _, _ in }
    #expect(repaired.isWhole && repaired.files == [] && repaired.renamed == [other])
    #expect(try pair.names == files && pair.verify().damage.isEmpty)
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try a.digestTexts == pair.digests && a.commit(Self.row(20)).count == 1)
  }

  /// A journal keeps another one's name from it: a copy counts for nothing, as long as that is there.
  @Test func ofTwoJournalsThatAreTheSameTheOneWithTheNameCounts() throws {
    let pair = try Pair()
    let journal = try pair.journal
    let copy = Self.name(journal.number + 2, "journal")
    try FileManager.default.copyItem(atPath: pair.path(journal.name), toPath: pair.path(copy))
    #expect(try pair.verify().damage.map(\.file) == [pair.path(copy)])
    try FileManager.default.removeItem(atPath: pair.path(journal.name))
    #expect(try pair.bench.open("a", .read).history == pair.history)
    let a = try pair.bench.open("a")
    #expect(a.notices.contains { $0.contains(journal.name) && $0.contains("had another name") })
    #expect(try a.digestTexts == pair.digests && pair.names.contains(journal.name))
  }

  /// The journal and an older copy of it, both under names of others: the first by name counted, and what came later was lost.
  @Test(arguments: [true, false]) func ofTwoRenamedJournalsTheOneThatHoldsMoreCounts(isCopyFirst: Bool) throws
  {
    let pair = try Pair()
    let journal = try pair.journal
    let older = try pair.bytes(journal.name)
    try pair.bench.open("a").commit(Self.row(20))
    let a = try pair.bench.open("a")
    let (digests, history) = (try a.digestTexts, try a.history)
    let names = [90, 91].map { Self.name($0, "journal") }
    try FileManager.default.moveItem(
      atPath: pair.path(journal.name), toPath: pair.path(names[isCopyFirst ? 1 : 0]))
    try older.write(to: URL(fileURLWithPath: pair.path(names[isCopyFirst ? 0 : 1])))
    let report = try pair.verify()
    #expect(!report.isDamaged && report.events == UInt64(history.count), "\(report.damage)")
    #expect(report.damage.contains { $0.what.contains("this is a copy of \(journal.name)") })
    #expect(try pair.bench.open("a", .read).history == history)
    let again = try pair.bench.open("a")
    #expect(try again.digestTexts == digests && pair.names.contains(journal.name))
    try again.checkInvariants()
    #expect(try again.commit(Self.row(21)).count == 1)
  }

  /// Where neither of them is a part of the other, one counts, and nobody is told that the other one is a copy of it.
  @Test func ofTwoJournalsThatDifferTheOtherIsNamed() throws {
    let pair = try Pair()
    let journal = try pair.journal
    try pair.bench.copy("a", to: "c")
    try pair.bench.open("a").commit(Self.row(20))
    let history = try pair.bench.open("a").history
    try pair.bench.open("c").commit(#"{"op":"create","model":"Row","key":{"tenant":"t8","n":1}}"#)
    let names = [90, 91].map { Self.name($0, "journal") }
    try FileManager.default.moveItem(
      atPath: pair.bench.path("c/log/" + journal.name), toPath: pair.path(names[0]))
    try FileManager.default.moveItem(atPath: pair.path(journal.name), toPath: pair.path(names[1]))
    let report = try pair.verify()
    let other = try #require(report.damage.first { $0.what.contains("holds events that the other lacks") })
    #expect(names.map(pair.path).contains(other.file) && !report.isDamaged, "\(report.damage)")
    #expect(try pair.bench.open("a").history.count == history.count)
  }

  /// The copy has an event that the other lost to damage.
  @Test func anOlderCopyOfADamagedJournalIsKept() throws {
    let pair = try Pair()
    let journal = try pair.journal
    let older = try pair.bytes(journal.name)
    for number in 20..<23 {
      try pair.bench.open("a").commit(
        #"{"op":"create","model":"Row","key":{"tenant":"t9","n":\#(number)}}"#)
    }
    var bytes = try pair.bytes(journal.name)
    let place = try #require(bytes.range(of: Data("FRM1".utf8))).upperBound + 40
    for index in place..<place + 8 { bytes[index] ^= 0x5A }
    try FileManager.default.removeItem(atPath: pair.path(journal.name))
    let names = [90, 91].map { Self.name($0, "journal") }
    try older.write(to: URL(fileURLWithPath: pair.path(names[0])))
    try bytes.write(to: URL(fileURLWithPath: pair.path(names[1])))
    let report = try pair.verify()
    #expect(
      report.damage.contains {
        $0.file == pair.path(names[0]) && $0.what.contains("holds events that the other lacks")
      }, "\(report.damage)")
    // Of four in the journal one cannot be read.
    #expect(report.isDamaged && report.events == UInt64(pair.history.count + 2), "\(report.events)")
  }

  /// What was known of the damage of a journal was known of its old name for good, beside the new one.
  @Test func damageOfARenamedJournalIsNamedByItsOwnName() throws {
    let pair = try Pair()
    let journal = try pair.journal
    try pair.bench.open("a").commit(Self.row(20))
    var bytes = try pair.bytes(journal.name)
    let place = try #require(bytes.range(of: Data("FRM1".utf8))).upperBound + 20
    for index in place..<place + 8 { bytes[index] ^= 0x5A }
    try bytes.write(to: URL(fileURLWithPath: pair.path(journal.name)))
    let other = Self.name(journal.number + 2, "journal")
    try FileManager.default.moveItem(atPath: pair.path(journal.name), toPath: pair.path(other))
    #expect(try pair.verify().isDamaged)
    let read = try pair.bench.open("a", .read).mark.damage
    #expect(read?.places.map(\.file) == [other])
    let damage = try #require(try pair.bench.open("a").mark.damage)
    #expect(damage.places.map(\.file) == [journal.name])
    #expect(damage.losses.allSatisfy { $0.file == journal.name } && !damage.losses.isEmpty)
  }

  /// Only what has the name of a file of the log is taken for one that was left half written, or was moved aside.
  @Test func filesOfOthersInTheLogsDirectoryStay() throws {
    let pair = try Pair()
    let names = ["report.partial", "notes.aside.txt", "00000001.cutting"]
    for name in names { try Data(name.utf8).write(to: URL(fileURLWithPath: pair.path(name))) }
    try make("directory", at: pair.path("folder.partial"))
    try Data().write(to: URL(fileURLWithPath: pair.path("00000009.segment.partial")))
    #expect(try pair.verify().damage.isEmpty)
    let a = try pair.bench.open("a")
    #expect(a.notices.isEmpty && a.mark.origins.count == 1, "\(a.notices)")
    #expect(try a.commit(Self.row(20)).count == 1)
    for name in names { #expect(try pair.bytes(name) == Data(name.utf8)) }
    let left = try pair.names
    #expect(left.contains("folder.partial") && !left.contains("00000009.segment.partial"))
  }

  /// Files that were copied before a purge wrote them anew: their events were there twice, or again, and every write was
  /// refused as if the node had been set back.
  @Test(arguments: [
    ("00000042", "journal"), ("00000042", "segment"), ("00000001", "journal"), ("00000001", "segment"),
    ("00000002", "journal"), ("00000002", "noise"), ("00000001", "foreign"),
  ])
  func aCopyOfWhatWasPurgedStaysOutside(name: String, kind: String) throws {
    let bench = try Bench(segmentSize: 5000)
    let a = try bench.node("a", Self.rows)
    func path(_ name: String) -> String { bench.path("a/log/" + name) }
    let first = kind == "segment" ? 2 : 1
    for number in 0..<first { try a.commit(Self.row(number)) }
    try a.sealIfWanted()
    var copy = try Data(
      contentsOf: URL(fileURLWithPath: path("00000001." + (kind == "segment" ? kind : "journal"))))
    if kind == "noise" { copy = Data(repeating: 0x5A, count: 3000) }
    if kind == "foreign" {
      _ = try bench.node("b", Self.rows)
      copy = try Data(contentsOf: URL(fileURLWithPath: bench.path("b/log/00000001.journal")))
    }
    for number in first..<6 {
      try a.commit(Self.row(number))
      try a.sealIfWanted()
    }
    _ = try a.changeScope(adding: ["!tenant=t0"], removing: [], discards: true)
    let (digests, history) = (try a.digestTexts, try a.history)
    try #require(!FileManager.default.fileExists(atPath: path("00000001.segment")))
    try copy.write(
      to: URL(fileURLWithPath: path(name + "." + (kind == "segment" ? kind : "journal"))))
    let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(report.damage.allSatisfy { $0.remedy == .remove }, "\(report.damage)")
    // Whoever put it in the place of the other, as was advised, saw it vanish.
    #expect(report.damage.allSatisfy { !$0.what.contains("put it in") }, "\(report.damage)")
    let again = try bench.open("a")
    #expect(try again.digestTexts == digests)
    #expect(try again.history == history)
    try again.commit(#"{"op":"create","model":"Row","key":{"tenant":"t1","n":77}}"#)
    #expect(
      try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).damage.allSatisfy {
        $0.remedy == .remove
      })
  }

  private func make(_ kind: String, at path: String) throws {
    switch kind {
    case "pipe": #expect(mkfifo(path, 0o600) == 0)
    case "directory":
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    case "symbolic link that leads nowhere":
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "nowhere")
    default: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
    }
  }

  /// Every command ended with an error where something else had the name of a file, and its advice was to ask `verify`, which
  /// ended so, too.
  @Test(
    arguments: ["directory", "pipe", "device", "symbolic link that leads nowhere"], ["segment", "journal"])
  func whatIsNoFileIsReadAroundLikeOneThatIsLost(kind: String, role: String) throws {
    let pair = try Pair()
    let name = role == "journal" ? try pair.journal.name : "00000001.segment"
    try FileManager.default.removeItem(atPath: pair.path(name))
    try make(kind, at: pair.path(name))
    var read: UInt64 = 0
    let reader = try pair.bench.open("a", .read)
    #expect(reader.notices.contains { $0.contains("log/\(name) is damaged") }, "\(reader.notices)")
    #expect(throws: NodeError.self) {
      try reader.forEachEvent(LogFilter(), newestFirst: false) { _, _ in
        read += 1
        return true
      }
    }
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [pair.path(name)] && report.isDamaged)
    #expect(report.damage[0].what.contains("a \(kind) has the name of the file"))
    #expect(report.commands == ["stemma repair --from PEER"])
    let lost = report.losses.reduce(0) { $0 + $1.count }
    #expect(lost > 0 && read == report.events && report.events + lost == UInt64(pair.history.count))
    #expect(try pair.bench.open("a").repair(from: []) { _, _ in }.files == [])
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    let repaired = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
    #expect(repaired.isWhole && repaired.files.count == 1 && repaired.events == lost)
    let after = try pair.verify()
    #expect(after.damage.map(\.file) == [pair.path(name + ".aside0")] && !after.isDamaged)
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try a.digestTexts == pair.digests && a.history.count == pair.history.count)
    #expect(try a.commit(Self.row(20)).count == 1)
  }

  /// Such a thing under a number that was never given, or beside a file of that number, counts for nothing.
  @Test(arguments: ["directory", "pipe", "device", "symbolic link that leads nowhere"])
  func whatIsNoFileOfTheLogCountsForNothing(
    kind: String
  ) throws {
    let pair = try Pair()
    let number = try pair.journal.number
    let names = [
      "00000001.journal", Self.name(number, "segment"), Self.name(number + 1, "journal"), "00000099.segment",
    ]
    for name in names { try make(kind, at: pair.path(name)) }
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == names.sorted().map(pair.path) && !report.isDamaged)
    #expect(report.damage.allSatisfy { $0.what.contains("a \(kind), not a file of the log") })
    let a = try pair.bench.open("a")
    #expect(try a.history == pair.history)
    for number in 10..<16 {
      try a.commit(Self.row(number))
      try a.sealIfWanted()
    }
    try a.checkInvariants()
    #expect(try a.history.count == pair.history.count + 6 && !pair.verify().isDamaged)
  }

  /// Such a file made all numbers before it missing, for which a repair wrote empty files, or forbade to write.
  @Test(
    arguments: ["1.segment", "95.segment", "1.journal", "95.journal"],
    ["empty", "zeros", "noise", "four bytes of a frame", "journal of another log"])
  func aFileWithNothingInItAboveTheLogsNumbersCountsForNothing(name: String, kind: String) throws {
    let pair = try Pair()
    let parts = name.split(separator: ".").map(String.init)
    let stray = Self.name(try pair.journal.number + #require(UInt64(parts[0])), parts[1])
    let rubbish = kind == "journal of another log" ? try pair.foreignJournal : Self.rubbish(kind)
    try rubbish.write(to: URL(fileURLWithPath: pair.path(stray)))
    let before = try pair.names
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [pair.path(stray)] && !report.isDamaged && report.losses.isEmpty)
    #expect(report.damage[0].what.contains("nothing in this file is of a log") && report.commands.isEmpty)
    #expect(try pair.bench.open("a").repair(from: []) { _, _ in }.files == [])
    #expect(try pair.names == before)
    let a = try pair.bench.open("a")
    #expect(try a.digestTexts == pair.digests && a.history == pair.history)
    for number in 10..<16 {
      try a.commit(Self.row(number))
      try a.sealIfWanted()
    }
    try a.checkInvariants()
    #expect(try a.history.count == pair.history.count + 6 && !pair.verify().isDamaged)
    let isReached = parts[0] == "1"
    #expect(try pair.bytes(stray + (isReached ? ".aside0" : "")) == rubbish)
  }

  private static func rubbish(_ kind: String) -> Data {
    var random = SplitMix64(seed: 7)
    switch kind {
    case "empty": return Data()
    case "zeros": return Data(repeating: 0, count: 5000)
    case "four bytes of a frame": return Data("FRM1".utf8)
    default: return Data((0..<5000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }
  }

  /// Every number below was looked for, one by one, for minutes.
  @Test(arguments: ["segment", "journal", "noise"])
  func anUnreadableFileFarAboveTheLogIsNamed(kind: String) throws {
    let pair = try Pair()
    var bytes = try pair.bytes(kind == "journal" ? pair.journal.name : "00000001.segment")
    bytes[40] ^= 1
    if kind == "noise" {
      bytes = Self.rubbish(kind)
      try FileManager.default.removeItem(atPath: pair.path("watermark"))
    }
    let name = "99999999." + (kind == "journal" ? kind : "segment")
    try bytes.write(to: URL(fileURLWithPath: pair.path(name)))
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [pair.path(name)] && !report.isDamaged)
    let isNoise = report.damage[0].what.contains("nothing in this file is of a log")
    #expect(isNoise == (kind == "noise") && isNoise != report.damage[0].what.contains("give it the name"))
    let a = try pair.bench.open("a")
    #expect(try a.history == pair.history && a.commit(Self.row(20)).count == 1)
    try a.checkInvariants()
  }

  /// Nobody named them; and the directory was taken for a torn tail, so that the node began an origin.
  @Test func whatHasANumberThatNoFileHasIsNamed() throws {
    let pair = try Pair()
    let tail = "00000001.cut0"
    let names = ["00000000.journal", "00000000.segment", tail]
    try make("directory", at: pair.path("00000000.journal"))
    try Self.rubbish("noise").write(to: URL(fileURLWithPath: pair.path("00000000.segment")))
    try make("directory", at: pair.path(tail))
    let report = try pair.verify()
    #expect(report.damage.map(\.file).sorted() == names.map(pair.path) && !report.isDamaged)
    let notices = try pair.bench.open("a", .read).status().notices
    #expect(notices.contains { $0.contains(names.joined(separator: ", ")) }, "\(notices)")
    let a = try pair.bench.open("a")
    #expect(a.mark.origins.count == 1 && a.notices.isEmpty, "\(a.notices)")
    #expect(try a.history == pair.history && a.commit(Self.row(20)).count == 1)
  }

  /// It counted what the tables know of.
  @Test func statusCountsTheEventsThatCanBeRead() throws {
    let pair = try Pair()
    try FileManager.default.removeItem(atPath: pair.path("00000001.segment"))
    let report = try pair.verify()
    let lost = report.losses.reduce(0) { $0 + $1.count }
    let status = try pair.bench.open("a", .read).status()
    #expect(lost > 0 && status.events == UInt64(pair.history.count) - lost)
    #expect(status.events == report.events)
  }

  /// Each opening read all of such a file.
  @Test(arguments: ["95.journal", "95.segment"]) func aLargeFileWithNothingInItIsNotReadWhole(name: String)
    throws
  {
    let pair = try Pair()
    let parts = name.split(separator: ".").map(String.init)
    let path = pair.path(Self.name(try #require(UInt64(parts[0])), parts[1]))
    func read() throws -> UInt64 {
      let id = try pair.bench.open("a", .read).mark.logID
      return try Log.open(
        in: pair.bench.path("a/log"), id: id, fileSystem: POSIXFileSystem(),
        options: Log.Options(mode: .readOnly)
      ).bytesRead
    }
    let before = try read()
    try Self.rubbish("noise").write(to: URL(fileURLWithPath: path))
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try handle.truncate(atOffset: 64 << 20)
    try handle.close()
    #expect(try read() - before < 8 << 20)
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [path] && !report.isDamaged)
  }

  /// What the log has come to is lost, whatever stands there now; and what can be read is not noise.
  @Test(arguments: ["empty", "zeros", "noise", "header"]) func theLastFilesAreNoStrays(kind: String) throws {
    for role in ["journal", "segment"] {
      let pair = try Pair()
      let name =
        role == "journal"
        ? try pair.journal.name : try #require(try pair.names.last { $0.hasSuffix(".segment") })
      let before = try pair.bytes(name)
      let isHeader = kind == "header"
      let after = isHeader ? Self.rubbish("noise").prefix(64) + before.dropFirst(64) : Self.rubbish(kind)
      try after.write(to: URL(fileURLWithPath: pair.path(name)))
      let report = try pair.verify()
      #expect(report.damage.map(\.file) == [pair.path(name)] && report.isDamaged, "\(role)")
      let told = (report.losses + report.rescuable).reduce(report.events) { $0 + $1.count }
      #expect(told == UInt64(pair.history.count))
      let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
      #expect(try pair.bench.open("a").repair(from: [peer]) { _, _ in }.isWhole)
      #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(role)")
    }
  }

  /// The same file under a number above all others, where its header cannot be read but its blocks can: it may be the one
  /// that is missing.
  @Test func aFileWithoutAHeaderThatHasEventsIsNotIgnored() throws {
    let pair = try Pair()
    let name = try #require(try pair.names.last { $0.hasSuffix(".segment") })
    let bytes = try pair.bytes(name)
    try (Self.rubbish("noise").prefix(64) + bytes.dropFirst(64))
      .write(to: URL(fileURLWithPath: pair.path("00000099.segment")))
    try FileManager.default.removeItem(atPath: pair.path(name))
    #expect(try pair.verify().isDamaged)
  }

  /// A gap below the numbers that are proven is told, with noise above them or without.
  @Test func aMissingFileIsToldBesideNoise() throws {
    let pair = try Pair()
    try FileManager.default.removeItem(atPath: pair.path("00000002.segment"))
    try Self.rubbish("noise").write(to: URL(fileURLWithPath: pair.path("00000050.segment")))
    let report = try pair.verify()
    #expect(report.isDamaged)
    #expect(Set(report.damage.map(\.file)) == [pair.path("00000002.segment"), pair.path("00000050.segment")])
    #expect(report.losses.reduce(0) { $0 + $1.count } + report.events == UInt64(pair.history.count))
  }

  /// Nothing but the next write depends on the watermark.
  @Test(arguments: ["directory", "pipe", "device", "symbolic link that leads nowhere"])
  func whatIsNoWatermarkIsMovedAsideByTheNextWrite(
    kind: String
  ) throws {
    let pair = try Pair()
    try FileManager.default.removeItem(atPath: pair.path("watermark"))
    try make(kind, at: pair.path("watermark"))
    let report = try pair.verify()
    #expect(report.damage.map(\.file) == [pair.path("watermark")] && !report.isDamaged, "\(report.damage)")
    #expect(report.damage[0].what.hasSuffix("; the next write moves it aside, and makes the file anew"))
    #expect(try pair.bench.open("a", .read).history == pair.history)
    let a = try pair.bench.open("a")
    #expect(try a.commit(Self.row(20)).count == 1)
    #expect(try pair.verify().damage.map(\.file) == [pair.path("watermark.aside0")])
  }
}
