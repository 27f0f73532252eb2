import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

/// Files of the log under names of others, whose own names others have: damaged ones, copies, or such of another kind.
@Suite struct ExchangedNameTests {
  private static let rows = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String }
    """

  private static func row(_ number: Int) -> String {
    let text = String(repeating: "text ", count: 600)
    return
      #"{"op":"create","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  /// A node `a` with three segments and a journal, all with events, and `b`, which has all that `a` has.
  fileprivate struct Pair {
    let bench: Bench
    let digests: [String]
    let history: [String]

    /// `ofOneStream`: all events are of one.
    init(ofOneStream: Bool = false) throws {
      bench = try Bench(segmentSize: 2000)
      let a = try bench.node("a", ExchangedNameTests.rows)
      for number in 0..<3 {
        try a.commit(ExchangedNameTests.row(ofOneStream ? number * 3 : number))
        try a.sealIfWanted()
      }
      try a.commit(#"{"op":"create","model":"Row","key":{"tenant":"t0","n":90}}"#)
      try a.sync(try bench.node("b", ExchangedNameTests.rows))
      (digests, history) = (try a.digestTexts, try a.history)
      #expect(try names.filter { $0 != "watermark" } == ["1.segment", "2.segment", "3.segment", "4.journal"])
    }

    var names: [String] {
      get throws {
        try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log")).sorted().map {
          String($0.trimmingPrefix { $0 == "0" })
        }
      }
    }

    func path(_ name: String) -> String {
      bench.path("a/log/" + String(repeating: "0", count: 8 - name.prefix { $0 != "." }.count) + name)
    }

    /// Writes over what has the name.
    func move(_ name: String, to other: String) throws {
      try copy(name, to: other)
      try FileManager.default.removeItem(atPath: path(name))
    }

    func copy(_ name: String, to other: String) throws {
      try Data(contentsOf: URL(fileURLWithPath: path(name))).write(to: URL(fileURLWithPath: path(other)))
    }

    func exchange(_ name: String, _ other: String) throws {
      try move(name, to: "x")
      try move(other, to: name)
      try move("x", to: other)
    }

    /// nil: nothing is left in it.
    func damage(_ name: String, at offset: Int?) throws {
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path(name)))
      if let offset { bytes[offset] ^= 1 } else { bytes = Data() }
      try bytes.write(to: URL(fileURLWithPath: path(name)))
    }

    func verify() throws -> Node.VerificationReport {
      try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    }

    func checkIsWhole() throws {
      let report = try verify()
      #expect(report.damage.isEmpty, "\(report.damage)")
      let a = try bench.open("a")
      try a.checkInvariants()
      #expect(try a.digestTexts == digests && a.history.count == history.count)
    }
  }

  enum Exchange: CaseIterable {
    case segmentAndJournal, segmentAsJournal, segmentAsZero, threeSegments, segmentsAndJournal,
      headerAfterwards, wholeCopy

    /// What is done to the files. None is lost, and at most one damaged.
    fileprivate func perform(on pair: Pair) throws {
      switch self {
      case .segmentAndJournal: try pair.exchange("1.segment", "4.journal")
      case .segmentAsJournal: try pair.move("2.segment", to: "99.journal")
      case .segmentAsZero: try pair.move("3.segment", to: "0.segment")
      case .threeSegments:
        try pair.exchange("1.segment", "2.segment")
        try pair.exchange("2.segment", "3.segment")
      case .segmentsAndJournal:
        try pair.exchange("1.segment", "4.journal")
        try pair.exchange("2.segment", "4.journal")
      case .headerAfterwards:
        try pair.exchange("1.segment", "2.segment")
        try pair.damage("1.segment", at: 16)
      case .wholeCopy:
        try pair.copy("2.segment", to: "9.segment")
        try pair.damage("2.segment", at: 180)
      }
    }
  }

  /// Such files counted as lost, and giving up deleted them.
  @Test(arguments: Exchange.allCases, [false, true]) func everyFileGetsItsOwnName(
    exchange: Exchange, givesUp: Bool
  ) throws {
    let pair = try Pair()
    let names = try pair.names
    try exchange.perform(on: pair)
    let report = try pair.verify()
    #expect(!report.damage.isEmpty)
    do {
      let a = try pair.bench.open("a")
      if givesUp {
        #expect(try a.giveUp(isDryRun: false) { _, _ in }.record == nil)
      } else {
        #expect(try a.repair(from: []) { _, _ in }.isWhole)
      }
    }
    if exchange == .wholeCopy { try FileManager.default.removeItem(atPath: pair.path("2.segment.aside0")) }
    try pair.checkIsWhole()
    if ![.headerAfterwards, .wholeCopy].contains(exchange) { #expect(try pair.names == names) }
  }

  enum Loss: CaseIterable {
    case ownNameIsEmpty, ownNameHasNoHeader, journalsNameIsTaken, journalsNameIsCopied, aCopyAndAnExchange,
      aDamagedCopy

    /// The events that are lost.
    fileprivate func perform(on pair: Pair) throws -> UInt64 {
      switch self {
      case .ownNameIsEmpty:
        try pair.copy("2.segment", to: "1.segment")
        try pair.damage("2.segment", at: nil)
      case .ownNameHasNoHeader:
        try pair.copy("2.segment", to: "1.segment")
        try pair.damage("2.segment", at: 16)
      case .journalsNameIsTaken: try pair.move("2.segment", to: "4.journal")
      case .journalsNameIsCopied: try pair.copy("2.segment", to: "4.journal")
      case .aCopyAndAnExchange:
        try pair.copy("1.segment", to: "2.segment")
        try pair.exchange("1.segment", "3.segment")
      case .aDamagedCopy:
        try pair.damage("3.segment", at: 120)
        try pair.copy("3.segment", to: "1.segment")
      }
      return 1
    }
  }

  /// A peer's events did not go into a file whose name another one had.
  @Test(arguments: Loss.allCases) func whatIsLostComesFromAPeer(loss: Loss) throws {
    let pair = try Pair()
    let lost = try loss.perform(on: pair)
    do {
      let report = try pair.bench.open("a").repair(from: []) { _, _ in }
      #expect(report.missing.reduce(0) { $0 + $1.count } == lost && report.damaged.count == 1, "\(report)")
    }
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    let report = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
    #expect(report.isWhole && report.events == lost, "\(report)")
    let left = try pair.verify()
    #expect(!left.isDamaged && left.losses.isEmpty, "\(left.damage)")
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try a.digestTexts == pair.digests && a.history.count == pair.history.count)
  }

  /// The header of the copied file cannot be read, so that nobody knows from it whose copy it is. Its events counted as those
  /// of the other place: a repair wrote their own file anew without them, and giving up gave them up. `isHit`: a block of the
  /// file is damaged since, and only the copy has it.
  @Test(
    arguments: [(3, 1), (3, 2), (1, 2)] as [(UInt64, UInt64)],
    [(false, false), (false, true), (true, false), (true, true)])
  func aCopyWithoutAHeaderTakesNothingFromItsOriginal(
    numbers: (original: UInt64, lost: UInt64), how: (givesUp: Bool, isHit: Bool)
  ) throws {
    let (original, lost) = numbers
    let pair = try Pair(ofOneStream: true)
    try pair.damage("\(original).segment", at: 60)
    try pair.copy("\(original).segment", to: "\(lost).segment")
    if how.isHit { for offset in [120, 130] { try pair.damage("\(original).segment", at: offset) } }
    let before = try pair.verify()
    #expect(before.losses.map { [$0.from, $0.to] } == [[lost, lost]], "\(before.losses)")
    #expect(before.rescuable.map { [$0.from, $0.to] } == [[original, original]], "\(before.rescuable)")
    if how.givesUp {
      let record = try #require(try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }.record)
      #expect(record.losses.map { [$0.from, $0.to] } == [[lost, lost]] && record.again == 4 - lost)
      #expect(try !pair.verify().isDamaged)
      try pair.bench.open("a").checkInvariants()
    } else {
      let report = try pair.bench.open("a").repair(from: []) { _, _ in }
      #expect(report.missing.map(\.from) == [lost] && report.rescued == 1, "\(report)")
      let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
      #expect(try pair.bench.open("a").repair(from: [peer]) { _, _ in }.isWhole)
      try pair.checkIsWhole()
    }
  }

  /// Beside the journal of its new number nobody looked at it, and what it holds was given up.
  @Test(arguments: [false, true]) func aFileWithoutAHeaderBesideAJournalIsLookedAt(givesUp: Bool) throws {
    let pair = try Pair()
    try pair.move("2.segment", to: "4.segment")
    try pair.damage("4.segment", at: 60)
    let report = try pair.verify()
    #expect(report.losses.isEmpty && report.rescuable.map(\.partition) == ["tenant=t1"], "\(report)")
    do {
      let a = try pair.bench.open("a")
      if givesUp {
        #expect(try a.giveUp(isDryRun: false) { _, _ in }.record == nil)
      } else {
        #expect(try a.repair(from: []) { _, _ in }.isWhole)
      }
    }
    try pair.checkIsWhole()
  }

  /// It was gone, which was noted, and came back under another name: it got its own back, and all its partitions could only be
  /// read until somebody asked for a verification.
  @Test func aJournalThatCameBackCanBeWrittenTo() throws {
    let pair = try Pair()
    try pair.move("4.journal", to: "x")
    #expect(try pair.verify().isDamaged)
    #expect(try pair.bench.open("a", .read).mark.damage != nil)
    try pair.move("x", to: "99.journal")
    let a = try pair.bench.open("a")
    #expect(a.mark.damage == nil && a.notices.contains { $0.contains("had another name") })
    #expect(try a.commit(#"{"op":"create","model":"Row","key":{"tenant":"t0","n":91}}"#).count == 1)
    #expect(try pair.verify().damage.isEmpty)
  }

  /// Something else is damaged still: what is known of that stays.
  @Test func aJournalThatCameBackLeavesOtherDamageKnown() throws {
    let pair = try Pair()
    try pair.move("4.journal", to: "x")
    try pair.move("2.segment", to: "y")
    #expect(try pair.verify().isDamaged)
    try pair.move("x", to: "99.journal")
    let a = try pair.bench.open("a")
    #expect(a.mark.damage?.losses.map(\.partition) == ["tenant=t1"])
    #expect(try a.commit(#"{"op":"create","model":"Row","key":{"tenant":"t0","n":91}}"#).count == 1)
  }

  /// What no file can have held any more came from peers that have all of it, or not at all: here the events of a journal that
  /// is gone with its watermark.
  @Test func whatOnlyTablesRememberComesAsFarAsAPeerHasIt() throws {
    let pair = try Pair()
    func commit(_ tenant: String, _ number: Int) throws {
      try pair.bench.open("a").commit(
        #"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)}}"#)
    }
    try commit("t1", 91)
    try commit("t2", 92)
    try pair.bench.open("a").sync(try pair.bench.open("b"))
    try commit("t2", 93)
    let c = try pair.bench.node("c", Self.rows)
    try c.sync(try pair.bench.open("a"))
    for name in ["2.segment", "4.journal"] { try FileManager.default.removeItem(atPath: pair.path(name)) }
    try FileManager.default.removeItem(atPath: pair.bench.path("a/log/watermark"))
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    let report = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
    #expect(report.missing.map { "\($0.partition) \($0.count)" } == ["tenant=t2 1"], "\(report)")
    #expect(report.events == 4 && report.damaged == [])
    let after = try pair.verify()
    #expect(!after.isDamaged, "\(after.damage) \(report)")
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try a.history.count == pair.history.count + 2)
    #expect(try a.digestTexts == pair.bench.open("b").digestTexts)
    try a.sync(c)
    #expect(try a.digestTexts == c.digestTexts)
  }

  /// An older copy of a journal does not take the name of the one that went on, and cannot be read now.
  @Test func aJournalThatCannotBeReadKeepsItsName() throws {
    let pair = try Pair()
    try pair.copy("4.journal", to: "99.journal")
    do {
      let a = try pair.bench.open("a")
      try a.commit(#"{"op":"create","model":"Row","key":{"tenant":"t0","n":91}}"#)
      try a.sync(try pair.bench.open("b"))
    }
    try pair.damage("4.journal", at: 16)
    let damaged = try Data(contentsOf: URL(fileURLWithPath: pair.path("4.journal")))
    _ = try pair.bench.open("a").commit(#"{"op":"create","model":"Row","key":{"tenant":"t2","n":92}}"#)
    #expect(try Data(contentsOf: URL(fileURLWithPath: pair.path("4.journal"))) == damaged)
    #expect(try !pair.names.contains { $0.contains("aside") })
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    let a = try pair.bench.open("a")
    #expect(try a.repair(from: [peer]) { _, _ in }.isWhole)
    #expect(try a.history.count == pair.history.count + 2)
  }

  /// Giving up took what was undamaged, too.
  @Test(arguments: Loss.allCases) func givingUpTakesNoMoreThanIsLost(loss: Loss) throws {
    let pair = try Pair()
    let lost = try loss.perform(on: pair)
    let record = try #require(try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }.record)
    #expect(record.losses.reduce(0) { $0 + $1.count } == lost, "\(record)")
    #expect(try !pair.verify().isDamaged)
    try pair.bench.open("a").checkInvariants()
  }
}
