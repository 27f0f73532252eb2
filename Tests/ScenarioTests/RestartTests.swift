import Foundation
import Testing

/// A server that is killed and started again within a first clone. With `STEMMA_LONG`, the node has
/// a million events.
@Suite("A restarted server", .enabled(if: RealData.hasPython))
struct RestartTests {
  private static let isLong = ProcessInfo.processInfo.environment["STEMMA_LONG"] != nil
  private static let events = isLong ? 1_000_000 : 60_000
  /// In raw bytes. Both sizes give about as many files.
  private static let segment = isLong ? 8 << 20 : 500_000

  /// Forwards connections, and writes the bytes of the answers, one number for each part.
  private static let proxy = """
    import socket, sys, threading
    target = int(sys.argv[1]); counted = open("bytes", "a", buffering=1)
    server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(100)
    print(server.getsockname()[1], flush=True)
    def pump(a, b, counts):
        try:
            while True:
                data = a.recv(65536)
                if not data: break
                b.sendall(data)
                if counts: counted.write(f"{len(data)}\\n")
        except OSError: pass
        for s in (a, b):
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
    while True:
        near, _ = server.accept()
        try: far = socket.create_connection(("127.0.0.1", target), 5)
        except OSError: near.close(); continue
        far.settimeout(None)
        threading.Thread(target=pump, args=(near, far, False), daemon=True).start()
        threading.Thread(target=pump, args=(far, near, True), daemon=True).start()

    """

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
    try work.write("proxy.py", Self.proxy)
    let first = try ServedNode("hq", in: work)
    let proxy = try Background(python, ["proxy.py", "\(first.port)"], in: work)
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
    first.program.end(SIGKILL)
    #expect(clone.wait() != 0)
    let second = try ServedNode("hq", in: work, port: first.port)
    let begun = try peers.attempt("-C", "field", "status", "--json").object()
    #expect(begun.number("events") ?? 0 > 0)
    try peers.stemma("clone", address, "field", "--name", "field")
    #expect(try peers.digests("field") == peers.digests("hq"))
    let twice = try bytes() - once
    print("a whole clone is \(once) bytes, an interrupted one \(twice)")
    #expect(Double(twice) < Double(once) * 1.1)
    #expect(second.program.end() == 0)
  }
}
