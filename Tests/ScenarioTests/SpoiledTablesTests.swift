import Foundation
import Testing

/// Messages about nodes whose files another program has changed.
@Suite("Spoiled files")
struct SpoiledTablesTests {
  private static let loseStream =
    "DELETE FROM _stemma_meta WHERE name = 'stream' AND partition = 'tenant=t1'"

  @Test("a peer whose tables cannot be used is named, with the command that repairs it")
  func peer() throws {
    let work = try Workplace()
    for name in ["a", "b"] {
      try work.rows(name)
      try work.write("lines.ndjson", Rows.lines(30))
      try work.stemma("-C", name, "import", "lines.ndjson")
    }
    try work.stemma("-C", "b", "remote", "add", "office", "a")
    try Spoil.execute(Self.loseStream, in: work.file("a/tables.sqlite"))
    for words in [
      ["-C", "b", "pull", "a"], ["-C", "b", "repair", "--fork", "--from", "a"], ["clone", "a", "c"],
      ["-C", "a", "status"], ["-C", "a", "digest"], ["-C", "b", "status"],
    ] {
      let result = try Tool.run(Tool.path, words, in: work.path)
      let text = result.output + result.errors
      #expect(text.contains(/`stemma -C (a|\/.*\/a) rebuild` rebuilds it/), "\(words): \(text)")
    }
    try work.stemma("-C", "a", "rebuild")
    try work.stemma("-C", "b", "pull", "a")
    try work.stemma("clone", "a", "c")
  }

  @Test("a change of a record whose row was changed is made, and the rebuild is reported")
  func row() throws {
    let work = try Workplace()
    try work.rows("a")
    try work.write("lines.ndjson", Rows.lines(30))
    try work.stemma("-C", "a", "import", "lines.ndjson")
    try Spoil.execute("UPDATE rows SET text = 'forged' WHERE n = 3", in: work.file("a/tables.sqlite"))
    let words = ["-C", "a", "get", "Row", "tenant=t0", "n=3"]
    let shown = try Tool.run(Tool.path, words, in: work.path)
    #expect(shown.errors.contains(/row of Row .+: its checksum does not hold.*`stemma -C a rebuild`/))
    let update = ["-C", "a", "update", "Row", "tenant=t0", "n=3", "text=new"]
    let result = try Tool.run(Tool.path, update, in: work.path)
    #expect(result.status == 0 && result.errors.contains("the tables were rebuilt from the log"))
    #expect(try work.stemma("-C", "a", "verify").output.contains("31 events in 1 file: all good"))
  }

  @Test("status of tables that lack rows shows the log, and then what is wrong")
  func rows() throws {
    let work = try Workplace()
    try work.rows("a")
    try work.write("lines.ndjson", Rows.lines(30))
    try work.stemma("-C", "a", "import", "lines.ndjson")
    try Spoil.execute("DELETE FROM rows WHERE n < 5", in: work.file("a/tables.sqlite"))
    let result = try Tool.run(Tool.path, ["-C", "a", "status"], in: work.path)
    #expect(result.status == 74 && result.errors.contains("rows are missing"), "\(result.errors)")
    #expect(result.output.contains(/\nlog .+ in [0-9] files?\n/), "\(result.output)")
  }

  /// Names of Swift cases, types and labels, and Foundation's own descriptions.
  private static var internals: Regex<Substring> {
    /Optional\(|Stemma[A-Z]\w+\.|Error Domain|NSCocoa|Swift\.|\b[a-z][A-Za-z]*\((?:[a-z]+[A-Za-z]*: |")|UserInfo|error \d+\.\)/
  }

  private static let commands = [
    "status", "log --oneline", "conflicts", "list Member", "get Member m1", "why Member m1 name", "export",
    "digest", "verify", "rebuild", "pull f", "repair --fork --from f", "repair --accept-loss -n",
    "create Member id=new name=N", "update Member m1 name=N", "delete Member m2",
  ]

  private func node() throws -> Workplace {
    let work = try Shop.open()
    let lines =
      (0..<20).map { #"{"op":"create","model":"Member","key":"m\#($0)","fields":{"name":"N"}}"# }
      + (0..<5).map { #"{"op":"delete","model":"Member","key":"m\#($0 * 3)"}"# }
    try work.stemma("-C", "shop", "import", "-", input: lines.joined(separator: "\n") + "\n")
    try work.stemma("clone", "shop", "f", "--name", "f")
    for name in ["shop", "f"] { try work.stemma("-C", name, "update", "Member", "m1", "name=\(name)") }
    try work.stemma("-C", "shop", "sync", "f")
    return work
  }

  /// Checks that every message is plain text and that nothing traps.
  private func check(_ work: Workplace, _ place: String, _ spoil: (String) throws -> Void) throws {
    for command in Self.commands {
      for name in ["shop", "f"] {
        try FileManager.default.copyItem(atPath: work.file(name), toPath: work.file("\(name)-kept"))
      }
      try spoil(work.file("shop"))
      let result = try Tool.run(
        Tool.path, ["-C", "shop"] + command.split(separator: " ").map(String.init), in: work.path)
      // A trap has a small status.
      #expect(result.status < 2 || result.status > 63, "\(place), \(command): \(result.status)")
      #expect(!result.errors.contains(Self.internals), "\(place), \(command): \(result.errors)")
      #expect(!result.errors.contains("years ahead"), "\(place), \(command): \(result.errors)")
      for name in ["shop", "f"] {
        try FileManager.default.removeItem(atPath: work.file(name))
        try FileManager.default.moveItem(atPath: work.file("\(name)-kept"), toPath: work.file(name))
      }
    }
  }

  @Test(
    "no error shows how the program is made: tables",
    arguments: [
      "UPDATE members SET _state = x'00'", "UPDATE members SET _state = substr(_state, 1, 3)",
      "UPDATE members SET _version = 'x', age = 'abc', name = x'ff00'",
      "UPDATE _stemma_tombstones SET state = x'00'", "UPDATE _stemma_tombstones SET key = key || x'00'",
      "DELETE FROM _stemma_tombstones", "UPDATE _stemma_conflicts SET key = x'ff'",
      "UPDATE _stemma_meta SET value = 9e18 WHERE name = 'clock'",
      "UPDATE _stemma_meta SET value = -1 WHERE name = 'stream'",
      "DELETE FROM _stemma_meta WHERE name = 'position'", "DROP TABLE members",
      "UPDATE _stemma_meta SET value = 3 WHERE name = 'format'",
    ])
  func tables(statement: String) throws {
    let work = try node()
    try check(work, statement) { try Spoil.execute(statement, in: $0 + "/tables.sqlite") }
  }

  private static let loss = #"""
    "corruption":{"places":[{"file":"00000001.journal","offset":70,"what":"x"}],"isVague":false,
      "losses":[{"partition":"Member","origin":"00000000000000ff","from":1,"to":0}]},"format"
    """#

  @Test(
    "no error shows how the program is made: node metadata",
    arguments: [loss, #""pendingScope":["q["],"format""#, #""unfinishedClone":"x","format""#])
  func metadata(members: String) throws {
    let work = try node()
    try check(work, members) { node in
      let path = node + "/stemma.json"
      let text = try String(contentsOfFile: path, encoding: .utf8)
      try text.replacing(#/  "checksum".*\n/#, with: "").replacing("\"format\"", with: members).write(
        toFile: path, atomically: true, encoding: .utf8)
    }
  }

  @Test(
    "no error shows how the program is made: files",
    arguments: [
      "tables.sqlite", "stemma.json", "schema.graphql", "lock", "log/watermark", "log/00000001.journal",
    ])
  func files(name: String) throws {
    let work = try node()
    try check(work, "\(name) is a directory") { node in
      try FileManager.default.removeItem(atPath: node + "/" + name)
      try FileManager.default.createDirectory(atPath: node + "/" + name, withIntermediateDirectories: false)
    }
    try check(work, "\(name) is cut short") { node in
      let url = URL(fileURLWithPath: node + "/" + name)
      let bytes = try Data(contentsOf: url)
      try bytes.prefix(bytes.count / 2).write(to: url)
    }
  }
}
