import Foundation
import Testing

/// Listing and resolving conflicts of concurrent writes.
@Suite("conflict commands")
struct ConflictCommandTests {
  /// Two nodes that changed the same records concurrently and synced. Conflicts: a value, a delete,
  /// a cardinality conflict and a dangling reference. Candidates of the value are `shop` (shown,
  /// the later write) and `field`.
  private func met() throws -> Workplace {
    try Shop.synced(
      [
        "create Customer id=ada name=Ada",
        "create Team id=blue name=Blue",
        "create Badge id=b team=nosuch",
      ],
      field: [
        "create Cart id=k1 customer=ada",
        "update Customer ada name=Field --author bob",
        "delete Team blue",
      ],
      shop: [
        "create Cart id=k2 customer=ada",
        "update Customer ada name=Shop --author ann",
        "update Team blue name=Bleu",
      ])
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
        #expect(candidate.members == ["n", "value", "event", "version", "timestamp", "origin", "author"])
      }
    }
    let value = try #require(conflicts.first { $0.text("kind") == "value" })
    #expect(value.array("candidates").map { $0.text("value") } == ["Shop", "Field"])
    #expect(value.array("candidates").map { $0.text("author") } == ["ann", "bob"])
    #expect(value.array("candidates").map { $0.text("origin") } == ["shop", "field"])
    // The shown value is the first candidate.
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
    let chosen = try work.stemma(
      "-C", "field", "conflicts", "--field", "name", "--field=cart", "--field", "existence", "--json")
    #expect(
      try chosen.array().compactMap { $0.text("kind") }.sorted() == ["cardinality", "delete", "value"])
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

  @Test("--unlink clears a reference to what is not there, and nothing else")
  func unlinksOnlyWhatDangles() throws {
    let work = try met()
    func resolve(_ words: String...) throws -> Tool.Result {
      try Tool.run(Tool.path, ["-C", "shop", "resolve"] + words, in: work.path)
    }
    #expect(try resolve("Customer", "ada", "name", "--unlink").status == 66)
    #expect(try resolve("Customer", "ada", "--unlink").status == 66)
    #expect(try resolve("Team", "blue", "--unlink").status == 66)
    #expect(try resolve("Customer", "ada", "name", "--unlink", "--kind", "value").status == 64)
    #expect(try work.stemma("-C", "shop", "conflicts", "--json").array().count == 4)
    let denied = try resolve("Customer", "ada", "--keep")
    #expect(denied.status == 66)
    #expect(denied.errors.contains("is in no conflict of the kind delete"), "\(denied.errors)")
    #expect(try resolve("Badge", "b", "--unlink").status != 0, "a badge needs a team")
    #expect(try resolve("Badge", "b", "--delete").status == 0)
    #expect(try work.stemma("-C", "shop", "conflicts", "--json").array().count == 3)
  }

  /// Both ways to delete a record also handle the records that refer to it.
  @Test("a record that goes by resolve takes along what goes with it by delete")
  func deletionTakesAlong() throws {
    let work = try met()
    try work.stemma("-C", "shop", "create", "Member", "id=tim", "name=Tim", "team=blue")
    try work.stemma("-C", "shop", "create", "Badge", "id=c", "team=blue")
    try work.stemma("-C", "shop", "resolve", "Team", "blue", "--delete")
    #expect(try work.attempt("-C", "shop", "get", "Team", "blue").status == 66)
    #expect(try work.attempt("-C", "shop", "get", "Badge", "c").status == 66)
    let member = try work.stemma("-C", "shop", "get", "Member", "tim", "--json").object().object("fields")
    #expect(member["teamId"] is NSNull)
    let kinds = try work.stemma("-C", "shop", "conflicts", "--json").array().map { $0.text("kind") }
    #expect(kinds.count == 3 && !kinds.contains("delete"), "\(kinds)")
    let events = try work.stemma("-C", "shop", "log", "-n", "3", "--json").array()
    #expect(Set(events.map { $0.text("op") }) == ["delete", "unlink"])
    #expect(events.count { $0.object("cause").text("partition") == "Team" } == 2)
  }

  /// A deletion chosen as a candidate follows the delete rule like any other deletion.
  @Test(
    "a deletion that is taken keeps the rules of a deletion",
    arguments: [
      ["Shop", "s", "--delete"], ["Shop", "s", "--kind", "delete", "--take", "1"],
      ["Shop", "s", "existence", "--take", "shown"], ["Shop", "s", "existence", "--take", "newest"],
      ["Shop", "s", "existence", "--take", "east:"], ["--all", "--take", "shown"],
      ["--all", "--take", "newest"],
    ])
  func takenDeletion(how: [String]) throws {
    for (rule, status) in [("RESTRICT", Int32(65)), ("STANDARD", 0)] {
      let work = try Workplace()
      // The last write is the deletion, and it is shown.
      try work.write(
        "shop.graphql",
        """
        type Shop @model {
          id: ID! @primaryKey
          name: String
          books: [Book] @hasMany(references: ["shopId"], onDelete: \(rule))
        }
        type Book @model {
          id: ID! @primaryKey
          shopId: ID!
          shop: Shop! @belongsTo(fields: ["shopId"])
        }

        """)
      try work.stemma("init", "west", "--schema", "shop.graphql", "--name", "west")
      try work.stemma("-C", "west", "create", "Shop", "id=s", "name=S")
      try work.stemma("clone", "west", "east", "--name", "east")
      try work.stemma("-C", "west", "update", "Shop", "s", "name=T")
      try work.stemma("-C", "west", "create", "Book", "id=b", "shop=s")
      try work.stemma("-C", "east", "delete", "Shop", "s")
      try work.stemma("-C", "west", "remote", "add", "east", "east")
      try work.stemma("-C", "west", "pull", "east")
      let conflict = try #require(
        try work.stemma("-C", "west", "conflicts", "--kind", "delete", "--json").array().first)
      let deletion = try #require(conflict.array("candidates").first)
      #expect(deletion["value"] as? Bool == false, "\(conflict)")
      let words = how.map { $0 == "east:" ? deletion.text("event") ?? "" : $0 }
      let result = try Tool.run(Tool.path, ["-C", "west", "resolve"] + words, in: work.path)
      #expect(result.status == status, "\(rule): \(result.errors)")
      if status != 0 { #expect(result.errors.contains("Book"), "\(result.errors)") }
      let isForAll = how.contains("--all") && status != 0
      #expect(result.errors.hasPrefix("stemma: nothing was resolved: ") == isForAll, "\(result.errors)")
      #expect(result.errors.contains("--model") == isForAll, "\(result.errors)")
      // A refusal changes nothing. Otherwise the book is deleted with its shop.
      let book = try work.attempt("-C", "west", "get", "Book", "b")
      #expect(book.status == (status == 0 ? 66 : 0), "\(rule)")
      let kinds = try work.stemma("-C", "west", "conflicts", "--json").array().map { $0.text("kind") }
      #expect(kinds.contains("delete") == (status != 0), "\(rule): \(kinds)")
      if status == 0 { #expect(kinds.isEmpty, "\(kinds)") }
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
      Tool.path, ["-C", "field", "resolve", "Customer", "ada", "name", "--author", "eve", "--json"] + how,
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
      #expect(event.text("author") == "eve")
      #expect(event.object("context").members == ["shop", "field"])
    }
  }

  @Test("a candidate is named by its event as everywhere", arguments: ["event", "position", "digest"])
  func namesOfEvents(name: String) throws {
    let work = try met()
    /// A name of the first event by which a node wrote a record.
    func word(_ model: String, _ key: String, by node: String) throws -> String {
      let events = try work.stemma(
        "-C", "field", "log", "--model", model, "--key", key, "--origin", node, "--json"
      ).array()
      let text = try #require(events.last?.text(name))
      // Four digits may be a prefix of several digests, or a year.
      return name == "position" ? "@" + text : name == "digest" ? "\(text.prefix(8))" : text
    }
    func resolve(_ words: String...) throws -> Tool.Result {
      try Tool.run(Tool.path, ["-C", "field", "resolve"] + words, in: work.path)
    }
    let foreign = try resolve("Customer", "ada", "name", "--take", word("Badge", "b", by: "shop"))
    #expect(foreign.status == 65, "\(foreign.errors)")
    #expect(foreign.errors.contains("no candidate of this conflict; there are field:"), "\(foreign.errors)")
    let none = try resolve("Customer", "ada", "name", "--take", "@999")
    #expect(none.status == 66, "\(none.errors)")

    let value = try resolve("Customer", "ada", "name", "--take", word("Customer", "ada", by: "field"))
    #expect(value.status == 0 && value.output == "resolved 1 conflict\n", "\(value.errors)")
    let cart = try resolve("Customer", "ada", "cart", "--take", word("Cart", "k1", by: "field"))
    #expect(cart.status == 0 && cart.output == "resolved 1 conflict\n", "\(cart.errors)")
    let deletion = try resolve("Team", "blue", "--take", word("Team", "blue", by: "field"))
    #expect(deletion.status == 0, "\(deletion.errors)")
    let ada = try work.stemma("-C", "field", "get", "Customer", "ada", "--include", "cart", "--json").object()
    #expect(ada.object("fields").text("name") == "Field")
    #expect(ada.object("included").object("cart").object("key").text("id") == "k1")
    #expect(try work.attempt("-C", "field", "get", "Team", "blue").status == 66)
  }

  @Test("a reference of one field goes by the name of its relationship, too")
  func referenceOfOneField() throws {
    let work = try Shop.open()
    for team in ["red", "blue", "green"] {
      try work.stemma("-C", "shop", "create", "Team", "id=\(team)", "name=\(team)")
    }
    try work.stemma("-C", "shop", "create", "Badge", "id=b", "team=red")
    try work.stemma("clone", "shop", "field", "--name", "field")
    try work.stemma("-C", "shop", "link", "Badge", "b", "team", "blue")
    try work.stemma("-C", "field", "link", "Badge", "b", "team", "green")
    try work.stemma("-C", "field", "sync")
    let conflict = try #require(work.stemma("-C", "field", "conflicts", "--json").array().first)
    for name in [try #require(conflict.text("field")), "team"] {
      let check = try work.attempt(
        "-C", "field", "conflicts", "--check", "--model", "Badge", "--field", name)
      #expect(check.status == 1, "\(name): \(check.output)")
      let shown = try work.stemma("-C", "field", "conflicts", "show", "Badge", "b", name)
      #expect(shown.output.contains("green"), "\(name): \(shown.output)")
    }
    let other = try work.attempt("-C", "field", "conflicts", "--check", "--model", "Team", "--field", "name")
    #expect(other.status == 0, "\(other.output)")
  }

  @Test("a field that no model has, or more than a key, is refused and not free of conflicts")
  func unknownFields() throws {
    let work = try met()
    for (words, status) in [
      (["--field", "nmae", "--check"], 65), (["--field", "nmae"], 65),
      (["--model", "Customer", "--field", "number"], 65), (["--model", "Customer", "--field", "name"], 0),
      (["--field", "cart", "--check"], 1), (["--field", "existence", "--check"], 1),
      (["--model", "Badge", "--field", "team", "--check"], 0),
      (["--field", "id"], 64), (["--model", "Visit", "--field", "site"], 64), (["--field", "members"], 65),
      (["--model", "Team", "--field", "badges", "--check"], 65),
      (["--model", "Visit", "--key", "bad=1"], 64),
      (["--model", "Customer", "--key", "id=ada", "--key", "bad=1", "--check"], 64),
    ] as [([String], Int32)] {
      let result = try Tool.run(Tool.path, ["-C", "field", "conflicts"] + words, in: work.path)
      #expect(result.status == status, "\(words): \(result.errors)")
    }
    let typo = try work.attempt("-C", "field", "conflicts", "--model", "Customer", "--field", "nmae")
    #expect(typo.errors.contains("Customer has no field `nmae`; did you mean `name`?"), "\(typo.errors)")
    for (words, part) in [
      (["--model", "Customer", "--field", "crat"], "Customer has no field `crat`; did you mean `cart`?"),
      (["--model", "Customer", "--field", "zzz"], "there are id, name, cart, existence"),
      (["--field", "id"], "`id` is a part of the key of Team, which is never in conflict"),
      (["--model", "Team", "--field", "badges"], "stored by Badge; write --model Badge --field team"),
      (["--field", "posts"], "`posts` of Member is stored by MemberPost; write --model MemberPost --field"),
    ] {
      let refused = try Tool.run(Tool.path, ["-C", "field", "conflicts"] + words, in: work.path)
      #expect(refused.errors.contains(part), "\(words): \(refused.errors)")
    }
    let log = try work.attempt(
      "-C", "field", "log", "--model", "Customer", "--key", "id=ada", "--key", "bad=1")
    #expect(log.status == 64 && log.errors.contains("`bad=1` is more than the key"), "\(log.errors)")
  }

  /// Each node moved the same person to a different town that does not exist.
  @Test("a value and what dangles under one name: --delete asks which, and all that ends is counted")
  func valueThatDangles() throws {
    let work = try Workplace()
    try work.write(
      "towns.graphql",
      """
      type Town @model {
        country: String! @primaryKey(sortKeyFields: ["name"])
        name: String!
      }
      type Person @model {
        id: ID! @primaryKey
        townCountry: String
        townName: String
        town: Town @belongsTo(fields: ["townCountry", "townName"])
      }
      """)
    try work.stemma("init", "a", "--schema", "towns.graphql", "--name", "a")
    try work.stemma("-C", "a", "create", "Person", "id=p")
    try work.stemma("clone", "a", "b", "--name", "b")
    for node in ["a", "b"] {
      try work.stemma("-C", node, "update", "Person", "p", "townCountry=\(node)", "townName=\(node)")
    }
    try work.stemma("-C", "b", "sync")
    for words in [["town"], []] {
      let refused = try Tool.run(
        Tool.path, ["-C", "a", "resolve", "Person", "p"] + words + ["--delete"], in: work.path)
      #expect(refused.status == 65)
      #expect(
        refused.errors.contains("name one of town --kind value, town --kind dangling"), "\(refused.errors)")
    }
    let wrong = try work.attempt("-C", "a", "resolve", "Person", "p", "--kind", "value", "--delete")
    #expect(wrong.status == 66, "\(wrong.errors)")
    for (node, how) in [("a", "--delete"), ("b", "--unlink")] {
      let ended = try work.stemma("-C", node, "resolve", "Person", "p", "town", "--kind", "dangling", how)
      #expect(ended.output == "resolved 2 conflicts\n")
      #expect(try work.stemma("-C", node, "conflicts").output == "no conflicts\n")
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
    // Unlinking one cart resolves the cardinality conflict. Creating the target resolves a dangling
    // reference.
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

  /// One name, two conflicts: two records refer to a person, and the person refers to a missing
  /// record. Only the referenced side declares the relationship; the other one stores it.
  @Test("conflicts of one name are distinguished by their kind")
  func kindsOfOneName() throws {
    let work = try Workplace()
    try work.write(
      "people.graphql",
      """
      type Person @model {
        id: ID! @primaryKey
        partnerId: ID
        partner: Person @hasOne(references: ["partnerId"])
      }
      """)
    try work.stemma("init", "node", "--schema", "people.graphql")
    for (id, partner) in [("a", "nobody"), ("b", "a"), ("c", "a")] {
      try work.stemma("-C", "node", "create", "Person", "id=\(id)", "partnerId=\(partner)")
    }
    func open() throws -> [String] {
      try work.stemma("-C", "node", "conflicts", "--json").array().map {
        "\($0.text("kind") ?? "") \($0.object("key").text("id") ?? "") \($0.text("field") ?? "-")"
      }.sorted()
    }
    func resolve(_ words: String...) throws -> Tool.Result {
      try Tool.run(Tool.path, ["-C", "node", "resolve", "Person", "a", "partner"] + words, in: work.path)
    }
    #expect(try open() == ["cardinality a partner", "dangling a partner"])
    let refused = try resolve("--take", "1")
    #expect(refused.status == 65)
    #expect(
      refused.errors.contains("name one of partner --kind cardinality, partner --kind dangling"),
      "\(refused.errors)")
    // Options that narrow a list also work here.
    let narrowed = try work.stemma("-C", "node", "conflicts", "show", "Person", "a", "--kind", "dangling")
    #expect(
      narrowed.output.contains("Person dangling a") && !narrowed.output.contains("Person cardinality a"),
      "\(narrowed.output)")
    let other = try work.attempt("-C", "node", "conflicts", "show", "Person", "a", "--model", "Person")
    #expect(other.status == 64, "\(other.output)")
    // Every advised command contains the kind.
    let advised =
      try work.stemma("-C", "node", "conflicts", "show", "Person", "a").output + narrowed.output
      + work.stemma("-C", "node", "why", "Person", "a", "partner").output
    for command in ["dangling --unlink ", "cardinality --take N`", "dangling --set KEY`"] {
      #expect(advised.contains("stemma resolve Person a partner --kind \(command)"), "\(advised)")
    }

    for wrong in ["value", "delete"] {
      #expect(try resolve("--kind", wrong, "--take", "1").status == 66, "\(wrong)")
    }
    #expect(try resolve("--kind", "odd", "--take", "1").status == 64)
    #expect(
      try work.attempt("-C", "node", "resolve", "--all", "--kind", "value", "--take", "shown").status == 64)
    #expect(try resolve("--kind", "dangling", "--set", "c").status == 0)
    #expect(try open() == ["cardinality a partner"])
    try work.stemma("-C", "node", "update", "Person", "a", "partnerId=nobody")
    #expect(try resolve("--kind", "dangling", "--unlink").status == 0)
    #expect(try open() == ["cardinality a partner"])
    #expect(try resolve("--kind", "cardinality", "--take", "1").status == 0)
    #expect(try open().isEmpty)
    #expect(try resolve("--kind", "cardinality", "--take", "1").status == 66)
  }

  /// A whole record of one field, and a reference of two fields that only the other model declares.
  @Test("fields that are written together are one conflict, whose name can be typed")
  func registersOfSeveralFields() throws {
    let work = try Workplace()
    try work.write(
      "towns.graphql",
      """
      type Town @model {
        country: String! @primaryKey(sortKeyFields: ["name"])
        name: String!
        people: [Person] @hasMany(references: ["townCountry", "townName"])
      }
      type Person @model { id: ID! @primaryKey townCountry: String townName: String }
      type Motto @model @conflict(policy: OPTIMISTIC) { id: ID! @primaryKey text: String }
      """)
    try work.stemma("init", "a", "--schema", "towns.graphql", "--name", "a")
    try work.stemma("-C", "a", "create", "Person", "id=p")
    try work.stemma("-C", "a", "create", "Motto", "id=m")
    try work.stemma("clone", "a", "b", "--name", "b")
    for node in ["a", "b"] {
      try work.stemma("-C", node, "create", "Town", "country=\(node)", "name=\(node)")
      try work.stemma("-C", node, "update", "Person", "p", "townCountry=\(node)", "townName=\(node)")
      try work.stemma("-C", node, "update", "Motto", "m", "text=\(node)")
    }
    try work.stemma("-C", "b", "sync")
    let conflicts = try work.stemma("-C", "b", "conflicts", "--json").array()
    #expect(conflicts.map { $0.text("model") } == ["Motto", "Person"])
    #expect(conflicts.map { $0.text("field") } == [nil, "townCountry"])
    let motto = conflicts[0].array("candidates").map { $0.object("value") as? [String: String] }
    #expect(motto == [["text": "b"], ["text": "a"]])
    for field in ["townCountry", "townName"] {
      let told = try work.stemma("-C", "b", "why", "Person", "p", field)
      #expect(
        told.lines.last
          == "  It is an open conflict; decide with `stemma resolve Person p townCountry --take N`.")
    }
    try work.stemma("-C", "b", "resolve", "Person", "p", "townCountry", "--take", "2")
    try work.stemma("-C", "b", "resolve", "Motto", "m", "--take", "2")
    #expect(try work.stemma("-C", "b", "conflicts", "--json").array().isEmpty)
    let person = try work.stemma("-C", "b", "get", "Person", "p", "--json").object().object("fields")
    #expect(person as? [String: String] == ["townCountry": "a", "townName": "a"])
  }

  /// Only models with whole-record conflicts get the remark.
  @Test("stats says that fields of a whole record are counted together, and of others nothing")
  func wholeRecordsInStatistics() throws {
    let work = try Workplace()
    try work.write(
      "s.graphql",
      """
      type Whole @model @conflict(policy: OPTIMISTIC) { id: ID! @primaryKey a: String b: String }
      type Part @model { id: ID! @primaryKey a: String b: String }
      """)
    let note = "  Fields that are written together are counted together, whichever of them differ."
    for (model, isWhole) in [("Whole", true), ("Part", false)] {
      let (one, other) = ("\(model)1", "\(model)2")
      try work.stemma("init", one, "--schema", "s.graphql")
      try work.stemma("-C", one, "create", model, "id=x", "a=1", "b=1")
      try work.stemma("clone", one, other)
      try work.stemma("-C", one, "update", model, "x", "a=2")
      try work.stemma("-C", other, "update", model, "x", "a=3")
      try work.stemma("-C", one, "pull", other)
      for counts in [["1", "0"], ["0", "1"]] {
        let lines = try work.stemma("-C", one, "stats").lines
        let told = lines.filter { $0.hasPrefix("  \(model).") }.map {
          $0.split(separator: " ").prefix(3).map(String.init)
        }
        let fields = isWhole ? ["a", "b"] : ["a"]
        #expect(told == fields.map { ["\(model).\($0)", counts[0], counts[1]] }, "\(lines)")
        #expect(lines.contains(note) == isWhole, "\(lines)")
        if counts[0] == "1" { try work.stemma("-C", one, "resolve", model, "x", "--take", "1") }
      }
    }
  }

  @Test("whether a record exists can be named as it is printed")
  func existenceHasAName() throws {
    let work = try met()
    let told = try work.stemma("-C", "field", "why", "Team", "blue", "existence")
    #expect(told.lines.first == "The record exists.")
    #expect(!told.lines.contains { $0.hasPrefix("name is") })
    let decisions = try work.stemma("-C", "field", "why", "Team", "blue", "existence", "--json").object()
    #expect(decisions.array("fields").count == 1 && decisions.array("fields")[0]["field"] is NSNull)
    #expect(
      try work.stemma("-C", "field", "conflicts", "--field", "existence", "--json").array().map {
        $0.text("kind")
      } == ["delete"])
    let shown = try work.stemma("-C", "field", "conflicts", "show", "Team", "blue", "existence")
    #expect(shown.output.contains("stemma resolve Team blue --keep"))
    let wrong = try work.attempt(
      "-C", "field", "resolve", "Team", "blue", "existence", "--kind", "value", "--take", "1")
    #expect(wrong.status == 64, "\(wrong.errors)")
    try work.stemma("-C", "field", "resolve", "Team", "blue", "existence", "--take", "1")
    #expect(try work.attempt("-C", "field", "conflicts", "show", "Team", "blue").status == 66)
    #expect(try work.attempt("-C", "field", "why", "Team", "blue", "existance").status == 65)
    #expect(
      try work.stemma("-C", "field", "why", "Team", "blue", "existence").lines.first == "The record exists.")
  }

  @Test("undoing what is not shown says where it stands, and how to end that")
  func undoOfALoser() throws {
    let work = try met()
    func digest(of origin: String) throws -> String {
      let log = try work.stemma(
        "-C", "field", "log", "--origin", origin, "--model", "Customer", "--json")
      return try #require(try log.array().first?.text("digest"))
    }
    let (loser, winner) = (try digest(of: "field"), try digest(of: "shop"))
    let told = try work.stemma("-C", "field", "undo", loser, "-n")
    #expect(
      told.lines == [
        "nothing to change",
        "The value of Customer ada name that \(loser) wrote is not shown, but is in an open conflict; "
          + "`stemma resolve Customer ada name --take 1` ends it with what is shown.",
      ])
    let json = try work.stemma("-C", "field", "undo", loser, "-n", "--json").object()
    #expect(json.members == ["events", "changes", "conflicts"])
    #expect(json.array("conflicts").map { $0.text("field") } == ["name"])
    // Undoing the winner shows the other value, and the advised command resolves the conflict.
    let shown = try work.stemma("-C", "field", "undo", winner, "-n")
    #expect(shown.lines.first == "~ Customer[ada]" && !shown.output.contains("open conflict"))
    #expect(
      try work.stemma("-C", "field", "undo", winner, "-n", "--json").object().members == [
        "events", "changes",
      ])
    try work.stemma("-C", "field", "resolve", "Customer", "ada", "name", "--take", "1")
    let after = try work.attempt("-C", "field", "undo", loser, "-n")
    #expect(!after.output.contains("open conflict"), "\(after.output)")
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

  @Test("filters by key, field and kind, counts, and one record side by side")
  func filters() throws {
    let work = try met()
    func kinds(_ words: String...) throws -> [String] {
      let result = try Tool.run(Tool.path, ["-C", "field", "conflicts", "--json"] + words, in: work.path)
      #expect(result.status == 0, "\(result.errors)")
      return try result.array().map { $0.text("kind") ?? "" }
    }
    #expect(try kinds("--kind", "value", "--kind", "delete") == ["value", "delete"])
    #expect(try kinds("--field", "cart") == ["cardinality"])
    #expect(try kinds("--model", "Customer", "--key", "ada") == ["value", "cardinality"])
    #expect(try kinds("--model", "Customer", "--key", "nobody").isEmpty)
    #expect(try work.attempt("-C", "field", "conflicts", "--kind", "odd").status == 64)
    #expect(try work.attempt("-C", "field", "conflicts", "--check", "--kind", "dangling").status == 1)
    #expect(
      try work.attempt("-C", "field", "conflicts", "--check", "--kind", "value", "--model", "Team").status
        == 0)

    let counts = try work.stemma("-C", "field", "conflicts", "--count", "--json").array()
    #expect(counts.map { $0.text("model") } == ["Badge", "Customer", "Team"])
    #expect(counts[1].members == ["model", "value", "delete", "cardinality", "dangling"])
    #expect(counts[1].number("value") == 1 && counts[1].number("cardinality") == 1)

    let shown = try work.stemma("-C", "field", "conflicts", "show", "Customer", "ada", "name")
    #expect(shown.lines.contains { $0.contains("Shop") && $0.contains("Field") }, "side by side")
    #expect(shown.output.contains("stemma resolve Customer ada name --take 2"))
    #expect(try work.attempt("-C", "field", "conflicts", "show", "Customer", "nobody").status == 66)
    #expect(try work.attempt("-C", "field", "conflicts", "Customer").status == 64)
  }

  @Test("cardinality ends with one link kept, dangling with another record or none")
  func resolvesRecords() throws {
    let work = try met()
    try work.stemma("-C", "field", "resolve", "Customer", "ada", "cart", "--take", "2", "-m", "the older one")
    let cart = try work.stemma("-C", "field", "get", "Customer", "ada", "--include", "cart", "--json")
      .object()
    #expect(cart.object("included").object("cart").object("key").text("id") == "k1")
    #expect(
      try work.stemma("-C", "field", "get", "Cart", "k2", "--json").object().object("fields")["customerId"]
        is NSNull)

    // The reference of a badge is required.
    let required = try work.attempt("-C", "field", "resolve", "Badge", "b", "team", "--unlink")
    #expect(required.status == 65)
    #expect(required.errors.contains("required"))
    #expect(try work.attempt("-C", "field", "resolve", "Badge", "b", "team", "--take", "1").status == 65)
    try work.stemma("-C", "field", "resolve", "Team", "blue", "--keep")
    try work.stemma("-C", "field", "resolve", "Badge", "b", "team", "--set", "blue")
    try work.stemma("-C", "field", "create", "Visit", "site=s", "number=1", "guest=nobody")
    try work.stemma("-C", "field", "resolve", "Visit", "site=s", "number=1", "guest", "--unlink")
    try work.stemma("-C", "field", "resolve", "Customer", "ada", "--take", "1")
    #expect(try work.stemma("-C", "field", "conflicts").lines == ["no conflicts"])
  }

  @Test("on a terminal one conflict after the other is asked", .enabled(if: Pseudoterminal.isThere))
  func dialog() throws {
    let work = try met()
    try work.write("editor", "#!/bin/sh\necho Edited > \"$1\"\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: work.file("editor"))
    // dangling: skip; value: an invalid answer, then edit; cardinality: the first; delete: leave.
    let said = try Pseudoterminal.run(
      ["-C", "field", "resolve", "--author", "eve"], in: work.path, typing: "s\nx\n\(Int.min)\ne\n1\nq\n",
      environment: ["EDITOR": work.file("editor"), "NO_COLOR": "1", "COLUMNS": "100"])
    #expect(said.contains("(1 of 4)"))
    #expect(said.contains("`x` is none of these"))
    #expect(said.contains("`\(Int.min)` is none of these"))
    #expect(said.contains("resolved 2 of 4 conflicts"))
    #expect(!said.contains("\u{1B}["), "NO_COLOR")
    #expect(
      try work.stemma("-C", "field", "get", "Customer", "ada", "--json").object().object("fields").text(
        "name") == "Edited")
    let left = try work.stemma("-C", "field", "conflicts", "--json").array().map { $0.text("kind") }
    #expect(left == ["dangling", "delete"])
    #expect(
      try work.stemma("-C", "field", "log", "--op", "resolve", "--json").array().first?.text("author")
        == "eve")

    let coloured = try Pseudoterminal.run(
      ["-C", "field", "resolve", "Team", "blue"], in: work.path, typing: "d\n",
      environment: ["TERM": "xterm", "NO_COLOR": ""]
    )
    #expect(coloured.contains("\u{1B}[1m"), "colour on a terminal")
    // A number is accepted in place of a letter, also beside other conflicts of the record.
    try work.stemma("-C", "shop", "create", "Team", "id=two", "name=Two")
    try work.stemma("-C", "field", "pull", "shop")
    try work.stemma("-C", "shop", "update", "Team", "two", "name=A")
    try work.stemma("-C", "field", "update", "Team", "two", "name=B")
    try work.stemma("clone", "shop", "third", "--name", "third")
    try work.stemma("-C", "shop", "update", "Team", "two", "name=C")
    try work.stemma("-C", "third", "delete", "Team", "two")
    try work.stemma("-C", "field", "pull", "third")
    try work.stemma("-C", "field", "pull", "shop")
    let kept = try Pseudoterminal.run(
      ["-C", "field", "resolve", "Team", "two"], in: work.path, typing: "1\nq\n",
      environment: ["NO_COLOR": "1"])
    // The dialog skips conflicts that the answer ended.
    #expect(kept.contains("resolved 2 of 2 conflicts"), "\(kept)")
    #expect(try work.attempt("-C", "field", "get", "Team", "blue").status == 66)
    // Without a terminal there is no dialog.
    #expect(try work.attempt("-C", "field", "resolve", "Badge", "b").status == 64)
  }
}
