import Foundation
import StemmaHistory
import StemmaImport
import StemmaNode
import Testing

/// Change feeds of Debezium and CouchDB, delivered once and repeatedly.
@Suite("change feeds")
struct ChangeFeedTests {
  private func node() throws -> Workplace {
    let work = try Workplace()
    try work.write(
      "schema.graphql",
      """
      type Item @model {
        site: String! @primaryKey(sortKeyFields: ["id"])
        id: Int!
        fullName: String
        text: String
        price: Float
        isRare: Boolean
        madeOn: AWSDate
        seenAt: AWSDateTime
      }
      type Album @model { id: ID! title: String year: Int }

      """)
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "office")
    return work
  }

  private func items(_ work: Workplace) throws -> [String] {
    try work.stemma(
      "-C", "node", "query", "--tsv",
      """
      SELECT site, id, ifnull(fullName, '-'), ifnull(text, '-'), ifnull(price, '-'), ifnull(isRare, '-'),
      ifnull(madeOn, '-'), ifnull(seenAt, '-') FROM items ORDER BY site, id
      """
    ).lines.map { $0.replacing("\t", with: "|") }
  }

  private func albums(_ work: Workplace) throws -> [String] {
    try work.stemma(
      "-C", "node", "query", "--tsv", "SELECT id, ifnull(title, '-'), ifnull(year, 0) FROM albums ORDER BY id"
    ).lines.map { $0.replacing("\t", with: "|") }
  }

  private func run(
    _ work: Workplace, _ format: String, _ text: String, _ arguments: String...
  ) throws -> (result: Tool.Result, events: Int?) {
    try work.write("feed", text)
    let result = try Tool.run(
      Tool.path, ["-C", "node", "import", "--format", format, "--json", "feed"] + arguments, in: work.path)
    let total = result.lines.last.flatMap { $0.firstMatch(of: /"lines":\d+,"events":(\d+)/) }
    return (result, total.flatMap { Int($0.1) })
  }

  private func source(_ sequence: (Int?, Int), _ table: String = "items") -> String {
    let first = sequence.0.map { "\\\"\($0)\\\"" } ?? "null"
    return #""source":{"version":"2.7.0.Final","connector":"postgresql","name":"shop","ts_ms":1700000000000,"#
      + #""snapshot":"false","db":"shop","sequence":"[\#(first),\"\#(sequence.1)\"]","schema":"public","#
      + #""table":"\#(table)","txId":555,"lsn":\#(sequence.1),"xmin":null},"ts_ms":1700000000123"#
  }

  // MARK: - Debezium

  /// Two transactions overlap: the one that commits first has the later change.
  private var orders: String {
    let lines = [
      #"{"before":null,"after":{"site":"a","id":1,"full_name":"x","text":"long","price":"9.50","is_rare":1,"made_on":19675,"seen_at":1700000000123456},"op":"r",\#(source((nil, 100)))}"#,
      #"{"schema":{"type":"struct"},"payload":{"before":null,"after":{"site":"a","id":2,"full_name":"y"},"op":"c",\#(source((110, 140)))}}"#,
      #"{"before":{"site":"a","id":1},"after":{"site":"a","id":1,"full_name":"z","text":"__debezium_unavailable_value"},"op":"u",\#(source((150, 120)))}"#,
      #"{"before":{"site":"a","id":2,"full_name":"y"},"after":{"site":"b","id":2,"full_name":"y"},"op":"u",\#(source((160, 170)))}"#,
      #"{"before":null,"after":{"site":"a","id":3,"full_name":"w"},"op":"c",\#(source((160, 180)))}"#,
      #"{"before":{"site":"a","id":3},"after":null,"op":"d",\#(source((160, 190)))}"#,
      "null",
      #"{"schema":null,"payload":null}"#,
      #"{"before":null,"after":{"id":1},"op":"c",\#(source((160, 195), "audit"))}"#,
    ]
    return lines.joined(separator: "\n") + "\n"
  }

  @Test("envelopes of all kinds become the rows of the source")
  func debezium() throws {
    let work = try node()
    let (result, events) = try run(work, "debezium", orders)
    #expect(result.status == 0, "\(result.errors)")
    #expect(
      try items(work) == [
        "a|1|z|long|9.5|1|2023-11-14|2023-11-14T22:13:20.123456Z", "b|2|y|-|-|-|-|-",
      ])
    #expect(events == 7)
    let total = try #require(result.lines.last)
    #expect(total.contains(#""movedRecords":1"#))
    #expect(result.errors.contains("audit"))
    let time = try #require(
      try work.stemma("-C", "node", "log", "--json").output.firstMatch(of: /"time":"([^"]*)"/))
    #expect(time.1.hasPrefix("2023-11-14T22:13:20"))
  }

  @Test("a feed that is delivered again writes nothing, and an edit that was made meanwhile stays")
  func redelivery() throws {
    let work = try node()
    #expect(try run(work, "debezium", orders, "--offset", "offset").events == 7)
    try work.stemma("-C", "node", "update", "Item", #"{"site":"a","id":1}"#, "fullName=edited")
    let again = try run(work, "debezium", orders, "--offset", "offset")
    #expect(again.events == 0)
    #expect(try items(work).first?.hasPrefix("a|1|edited|") == true)
    // A part of the feed, and new changes.
    let next =
      #"{"before":null,"after":{"site":"c","id":4,"full_name":"v"},"op":"c",\#(source((195, 200)))}"#
    #expect(try run(work, "debezium", orders + next, "--offset", "offset").events == 1)
  }

  /// Otherwise a kill would apply many changes again, over edits made since.
  @Test("the offset is written after each commit, before the next one is in the log")
  func offsetFollowsCommits() throws {
    let work = try node()
    let lines = (1...12).map {
      #"{"before":null,"after":{"site":"a","id":\#($0)},"op":"c",\#(source(($0 * 10, $0 * 10 + 5)))}"# + "\n"
    }
    try work.write("feed", lines.joined())
    let node = try Node.open(at: work.file("node"), .init(mode: .write))
    var options = Import.Options()
    options.batch = 2
    options.format = .debezium
    options.offset = try FeedOffset(work.file("offset"), for: node)
    var reading = Node.OpeningOptions(mode: .read)
    reading.leavesFiles = true
    var feed = Import(into: node, options: options)
    var reports = 0
    feed.progress = { summary in
      reports += 1
      let line = summary.durableThroughLine
      let offset = String(decoding: try work.bytes("offset"), as: UTF8.self)
      #expect(offset.contains("[\(line * 10),\(line * 10 + 5)]"), "\(offset)")
      var events = 0
      try Node.open(at: work.file("node"), reading).forEachEvent(LogFilter(), newestFirst: false) { _, _ in
        events += 1
        return true
      }
      #expect(events == line)
    }
    _ = try feed.run(path: work.file("feed"))
    #expect(reports == 6)
  }

  @Test("a change behind the last one is not skipped, whatever its number alone is")
  func overlappingTransactions() throws {
    let work = try node()
    let first = #"{"before":null,"after":{"site":"a","id":1},"op":"c",\#(source((110, 140)))}"#
    let second = #"{"before":null,"after":{"site":"a","id":2},"op":"c",\#(source((150, 120)))}"#
    #expect(try run(work, "debezium", first, "--offset", "offset").events == 1)
    #expect(try run(work, "debezium", second, "--offset", "offset").events == 1)
    let other = #"{"before":null,"after":{"id":"1"},"op":"c",\#(source((20, 20), "albums"))}"#
    #expect(try run(work, "debezium", other, "--offset", "offset").events == 1)
  }

  @Test(
    "positions of MySQL are compared as numbers",
    arguments: [
      (#""file":"bin.000009","pos":900,"row":0"#, #""file":"bin.000010","pos":4,"row":0"#),
      (#""file":"bin.000010","pos":99,"row":0"#, #""file":"bin.000010","pos":100,"row":0"#),
      (#""file":"bin.000010","pos":99,"row":0"#, #""file":"bin.000010","pos":99,"row":1"#),
    ])
  func mysql(earlier: String, later: String) throws {
    let work = try node()
    func change(_ id: Int, _ place: String) -> String {
      #"{"before":null,"after":{"site":"a","id":\#(id)},"op":"c","source":{"connector":"mysql","name":"shop","ts_ms":1700000000000,"db":"shop","table":"items",\#(place)}}"#
        + "\n"
    }
    #expect(try run(work, "debezium", change(1, earlier), "--offset", "offset").events == 1)
    #expect(try run(work, "debezium", change(2, later), "--offset", "offset").events == 1)
    #expect(try run(work, "debezium", change(3, earlier), "--offset", "offset").events == 0)
  }

  @Test(
    "what is no change of a row is refused",
    arguments: [
      #"{"op":"t","source":{"table":"items","ts_ms":1}}"#, #"{"op":"x","source":{"table":"items"}}"#,
      #"{"site":"a","id":1}"#, #"{"op":"c","after":{"site":"a","id":1}}"#,
      #"{"op":"d","before":{"id":1},"source":{"table":"items"}}"#,
      #"{"op":"u","after":null,"source":{"table":"items"}}"#, "[1]", "7",
    ])
  func noChange(line: String) throws {
    let work = try node()
    let (result, _) = try run(work, "debezium", line + "\n")
    #expect(result.status == 65, "\(result.errors)")
    #expect(try items(work) == [])
  }

  // MARK: - CouchDB

  private static let documents = [
    #"{"seq":"1-g1AAAA","id":"_design/views","changes":[{"rev":"1-a"}],"doc":{"_id":"_design/views"}}"#,
    #"{"seq":"2-g1AAAB","id":"x","changes":[{"rev":"1-b"}],"doc":{"_id":"x","_rev":"1-b","title":"old","year":1}}"#,
    #"{"seq":"3-g1AAAC","id":"x","changes":[{"rev":"2-c"}],"doc":{"_id":"x","_rev":"2-c","title":"new"}}"#,
    #"{"seq":"4-g1AAAD","id":"y","changes":[{"rev":"2-d"}],"deleted":true,"doc":{"_id":"y","_deleted":true}}"#,
    #"{"seq":"5-g1AAAE","id":"z","changes":[{"rev":"1-e"}],"doc":{"_id":"z","_rev":"1-e","year":3}}"#,
  ]

  private func feed(isContinuous: Bool, hasNumbers: Bool) -> String {
    let documents = Self.documents.map {
      hasNumbers ? $0.replacing(/"seq":"(\d+)-\w+"/) { "\"seq\":\($0.1)" } : $0
    }
    return isContinuous
      ? documents.joined(separator: "\n") + "\n\n" + #"{"last_seq":"5-g1AAAE","pending":0}"# + "\n"
      : "{\"results\":[\n" + documents.joined(separator: ",\n")
        + "\n],\n\"last_seq\":\"5-g1AAAE\",\"pending\":0}\n"
  }

  @Test(
    "documents are whole records, and a feed that is delivered again writes nothing",
    arguments: [(true, true), (true, false), (false, true), (false, false)])
  func couchdb(isContinuous: Bool, hasNumbers: Bool) throws {
    let work = try node()
    let text = feed(isContinuous: isContinuous, hasNumbers: hasNumbers)
    let (result, events) = try run(work, "couchdb", text, "--model", "Album", "--offset", "offset")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try albums(work) == ["x|new|0", "z|-|3"])
    #expect(events == 3)
    #expect(result.errors.contains("1 design document"))
    try work.stemma("-C", "node", "update", "Album", "x", "title=edited")
    #expect(try run(work, "couchdb", text, "--model", "Album", "--offset", "offset").events == 0)
    #expect(try albums(work).first == "x|edited|0")
    let offset = try String(contentsOfFile: work.file("offset"), encoding: .utf8)
    #expect(offset.contains(hasNumbers ? #""since":5"# : #""since":"5-g1AAAE""#))
  }

  @Test("without the documents a feed is refused")
  func noDocuments() throws {
    let work = try node()
    let line = #"{"seq":1,"id":"x","changes":[{"rev":"1-b"}]}"# + "\n"
    let (result, _) = try run(work, "couchdb", line, "--model", "Album")
    #expect(result.status == 65)
    #expect(result.errors.contains("include_docs=true"))
    let failure = #"{"error":"not_found","reason":"missing"}"# + "\n"
    #expect(try run(work, "couchdb", failure, "--model", "Album").result.status == 65)
    #expect(try run(work, "couchdb", line).result.status == 64)
    #expect(try run(work, "couchdb", line, "--model", "Item").result.status == 65)
  }

  @Test("an offset file is of one node, and of a feed")
  func offsetFiles() throws {
    let work = try node()
    try work.stemma("init", "other", "--schema", "schema.graphql", "--name", "other")
    #expect(try run(work, "debezium", orders, "--offset", "offset").events == 7)
    let other = try work.attempt(
      "-C", "other", "import", "--format", "debezium", "--offset", "offset", "feed")
    #expect(other.status == 65)
    try work.write("corrupt", "{}")
    #expect(try run(work, "debezium", orders, "--offset", "corrupt").result.status == 65)
    #expect(try work.attempt("-C", "node", "import", "--offset", "new", "feed").status == 64)
    let rehearsal = try run(work, "debezium", orders, "--offset", "new", "--dry-run")
    #expect(rehearsal.result.status == 0)
    #expect(!FileManager.default.fileExists(atPath: work.file("new")))
  }
}
