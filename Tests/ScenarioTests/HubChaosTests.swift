import Foundation
import Servers
import StemmaSimulation
import Testing

/// Ten nodes with different scopes that follow one bucket, while followers and a volume server are
/// killed and answers of the store are lost. Writes take 15 seconds, and 120 with `STEMMA_LONG`.
@Suite(
  "Hubs under faults", .enabled(if: Programs.areThere, "STEMMA_PEERS is not set"),
  .enabled(if: RealData.hasPython), .serialized)
struct HubChaosTests {
  private static let tenantCount = 5
  /// The tenants of each node.
  private static let scopes = [
    Array(0..<tenantCount), [0], [1], [2], [3], [4], [0, 1], [1, 2, 3], [3, 4], [0, 4],
  ]
  /// The fewest acknowledged writes of a run.
  private static let writes = 20
  private static let seconds = ProcessInfo.processInfo.environment["STEMMA_LONG"] == nil ? 15.0 : 120.0

  /// Forwards whole requests, from one port for each node, and writes them to a file for each node.
  /// While a file exists, it drops every sixth connection: before it forwards the request, or
  /// before it forwards the answer.
  ///
  /// The signature covers the header `Host`, so it is forwarded as it is.
  private static let proxy = """
    import contextlib, http.client, os, random, socketserver, sys, threading
    target, seed, faults, count = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    rng = random.Random(seed)
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 64
        def handle_error(self, request, address): pass
    class Connection(socketserver.StreamRequestHandler):
        def handle(self):
            while self.forward(): pass
        def forward(self):
            line = self.rfile.readline().decode("latin-1")
            if not line: return False
            method, path, _ = line.split()
            headers = []
            while header := self.rfile.readline().decode("latin-1").strip():
                headers.append(tuple(part.strip() for part in header.split(":", 1)))
            size = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            body = self.rfile.read(size)
            fault = rng.choice(["before", "after"] + 10 * ["none"]) if os.path.exists(faults) else "none"
            self.server.log.write(f"{method} {path} {fault}\\n")
            if fault == "before": return False
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", target, timeout=60)) as far:
                far.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
                for name, value in headers: far.putheader(name, value)
                far.endheaders(body or None)
                answer = far.getresponse()
                content = answer.read()
            if fault == "after": return False
            head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
            own = ("transfer-encoding", "content-length", "connection")
            head += [f"{name}: {value}" for name, value in answer.getheaders() if name.lower() not in own]
            if answer.status != 204: head.append(f"Content-Length: {len(content)}")
            self.wfile.write("\\r\\n".join(head + ["", ""]).encode("latin-1") + content)
            self.wfile.flush()
            return True
    servers = [Server(("127.0.0.1", 0), Connection) for _ in range(count)]
    for number, server in enumerate(servers):
        server.log = open(f"requests-{number}", "a", buffering=1)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*(server.server_address[1] for server in servers), flush=True)
    threading.Event().wait()

    """

  /// A line of the proxy.
  private struct Request {
    var method: Substring
    var path: Substring
    var fault: Substring

    /// The key of a read object.
    var readObject: String? {
      guard method == "GET", let start = path.range(of: "/objects/") else { return nil }
      return "objects/" + path[start.upperBound...]
    }
  }

  private let server: SeaweedServer
  private let work: Workplace
  private let proxy: Background
  private let ports: [Int]

  init() throws {
    let count = Self.scopes.count
    server = try SeaweedServer()
    work = try Workplace()
    try work.write("schema.graphql", Peers.schema)
    try work.write("proxy.py", Self.proxy)
    let port = try #require(server.endpoint.split(separator: ":").last)
    proxy = try Background(
      try #require(RealData.python), ["proxy.py", "\(port)", "1", work.file("faults"), "\(count)"], in: work)
    ports = proxy.firstLine.split(separator: " ").compactMap { Int($0) }
    try #require(ports.count == count, "\(proxy.errorText)")
  }

  private func name(_ node: Int) -> String { "n\(node)" }

  private func requests(_ node: Int) throws -> [Request] {
    try String(contentsOfFile: work.file("requests-\(node)"), encoding: .utf8).split(separator: "\n").map {
      let words = $0.split(separator: " ")
      return Request(method: words[0], path: words[1], fault: words[2])
    }
  }

  private func attempt(_ arguments: [String]) throws -> Tool.Result {
    try Tool.run(Tool.path, arguments, in: work.path, environment: server.environment)
  }

  private func stemma(_ arguments: String...) throws {
    let result = try attempt(arguments)
    #expect(result.status == 0, "stemma \(arguments.joined(separator: " ")): \(result.errors)")
  }

  /// Each tenant begins with an object of its own, and each node with its scope.
  private func makeNodes() throws {
    try stemma("hub", "init", server.hubAddress("chaos"))
    try stemma("init", name(0), "--schema", "schema.graphql", "--name", name(0))
    try stemma("-C", name(0), "remote", "add", "hub", server.hubAddress("chaos", port: ports[0]))
    for tenant in 0..<Self.tenantCount {
      try stemma("-C", name(0), "upsert", "Task", "tenant=t\(tenant)", "id=0", "title=first")
      try stemma("-C", name(0), "push")
    }
    for node in 1..<Self.scopes.count {
      let partitions = Self.scopes[node].flatMap { ["--partition", "tenant=t\($0)"] }
      let address = server.hubAddress("chaos", port: ports[node])
      let result = try attempt(["clone", address, name(node), "--name", name(node)] + partitions)
      #expect(result.status == 0, "\(result.errors)")
    }
  }

  private func follow(_ node: Int) throws -> Background {
    try Background(
      Tool.path, ["-C", name(node), "sync", "--follow", "--interval", "1s"], in: work,
      environment: server.environment, readsLine: false)
  }

  /// Writes and faults. Returns the acknowledged writes.
  private func disturb(_ random: inout SplitMix64) throws -> [String] {
    try work.write("faults", "")
    defer { try? FileManager.default.removeItem(atPath: work.file("faults")) }
    let count = Self.scopes.count
    var followers: [Background?] = try (0..<count).map(follow)
    var acknowledged: [String] = []
    var (number, kills) = (0, 0)
    let start = Date()
    var hasVolume = true
    // On a busy machine, the time is too short for many writes.
    while Date() < start.addingTimeInterval(Self.seconds)
      || acknowledged.count <= Self.writes && Date() < start.addingTimeInterval(Self.seconds + 120)
    {
      if hasVolume, Date() > start.addingTimeInterval(Self.seconds / 2) {
        hasVolume = false
        server.killVolume(1)
      }
      let node = Int(random.next() % UInt64(count))
      switch random.next() % 12 {
      case 0:
        if followers[node] != nil { kills += 1 }
        followers[node]?.end(SIGKILL)
        followers[node] = nil
      case 1:
        for node in 0..<count where followers[node] == nil { followers[node] = try follow(node) }
      default:
        number += 1
        let scope = Self.scopes[node]
        let tenant = scope[Int(random.next() % UInt64(scope.count))]
        // Few keys, so that writes meet.
        let result = try attempt([
          "-C", name(node), "upsert", "--wait", "30", "Task", "tenant=t\(tenant)", "id=\(random.next() % 5)",
          "title=w\(number)",
        ])
        if result.status == 0 { acknowledged.append("tenant=t\(tenant) w\(number)") }
      }
    }
    #expect(acknowledged.count > Self.writes)
    #expect(kills > 0)
    print("\(acknowledged.count) of \(number) writes are acknowledged, \(kills) followers were killed")
    try FileManager.default.removeItem(atPath: work.file("faults"))
    for follower in followers.compactMap(\.self) {
      #expect(follower.isRunning, "\(follower.errorText)")
      #expect(follower.end() == 0, "\(follower.errorText)")
    }
    return acknowledged
  }

  private func digests(_ node: Int) throws -> [String: [String]] {
    let lines = try work.stemma("-C", name(node), "digest", "--ndjson").objects()
    return Dictionary(
      uniqueKeysWithValues: try lines.map {
        (
          try #require($0.text("partition")),
          ["\($0.number("events") ?? 0)", $0.text("log") ?? "", $0.text("tables") ?? ""]
        )
      })
  }

  /// The nodes that do not hold what the first one does within their scopes.
  private func differing() throws -> [Int] {
    let whole = try digests(0)
    return try Self.scopes.indices.dropFirst().filter { node in
      let scope = Self.scopes[node].map { "tenant=t\($0)" }
      return try digests(node) != whole.filter { scope.contains($0.key) }
    }
  }

  @Test("all nodes converge to their scopes, with every acknowledged write, and read nothing else")
  func converges() throws {
    let seed: UInt64 = 20_261_129
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    try makeNodes()
    let acknowledged = try disturb(&random)

    // The remaining volume servers may need some time for the first rounds.
    let deadline = Date().addingTimeInterval(120)
    var rounds = 0
    var unequal = [0]
    var failures: [String] = []
    while !unequal.isEmpty, Date() < deadline {
      rounds += 1
      failures = []
      for node in Self.scopes.indices {
        let result = try attempt(["-C", name(node), "sync"])
        if result.status != 0 { failures.append("\(name(node)): \(result.errors)") }
      }
      if failures.isEmpty { unequal = try differing() }
    }
    print("\(rounds) rounds of sync without faults")
    #expect(failures.isEmpty)
    #expect(unequal.isEmpty, "seed \(seed): nodes \(unequal) differ after the faults ended")

    let log = Set(
      try work.stemma("-C", name(0), "log", "--ndjson").objects().compactMap { event in
        event.object("fields").text("title").map { "\(event.text("partition") ?? "") \($0)" }
      })
    let lost = acknowledged.filter { !log.contains($0) }
    #expect(lost.isEmpty, "seed \(seed): lost \(lost.prefix(5)) of \(acknowledged.count)")
    for node in Self.scopes.indices { try work.stemma("-C", name(node), "verify") }
    try checkReads()
    withExtendedLifetime(server) {}
  }

  /// No node has read an object without a partition of its scope.
  private func checkReads() throws {
    let contents = try HubContents(try server.store(prefix: "chaos"))
    var (count, reads, dropped, lost) = (0, 0, 0, 0)
    for node in Self.scopes.indices {
      let scope = Set(Self.scopes[node].map { "tenant=t\($0)" })
      let requests = try requests(node)
      count += requests.count
      dropped += requests.count { $0.fault == "before" }
      lost += requests.count { $0.fault == "after" && $0.method == "PUT" }
      let objects = Set(requests.compactMap(\.readObject))
      #expect(node == 0 || !objects.isEmpty, "\(name(node)) has read no object")
      reads += objects.count
      for object in objects {
        let partitions = try #require(contents.objects[object], "\(object) is in no manifest")
        #expect(!partitions.isDisjoint(with: scope), "\(name(node)) has read \(object): \(partitions)")
      }
      let foreign = contents.objects.values.count { $0.isDisjoint(with: scope) }
      #expect(node == 0 || foreign > 0, "all objects are in the scope of \(name(node))")
    }
    print(
      "\(count) requests, \(dropped) of them dropped before the server, and \(lost) answers to writes lost; "
        + "\(contents.manifests) manifests, \(contents.objects.count) objects, read \(reads) times")
    #expect(dropped > 0 && lost > 0)
  }
}
