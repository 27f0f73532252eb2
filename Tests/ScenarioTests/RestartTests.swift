import Foundation
import Testing

/// A server that is killed and started again within a first clone.
@Suite("A restarted server", .enabled(if: RealData.hasPython))
struct RestartTests {
  private static let events = 250_000
  /// In raw bytes, enough for a file to be sent unchanged. A file is then less than a tenth.
  private static let segment = 1_100_000

  /// In seconds, after each 64 KiB from the server. Bytes that wait in the buffers of a client are
  /// lost with its connection, and without a pause these fill on a busy machine.
  private static let pause = "0.1"

  private static let lines = """
    import json
    for i in range(\(events)):
        fields = {"title": f"task {i * 2654435761 % 1000003} of {i}", "done": i % 3 == 0}
        print(json.dumps({"op": "create", "model": "Task", "key": {"tenant": f"t{i % 50}", "id": str(i)}, "fields": fields}))

    """

  @Test("a clone goes on where it was, and less than a tenth is sent twice")
  func restart() throws {
    let peers = try Peers(.http)
    let work = peers.work
    let python = try #require(RealData.python)
    try peers.make("hq")
    try work.write("lines.py", Self.lines)
    let imported = try ConsolePage.run(
      "'\(python)' lines.py > lines.ndjson && stemma -C hq import --segment-size \(Self.segment) lines.ndjson 2> /dev/null",
      in: work.path, showsStatus: true)
    try #require(imported.last?.hasPrefix("[") != true, "\(imported)")
    try work.write("proxy.py", PeerChaosTests.proxy)
    let first = try ServedNode("hq", in: work)
    let proxy = try Background(
      python, ["proxy.py", "\(first.port)", "0", "never", "bytes", Self.pause, "down"], in: work)
    let address = "http://127.0.0.1:\(proxy.firstLine)"
    func bytes() throws -> Int {
      try String(contentsOfFile: work.file("bytes"), encoding: .utf8).split(separator: "\n")
        .reduce(0) { $0 + (Int($1) ?? 0) }
    }
    try peers.stemma("clone", address, "whole", "--name", "whole")
    let once = try bytes()

    let clone = try Background(
      Tool.path, ["clone", address, "field", "--name", "field"], in: work, readsLine: false)
    // Killed when about half has arrived.
    while clone.isRunning, try bytes() < once + once / 2 { usleep(500) }
    try work.write("down", "")
    first.program.end(SIGKILL)
    #expect(clone.wait() != 0)
    try FileManager.default.removeItem(atPath: work.file("down"))
    let second = try ServedNode("hq", in: work, port: first.port)
    let begun = try peers.attempt("-C", "field", "status", "--json").object()
    let adopted = try #require(begun.number("events"))
    #expect(adopted > 0 && adopted < Self.events, "\(adopted)")
    try peers.stemma("clone", address, "field", "--name", "field")
    #expect(try peers.digests("field") == peers.digests("hq"))
    let twice = try bytes() - once
    print("a whole clone is \(once) bytes, an interrupted one \(twice)")
    #expect(Double(twice) < Double(once) * 1.1)
    #expect(second.program.end() == 0)
  }
}
