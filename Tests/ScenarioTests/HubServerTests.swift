import Foundation
import Servers
import Testing

/// The tool with servers of object stores.
@Suite("Hubs on servers", .serialized) struct HubServerTests {
  private static func findings(_ url: String, _ environment: [String: String], in work: Workplace) throws
    -> (result: Tool.Result, failures: [String])
  {
    let result = try work.attempt("hub", "doctor", url, "--json", environment: environment)
    let findings = try result.array()
    #expect(findings.count == 7, "\(result.output)")
    return (
      result, findings.filter { $0["holds"] as? Bool == false }.compactMap { $0.text("requirement") }
    )
  }

  /// Without the right keys, nothing is done, and no output has the secret.
  private func refusesStrangers(_ server: some S3Server, in work: Workplace) throws {
    let url = server.hubAddress("shop")
    for (accessKey, secretKey) in [
      (server.credentials.accessKey, "WRONGSECRET0123"), ("AKIASTRANGER", "WRONGSECRET0123"),
    ] {
      let environment = [
        "AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey,
        "AWS_SESSION_TOKEN": "",
      ]
      for arguments in [
        ["hub", "init", url], ["hub", "status", url], ["clone", url, "stranger"],
        ["-C", "node", "push", url],
        ["-C", "node", "sync", url],
      ] {
        let result = try Tool.run(Tool.path, arguments, in: work.path, environment: environment)
        #expect([69, 77].contains(result.status), "\(arguments): \(result.status) \(result.errors)")
        #expect(!(result.output + result.errors).contains(secretKey), "\(arguments)")
        #expect(result.errors.contains("403"), "\(arguments): \(result.errors)")
      }
      let doctor = try work.attempt("hub", "doctor", url, environment: environment)
      #expect(doctor.status == 1 && doctor.output.contains("FAILS"), "\(doctor.output)")
      #expect(!(doctor.output + doctor.errors).contains(secretKey))
    }
    #expect(!FileManager.default.fileExists(atPath: work.file("stranger")))
  }

  private func initializesOnce(_ server: some S3Server, in work: Workplace) throws {
    let url = server.hubAddress("shop")
    let made = try work.stemma("hub", "init", url, "--json", environment: server.environment).object()
    let found = try work.stemma("hub", "init", url, "--json", environment: server.environment).object()
    #expect(made["isNew"] as? Bool == true && found["isNew"] as? Bool == false)
    #expect(made.text("hub") != nil && made.text("hub") == found.text("hub"))
    // Another prefix is another hub.
    let other = try work.stemma(
      "hub", "init", server.hubAddress("other"), "--json", environment: server.environment
    ).object()
    #expect(other["isNew"] as? Bool == true && other.text("hub") != made.text("hub"))
  }

  private func makeNode(in work: Workplace) throws {
    try work.write("schema.graphql", Peers.schema)
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "node")
    try work.stemma("-C", "node", "upsert", "Task", "tenant=a", "id=1")
  }

  /// nodes-grdb: two nodes diverge, and meet only through a bucket.
  private func realMerge(_ server: some S3Server, in work: Workplace) throws {
    guard RealData.isThere else { return }
    func stemma(_ arguments: String...) throws {
      let result = try Tool.run(Tool.path, arguments, in: work.path, environment: server.environment)
      #expect(result.status == 0, "stemma \(arguments.joined(separator: " ")): \(result.errors)")
    }
    let url = server.hubAddress("grdb")
    func data(_ name: String) -> String { RealData.path("nodes-grdb/\(name)") }
    try stemma("hub", "init", url)
    try stemma("init", "a", "--schema", data("schema.graphql"), "--name", "a")
    try stemma("-C", "a", "remote", "add", "hub", url)
    try stemma("-C", "a", "import", data("base.ndjson.gz"))
    try stemma("-C", "a", "push")
    try stemma("clone", url, "b", "--name", "b")
    try stemma("-C", "a", "import", data("node-a.ndjson.gz"))
    try stemma("-C", "a", "push")
    try stemma("-C", "b", "import", data("node-b.ndjson.gz"))
    try stemma("-C", "b", "sync")
    try stemma("-C", "a", "pull")
    try RealPeerTests.checkNodes(in: work)
    try stemma("-C", "a", "verify", "--against", "hub")
  }

  @Test(
    "SeaweedFS can be a hub, and real nodes merge through it without a violation",
    .enabled(if: Programs.areThere, "STEMMA_PEERS is not set"))
  func seaweed() throws {
    let server = try SeaweedServer()
    let work = try Workplace()
    try makeNode(in: work)
    let (result, failures) = try Self.findings(server.hubAddress("new"), server.environment, in: work)
    #expect(result.status == 0 && failures.isEmpty, "\(result.output)\(result.errors)")
    #expect(try server.store(prefix: "new").list("", after: nil).entries.isEmpty)
    try initializesOnce(server, in: work)
    try refusesStrangers(server, in: work)
    try realMerge(server, in: work)
    withExtendedLifetime(server) {}
  }

  @Test("moto can be a hub", .enabled(if: Programs.areThere, "STEMMA_PEERS is not set"))
  func moto() throws {
    let server = try MotoServer()
    let work = try Workplace()
    try makeNode(in: work)
    let (result, failures) = try Self.findings(server.hubAddress("new"), server.environment, in: work)
    // moto looks for the object and writes it in two steps, so both writers of a race may succeed.
    #expect(failures.allSatisfy { $0 == Self.race }, "\(result.output)\(result.errors)")
    #expect(result.status == (failures.isEmpty ? 0 : 1))
    try initializesOnce(server, in: work)
    try refusesStrangers(server, in: work)
    withExtendedLifetime(server) {}
  }

  private static let race = "of two writers of a key, one succeeds"

  @Test(
    "a store that ignores If-None-Match is refused, and the doctor names the requirement",
    .enabled(if: StubServer.isPossible, "python3 is not installed"))
  func ignoredCondition() throws {
    let server = try StubServer()
    let work = try Workplace()
    let environment = ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"]
    func url(_ bucket: String) -> String {
      "s3://\(bucket)/shop?endpoint=\(server.endpoint)&region=us-east-1"
    }
    let (refused, failures) = try Self.findings(url("ignoring"), environment, in: work)
    #expect(refused.status == 1)
    #expect(failures == ["If-None-Match: * keeps an existing object", Self.race])
    let text = try work.attempt("hub", "doctor", url("ignoring"), environment: environment)
    #expect(text.status == 1 && text.output.contains("this cannot be a hub"), "\(text.output)")
    // The same server with conditions is accepted.
    let (accepted, none) = try Self.findings(url("bucket"), environment, in: work)
    #expect(accepted.status == 0 && none.isEmpty, "\(accepted.output)")
    withExtendedLifetime(server) {}
  }
}
