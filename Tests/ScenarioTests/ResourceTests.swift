import Foundation
import Testing

/// The resources of the server for programs that are no peers.
@Suite("Resources of a served node", .enabled(if: Tool.hasCurl))
struct ResourceTests {
  /// Two nodes with conflicts, and one of them served.
  private func conflicting() throws -> (peers: Peers, node: ServedNode) {
    let peers = try Peers(.directory)
    try peers.make("hq")
    for tenant in ["a", "b"] { for id in 1...3 { try peers.write("hq", tenant, "\(id)", "base") } }
    try peers.stemma("clone", "hq", "field", "--name", "field")
    for id in 1...3 {
      try peers.write("hq", "a", "\(id)", "hq \(id)")
      try peers.write("field", "a", "\(id)", "field \(id)")
    }
    try peers.stemma("-C", "hq", "delete", "Task", "tenant=b", "id=1")
    try peers.stemma("-C", "field", "update", "Task", "tenant=b", "id=1", "title=kept")
    try peers.stemma("-C", "field", "sync")
    return (peers, try ServedNode("hq", in: peers.work))
  }

  private func json(_ text: String) throws -> NSObject {
    let value = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    return try #require(value as? NSObject)
  }

  private func post(_ body: String) -> [String] { ["--data-binary", body] }

  @Test("each resource gives what its command prints")
  func sameAsCommands() throws {
    let (peers, node) = try conflicting()
    let record = ["Task", "tenant=a", "id=1"]
    let pairs: [(path: String, command: [String])] = [
      ("/v1/records/Task", ["list", "Task"]),
      (
        "/v1/records/Task?where=title%5E%3Dhq&order=-id&limit=2",
        [
          "list", "Task", "--where", "title^=hq", "--order=-id", "--limit", "2",
        ]
      ),
      ("/v1/records/Task?asOf=@4", ["list", "Task", "--as-of", "@4"]),
      ("/v1/records/Task/tenant=a&id=1", ["get"] + record),
      ("/v1/records/Task/tenant=a&id=1?asOf=@1", ["get"] + record + ["--as-of", "@1"]),
      ("/v1/history/Task/tenant=a&id=1", ["history"] + record),
      ("/v1/why/Task/tenant=a&id=1", ["why"] + record),
      ("/v1/events", ["log"]),
      (
        "/v1/events?model=Task&key=tenant%3Da%26id%3D1&origin=hq",
        [
          "log", "--model", "Task", "--key", "tenant=a", "--key", "id=1", "--origin", "hq",
        ]
      ),
      (
        "/v1/events?op=update&field=title&grep=field&partition=tenant%3Da",
        [
          "log", "--op", "update", "--field", "title", "--grep", "field", "--partition", "tenant=a",
        ]
      ),
      ("/v1/events?since=@3&until=@5", ["log", "--since", "@3", "--until", "@5"]),
      ("/v1/events/@3", ["show", "@3"]),
      ("/v1/conflicts", ["conflicts"]),
      ("/v1/conflicts?kind=delete", ["conflicts", "--kind", "delete"]),
      ("/v1/conflicts/counts", ["conflicts", "--count"]),
      ("/v1/diff?from=@3&to=@8", ["diff", "@3", "@8"]),
      ("/v1/stats", ["stats"]),
      ("/v1/files", ["segments"]),
      ("/v1/query?sql=SELECT%20*%20FROM%20tasks", ["query", "SELECT * FROM tasks"]),
    ]
    for (path, command) in pairs {
      let answer = try node.answer(path, in: peers.work)
      let printed = try peers.stemma(["-C", "hq"] + command + ["--json"]).output
      #expect(answer.status == 200, "\(path): \(answer.body)")
      #expect(try json(answer.body).isEqual(json(printed)), "\(path)")
    }
    for (option, value) in [("origin", "nobody"), ("field", "nothing"), ("op", "merge"), ("model", "None")] {
      #expect(try node.answer("/v1/events?\(option)=\(value)", in: peers.work).status == 422, "\(option)")
      #expect(try peers.attempt("-C", "hq", "log", "--\(option)", value).status != 0, "\(option)")
    }
    // The command names the directory as it was given.
    let status = try #require(try json(node.answer("/v1/status", in: peers.work).body) as? [String: Any])
    #expect(status["conflicts"] as? Int == 4)
  }

  @Test("pages of a list are the list", arguments: [1, 2, 5])
  func pages(limit: Int) throws {
    let (peers, node) = try conflicting()
    for list in ["conflicts", "records/Task", "events", "diff?from=@1"] {
      var path = "/v1/\(list)\(list.contains("?") ? "&" : "?")limit=\(limit)"
      var found: [NSObject] = []
      while true {
        let answer = try node.answer(path, ["-D", "headers"], in: peers.work)
        let page = try #require(try json(answer.body) as? [NSObject])
        #expect(page.count <= limit)
        found += page
        let headers = try String(contentsOfFile: peers.work.file("headers"), encoding: .utf8)
        guard let link = headers.firstMatch(of: /[Ll]ink: <(.+)>; rel="next"/) else { break }
        path = String(link.1)
      }
      let whole = try json(
        node.answer("/v1/\(list)\(list.contains("?") ? "&" : "?")limit=1000", in: peers.work).body)
      #expect(whole == found as NSArray, "\(list)")
    }
  }

  @Test("a commit is made whole or not at all, and If-Match guards against a stale revision")
  func mutations() throws {
    let (peers, node) = try conflicting()
    func task(_ op: String, _ id: String, _ title: String) -> String {
      #"{"op":"\#(op)","model":"Task","key":{"tenant":"a","id":"\#(id)"},"fields":{"title":"\#(title)"}}"#
    }
    func write(_ lines: String..., headers: [String] = []) throws -> ServedNode.Answer {
      let options = headers.flatMap { ["-H", $0] }
      let path = "/v1/mutations?author=ann&message=why%20not"
      return try node.answer(path, post(lines.joined(separator: "\n")) + options, in: peers.work)
    }
    let made = try write(task("create", "7", "seven"), task("create", "8", "eight"))
    #expect(made.status == 200)
    let records = (try json(made.body) as? [String: Any])?["records"] as? [[String: Any]]
    let revision = try #require(records?.first?["revision"] as? String)
    let log = try peers.stemma("-C", "hq", "log", "-n", "1", "--format", "{author} {message} {commit}").lines
    #expect(log[0].hasPrefix("ann why not hq."))

    #expect(try write(task("update", "7", "new"), headers: ["If-Match: \"\(revision)\""]).status == 200)
    #expect(try write(task("update", "7", "newer"), headers: ["If-Match: \"\(revision)\""]).status == 412)
    #expect(try write(task("create", "7", "again")).status == 409)
    #expect(try write(task("update", "9", "nothing")).status == 404)
    #expect(try write(task("update", "7", "lost"), "{\"op\":").status == 422)
    #expect(try write(task("update", "7", "lost"), task("create", "7", "x")).status == 409)
    #expect(
      try write(task("update", "7", "lost"), task("update", "8", "x"), headers: ["If-Match: \"1\""]).status
        == 422)
    #expect(try write("").status == 422)
    #expect(try !peers.titles("hq").contains("lost"))
    #expect(try peers.titles("hq").contains("new\n"))
  }

  @Test("conflicts show what they replaced, and are resolved and taken back")
  func conflicts() throws {
    let (peers, node) = try conflicting()
    let path = "/v1/conflicts/Task/tenant=a&id=1"
    let before = try #require(try json(node.answer(path, in: peers.work).body) as? [[String: Any]])
    #expect(before.count == 1)
    #expect(before[0]["ancestor"] as? String == "base")
    let candidates = try #require(before[0]["candidates"] as? [[String: Any]])
    let loser = try #require(candidates.last?["event"] as? String)
    let value = try #require(candidates.last?["value"] as? String)
    let resolved = try node.answer(
      "\(path)?author=ann&message=m", post(#"{"take":"\#(loser)"}"#), in: peers.work)
    #expect(resolved.status == 200)
    let result = try #require(try json(resolved.body) as? [String: Any])
    #expect(result["resolved"] as? Int == 1)
    #expect(try peers.titles("hq").contains(value))
    #expect(try node.answer(path, post(#"{"take":1}"#), in: peers.work).status == 404)
    #expect(try node.answer(path, post(#"{"take":true}"#), in: peers.work).status == 422)

    let commit = try #require(result["commit"] as? String)
    let undone = try node.answer("/v1/commits/\(commit)/undo", post(""), in: peers.work)
    #expect(undone.status == 200)
    #expect(try !peers.titles("hq").contains(value))
    #expect(try node.answer("/v1/commits/hq.99/undo", post(""), in: peers.work).status == 404)

    let kept = try node.answer(
      "/v1/conflicts/Task/tenant=b&id=1", post(#"{"keep":true}"#), in: peers.work)
    #expect(kept.status == 200)
    #expect(try peers.titles("hq").contains("kept"))
    let rest = try node.answer("/v1/conflicts", post(#"{"take":"newest"}"#), in: peers.work)
    #expect((try json(rest.body) as? [String: Any])?["resolved"] as? Int == 2)
    #expect(try json(node.answer("/v1/conflicts", in: peers.work).body) == NSArray())
    #expect(try json(node.answer("/v1/conflicts/counts", in: peers.work).body) == NSArray())
  }

  /// A third candidate came while a person looked at two.
  @Test("a resolution is refused if there are other candidates than those shown")
  func newCandidates() throws {
    let (peers, node) = try conflicting()
    let path = "/v1/conflicts/Task/tenant=a&id=1"
    func tag() throws -> String {
      _ = try node.answer(path, ["-D", "headers"], in: peers.work)
      let headers = try String(contentsOfFile: peers.work.file("headers"), encoding: .utf8)
      return try String(#require(headers.firstMatch(of: /[Ee][Tt]ag: (".+")/)).1)
    }
    func resolve(_ tag: String, _ body: String) throws -> Int {
      try node.answer(path, post(body) + ["-H", "If-Match: \(tag)"], in: peers.work).status
    }
    let before = try tag()
    try peers.stemma("clone", "hq", "third", "--name", "third")
    try peers.stemma("-C", "third", "update", "Task", "tenant=a", "id=1", "done=true")
    try peers.stemma("-C", "third", "resolve", "Task", "tenant=a", "id=1", "title", "--set", "third")
    try peers.stemma("-C", "hq", "update", "Task", "tenant=a", "id=1", "done=false")
    try peers.stemma("-C", "third", "sync")
    #expect(try resolve(before, #"{"take":1}"#) == 412)
    let now = try tag()
    let open = try #require(try json(node.answer(path, in: peers.work).body) as? [[String: Any]])
    let ways = open.map { #"{"field":"\#($0["field"] as? String ?? "")","kind":"value","take":1}"# }
    #expect(try resolve(now, "[\(ways.joined(separator: ","))]") == 200)
    #expect(try json(node.answer(path, in: peers.work).body) == NSArray())
    // All of them in one commit.
    let log = try peers.stemma("-C", "hq", "log", "-n", "\(ways.count)", "--format", "{commit}").lines
    #expect(Set(log).count == 1)
  }

  @Test("a revoked token ends a stream of events")
  func revokedStream() throws {
    let (peers, first) = try conflicting()
    first.program.end()
    let token = try peers.stemma("-C", "hq", "token", "create", "x", "--read", "*").lines[0]
    let node = try ServedNode("hq", in: peers.work)
    let stream = try Background(
      "/usr/bin/env",
      [
        "curl", "-sN", "-H", "Accept: text/event-stream", "-H", "Authorization: Bearer \(token)",
        node.url + "/v1/events",
      ], in: peers.work)
    #expect(stream.firstLine.hasPrefix(":"))
    try peers.stemma("-C", "hq", "token", "revoke", "x")
    try peers.write("hq", "a", "1", "after the revocation")
    #expect(stream.wait() == 0)
  }

  @Test("a server reads tables that were deleted and rebuilt")
  func rebuiltTables() throws {
    let (peers, node) = try conflicting()
    #expect(try node.answer("/v1/records/Task", in: peers.work).status == 200)
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      try? FileManager.default.removeItem(atPath: peers.work.file("hq/\(name)"))
    }
    try peers.stemma("-C", "hq", "rebuild")
    try peers.write("hq", "a", "1", "after the rebuild")
    let answer = try node.answer("/v1/records/Task/tenant=a&id=1", in: peers.work)
    #expect(answer.body.contains("after the rebuild"), "\(answer.body)")
  }

  @Test("an answer that lacks events says so")
  func corruptLog() throws {
    let (peers, node) = try conflicting()
    let whole = try #require(try json(node.answer("/v1/events", in: peers.work).body) as? [NSObject])
    let file = peers.work.file("hq/log/00000001.journal")
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    bytes[bytes.count / 2] ^= 0xFF
    try bytes.write(to: URL(fileURLWithPath: file))
    let second = try ServedNode("hq", in: peers.work)
    let answer = try second.answer("/v1/events", ["-D", "headers"], in: peers.work)
    #expect(answer.status == 200, "\(answer)")
    let rest = try #require(try json(answer.body) as? [NSObject])
    #expect(rest.count < whole.count)
    let headers = try String(contentsOfFile: peers.work.file("headers"), encoding: .utf8)
    #expect(headers.lowercased().contains("stemma-missing-events: "), "\(headers)")
  }

  @Test("counts follow the log, also when events are purged")
  func counts() throws {
    let (peers, node) = try conflicting()
    func events() throws -> Int? {
      (try json(node.answer("/v1/activity", in: peers.work).body) as? [String: Any])?["events"] as? Int
    }
    func models() throws -> NSObject { try json(node.answer("/v1/conflicts/counts", in: peers.work).body) }
    let before = try #require(try events())
    #expect(try models() == json(peers.stemma("-C", "hq", "conflicts", "--count", "--json").output))
    try peers.write("hq", "a", "1", "decided")
    try peers.write("hq", "c", "1", "new")
    #expect(try events() == before + 2)
    #expect(try models() == json(peers.stemma("-C", "hq", "conflicts", "--count", "--json").output))
    try peers.stemma("-C", "hq", "push", "field")
    try peers.stemma("-C", "hq", "scope", "add", "!tenant=a")
    let left = try #require(
      Int(peers.stemma("-C", "hq", "query", "--tsv", "SELECT count(*) FROM tasks").lines[0]))
    #expect(left > 0)
    let log = try #require(try json(peers.stemma("-C", "hq", "log", "--json").output) as? [NSObject])
    #expect(try events() == log.count)
    #expect(try models() == json(peers.stemma("-C", "hq", "conflicts", "--count", "--json").output))
  }

  @Test("a page of another site reads and writes nothing")
  func otherSites() throws {
    let (peers, node) = try conflicting()
    let body = #"{"op":"delete","model":"Task","key":{"tenant":"a","id":"1"}}"#
    for header in ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"] {
      #expect(try node.answer("/v1/mutations", post(body) + ["-H", header], in: peers.work).status == 403)
      #expect(try node.answer("/v1/events", ["-H", header], in: peers.work).status == 403)
    }
    // Its own name, resolved to this machine.
    let rebound = ["-H", "Host: evil.example:\(node.port)", "-H", "Origin: http://evil.example:\(node.port)"]
    #expect(try node.answer("/v1/mutations", post(body) + rebound, in: peers.work).status == 403)
    #expect(try node.answer("/v1/events", rebound, in: peers.work).status == 403)
    #expect(try peers.titles("hq").contains("a\t1\t"))
    let own = ["-H", "Origin: \(node.url)", "-H", "Sec-Fetch-Site: same-origin"]
    #expect(try node.answer("/v1/mutations", post(body) + own, in: peers.work).status == 200)
    #expect(try !peers.titles("hq").contains("a\t1\t"))
  }

  @Test("a token for one partition meets no other one in any resource")
  func rights() throws {
    let (peers, first) = try conflicting()
    first.program.end()
    let token = try peers.stemma(
      "-C", "hq", "token", "create", "field", "--read", "tenant=a", "--write", "tenant=a"
    ).lines[0]
    try peers.write("hq", "secret-c", "1", "secret")
    let node = try ServedNode("hq", in: peers.work, ["--ui"])
    let bearer = ["-H", "Authorization: Bearer \(token)"]
    var shown = ""
    for path in [
      "models", "records/Task", "records/Task?order=-tenant", "records/Task/tenant=secret-c&id=1",
      "history/Task/tenant=secret-c&id=1", "why/Task/tenant=secret-c&id=1", "events",
      "events?partition=tenant%3Dsecret-c", "events?grep=secret", "conflicts", "conflicts/counts",
      "conflicts/Task/tenant=b&id=1", "diff?from=@1", "activity", "status", "stats", "files", "files/1",
      "query?sql=SELECT%20*%20FROM%20tasks", "diff?peer=field", "node", "digests",
    ] {
      #expect(try node.answer("/v1/\(path)", in: peers.work).status == 401, "\(path)")
      shown += try node.answer("/v1/\(path)", bearer, in: peers.work).body
    }
    for position in 1...20 {
      shown += try node.answer("/v1/events/@\(position)", bearer, in: peers.work).body
    }
    // The names in the requests come back in errors.
    for tenant in ["secret-c", "b"] { shown.replace("there is no Task tenant=\(tenant) id=1", with: "") }
    #expect(!shown.contains("secret"), "\(shown)")
    #expect(!shown.contains("tenant=b") && !shown.contains(#""tenant":"b""#))
    #expect(shown.contains(#""tenant":"a""#))
    func status(_ path: String, _ body: String) throws -> Int {
      try node.answer(path, bearer + post(body), in: peers.work).status
    }
    let secret =
      #"{"op":"upsert","model":"Task","key":{"tenant":"secret-c","id":"1"},"fields":{"title":"x"}}"#
    #expect(try status("/v1/mutations", secret) == 403)
    #expect(try status("/v1/mutations", secret.replacing("secret-c", with: "a")) == 200)
    #expect(try status("/v1/conflicts/Task/tenant=b&id=1", #"{"keep":true}"#) == 404)
    #expect(try status("/v1/conflicts", #"{"take":"newest"}"#) == 403)
    // It was overwritten. The other one is not there for this caller.
    #expect(try status("/v1/commits/hq.1/undo", "") == 409)
    #expect(try status("/v1/commits/hq.4/undo", "") == 404)
    #expect(try peers.titles("hq").contains("secret"))
  }

  @Test("the examples for records in PROTOCOL.md work as printed")
  func examples() throws {
    let work = try Workplace()
    try work.write(
      "schema.graphql",
      #"type Visit @model { site: String! @primaryKey(sortKeyFields: ["number"]) number: Int! room: String }"#
    )
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "node")
    try work.stemma("-C", "node", "create", "Visit", "site=berlin", "number=1", "room=7")
    let token = try work.stemma("-C", "node", "token", "create", "x", "--read", "*", "--write", "*").lines[0]
    let node = try ServedNode("node", in: work)
    let page = try String(
      contentsOf: ConsolePage.root.appendingPathComponent("docs/PROTOCOL.md"), encoding: .utf8)
    let section = try #require(page.components(separatedBy: "### Records and the log").last)
    let script = try #require(section.components(separatedBy: "```sh\n").dropFirst().first)
      .components(separatedBy: "```")[0]
    // The stream does not end.
    try work.write(
      "examples.sh",
      "set -e\ncurl() { command curl -fsS \"$@\" || [ $? = 28 ]; }\n"
        + script.replacing("-N", with: "-N --max-time 1"))
    let result = try Tool.run(
      "/bin/bash", ["examples.sh"], in: work.path, environment: ["URL": node.url, "TOKEN": token])
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("id: @2"), "\(result.output)")
    #expect(try work.stemma("-C", "node", "get", "Visit", "site=berlin", "number=1").output.contains("9"))
  }

  @Test("a script in another language writes, reads, meets a stale revision and follows events")
  func script() throws {
    let peers = try Peers(.directory)
    try peers.make("hq")
    let node = try ServedNode("hq", in: peers.work)
    let script = ConsolePage.root.appendingPathComponent("Tests/ScenarioTests/records.py").path
    let lines = try String(contentsOfFile: script, encoding: .utf8).split(separator: "\n")
    #expect(lines.count <= 60)
    let result = try Tool.run("/usr/bin/env", ["python3", script, node.url], in: peers.work.path)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("412") && result.output.contains("409"), "\(result.output)")
    #expect(result.output.contains("update"), "\(result.output)")
  }
}
