import Foundation
import Testing
import StemmaSimulation

/// A killed import leaves complete commits and reports where to resume. The resumed import has the
/// same result as an uninterrupted one.
@Suite("Killed imports", .enabled(if: RealData.isThere))
struct KillTests {
  static let moments = Trials.count(6)
  static let batch = 25
  /// The input of the killed imports: a pipe with the name of the file, because resuming identifies
  /// the file by name.
  static let pipe = "pipe/mutations.ndjson.gz"
  static let source = RealData.path("git-grdb/mutations.ndjson.gz")

  private func node(_ name: String, in work: Workplace) throws {
    try work.stemma("init", name, "--schema", RealData.path("git-grdb/schema.graphql"), "--name", "office")
  }

  private func eventCount(_ name: String, in work: Workplace) throws -> Int {
    try #require(try work.stemma("-C", name, "status", "--json").objects().first?["events"] as? Int)
  }

  /// The number of events through each line that ends a commit, from an uninterrupted import.
  private func commits(_ name: String, in work: Workplace) throws -> [Int: Int] {
    let objects = try work.stemma(
      "-C", name, "import", "--ndjson", "--batch", "\(Self.batch)", Self.source
    ).objects()
    var events = [0: 0]
    for object in objects {
      guard let line = object["durableThroughLine"] as? Int else { continue }
      events[line] = try #require(object["events"] as? Int)
    }
    return events
  }

  /// Runs an import from line `line` on. Kills it after `reports` reported commits and `turns`
  /// turns of an idle loop. The import cannot end earlier, because its input remains open after
  /// line `given`.
  ///
  /// - Returns: the last reported line, nil if none.
  private func killed(
    _ name: String, from line: Int, given: Int, after reports: Int, turns: UInt64, in work: Workplace
  ) throws -> Int? {
    let feeder = Process()
    feeder.executableURL = URL(fileURLWithPath: "/bin/sh")
    feeder.arguments = ["-c", "exec 3> \(Self.pipe); head -n \(given) lines.ndjson >&3; read -r _"]
    feeder.currentDirectoryURL = URL(fileURLWithPath: work.path)
    let held = Pipe()
    feeder.standardInput = held
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = [
      "-C", name, "import", "--ndjson", "--batch", "\(Self.batch)", "--from-line", "\(line)", Self.pipe,
    ]
    process.currentDirectoryURL = URL(fileURLWithPath: work.path)
    // JSON reports each commit; text reports at most once a second.
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try feeder.begin()
    try process.begin()
    var text = Data()
    var seen = 0
    while seen < reports {
      let batch = output.fileHandleForReading.availableData
      if batch.isEmpty { break }
      text += batch
      seen += batch.count { $0 == 10 }
    }
    var sum: UInt64 = 0
    for turn in 0..<turns { sum = sum &* 31 &+ turn ^ UInt64(seen) }
    withExtendedLifetime(sum) {}
    process.signal(SIGKILL)
    text += try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    try held.fileHandleForWriting.close()
    feeder.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    // The kill may have cut off the text after the last line end.
    let told = String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    return told.dropLast().compactMap { $0.firstMatch(of: /"durableThroughLine":(\d+)/) }.last
      .flatMap { Int($0.1) }
  }

  @Test("killed at random moments: whole commits, all that was reported, and the way on")
  func killedImportsGoOn() throws {
    let work = try Workplace()
    try node("whole", in: work)
    let events = try commits("whole", in: work)
    let last = try #require(events.keys.max())
    let expected = try work.stemma("-C", "whole", "export").output

    let seed: UInt64 = 2026
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    try node("killed", in: work)
    #expect(
      try ConsolePage.run(
        "zcat '\(Self.source)' > lines.ndjson; mkdir pipe; mkfifo \(Self.pipe)", in: work.path)
        == [])
    var resume = 1
    for moment in 0..<Self.moments {
      let left = (last - resume + 1) / Self.batch / (4 * (Self.moments - moment + 2))
      let reports = Int.random(in: 0...max(left, 1), using: &random)
      let given = resume - 1 + Self.batch * (reports + 1 + random.below(left + 2)) + random.below(Self.batch)
      let turns = UInt64.random(in: 0...500_000, using: &random)
      let reported = try killed(
        "killed", from: resume, given: given, after: reports, turns: turns, in: work)
      let place = "point \(moment), from line \(resume), after \(reports) reports and \(turns) turns"

      let verified = try work.attempt("-C", "killed", "verify")
      #expect(verified.status == 0, "\(place): \(verified.output)\(verified.errors)")
      let held = try eventCount("killed", in: work)
      #expect(events.values.contains(held), "\(place): \(held) events are no whole commits")
      let promised = reported ?? resume - 1
      #expect(held >= (try #require(events[promised])), "\(place): line \(promised) was reported durable")

      // The next writer also recovers commits that were written but possibly not synced before the
      // kill.
      let again = try work.attempt(
        "-C", "killed", "import", "--dry-run", "--batch", "\(Self.batch)", Self.source)
      let kept = try eventCount("killed", in: work)
      #expect(events.values.contains(kept), "\(place): \(kept) events are no whole commits")
      #expect(kept >= held, "\(place): \(held) events, then \(kept)")
      guard kept > 0 else { continue }
      #expect(again.status == 65, "\(place): \(again.errors)")
      let refused = try work.attempt("-C", "killed", "import", "--batch", "\(Self.batch)", Self.source)
      #expect(refused.status == 65, "\(place): \(refused.errors)")
      let named = try #require(
        refused.errors.firstMatch(of: /--from-line (\d+)/), "\(place): \(refused.errors)")
      resume = try #require(Int(named.1))
      #expect(events[resume - 1] == kept, "\(place): --from-line \(resume) with \(kept) events")
      #expect(try eventCount("killed", in: work) == kept, "\(place): a refused import appended something")
    }
    #expect(resume < last, "the last kill came too late to leave anything to do")

    try work.stemma(
      "-C", "killed", "import", "--batch", "\(Self.batch)", "--from-line", "\(resume)", Self.source)
    #expect(try work.stemma("-C", "killed", "export").output == expected)
    #expect(try eventCount("killed", in: work) == events[last])
    try work.stemma("-C", "killed", "verify")
    try work.stemma("-C", "killed", "rebuild")
    #expect(try work.stemma("-C", "killed", "export").output == expected)
  }
}
