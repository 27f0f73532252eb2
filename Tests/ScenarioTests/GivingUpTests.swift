import Foundation
import Testing

/// A node that lost events which nobody can give back goes on without them.
@Suite("Giving up") struct GivingUpTests {
  /// A node with a sealed file and a journal, each with many events.
  private func shop() throws -> Workplace {
    let work = try Workplace()
    try work.rows("shop")
    try work.write("sealed.ndjson", Rows.lines(600))
    try work.stemma("-C", "shop", "import", "sealed.ndjson", "--batch", "50", "--segment-size", "30000")
    let changes = (0..<150).map { number in
      #"{"op":"update","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"new \#(number)"}}"#
    }
    try work.write("journal.ndjson", changes.joined(separator: "\n"))
    try work.stemma("-C", "shop", "import", "journal.ndjson", "--batch", "10")
    // What is written later confirms all that came before.
    try work.stemma("-C", "shop", "create", "Row", "tenant=t0", "n=5000", "text=last")
    return work
  }

  /// Spoils bytes in the middle of the first file of a kind that has events.
  private func damage(_ kind: String, of node: String, _ work: Workplace) throws {
    let files = try work.stemma("-C", node, "segments", "--json").array()
    let path = try #require(
      files.first { $0.text("kind") == kind && $0.number("events") ?? 0 > 100 }?.text("file"))
    let name = node + "/log/" + (path.split(separator: "/").last ?? "")
    var bytes = try work.bytes(name)
    let stored = try #require(files.first { $0.text("file") == path }?.number("storedBytes"))
    for index in 0..<40 { bytes[stored / 2 + index] ^= 0x5A }
    try bytes.write(to: URL(fileURLWithPath: work.file(name)))
  }

  @Test(
    "events that damage took are given up: rows stay, writing goes on, peers agree",
    arguments: ["segment", "journal"])
  func givenUp(kind: String) throws {
    let work = try shop()
    try work.stemma("clone", "shop", "peer", "--name", "peer")
    try work.rows("late")
    let before = try work.export("shop")
    try damage(kind, of: "shop", work)

    let verified = try work.attempt("-C", "shop", "verify")
    #expect(verified.status == 1 && verified.output.contains("stemma repair --give-up"), "\(verified.output)")
    let losses =
      try work.attempt("-C", "shop", "verify", "--json").object()["missing"] as? [[String: Any]] ?? []
    let partition = try #require(losses.first?["partition"] as? String)
    let tenant = partition.dropFirst("tenant=".count)
    #expect(
      try work.attempt("-C", "shop", "create", "Row", "tenant=\(tenant)", "n=7000", "text=x").status == 74)

    let planned = try work.stemma("-C", "shop", "repair", "--give-up", "-n")
    #expect(
      planned.lines.first == "would give up:" && planned.output.contains(partition), "\(planned.output)")
    #expect(try work.attempt("-C", "shop", "verify").status == 1)
    let done = try work.stemma("-C", "shop", "repair", "--give-up")
    #expect(done.lines.first == "gave up:", "\(done.output)")
    #expect(done.lines.dropFirst() == planned.lines.dropFirst().dropLast())

    #expect(try work.export("shop") == before)
    let clean = try work.stemma("-C", "shop", "verify")
    #expect(clean.output.contains("given up on ") && clean.output.contains("all good"), "\(clean.output)")
    let lost = losses.reduce(0) { $0 + ($1.number("to") ?? 0) - ($1.number("from") ?? 0) + 1 }
    let records = try work.stemma("-C", "shop", "verify", "--json").object()["givenUp"] as? [[String: Any]]
    #expect(records?.map { $0.number("events") } == [lost])
    #expect(try work.stemma("-C", "shop", "status").output.contains("\(lost) lost events of "))
    #expect(try work.stemma("-C", "shop", "log").output.contains("in place of events of shop"))
    #expect(try work.attempt("-C", "shop", "repair", "--give-up").output == "nothing to give up\n")

    try work.stemma("-C", "shop", "create", "Row", "tenant=\(tenant)", "n=7000", "text=x")
    let after = try work.export("shop")
    try work.stemma("-C", "shop", "rebuild")
    #expect(try work.export("shop") == after)
    // One peer never had the events. The other has them, and gives them back beside what stands in their place.
    let synced = try work.stemma("-C", "shop", "sync", "late")
    #expect(synced.errors.contains("shop has given up events of \(partition)"), "\(synced.errors)")
    #expect(try work.export("late") == after)
    try work.stemma("-C", "shop", "sync", "peer")
    for node in ["shop", "peer"] {
      #expect(try work.export(node) == after)
      try work.stemma("-C", node, "verify")
      try work.stemma("-C", node, "conflicts", "--check")
    }
    let digest = try work.stemma("-C", "shop", "digest").output
    #expect(try work.stemma("-C", "peer", "digest").output == digest)
  }

  @Test("giving up goes with no peer, and a plan only with giving up")
  func options() throws {
    let work = try Workplace()
    try work.rows("shop")
    for words in [["--give-up", "--fork"], ["--give-up", "--from", "x"], ["--from", "x", "-n"], ["-n"]] {
      let result = try Tool.run(Tool.path, ["-C", "shop", "repair"] + words, in: work.path)
      #expect(result.status == 64, "\(words): \(result.errors)")
    }
    #expect(try work.stemma("-C", "shop", "repair", "--give-up").output == "nothing to give up\n")
  }
}
