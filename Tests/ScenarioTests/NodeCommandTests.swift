import Foundation
import Testing

/// Commands about the node itself: remotes, scope, schema, maintenance.
@Suite("node commands")
struct NodeCommandTests {
  @Test("init, status, clone, pull, push, sync, verify: shapes")
  func shapes() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Visit", "site=a", "number=1")
    let made = try work.stemma("init", "other", "--schema", "shop.graphql", "--json").object()
    #expect(made.members == ["directory", "name", "origin", "models"])
    let transfer: Set = ["partitions", "events", "bytesRead", "bytesShipped"]
    #expect(try work.stemma("clone", "shop", "copy", "--name", "copy", "--json").object().members == transfer)
    try work.stemma("-C", "shop", "update", "Visit", "site=a", "number=1", "room=2")
    let status = try work.stemma("-C", "copy", "status", "--json").object()
    #expect(
      status.members == [
        "directory", "name", "origin", "scope", "models", "events", "partitions", "largestPartitions",
        "files", "logBytes",
        "tableBytes",
        "records", "conflicts", "danglingReferences", "corruption", "missing", "unrecognizedFiles",
        "schemaDifferences", "isSound", "peers", "notices",
      ])
    let peer = try #require(status.array("peers").first)
    #expect(
      peer.members == [
        "name", "address", "scope", "behind", "ahead", "partitions", "problem", "lastExchange",
      ])
    #expect(peer.number("behind") == 1)
    #expect(peer.object("partitions").object("site=a").members == ["behind", "ahead"])
    let pulled = try work.stemma("-C", "copy", "pull", "--json").object()
    #expect(pulled.members == transfer)
    #expect(pulled["partitions"] as? [String] == ["site=a"])
    #expect(pulled.number("events") == 1)
    #expect(try work.stemma("-C", "copy", "push", "--json").object().members == transfer)
    let syncs = try work.stemma("-C", "copy", "sync", "--json").array()
    let synced = try #require(syncs.first)
    #expect(syncs.count == 1 && synced.members == ["peer", "pulled", "pushed"])
    #expect(synced.object("pulled").members == transfer)
    #expect(synced.object("pushed").members == transfer)
    try work.stemma("clone", "copy", "third", "--name", "third")
    try work.stemma("-C", "copy", "remote", "add", "third", "third")
    let several = try work.stemma("-C", "copy", "pull", "--json").array()
    #expect(several.compactMap { $0.text("peer") }.sorted() == ["source", "third"])
    for one in several { #expect(one.members == transfer.union(["peer"])) }
    #expect(
      try work.stemma("-C", "copy", "verify", "--json").object().members
        == [
          "events", "files", "corruption", "missing", "isVague", "repair",
        ])
    #expect(try work.stemma("-C", "copy", "rebuild", "--json").object().members == ["events", "records"])
  }

  @Test("remotes")
  func remotes() throws {
    let work = try Shop.open()
    #expect(try work.stemma("-C", "shop", "remote", "list", "--json").array().isEmpty)
    try work.stemma("init", "office", "--schema", "shop.graphql")
    try work.stemma("-C", "shop", "remote", "add", "office", work.file("office"))
    let rows = try work.stemma("-C", "shop", "remote", "list", "--json").array()
    #expect(rows.map { $0.text("name") } == ["office"])
    for row in rows { #expect(row.members == ["name", "address"]) }
    try work.stemma("-C", "shop", "remote", "remove", "office")
    #expect(try work.stemma("-C", "shop", "remote", "list", "--json").array().isEmpty)
    #expect(try work.attempt("-C", "shop", "remote", "remove", "office").status == 66)
  }

  @Test("status --check exits with 1 for a dangling reference and for an unrecognized file")
  func statusCheck() throws {
    let work = try Shop.open()
    func check() throws -> [String: Any] {
      let result = try work.attempt("-C", "shop", "status", "--check", "--json")
      let status = try result.object()
      #expect(result.status == (status["isSound"] as? Bool == true ? 0 : 1), "\(result)")
      let quiet = try work.attempt("-C", "shop", "status", "--check")
      #expect(quiet.status == result.status && quiet.output.hasPrefix("node "))
      #expect(try work.attempt("-C", "shop", "status").status == 0)
      return status
    }
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "create", "Badge", "id=b", "team=red")
    #expect(try check()["isSound"] as? Bool == true)

    try work.stemma("-C", "shop", "create", "Badge", "id=lost", "team=nosuch")
    let dangling = try check()
    #expect(dangling["isSound"] as? Bool == false)
    #expect(dangling.number("danglingReferences") == 1 && dangling.number("conflicts") == 0)
    try work.stemma("-C", "shop", "delete", "Badge", "lost")
    #expect(try check()["isSound"] as? Bool == true)

    try work.write("shop/log/00000099.segment", "nonsense")
    let unrecognized = try check()
    #expect(unrecognized["isSound"] as? Bool == false)
    #expect(unrecognized["unrecognizedFiles"] as? [String] == ["00000099.segment"])
  }

  @Test("status reports time and result of the last exchange with each remote, and --check one that failed")
  func lastExchange() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("clone", "shop", "copy", "--name", "copy")
    func last() throws -> [String: Any]? {
      try work.stemma("-C", "copy", "status", "--json").object().array("peers").first?["lastExchange"]
        as? [String: Any]
    }
    let cloned = try #require(try last())
    #expect(cloned.members == ["time", "pulled", "pushed", "lastSuccess", "problem"])
    #expect(cloned.number("pulled") == 1 && cloned.number("pushed") == nil && cloned.text("problem") == nil)
    try work.stemma("-C", "copy", "create", "Team", "id=blue", "name=Blue")
    try work.stemma("-C", "copy", "sync")
    let synced = try #require(try last())
    #expect(synced.number("pulled") == 0 && synced.number("pushed") == 1)
    #expect(cloned.text("time") != synced.text("time"))
    #expect(try work.attempt("-C", "copy", "status", "--check").status == 0)

    // The directory of a remote also selects the remote.
    try FileManager.default.moveItem(atPath: work.file("shop"), toPath: work.file("away"))
    #expect(try work.attempt("-C", "copy", "pull").status == 69)
    let failed = try #require(try last())
    #expect(failed.number("pulled") == nil && failed.text("problem") != nil)
    #expect(failed.text("lastSuccess") == synced.text("time"))
    #expect(try work.attempt("-C", "copy", "status", "--check").status == 1)
    try FileManager.default.moveItem(atPath: work.file("away"), toPath: work.file("shop"))
    try work.stemma("-C", "copy", "pull", "shop")
    #expect(try last()?.number("pulled") == 0)
    #expect(try work.attempt("-C", "copy", "status", "--check").status == 0)

    try work.stemma("-C", "copy", "remote", "remove", "source")
    try work.stemma("-C", "copy", "remote", "add", "source", "shop")
    #expect(try last() == nil)
  }

  @Test("status --json lists the fields that a peer declares with another type")
  func schemaDifferences() throws {
    let work = try Workplace()
    for (name, type) in [("here", "Int"), ("there", "String")] {
      try work.write("\(name).graphql", "type Note @model { id: ID! color: \(type) }")
      try work.stemma("init", name, "--schema", "\(name).graphql", "--name", name)
    }
    #expect(try work.attempt("-C", "here", "status", "--check").status == 0)
    try work.stemma("-C", "here", "sync", "there")
    let checked = try work.attempt("-C", "here", "status", "--check", "--json")
    #expect(checked.status == 1)
    let difference = try #require(try checked.object().array("schemaDifferences").first)
    #expect(
      difference as? [String: String] == [
        "field": "Note.color", "type": "Int", "peer": "there", "peerType": "String",
      ])
  }

  @Test("a remote that fails does not stop the others, and each is reported")
  func failingRemotes() throws {
    let work = try Shop.open()
    for name in ["first", "gone", "last"] {
      try work.stemma("clone", "shop", name, "--name", name)
      try work.stemma("-C", "shop", "remote", "add", name, name)
    }
    try FileManager.default.removeItem(atPath: work.file("gone"))
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    let synced = try work.attempt("-C", "shop", "sync", "--json")
    #expect(synced.status == 69, "\(synced)")
    let told = try synced.array()
    #expect(told.map { $0.text("peer") } == ["first", "gone", "last"])
    #expect(told.map { $0.object("pushed").number("events") } == [1, nil, 1])
    #expect(told[1].members == ["peer", "error"])
    #expect(synced.errors.hasPrefix("stemma: gone: "), "\(synced.errors)")
    #expect(synced.errors.contains("`stemma remote remove`"), "\(synced.errors)")
    #expect(synced.errors.split(separator: "\n").count == 1, "\(synced.errors)")
    for name in ["first", "last"] {
      #expect(try work.stemma("-C", name, "list", "Team", "--json").array().count == 1)
    }
    let pulled = try work.attempt("-C", "shop", "pull")
    #expect(pulled.status == 69)
    #expect(pulled.lines == ["pulled nothing new from first", "pulled nothing new from last"])
    #expect(try work.attempt("-C", "shop", "push", "--ndjson").objects().count == 3)
    // The first failure determines the exit code, and all are reported.
    for name in ["stemma.json", "stemma.json.copy"] {
      try FileManager.default.removeItem(atPath: work.file("first/" + name))
    }
    let two = try work.attempt("-C", "shop", "push", "--json")
    #expect(two.status == 66 && two.errors.contains("stemma: first: "), "\(two)")
    #expect(two.errors.contains("stemma: gone: "), "\(two.errors)")
    #expect(try two.array().map { $0.members.contains("error") } == [true, true, false])
    try FileManager.default.removeItem(atPath: work.file("last"))
    #expect(try work.attempt("-C", "shop", "push", "--json").array().count == 3)
    // The error of a single named remote has no advice to remove it.
    let one = try work.attempt("-C", "shop", "sync", "gone", "--json")
    #expect(one.status == 69, "\(one)")
    #expect(try one.array().map(\.members) == [["peer", "error"]])
    #expect(try work.attempt("-C", "shop", "pull", "gone", "--json").output.isEmpty)
    #expect(!one.errors.contains("remote remove"), "\(one.errors)")
  }

  @Test("scope: globs, exclusions, and what leaves")
  func scope() throws {
    let work = try Shop.open()
    for site in ["bonn", "berlin", "paris"] {
      try work.stemma("-C", "shop", "create", "Visit", "site=\(site)", "number=1")
    }
    try work.stemma("clone", "shop", "copy", "--partition", "site=paris", "--name", "copy")
    func held() throws -> [String] {
      try work.stemma("-C", "copy", "digest", "--json").array().compactMap { $0.text("partition") }
    }
    func patterns() throws -> [String] {
      try work.stemma("-C", "copy", "scope", "list", "--json").array().compactMap { $0.text("pattern") }
    }
    #expect(try patterns() == ["site=paris"])
    try work.stemma("-C", "copy", "scope", "add", "site=b*", "!site=bonn")
    #expect(try Set(patterns()) == ["site=paris", "site=b*", "!site=bonn"])
    #expect(try held() == ["site=paris"])
    try work.stemma("-C", "copy", "pull")
    #expect(try held() == ["site=berlin", "site=paris"])
    #expect(try work.attempt("-C", "copy", "create", "Visit", "site=bonn", "number=2").status == 77)
    #expect(try work.attempt("-C", "copy", "create", "Post", "id=p").status == 77)
    // Events that no peer has are purged only with --discard.
    try work.stemma("-C", "copy", "update", "Visit", "site=paris", "number=1", "room=2")
    let refused = try work.attempt("-C", "copy", "scope", "remove", "site=paris")
    #expect(refused.status == 77)
    let excluded = try work.attempt("-C", "copy", "scope", "add", "!site=paris")
    #expect(excluded.status == 77 && excluded.errors.contains("--discard"))
    #expect(try held() == ["site=berlin", "site=paris"])
    try work.stemma("-C", "copy", "scope", "remove", "site=paris", "--discard")
    #expect(try held() == ["site=berlin"])
    #expect(try work.stemma("-C", "copy", "export").objects().count == 1)
    #expect(try work.attempt("-C", "copy", "scope", "remove", "site=paris").status == 65)
    #expect(try !work.attempt("-C", "copy", "scope", "remove", "!site=rome").errors.contains("!!"))
    try work.stemma("-C", "copy", "scope", "remove", "!site=bonn")
    // The same applies to an exclusion.
    try work.stemma("-C", "copy", "update", "Visit", "site=berlin", "number=1", "room=2")
    #expect(try work.attempt("-C", "copy", "scope", "add", "!site=berlin").status == 77)
    try work.stemma("-C", "copy", "scope", "add", "!site=berlin", "--discard")
    #expect(try held() == [])
    try work.stemma("-C", "copy", "scope", "remove", "!site=berlin")
    try work.stemma("-C", "copy", "pull")
    #expect(try held() == ["site=berlin", "site=bonn"])
  }

  private static let first = """
    type Book @model {
      isbn: ID! @primaryKey
      title: String!
      pages: Int
      shelf: String
    }

    """

  @Test("schema: canonical form, additive change, refusal")
  func schema() throws {
    let work = try Workplace()
    try work.write("1.graphql", Self.first)
    try work.write(
      "2.graphql",
      """
      type Book @model {
        isbn: ID! @primaryKey
        name: String! @mapsTo(name: "title")
        pages: Int
        price: Float
      }
      type Loan @model { id: ID! isbn: ID book: Book @belongsTo(fields: ["isbn"]) }
      """)
    try work.write("3.graphql", Self.first.replacing("pages: Int", with: "pages: String"))
    try work.stemma("init", "a", "--schema", "1.graphql")
    #expect(try work.stemma("-C", "a", "schema", "show").output == Self.first)
    try work.stemma("-C", "a", "create", "Book", "isbn=1", "title=One", "pages=5", "shelf=A")

    let refused = try work.attempt("-C", "a", "schema", "check", "3.graphql", "--json")
    #expect(refused.status == 1)
    #expect(try refused.object().members == ["changes", "refusals"])
    #expect(try refused.object()["refusals"] as? [String] != [])
    let notApplied = try work.attempt("-C", "a", "schema", "apply", "3.graphql")
    #expect(notApplied.status == 65)
    #expect(notApplied.errors.contains("Book.pages"))
    #expect(try work.stemma("-C", "a", "schema", "show").output == Self.first)

    let before = try work.stemma("-C", "a", "export").output
    #expect(
      try work.stemma("-C", "a", "schema", "check", "2.graphql", "--json").object().members == [
        "changes", "refusals",
      ])
    #expect(try work.stemma("-C", "a", "export").output == before)
    let applied = try work.stemma("-C", "a", "schema", "apply", "2.graphql", "--json").object()
    #expect((applied["changes"] as? [String])?.count == 4)
    let row = try #require(try work.stemma("-C", "a", "export").objects().first)
    #expect(row.object("fields").members == ["name", "pages", "price"])
    #expect(row.object("fields").text("name") == "One")
    try work.stemma("-C", "a", "update", "Book", "1", "name=Uno", "price=2.5")
    try work.stemma("-C", "a", "create", "Loan", "id=l", "book=1")
    let shown = try work.stemma("-C", "a", "schema", "show").output
    try work.write("shown.graphql", shown)
    #expect(try work.stemma("-C", "a", "schema", "check", "shown.graphql").output == "no change\n")

    // A hidden field returns with its old value, a renamed field with the last value under either
    // name.
    try work.stemma("-C", "a", "schema", "apply", "1.graphql")
    let back = try #require(try work.stemma("-C", "a", "export", "Book").objects().first).object("fields")
    #expect(back.text("title") == "Uno")
    #expect(back.text("shelf") == "A")
    let live = try work.stemma("-C", "a", "export").output
    try work.stemma("-C", "a", "rebuild")
    #expect(try work.stemma("-C", "a", "export").output == live)
  }

  @Test("a schema's mistake is named with file, line and column")
  func schemaMistake() throws {
    let work = try Workplace()
    try work.write("bad.graphql", "type Book @model {\n  isbn: Foo! @primaryKey\n}\n")
    let result = try work.attempt("init", "a", "--schema", "bad.graphql")
    #expect(result.errors.contains("2:9"))
    #expect(result.errors.contains("bad.graphql:2:9"))
  }

  @Test("rebuild --as-of a position, a time, an event")
  func asOf() throws {
    let work = try Workplace()
    try work.write("1.graphql", Self.first)
    try work.stemma("init", "a", "--schema", "1.graphql", "--name", "a")
    try work.stemma("-C", "a", "create", "Book", "isbn=1", "title=One", "pages=5")
    try work.stemma("-C", "a", "create", "Book", "isbn=2", "title=Two")
    let known = "1|One\n2|Two\n"
    let then = try #require(try work.stemma("-C", "a", "log", "-n", "1", "--json").array().first)
    let time = try #require(then.text("time"))
    // The next event is in a later millisecond, because it is another run of the tool.
    try work.stemma("-C", "a", "update", "Book", "1", "title=Uno")
    try work.stemma("-C", "a", "delete", "Book", "2")
    try work.stemma("-C", "a", "create", "Book", "isbn=3", "title=Three")
    for (index, when) in [time, "@" + (then.text("position") ?? ""), then.text("event") ?? ""].enumerated() {
      let made = try work.stemma("-C", "a", "rebuild", "--as-of", when, "--into", "then\(index).sqlite")
      #expect(made.lines == ["rebuilt 2 records from 2 events"], "\(when)")
      #expect(try rows(work, "then\(index).sqlite") == known, "\(when)")
    }
    try work.stemma("-C", "a", "rebuild", "--into", "now.sqlite")
    #expect(try rows(work, "now.sqlite") == "1|Uno\n3|Three\n")
    try work.stemma("-C", "a", "rebuild", "--as-of", "2020-01-31", "--into", "none.sqlite")
    #expect(try rows(work, "none.sqlite").isEmpty)
    let none = try work.stemma("-C", "a", "rebuild", "--as-of", "2h", "--into", "none.sqlite", "--json")
    #expect(try none.object().number("events") == 0)
    #expect(try rows(work, "none.sqlite").isEmpty)
    #expect(try work.attempt("-C", "a", "rebuild", "--as-of", "zzz", "--into", "x.sqlite").status == 64)
    #expect(try work.stemma("-C", "a", "list", "Book", "--json").array().count == 2)
  }

  /// Everything except such tables is protected, also the node's own journal.
  @Test("rebuild --into replaces tables that were made so, and nothing else, and nothing of a node")
  func intoWhatIsThere() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("clone", "shop", "peer", "--name", "peer")
    try work.stemma("-C", "shop", "rebuild", "--into", "shop/inner.sqlite")
    try work.write("notes", "mine")
    let python = try #require(RealData.python, "python3 is needed to make a database")
    let script = """
      import sqlite3
      other = sqlite3.connect('other.sqlite')
      other.execute('PRAGMA journal_mode = WAL')
      other.execute('CREATE TABLE notes (text)')
      other.commit()
      """
    let made = try Tool.run(python, ["-c", script], in: work.path)
    #expect(made.status == 0, "\(made.errors)")
    let files = FileManager.default
    try files.createDirectory(atPath: work.file("folder"), withIntermediateDirectories: false)
    try files.createSymbolicLink(atPath: work.file("nowhere"), withDestinationPath: "missing")
    try files.createSymbolicLink(atPath: work.file("link"), withDestinationPath: "shop")
    func names() throws -> [String] { try files.contentsOfDirectory(atPath: work.path).sorted() }
    let before = try names()
    for name in [
      "shop/log/00000001.journal", "shop/schema.graphql", "shop/stemma.json", "shop/tables.sqlite",
      "./shop/inner.sqlite", "link/inner.sqlite", work.file("shop/inner.sqlite"), "peer/tables.sqlite",
      "shop.graphql", "notes", "other.sqlite",
    ] {
      let bytes = try work.bytes(name.hasPrefix("/") ? "shop/inner.sqlite" : name)
      let refused = try work.attempt("-C", "shop", "rebuild", "--into", name)
      #expect(refused.status == 73 && refused.errors.contains("name another file"), "\(name): \(refused)")
      #expect(try work.bytes(name.hasPrefix("/") ? "shop/inner.sqlite" : name) == bytes, "\(name)")
    }
    for name in ["folder", "nowhere"] {
      let refused = try work.attempt("-C", "shop", "rebuild", "--into", name)
      #expect(refused.status == 73 && refused.errors.contains("is no file"), "\(name): \(refused)")
    }
    #expect(try names() == before)
    try work.stemma("-C", "shop", "verify")
    // Tables made by another node are replaced like the node's own.
    for node in ["shop", "shop", "peer"] { try work.stemma("-C", node, "rebuild", "--into", "then.sqlite") }
  }

  /// Rows of a table file, read by another program.
  private func rows(_ work: Workplace, _ file: String) throws -> String {
    let python = try #require(RealData.python, "python3 is needed to read the tables")
    let script =
      "import sqlite3,sys\nfor r in sqlite3.connect(sys.argv[1]).execute('SELECT isbn, title FROM books ORDER BY isbn'): print('|'.join(r))"
    let result = try Tool.run(python, ["-c", script, work.file(file)], in: work.path)
    #expect(result.status == 0, "\(result.errors)")
    return result.output
  }
}
