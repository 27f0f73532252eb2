import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import Testing

/// Rights of tokens, bad clients, change hints and TLS.
@Suite("A served node", .enabled(if: Tool.hasCurl))
struct ServerTests {
  /// A node with the tenants `a` and `secret-b`, and a token for `a`.
  private func guarded() throws -> (peers: Peers, node: ServedNode, token: String) {
    let peers = try Peers(.http)
    try peers.make("hq")
    for tenant in ["a", "secret-b"] { for id in 1...3 { try peers.write("hq", tenant, "\(id)") } }
    let token = try peers.stemma(
      "-C", "hq", "token", "create", "field", "--read", "tenant=a", "--write", "tenant=a"
    ).lines[0]
    return (peers, try ServedNode("hq", in: peers.work), token)
  }

  private func bearer(_ token: String) -> [String] { ["-H", "Authorization: Bearer \(token)"] }

  @Test("a token is needed, and a revoked or expired one is none")
  func tokens() throws {
    let (peers, node, token) = try guarded()
    let paths = ["/v1/node", "/v1/schema", "/v1/digests", "/v1/changes", "/metrics"]
    for path in paths {
      #expect(try node.answer(path, in: peers.work).status == 401)
      #expect(try node.answer(path, bearer(token + "x"), in: peers.work).status == 401)
    }
    #expect(try node.answer("/healthz", in: peers.work).status == 200)
    #expect(try node.answer("/v1/openapi.json", in: peers.work).status == 200)
    // Counters of all partitions, although without names.
    #expect(try node.answer("/metrics", bearer(token), in: peers.work).status == 403)
    #expect(try node.answer("/v1/digests?partition=%5B", bearer(token), in: peers.work).status == 422)
    #expect(try node.answer("/v1/node", bearer(token), in: peers.work).status == 200)
    try peers.stemma("-C", "hq", "token", "revoke", "field")
    // Another one is left, so the node does not become open to everybody.
    #expect(try peers.attempt("-C", "hq", "token", "revoke", "field").status == 66)
    let file = try String(contentsOfFile: peers.work.file("hq/tokens.json"), encoding: .utf8)
    #expect(!file.contains(token))
  }

  @Test("the last revoked token leaves no open server")
  func lastToken() throws {
    let (peers, node, token) = try guarded()
    try peers.stemma("-C", "hq", "token", "revoke", "field")
    #expect(try node.answer("/v1/node", bearer(token), in: peers.work).status == 401)
    #expect(try node.answer("/v1/node", in: peers.work).status == 401)
  }

  @Test("nothing of an ungranted partition is shown by any verb, error, hint, digest, metric or relay")
  func hidden() throws {
    let (peers, node, token) = try guarded()
    try peers.work.write("token", token)
    var shown = ""
    for path in [
      "/v1/node", "/v1/schema", "/v1/digests", "/v1/digests?partition=tenant%3Dsecret-b", "/metrics",
    ] {
      shown += try node.answer(path, bearer(token), in: peers.work).body
    }
    let hints = try Background(
      "/usr/bin/env", ["curl", "-sN"] + bearer(token) + [node.url + "/v1/changes"], in: peers.work)
    #expect(hints.firstLine.hasPrefix(":"))
    func attempt(_ arguments: String...) throws -> Tool.Result {
      try Tool.run(
        Tool.path, arguments + ["--token-file", "token"], in: peers.work.path, environment: peers.environment)
    }
    let cloned = try attempt("clone", node.url, "field", "--name", "field")
    shown += cloned.output + cloned.errors
    #expect(cloned.status == 0)
    #expect(try peers.titles("field").split(separator: "\n").count == 3)
    // A partition without rights looks as one that does not exist.
    var answers: [String] = []
    for tenant in ["secret-b", "nowhere"] {
      let clone = try attempt("clone", node.url, "x-\(tenant)", "--partition", "tenant=\(tenant)")
      answers.append(
        "\(clone.status) \(clone.output)\(clone.errors)".replacingOccurrences(of: tenant, with: "T"))
      try? FileManager.default.removeItem(atPath: peers.work.file("x-\(tenant)"))
      let digests = try node.answer("/v1/digests?partition=tenant%3D\(tenant)", bearer(token), in: peers.work)
      #expect(digests.body == "[]")
    }
    #expect(answers[0] == answers[1])
    // Writes outside of the grant are not adopted, relayed ones included.
    try peers.stemma("init", "other", "--schema", "schema.graphql", "--name", "other")
    try peers.write("other", "a", "9", "granted")
    try peers.write("other", "secret-b", "9", "not granted")
    let pushed = try attempt("-C", "other", "push", node.url)
    #expect(pushed.status == 0, "\(pushed.errors)")
    let named = try attempt("-C", "other", "push", node.url, "--partition", "tenant=secret-b")
    #expect(named.status == 77, "\(named.errors)")
    let titles = try peers.titles("hq")
    #expect(titles.contains("granted\n") && !titles.contains("not granted"))
    hints.end(SIGKILL)
    #expect(!shown.contains("secret"))
    let log = node.program.errorText
    #expect(!log.contains(token))
  }

  @Test(
    "a client in another language pulls a partition, and pushes a record", .enabled(if: RealData.hasPython))
  func otherLanguage() throws {
    let (peers, node, token) = try guarded()
    let python = try #require(RealData.python)
    let script = ConsolePage.root.appendingPathComponent("Tests/ScenarioTests/client.py").path
    func client(_ arguments: String...) throws -> Tool.Result {
      try Tool.run(
        python, [script, node.url] + arguments, in: peers.work.path,
        environment: ["STEMMA_TOKEN": token, "PYTHONDONTWRITEBYTECODE": "1"])
    }
    let pulled = try client("tenant=a")
    #expect(pulled.status == 0, "\(pulled.errors)")
    #expect(pulled.lines.count == 3)
    let pushed = try client("tenant=a", "--push", "Task", #"["a","python"]"#, "title", "from python")
    #expect(pushed.status == 0, "\(pushed.errors)")
    #expect(try peers.titles("hq").contains("a\tpython\tfrom python\n"))
    try peers.stemma("-C", "hq", "verify")
    #expect(try client("tenant=secret-b").status != 0)
  }

  @Test("bad bodies are refused with a problem document, and others are served")
  func hostileBodies() throws {
    let peers = try Peers(.http)
    try peers.make("hq")
    try peers.write("hq", "a", "1")
    let node = try ServedNode("hq", in: peers.work)
    var bodies: [String: [UInt8]] = [
      "empty": [], "text": Array("hello".utf8), "zero length": [0, 0, 0, 0],
      "longest length": [0xff, 0xff, 0xff, 0xff], "a length of 200 MiB": [0x0c, 0x80, 0, 0, 1, 2, 3],
      "type only": [0, 0, 0, 1, 3],
    ]
    for seed in 0..<20 {
      bodies["random \(seed)"] = (0..<200).map {
        UInt8(truncatingIfNeeded: ($0 &* 7919 &+ seed &* 104_729) >> 3)
      }
    }
    for (name, body) in bodies {
      try Data(body).write(to: URL(fileURLWithPath: peers.work.file("body")))
      for verb in ["pull", "have", "push"] {
        let answer = try node.answer(
          "/v1/\(verb)", ["--data-binary", "@body", "-H", "Content-Type: application/vnd.stemma.messages"],
          in: peers.work)
        #expect(name == "empty" || (400..<500).contains(answer.status), "\(verb) \(name): \(answer)")
        #expect(answer.status < 500 && answer.status > 0, "\(verb) \(name): \(answer)")
      }
    }
    // A greeting alone is no shipment, and no request.
    let greeting = SessionMessage.greeting(
      Greeting(logID: LogID(1), nodeName: "x", origins: [], schema: "", scope: .everything)
    ).encoded
    let length = withUnsafeBytes(of: UInt32(greeting.count).bigEndian) { Array($0) }
    try Data(length + greeting).write(to: URL(fileURLWithPath: peers.work.file("body")))
    for verb in ["pull", "push"] {
      #expect(
        try node.answer("/v1/\(verb)", ["--data-binary", "@body"], in: peers.work).status == 400, "\(verb)")
    }
    for path in ["/nothing", "/v1/", "/v1/pull", "/v1/objects/../../etc/passwd"] {
      #expect((400..<500).contains(try node.answer(path, ["--path-as-is"], in: peers.work).status), "\(path)")
    }
    #expect(try peers.digests("hq").split(separator: "\n").count > 0)
    try peers.stemma("clone", node.url, "field", "--name", "field")
    #expect(try peers.digests("field") == peers.digests("hq"))
  }

  @Test("idle connections, slow senders and endless bodies leave the server to others")
  func manyClients() throws {
    let peers = try Peers(.http)
    try peers.make("hq")
    try peers.write("hq", "a", "1")
    let node = try ServedNode("hq", in: peers.work)
    let python = try #require(RealData.python)
    // 2,000 idle connections, 50 slow heads, 20 slow bodies, 4 endless bodies. Two of these are
    // refused at once, for their `Host`.
    try peers.work.write(
      "clients.py",
      """
      import resource, socket, sys, threading, time
      resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
      port = int(sys.argv[1]); held = []
      def connect():
          s = socket.create_connection(("127.0.0.1", port)); held.append(s); return s
      for _ in range(2000): connect()
      for _ in range(50): connect().sendall(b"POST /v1/pull HTTP/1.1\\r\\nHost: x\\r\\nX-Slow: ")
      for _ in range(20): connect().sendall(b"POST /v1/push HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 900\\r\\n\\r\\nabc")
      def endless(host):
          s = connect(); s.sendall(b"POST /v1/pull HTTP/1.1\\r\\nHost: %s\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n" % host)
          chunk = b"10000\\r\\n" + b"x" * 65536 + b"\\r\\n"
          try:
              while True: s.sendall(chunk)
          except OSError: pass
      threads = [threading.Thread(target=endless, args=(host,), daemon=True) for host in 2 * (b"localhost", b"x")]
      for t in threads: t.start()
      for t in threads: t.join()
      print("ready", flush=True)
      time.sleep(600)

      """)
    let clients = try Background(python, ["clients.py", "\(node.port)"], in: peers.work)
    #expect(clients.firstLine == "ready")
    try peers.stemma("clone", node.url, "field", "--name", "field")
    #expect(try peers.digests("field") == peers.digests("hq"))
    let memory = node.program.residentKilobytes
    #expect(memory ?? 0 < 600_000, "the server holds \(memory ?? 0) KB")
    clients.end(SIGKILL)
    #expect(node.program.end() == 0)
  }

  @Test("the examples of PROTOCOL.md work as printed")
  func examples() throws {
    let (peers, node, token) = try guarded()
    let page = try String(
      contentsOf: ConsolePage.root.appendingPathComponent("docs/PROTOCOL.md"), encoding: .utf8)
    let examples = try #require(page.components(separatedBy: "**Examples.**").last)
    let script = try #require(examples.components(separatedBy: "```sh\n").dropFirst().first)
      .components(separatedBy: "```")[0]
    let messages: [SessionMessage] = [
      .greeting(Greeting(logID: LogID(1), nodeName: "x", origins: [], schema: "", scope: .everything)),
      .request(TransferRequest(scope: NarrowedScope(.everything), versionVector: VersionVector())),
    ]
    let framed = messages.map(\.encoded).flatMap { message in
      withUnsafeBytes(of: UInt32(message.count).bigEndian) { Array($0) } + message
    }
    try Data(framed).write(to: URL(fileURLWithPath: peers.work.file("hello.bin")))
    // The stream of changes does not end.
    try peers.work.write(
      "examples.sh",
      "set -e\ncurl() { command curl -fsS \"$@\" || [ $? = 28 ]; }\n"
        + script.replacing("-N", with: "-N --max-time 1"))
    let result = try Tool.run(
      "/bin/bash", ["examples.sh"], in: peers.work.path, environment: ["URL": node.url, "TOKEN": token])
    #expect(result.status == 0, "\(result.errors)")
    #expect(script.components(separatedBy: "curl ").count == 7)
    for file in ["greeting", "answer"] { #expect(try peers.work.bytes(file).count > 100) }
  }

  @Test("a change is hinted to a stream, and a follower shows it")
  func hints() throws {
    let peers = try Peers(.http)
    try peers.make("hq")
    try peers.write("hq", "a", "1")
    let node = try ServedNode("hq", in: peers.work)
    try peers.stemma("clone", node.url, "field", "--name", "field")
    let follower = try Background(
      Tool.path, ["-C", "field", "sync", "--follow", "--ndjson"], in: peers.work, readsLine: false)
    try peers.write("hq", "a", "2", "live")
    #expect(try peers.awaits("field", "live"))
    // Another process of the follower's node writes.
    try peers.write("field", "a", "3", "back")
    #expect(try peers.awaits("hq", "back"))
    #expect(follower.end() == 0)
    let status = try peers.stemma("-C", "field", "status", "--json").object().array("peers")[0]
    #expect(status.number("ahead") == 0 && status["problem"] is NSNull)
    #expect(try peers.attempt("-C", "field", "status", "--check", "--max-lag", "1d").status == 0)
  }

  @Test("each line of the access log is an object with numbers, and without a token")
  func accessLog() throws {
    let (peers, node, token) = try guarded()
    node.program.end()
    let logged = try ServedNode("hq", in: peers.work, ["--log-format", "json"])
    _ = try logged.answer("/v1/node", bearer(token), in: peers.work)
    _ = try logged.answer("/v1/node", bearer("wrong"), in: peers.work)
    #expect(logged.program.end() == 0)
    let lines = try logged.program.errorText.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
    let requests = lines.filter { $0.text("message") == "node" }
    #expect(requests.map { $0.number("status") } == [200, 401])
    #expect(requests.map { $0.text("token") } == ["field", "-"])
    #expect(requests.allSatisfy { $0["seconds"] is NSNumber && $0.text("time") != nil })
    #expect(!logged.program.errorText.contains(token))
  }

  @Test("a token that may only read makes a mirror that syncs")
  func readOnly() throws {
    let (peers, node, _) = try guarded()
    let token = try peers.stemma("-C", "hq", "token", "create", "mirror", "--read", "tenant=a").lines[0]
    try peers.work.write("token", token)
    try peers.stemma(
      "clone", node.url, "mirror", "--partition", "tenant=a", "--token-file", "token")
    try peers.write("hq", "a", "9", "new")
    try peers.stemma("-C", "mirror", "sync")
    #expect(try peers.titles("mirror").contains("new"))
    // Own events stay here, and are shown.
    try peers.write("mirror", "a", "10", "own")
    try peers.stemma("-C", "mirror", "sync")
    let status = try peers.stemma("-C", "mirror", "status", "--json").object().array("peers")[0]
    #expect(status.number("ahead") == 1 && status["problem"] is NSNull)
    #expect(try !peers.titles("hq").contains("own"))
  }

  @Test("a follower keeps events to itself that its token does not permit, without an error")
  func limitedFollower() throws {
    let (peers, node, token) = try guarded()
    try peers.make("field")
    try peers.work.write("token", token)
    try peers.stemma("-C", "field", "remote", "add", "hq", node.url, "--token-file", "token")
    let follower = try Background(
      Tool.path, ["-C", "field", "sync", "--follow"], in: peers.work, readsLine: false)
    for number in 1...3 {
      try peers.write("field", "other", "\(number)")
      try peers.write("field", "a", "f\(number)", "own \(number)")
      #expect(try peers.awaits("hq", "own \(number)"))
      try peers.write("hq", "a", "h\(number)", "new \(number)")
      #expect(try peers.awaits("field", "new \(number)"))
    }
    #expect(follower.end() == 0)
    #expect(follower.errorText == "")
    #expect(try !peers.titles("hq").contains("other"))
  }

  @Test("addresses that lead nowhere are errors")
  func addresses() throws {
    let (peers, node, token) = try guarded()
    for address in ["http://127.0.0.1:99999", "http://", "http://127.0.0.1:0x", "http://:80"] {
      #expect(try peers.attempt("-C", "hq", "pull", address).status == 69, "\(address)")
    }
    // A slash at the end is none of the resource.
    #expect(try node.answer("//v1/node", bearer(token), in: peers.work).status == 200)
    #expect(try node.answer("//healthz", in: peers.work).status == 200)
  }

  @Test("a follower asks about the changed partition, not about all that both hold")
  func narrowExchanges() throws {
    let peers = try Peers(.http)
    try peers.make("hq")
    let lines = (0..<500).map { #"{"model":"Task","key":{"tenant":"t\#($0)","id":"1"},"fields":{}}"# }
    try peers.work.write("lines.ndjson", lines.joined(separator: "\n"))
    try peers.stemma("-C", "hq", "import", "lines.ndjson")
    let node = try ServedNode("hq", in: peers.work)
    try peers.stemma("clone", node.url, "field", "--name", "field")
    let follower = try Background(
      Tool.path, ["-C", "field", "sync", "--follow"], in: peers.work, readsLine: false)
    func received() throws -> Int {
      let lines = try node.answer("/metrics", in: peers.work).body.split(separator: "\n")
      let line = try #require(lines.first { $0.hasPrefix("stemma_received_bytes_total ") })
      return try #require(Int(line.split(separator: " ")[1]))
    }
    try peers.write("hq", "t1", "2", "first")
    #expect(try peers.awaits("field", "first"))
    // One of these may meet the exchange of everything, which follows every 30 seconds.
    var costs: [Int] = []
    for number in 1...3 {
      let before = try received()
      try peers.write("hq", "t\(number)", "2", "hq \(number)")
      #expect(try peers.awaits("field", "hq \(number)"))
      try peers.write("field", "t\(number)", "3", "field \(number)")
      #expect(try peers.awaits("hq", "field \(number)"))
      costs.append(try received() - before)
    }
    #expect(costs.sorted()[1] < 10_000, "\(costs)")
    #expect(follower.end() == 0)
    #expect(try peers.digests("field") == peers.digests("hq"))
  }

  @Test("the server says over TLS what it says without")
  func tls() throws {
    let peers = try Peers(.http)
    try peers.make("hq")
    try peers.write("hq", "a", "1")
    let made = try Tool.run(
      "/usr/bin/env",
      [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
        "2",
        "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
      ], in: peers.work.path)
    try #require(made.status == 0, "\(made.errors)")
    let node = try ServedNode("hq", in: peers.work, ["--tls-cert", "cert.pem", "--tls-key", "key.pem"])
    #expect(node.url.hasPrefix("https://"))
    let checked = try Tool.run(
      "/usr/bin/env",
      [
        "openssl", "s_client", "-connect", "127.0.0.1:\(node.port)", "-CAfile", "cert.pem",
        "-verify_return_error",
      ],
      in: peers.work.path)
    #expect(checked.status == 0 && checked.output.contains("Verify return code: 0"), "\(checked.output)")
    try peers.stemma("clone", node.url, "field", "--name", "field", "--ca", "cert.pem")
    #expect(try peers.digests("field") == peers.digests("hq"))
    // The clone keeps the authority; another node does not know the certificate.
    try peers.stemma("-C", "field", "pull")
    let refused = try peers.attempt("-C", "hq", "pull", node.url)
    #expect(refused.status == 69)
    #expect(refused.errors.contains("its certificate is not trusted"), "\(refused.errors)")
  }

  @Test("a server beyond this machine needs a certificate and tokens")
  func exposure() throws {
    let peers = try Peers(.http)
    try peers.make("hq")
    #expect(try peers.attempt("-C", "hq", "serve", "--listen", "0.0.0.0:0").status == 64)
    #expect(try peers.attempt("-C", "hq", "serve", "--listen", "nonsense").status == 64)
    #expect(try peers.attempt("-C", "hq", "serve", "--tls-cert", "x").status == 64)
  }
}
