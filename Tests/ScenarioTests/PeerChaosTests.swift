import Foundation
import StemmaSimulation
import Testing

/// Five nodes that follow each other over HTTP, through connections that are cut at random bytes,
/// while servers and clients are killed. The time is 12 seconds for each topology, and 150 with
/// `STEMMA_LONG`.
@Suite("Peers under faults", .enabled(if: RealData.hasPython), .serialized)
struct PeerChaosTests {
  /// The remotes and the tenants of each node. The holders of a tenant are connected.
  struct Topology: CustomTestStringConvertible {
    var name: String
    /// The peers that each node follows.
    var remotes: [[Int]]
    var tenants: [[Int]]

    var testDescription: String { name }
  }

  static let all = [0, 1, 2, 3]
  static let topologies = [
    Topology(name: "star", remotes: [[], [0], [0], [0], [0]], tenants: [all, [0], [0, 1], [2, 3], all]),
    Topology(
      name: "chain", remotes: [[], [0], [1], [2], [3]], tenants: [all, [0, 1, 2], [0, 1, 2], [0, 1], [0]]),
    Topology(
      name: "ring", remotes: [[4], [0], [1], [2], [3]],
      tenants: [all, [0, 1], [0, 1], [0, 3], [0, 2, 3]]),
    Topology(
      name: "mesh", remotes: (0..<5).map { node in (0..<5).filter { $0 != node } },
      tenants: [all, [0, 1], [1, 2], [2, 3], [0, 3]]),
  ]

  /// Forwards connections, and cuts each after a random number of bytes while a file exists. Adds
  /// the sizes of the answers to another file, one line for each part. Waits after each part, and
  /// forwards nothing while a third file exists.
  static let proxy = """
    import os, random, socket, sys, threading, time
    target, rng = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    counted = open(sys.argv[4], "a", buffering=1)
    pause, down = (float(sys.argv[5]), sys.argv[6]) if len(sys.argv) > 6 else (0, "")
    server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(100)
    print(server.getsockname()[1], flush=True)
    def pump(a, b, budget, counts):
        try:
            while True:
                data = a.recv(65536)
                if not data or os.path.exists(down): break
                if budget is not None and os.path.exists(sys.argv[3]):
                    data = data[:budget]; budget -= len(data)
                b.sendall(data)
                if counts: counted.write(f"{len(data)}\\n"); time.sleep(pause)
                if budget is not None and budget <= 0: break
        except OSError: pass
        for s in (a, b):
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
    while True:
        near, _ = server.accept()
        try: far = socket.create_connection(("127.0.0.1", target), 5)
        except OSError: near.close(); continue
        far.settimeout(None)
        budget = rng.choice([None, rng.randrange(1, 400), rng.randrange(1, 5000)])
        threading.Thread(target=pump, args=(near, far, budget, False), daemon=True).start()
        threading.Thread(target=pump, args=(far, near, None, True), daemon=True).start()

    """

  /// The fewest acknowledged writes of a run.
  private static let writes = 20
  private static let seconds = ProcessInfo.processInfo.environment["STEMMA_LONG"] == nil ? 12.0 : 150.0

  @Test("all nodes converge to their scopes, with every acknowledged write", arguments: topologies)
  func converges(topology: Topology) throws {
    let seed: UInt64 = 20_261_128
    print("topology \(topology.name), seed \(seed)")
    var random = SplitMix64(seed: seed)
    let work = try Workplace()
    try work.write("schema.graphql", Peers.schema)
    try work.write("proxy.py", Self.proxy)
    try work.write("cut", "")
    let python = try #require(RealData.python)
    let count = topology.remotes.count
    func name(_ node: Int) -> String { "n\(node)" }
    try work.stemma("init", "n0", "--schema", "schema.graphql", "--name", "n0")
    for node in 1..<count {
      let partitions = topology.tenants[node].flatMap { ["--partition", "tenant=t\($0)"] }
      let result = try Tool.run(
        Tool.path, ["clone", "n0", name(node), "--name", name(node)] + partitions, in: work.path)
      #expect(result.status == 0, "\(result.errors)")
      try work.stemma("-C", name(node), "remote", "remove", "source")
    }
    var servers = try (0..<count).map { try ServedNode(name($0), in: work) }
    let ports = servers.map(\.port)
    var proxies: [Background] = []
    for node in 0..<count {
      for peer in topology.remotes[node] {
        let proxy = try Background(
          python, ["proxy.py", "\(ports[peer])", "\(proxies.count)", work.file("cut"), "bytes"], in: work)
        proxies.append(proxy)
        try work.stemma(
          "-C", name(node), "remote", "add", name(peer), "http://127.0.0.1:\(proxy.firstLine)")
      }
    }
    func follow(_ node: Int) throws -> Background? {
      if topology.remotes[node].isEmpty { return nil }
      return try Background(
        Tool.path, ["-C", name(node), "sync", "--follow"], in: work, readsLine: false)
    }
    var followers = try (0..<count).map(follow)

    // Phase one: writes and faults.
    var acknowledged: [String] = []
    let end = Date().addingTimeInterval(Self.seconds)
    var number = 0
    // On a busy machine, the time is too short for many writes.
    while Date() < end || acknowledged.count <= Self.writes && Date() < end.addingTimeInterval(120) {
      let node = Int(random.next() % UInt64(count))
      switch random.next() % 20 {
      case 0:
        servers[node].program.end(SIGKILL)
        servers[node] = try ServedNode(name(node), in: work, port: ports[node])
      case 1:
        followers[node]?.end(SIGKILL)
        followers[node] = try follow(node)
      default:
        number += 1
        let tenants = topology.tenants[node]
        let tenant = tenants[Int(random.next() % UInt64(tenants.count))]
        // Few keys, so that writes meet.
        let result = try Tool.run(
          Tool.path,
          [
            "-C", name(node), "upsert", "--wait", "30", "Task", "tenant=t\(tenant)",
            "id=\(random.next() % 5)",
            "title=w\(number)",
          ], in: work.path)
        if result.status == 0 { acknowledged.append("t\(tenant) w\(number)") }
      }
    }

    // Phase two: no faults.
    try FileManager.default.removeItem(atPath: work.file("cut"))
    func digests(_ node: Int) throws -> [String: [String]] {
      let lines = try work.stemma("-C", name(node), "digest", "--ndjson").objects()
      return Dictionary(
        uniqueKeysWithValues: lines.map {
          (
            $0.text("partition") ?? "",
            ["\($0.number("events") ?? 0)", $0.text("log") ?? "", $0.text("tables") ?? ""]
          )
        })
    }
    func expected(_ node: Int, _ whole: [String: [String]]) -> [String: [String]] {
      whole.filter { partition, _ in topology.tenants[node].contains { partition == "tenant=t\($0)" } }
    }
    var differing = [0]
    let deadline = Date().addingTimeInterval(240)
    while !differing.isEmpty, Date() < deadline {
      let whole = try digests(0)
      differing = try (1..<count).filter { try digests($0) != expected($0, whole) }
    }
    #expect(differing.isEmpty, "seed \(seed): nodes \(differing) differ after the faults ended")
    let log = Set(
      try work.stemma("-C", "n0", "log", "--ndjson").objects().compactMap { event -> String? in
        guard let title = event.object("fields").text("title") else { return nil }
        return "\((event.text("partition") ?? "").replacingOccurrences(of: "tenant=", with: "")) \(title)"
      })
    #expect(acknowledged.count > Self.writes)
    let lost = acknowledged.filter { !log.contains($0) }
    #expect(lost.isEmpty, "seed \(seed): lost \(lost.prefix(5)) of \(acknowledged.count)")
    func conflicts(_ node: Int, in tenants: [Int]) throws -> [String] {
      try work.stemma("-C", name(node), "conflicts", "--ndjson").lines.filter { line in
        tenants.contains { line.contains(#""tenant":"t\#($0)""#) }
      }
    }
    for node in 0..<count {
      let tenants = topology.tenants[node]
      #expect(try conflicts(node, in: Self.all) == conflicts(0, in: tenants), "\(name(node))")
      // A few times as much as a server without load.
      let memory = servers[node].program.residentKilobytes
      #expect(memory ?? 0 < 200_000, "\(name(node)) holds \(memory ?? 0) KB")
      try work.stemma("-C", name(node), "verify")
      let descriptors = "/proc/\(servers[node].program.processIdentifier)/fd"
      if let open = try? FileManager.default.contentsOfDirectory(atPath: descriptors) {
        #expect(open.count < 200, "\(name(node)) has \(open.count) descriptors")
      }
    }
    for follower in followers { #expect(follower?.end() ?? 0 == 0) }
    for server in servers { #expect(server.program.end() == 0) }
  }
}
