import Foundation
import Testing

/// Text of other programs: JSON rows and arrays, CSV dialects, times.
@Suite("text formats of an import")
struct ImportFormatTests {
  private func node() throws -> Workplace {
    let work = try Workplace()
    try work.write("schema.graphql", "type Album @model { id: ID! title: String year: Int }\n")
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "office")
    return work
  }

  private func rows(_ work: Workplace) throws -> [String] {
    try work.stemma(
      "-C", "node", "query", "--tsv", "SELECT id, ifnull(title, '-'), ifnull(year, 0) FROM albums ORDER BY id"
    ).lines.map { $0.replacing("\t", with: "|") }
  }

  private func run(_ work: Workplace, _ arguments: [String]) throws -> Tool.Result {
    try Tool.run(Tool.path, ["-C", "node", "import"] + arguments, in: work.path)
  }

  @Test("flat rows and mutations in one file, with columns mapped and left out")
  func flatRows() throws {
    let work = try node()
    try work.write(
      "albums.ndjson",
      """
      {"albumId":1,"title":"x","color":"red"}
      {"albumId":"2","title":"y","year":1969,"color":"red"}
      {"op":"update","key":"1","fields":{"year":1970}}

      """)
    let plain = try work.attempt("-C", "node", "import", "--model", "Album", "albums.ndjson")
    #expect(plain.status == 65)
    #expect(try rows(work) == [])
    let result = try work.stemma(
      "-C", "node", "import", "--model", "Album", "--map", "albumId=id", "--ignore-unknown", "albums.ndjson")
    #expect(result.errors.contains("color"))
    #expect(try rows(work) == ["1|x|1970", "2|y|1969"])
  }

  @Test("a mutation with a mistake is no row, and its members are not left out")
  func mistakenMutation() throws {
    let work = try node()
    for line in [
      #"{"op":"update","key":"1","fields":{"year":1},"time":5}"#,
      #"{"key":"1","fields":{"year":1},"id":"2"}"#,
      #"{"op":"upsrt","key":"1"}"#,
    ] {
      try work.write("albums.ndjson", #"{"id":"1"}"# + "\n" + line + "\n")
      let result = try run(work, ["--model", "Album", "--ignore-unknown", "albums.ndjson"])
      #expect(result.status == 65, "\(line)")
    }
  }

  @Test("an array, behind a byte order mark, is read element by element")
  func array() throws {
    let work = try node()
    try work.write(
      "albums.json",
      "\u{FEFF} [ {\"id\":\"1\",\n\"title\":\"a ] , } \\\" [\"},{\"id\":\"2\",\"year\":2}\n, {\"id\":\"3\"} ]\n"
    )
    #expect(
      try work.stemma("-C", "node", "import", "--model", "Album", "albums.json").lines
        == ["imported 3 lines as 3 events in 1 commit"])
    #expect(try rows(work) == ["1|a ] , } \" [|0", "2|-|2", "3|-|0"])
    try work.write("more.json", #"[{"id":"4"},{"id":"5"},{"id":"6"}]"#)
    try work.stemma("-C", "node", "import", "--model", "Album", "--from-line", "3", "more.json")
    #expect(try rows(work).count == 4)
    try work.write("empty.json", " [ ] ")
    #expect(
      try work.stemma("-C", "node", "import", "--model", "Album", "empty.json").lines[0].contains("0 lines"))
  }

  @Test(
    "a corrupt array ends the import behind its last whole commit",
    arguments: [
      #"[{"id":"1"},{"id":"2"}"#, #"[{"id":"1"},{"id":"2"#, #"[{"id":"1"} {"id":"2"}]"#,
      #"[{"id":"1"},{"id":"2"}] {"id":"3"}"#, #"[{"id":"1"},]"#, "[",
    ])
  func corruptArray(text: String) throws {
    let work = try node()
    try work.write("albums.json", text)
    let result = try work.attempt("-C", "node", "import", "--model", "Album", "albums.json")
    #expect(result.status == 65, "\(result.errors)")
    #expect(try rows(work).count <= 2)
  }

  @Test("an element that is refused is written out as one line")
  func refusedElement() throws {
    let work = try node()
    try work.write("albums.json", "[{\"id\":\"1\",\n\"year\":\"x\"},{\"id\":\"2\"}]")
    let result = try work.attempt(
      "-C", "node", "import", "--model", "Album", "--reject", "refused", "albums.json")
    #expect(result.status == 1)
    #expect(try rows(work) == ["2|-|0"])
    let refused = try String(contentsOfFile: work.file("refused"), encoding: .utf8)
    #expect(refused == "{\"id\":\"1\", \"year\":\"x\"}\n")
  }

  @Test("CSV with another delimiter, encoding, text for null, and names of columns")
  func dialect() throws {
    let work = try node()
    let text = "nr;Titel;Preis\n1;Fr\u{FC}h;5\n2;\\N;6\n3;;7\n"
    try #require(text.data(using: .isoLatin1)).write(to: URL(fileURLWithPath: work.file("albums.txt")))
    let arguments = [
      "--model", "Album", "--delimiter", ";", "--encoding", "latin1", "--null", "\\N", "--map", "nr=id",
      "--map",
      "Titel=title", "albums.txt",
    ]
    #expect(try run(work, arguments).status == 65)
    #expect(try run(work, ["--ignore-unknown"] + arguments).status == 0)
    #expect(try rows(work) == ["1|Fr\u{FC}h|0", "2|-|0", "3||0"])
  }

  @Test("without a header the cells are the fields in their order, or the numbers that --map names")
  func noHeader() throws {
    let work = try node()
    try work.write("albums.csv", "1,x,1969\n2,y,1970\n")
    try work.stemma("-C", "node", "import", "--model", "Album", "--no-header", "albums.csv")
    #expect(try rows(work) == ["1|x|1969", "2|y|1970"])
    try work.write("turned.csv", "z,0,3\n")
    try work.stemma(
      "-C", "node", "import", "--model", "Album", "--no-header", "--map", "3=id", "--map", "1=title",
      "--ignore-unknown", "turned.csv")
    #expect(try rows(work).last == "3|z|0")
    try work.write("narrow.csv", "4,x\n")
    let narrow = try work.attempt("-C", "node", "import", "--model", "Album", "--no-header", "narrow.csv")
    #expect(narrow.status == 65)
    let misnamed = try work.attempt(
      "-C", "node", "import", "--model", "Album", "--map", "absent=id", "albums.csv")
    #expect(misnamed.status == 65)
  }

  @Test(
    "flags of CSV are refused where they mean nothing",
    arguments: [
      ["--delimiter", ";;", "a.csv"], ["--delimiter", "\"", "a.csv"], ["--delimiter", ";", "a.tsv"],
      ["--no-header", "a.ndjson"], ["--map", "a", "a.csv"], ["--map", "a=b", "--map", "a=c", "a.csv"],
      ["--ignore-unknown", "a.sqlite"],
    ])
  func misusedFlags(arguments: [String]) throws {
    let work = try node()
    #expect(try run(work, arguments).status == 64)
  }

  @Test("zero bytes behind gzip are padding")
  func padding() throws {
    let work = try node()
    try work.write("albums.ndjson", #"{"id":"1"}"# + "\n")
    _ = try ConsolePage.run("gzip albums.ndjson; head -c 700000 /dev/zero >> albums.ndjson.gz", in: work.path)
    try work.stemma("-C", "node", "import", "--model", "Album", "albums.ndjson.gz")
    #expect(try rows(work) == ["1|-|0"])
  }

  @Test(
    "a time is seconds, milliseconds or ISO 8601",
    arguments: [
      "1700000000", "1700000000.0", "1700000000000", #""2023-11-14T22:13:20Z""#,
      #""2023-11-14T23:13:20+01:00""#,
    ])
  func times(text: String) throws {
    let work = try node()
    try work.write("one.ndjson", #"{"model":"Album","key":"1","fields":{},"ts":\#(text)}"# + "\n")
    try work.stemma("-C", "node", "import", "one.ndjson")
    let time = try #require(
      try work.stemma("-C", "node", "log", "--json").output.firstMatch(of: /"time":"([^"]*)"/))
    #expect(time.1.hasPrefix("2023-11-14T22:13:20"))
  }

  @Test(
    "a text that is no time is refused",
    arguments: ["-1", "1e300", #""soon""#, "true", #""2023-13-01T00:00:00Z""#])
  func noTimes(text: String) throws {
    let work = try node()
    try work.write("one.ndjson", #"{"model":"Album","key":"1","fields":{},"ts":\#(text)}"# + "\n")
    #expect(try work.attempt("-C", "node", "import", "one.ndjson").status == 65)
  }

  @Test("times that events do not get are counted", arguments: [false, true])
  func changedTimes(isDryRun: Bool) throws {
    let work = try node()
    try work.write(
      "times.ndjson",
      """
      {"model":"Album","key":"1","fields":{"year":1},"ts":1700000000}
      {"model":"Album","key":"1","fields":{"year":2},"ts":1600000000}
      {"model":"Album","key":"2","fields":{"year":2},"ts":99999999999}

      """)
    let flags = isDryRun ? ["--dry-run"] : []
    let result = try run(work, ["--json", "times.ndjson"] + flags)
    let total = try #require(result.lines.last)
    #expect(total.contains(#""earlyTimes":1,"futureTimes":1"#), "\(total)")
    #expect(result.errors.split(separator: "\n").count { $0.hasPrefix("warning: ") } == 2)
  }

  @Test("progress on a terminal has a share, a rate and the time left", .enabled(if: Pseudoterminal.isThere))
  func terminal() throws {
    let work = try node()
    try work.write("albums.csv", "id\n" + (1...300).map { "\($0)\n" }.joined())
    let shown = try Pseudoterminal.run(
      ["-C", "node", "import", "--model", "Album", "--batch", "10", "albums.csv"], in: work.path)
    #expect(shown.contains(/durable through line \d+ \(\d+ %\), [\d,]+ lines\/s, \d+ min \d+ s left/))
  }

  @Test("off a terminal there is at most one report a second, and always the last")
  func reports() throws {
    let work = try node()
    try work.write("albums.csv", "id\n" + (1...300).map { "\($0)\n" }.joined())
    let began = ContinuousClock.now
    let result = try work.stemma("-C", "node", "import", "--model", "Album", "--batch", "1", "albums.csv")
    let seconds = Int(began.duration(to: .now).components.seconds)
    let reports = result.errors.split(separator: "\n").filter { $0.hasPrefix("durable through line ") }
    #expect(reports.last == "durable through line 301")
    #expect(reports.count <= seconds + 3)
  }
}
