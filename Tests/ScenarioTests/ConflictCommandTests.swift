import Foundation
import Testing

/// Listing what concurrent writes left open, and ending it.
@Suite("conflict commands")
struct ConflictCommandTests {
  /// Two nodes that have changed the same records apart, and met: a value, a delete, a cardinality conflict and a
  /// dangling reference. Candidates of the value: `shop` (shown, it wrote later) and `field`.
  private func met() throws -> Workplace {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Customer", "id=ada", "name=Ada")
    try work.stemma("-C", "shop", "create", "Team", "id=blue", "name=Blue")
    try work.stemma("-C", "shop", "create", "Badge", "id=b", "team=nosuch")
    try work.stemma("clone", "shop", "field", "--name", "field")
    try work.stemma("-C", "field", "create", "Cart", "id=k1", "customer=ada")
    try work.stemma("-C", "shop", "create", "Cart", "id=k2", "customer=ada")
    try work.stemma("-C", "field", "update", "Customer", "ada", "name=Field", "--by", "bob")
    try work.stemma("-C", "shop", "update", "Customer", "ada", "name=Shop", "--by", "ann")
    try work.stemma("-C", "field", "delete", "Team", "blue")
    try work.stemma("-C", "shop", "update", "Team", "blue", "name=Bleu")
    try work.stemma("-C", "field", "sync")
    return work
  }

  @Test("the four kinds, on both nodes alike, and --check")
  func kinds() throws {
    let work = try met()
    let conflicts = try work.stemma("-C", "field", "conflicts", "--json").array()
    #expect(
      conflicts.map { "\($0.text("kind") ?? "") \($0.text("model") ?? "") \($0.text("field") ?? "-")" }
        .sorted()
        == ["cardinality Customer cart", "dangling Badge team", "delete Team -", "value Customer name"])
    for conflict in conflicts {
      #expect(conflict.members == ["model", "key", "field", "kind", "candidates"])
      let candidates = conflict.array("candidates")
      #expect(candidates.map { $0.number("n") } == Array(1...candidates.count))
      #expect(candidates.count == (conflict.text("kind") == "dangling" ? 1 : 2))
      for candidate in candidates {
        #expect(candidate.members == ["n", "value", "event", "version", "timestamp", "origin", "by"])
      }
    }
    let value = try #require(conflicts.first { $0.text("kind") == "value" })
    #expect(value.array("candidates").map { $0.text("value") } == ["Shop", "Field"])
    #expect(value.array("candidates").map { $0.text("by") } == ["ann", "bob"])
    #expect(value.array("candidates").map { $0.text("origin") } == ["shop", "field"])
    // What is shown is the first candidate.
    let shown = try work.stemma("-C", "field", "get", "Customer", "ada", "--include", "cart", "--json")
      .object()
    #expect(shown.object("fields").text("name") == "Shop")
    let cart = try #require(conflicts.first { $0.text("kind") == "cardinality" }).array("candidates").first
    #expect(
      cart?.object("value").text("id") == shown.object("included").object("cart").object("key").text("id"))

    #expect(
      try work.stemma("-C", "shop", "conflicts", "--json").output
        == work.stemma("-C", "field", "conflicts", "--json").output)
    #expect(try work.stemma("-C", "field", "conflicts", "--ndjson").objects().count == 4)
    #expect(try work.stemma("-C", "field", "conflicts", "--model", "Team", "--json").array().count == 1)
    for (model, status) in [(nil, 1), ("Customer", 1), ("Team", 1), ("Badge", 0), ("Post", 0)]
      as [(String?, Int32)]
    {
      let result = try Tool.run(
        Tool.path, ["-C", "field", "conflicts", "--check"] + (model.map { ["--model", $0] } ?? []),
        in: work.path)
      #expect(result.status == status, "\(model ?? "all")")
      #expect(result.output.isEmpty)
    }
  }

  @Test(
    "resolve a value: by number, by event, by a value",
    arguments: [
      (["--take", "1"], "Shop"), (["--take", "2"], "Field"), (["--take", "field:2"], "field"),
      (["--set", "Other"], "Other"), (["--take", "newest"], "Shop"),
    ])
  func resolvesValue(how: [String], wanted: String) throws {
    let work = try met()
    var how = how
    var wanted = wanted
    if wanted == "field" {
      let conflict = try work.stemma("-C", "field", "conflicts", "--model", "Customer", "--json").array()
        .first { $0.text("kind") == "value" }
      how[1] = try #require(conflict?.array("candidates").last?.text("event"))
      wanted = "Field"
    }
    let result = try Tool.run(
      Tool.path, ["-C", "field", "resolve", "Customer", "ada", "name", "--by", "eve", "--json"] + how,
      in: work.path)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try result.object().members == ["resolved"])
    #expect(try result.object().number("resolved") == 1)
    try work.stemma("-C", "field", "sync")
    for node in ["field", "shop"] {
      #expect(
        try work.stemma("-C", node, "get", "Customer", "ada", "--json").object().object("fields").text("name")
          == wanted)
      #expect(
        try !work.stemma("-C", node, "conflicts", "--json").array().contains { $0.text("kind") == "value" })
      let event = try #require(try work.stemma("-C", node, "log", "--op", "resolve", "--json").array().first)
      #expect(event.text("by") == "eve")
      #expect(event.object("context").members == ["shop", "field"])
    }
  }

  @Test("resolve a deletion", arguments: [("--keep", Int32(0)), ("--delete", Int32(66))])
  func resolvesDelete(how: String, status: Int32) throws {
    let work = try met()
    try work.stemma("-C", "shop", "resolve", "Team", "blue", how)
    try work.stemma("-C", "field", "sync")
    for node in ["field", "shop"] {
      #expect(try work.attempt("-C", node, "get", "Team", "blue").status == status)
      #expect(try work.attempt("-C", node, "conflicts", "--check", "--model", "Team").status == 0)
    }
  }

  @Test("resolve --all", arguments: ["shown", "newest"])
  func resolvesAll(take: String) throws {
    let work = try met()
    #expect(
      try work.stemma("-C", "field", "resolve", "--all", "--model", "Team", "--take", take, "--json").object()
        .number("resolved") == 1)
    #expect(
      try work.stemma("-C", "field", "resolve", "--all", "--take", take, "--json").object().number("resolved")
        == 1)
    #expect(
      try work.stemma("-C", "field", "resolve", "--all", "--take", take, "--json").object().number("resolved")
        == 0)
    let left = try work.stemma("-C", "field", "conflicts", "--json").array().compactMap { $0.text("kind") }
      .sorted()
    #expect(left == ["cardinality", "dangling"])
    #expect(
      try work.stemma("-C", "field", "get", "Customer", "ada", "--json").object().object("fields").text(
        "name") == "Shop")
    #expect(
      try work.stemma("-C", "field", "conflicts").lines.last == "1 conflict, 1 dangling reference")
    // A second cart is ended by unlinking one; a dangling reference by what it names.
    try work.stemma("-C", "field", "unlink", "Cart", "k1", "customer")
    try work.stemma("-C", "field", "create", "Team", "id=nosuch", "name=Found")
    #expect(try work.stemma("-C", "field", "conflicts", "--json").array().isEmpty)
    #expect(try work.stemma("-C", "field", "conflicts").output == "no conflicts\n")
  }

  @Test("mistakes change nothing")
  func mistakes() throws {
    let work = try met()
    let before = try work.stemma("-C", "field", "log", "--json").output
    #expect(try work.attempt("-C", "field", "resolve", "Customer", "ada", "name", "--take", "9").status != 0)
    #expect(
      try work.attempt("-C", "field", "resolve", "Customer", "ada", "name", "--take", "nope").status == 64)
    #expect(try work.attempt("-C", "field", "resolve", "Customer", "ada", "nope", "--take", "1").status == 65)
    #expect(try work.attempt("-C", "field", "resolve", "Customer", "zzz", "name", "--take", "1").status == 66)
    #expect(try work.attempt("-C", "field", "resolve", "Badge", "b", "label", "--take", "1").status == 66)
    #expect(
      try work.attempt("-C", "field", "resolve", "Customer", "ada", "--take", "1", "--keep").status == 64)
    #expect(try work.attempt("-C", "field", "resolve", "--all", "--take", "2").status == 64)
    #expect(try work.stemma("-C", "field", "log", "--json").output == before)
  }

  @Test("a reference to a partition outside of the scope is not dangling")
  func outsideIsNotDangling() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Customer", "id=ada")
    try work.stemma("-C", "shop", "create", "Visit", "site=berlin", "number=1", "guest=ada")
    try work.stemma("-C", "shop", "create", "Visit", "site=berlin", "number=2", "guest=nobody")
    try work.stemma("clone", "shop", "berlin", "--partition", "site=berlin")
    #expect(try work.stemma("-C", "berlin", "conflicts", "--json").array().isEmpty)
    #expect(
      try work.stemma("-C", "shop", "conflicts", "--json").array().map { $0.text("kind") } == ["dangling"])
  }
}
