import Foundation
import Testing

/// `import --strict` checks references after all files are read, so the order of the lines does not
/// matter.
@Suite("--strict checks references at the end of an import")
struct StrictImportTests {
  static let schema = """
    type Team @model { id: ID! headId: ID head: Member @belongsTo(fields: ["headId"]) }
    type Member @model {
      id: ID!
      teamId: ID
      team: Team @belongsTo(fields: ["teamId"])
      bossId: ID
      boss: Member @belongsTo(fields: ["bossId"])
    }

    """

  private func node(_ lines: [String] = []) throws -> Workplace {
    let work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "office")
    try work.write("lines.ndjson", lines.map { $0 + "\n" }.joined())
    return work
  }

  private static func member(_ id: String, _ fields: String) -> String {
    #"{"model":"Member","key":"\#(id)","fields":{\#(fields)}}"#
  }

  private static let circle = [
    member("a", #""teamId":"red","bossId":"b""#), member("b", #""bossId":"b""#), member("c", #""boss":"a""#),
    #"{"model":"Team","key":"red","fields":{"headId":"a"}}"#,
  ]

  private func names(_ work: Workplace) throws -> [String] {
    try work.stemma("-C", "node", "export").objects().compactMap { ($0["key"] as? [String: Any])?.text("id") }
  }

  @Test("lines in any order, circles, and a record that refers to itself are valid", arguments: [1, 3, 1000])
  func validOrders(batch: Int) throws {
    for lines in [Self.circle, Self.circle.reversed()] {
      let work = try node(lines)
      let result = try work.stemma(
        "-C", "node", "import", "--strict", "--batch", "\(batch)", "lines.ndjson")
      #expect(result.output.contains("imported 4 lines as 4 events"), "\(result)")
      #expect(try work.stemma("-C", "node", "conflicts", "--json").output == "[]\n")
    }
  }

  @Test("a stream, and the files of one import, are checked as a whole")
  func streamsAndFiles() throws {
    let work = try node()
    let input = Self.circle.map { $0 + "\n" }.joined()
    try work.stemma("-C", "node", "import", "--strict", "-", input: input)
    #expect(try names(work) == ["a", "b", "c", "red"])
    let other = try node()
    try other.write("Member.csv", "id,teamId,bossId\na,red,b\nb,,b\n")
    try other.write("Team.csv", "id,headId\nred,a\n")
    #expect(try other.attempt("-C", "node", "import", "--strict", "Member.csv").status == 65)
    #expect(try names(other).isEmpty)
    let pipe = try ConsolePage.shell(
      "mkfifo pipe.csv; cat Team.csv > pipe.csv & stemma -C node import --strict --model Team pipe.csv",
      in: other.path)
    #expect(pipe.status == 65 && pipe.errors.contains("pipe.csv:2: "), "\(pipe)")
    try other.stemma("-C", "node", "import", "--strict", "Member.csv", "Team.csv")
    #expect(try names(other) == ["a", "b", "red"])
  }

  @Test("a reference that leads nowhere is named by its line, and nothing is written")
  func danglingLine() throws {
    let lines = [
      Self.member("a", #""bossId":"later""#), Self.member("b", #""teamId":"none""#),
      Self.member("later", #""bossId":"b""#),
    ]
    let work = try node(lines)
    for words in [["--batch", "1"], ["--dry-run"], ["--batch", "1", "--snapshot", "crm"]] {
      let refused = try Tool.run(
        Tool.path, ["-C", "node", "import", "--strict", "lines.ndjson"] + words, in: work.path)
      #expect(refused.status == 65, "\(refused)")
      #expect(
        refused.errors.contains("lines.ndjson:2: `team` of Member b leads to none"), "\(refused.errors)")
      #expect(!refused.errors.contains("--from-line"), "\(refused.errors)")
      #expect(try names(work).isEmpty)
    }
    // The node has the record, so the same lines are valid.
    try work.stemma("-C", "node", "create", "Team", "id=none")
    try work.stemma("-C", "node", "import", "--strict", "lines.ndjson", "--snapshot", "crm")
    #expect(try names(work).count == 4)
  }

  @Test("--reject puts such lines aside, and those that then lead to none of their records")
  func rejected() throws {
    let lines = [
      Self.member("c", #""bossId":"b""#), Self.member("d", #""bossId":"d""#),
      Self.member("b", #""bossId":"a""#),
      "{}", Self.member("a", #""teamId":"none""#),
      // The dangling reference is only temporary.
      Self.member("e", #""bossId":"nobody""#), Self.member("e", #""bossId":null"#),
    ]
    for batch in ["1", "1000"] {
      let work = try node(lines)
      let result = try work.attempt(
        "-C", "node", "import", "--strict", "--batch", batch, "--reject", "refused", "lines.ndjson")
      #expect(result.status == 1 && result.output.contains("rejected 4"), "\(result)")
      let refused = String(decoding: try work.bytes("refused"), as: UTF8.self)
      #expect(refused.split(separator: "\n").map(String.init) == [lines[0], lines[2], lines[3], lines[4]])
      #expect(try names(work) == ["d", "e"])
    }
  }
}
