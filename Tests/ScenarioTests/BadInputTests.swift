import Foundation
import Testing
import StemmaSimulation

/// Bad input from outside is refused with its location and the next step, and leaves the node
/// unchanged.
@Suite("Bad input")
struct BadInputTests {
  static let schema = """
    type Author @model {
      id: ID! @primaryKey
      name: String!
      age: Int
    }
    type Book @model {
      shelf: String! @primaryKey(sortKeyFields: ["number"])
      number: Int!
      title: String!
      pages: Int
      price: Float
      published: AWSDate
      authorId: ID
      author: Author @belongsTo(fields: ["authorId"])
    }

    """

  private func node() throws -> Workplace {
    let work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "office")
    return work
  }

  private func eventCount(
    _ work: Workplace, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Int {
    let status = try work.stemma("-C", "node", "status", "--json", sourceLocation: sourceLocation)
    return try #require(status.objects().first?["events"] as? Int, sourceLocation: sourceLocation)
  }

  private func write(_ work: Workplace, _ name: String, _ data: Data) throws {
    try data.write(to: URL(fileURLWithPath: work.file(name)))
  }

  private static func author(_ id: String) -> String {
    #"{"op":"create","model":"Author","key":{"id":"\#(id)"},"fields":{"name":"\#(id)"}}"#
  }

  // MARK: - Lines

  /// A line that must be refused.
  struct BadLine: CustomTestStringConvertible, Sendable {
    var name: String
    var bytes: [UInt8]
    var cause: String
    var status: Int32

    init(_ name: String, _ text: String, _ cause: String, status: Int32 = 65) {
      self.init(name, bytes: Array(text.utf8), cause, status: status)
    }

    init(_ name: String, bytes: [UInt8], _ cause: String, status: Int32 = 65) {
      (self.name, self.bytes, self.cause, self.status) = (name, bytes, cause, status)
    }

    var testDescription: String { name }
  }

  private static func book(_ field: String, _ value: String) -> String {
    #"{"op":"create","model":"Book","key":{"shelf":"s","number":1},"fields":{"title":"t","\#(field)":\#(value)}}"#
  }

  static let badLines = [
    BadLine("not JSON", "no json", "this is not JSON"),
    BadLine("JSON cut short", #"{"op":"create","model":"Author","#, "this is not JSON"),
    BadLine("two values", "\(author("x")) 7", "this is not JSON"),
    BadLine("not an object", "[]", "not a JSON object"),
    BadLine("a name twice", #"{"op":"create","op":"create","model":"Author"}"#, "`op` occurs twice"),
    BadLine("deeply nested", String(repeating: "[", count: 100_000), "this is not JSON"),
    BadLine("unknown op", #"{"op":"destroy","model":"Author","key":{"id":"x"}}"#, "unknown op `destroy`"),
    BadLine("no model", #"{"op":"create"}"#, "`model` is missing"),
    BadLine("unknown model", #"{"op":"create","model":"Writer","key":{"id":"x"}}"#, "unknown model `Writer`"),
    BadLine(
      "unknown field", #"{"op":"create","model":"Author","key":{"id":"x"},"fields":{"name":"n","nmae":"m"}}"#,
      "no field `nmae`; did you mean `name`?"),
    BadLine("unknown member", #"{"op":"delete","model":"Author","key":{"id":"b"},"why":1}"#, "member `why`"),
    BadLine(
      "type mismatch", #"{"op":"create","model":"Author","key":{"id":"x"},"fields":{"name":7}}"#,
      "Author.name of x: 7"),
    BadLine("text for a number", book("pages", #""many""#), #"Book.pages of shelf=s number=1: "many""#),
    BadLine("a fraction for a whole number", book("pages", "1.5"), "Book.pages of shelf=s number=1: 1.5"),
    BadLine("no such date", book("published", #""2025-02-30""#), "Book.published of shelf=s number=1"),
    BadLine(
      "missing required field", #"{"op":"create","model":"Author","key":{"id":"x"},"fields":{"age":7}}"#,
      "required field `name`"),
    BadLine(
      "required field cleared", #"{"op":"update","model":"Author","key":{"id":"b"},"fields":{"name":null}}"#,
      "Author.name of b: null"),
    BadLine("duplicate create", author("b"), "Author b exists already"),
    // A missing record has its own exit status, as in every other command.
    BadLine(
      "update of a missing record",
      #"{"op":"update","model":"Author","key":{"id":"x"},"fields":{"name":"n"}}"#,
      "there is no Author x", status: 66),
    BadLine(
      "delete of a missing record", #"{"op":"delete","model":"Author","key":{"id":"x"}}"#,
      "there is no Author x", status: 66),
    BadLine(
      "a part of the key alone", #"{"op":"upsert","model":"Book","key":{"shelf":"s"}}"#, "the key of Book"),
    BadLine("a bare value for two parts", #"{"op":"upsert","model":"Book","key":"s"}"#, "the key of Book"),
    BadLine("another key part", #"{"op":"upsert","model":"Author","key":{"no":"s"}}"#, "the key of Author"),
    BadLine("a null key", #"{"op":"delete","model":"Author","key":null}"#, "Author.id: null"),
    BadLine(
      "an integer out of range", book("pages", "99999999999999999999"),
      "Book.pages of shelf=s number=1: 99999999999999999999"),
    BadLine(
      "one over the highest integer", book("pages", "9223372036854775808"),
      "Book.pages of shelf=s number=1: 9223372036854775808"),
    BadLine("a double out of range", book("price", "1e999"), "Book.price of shelf=s number=1: 1e999"),
    BadLine(
      "a time out of range", #"{"op":"delete","model":"Author","key":{"id":"b"},"ts":1e30}"#, "`ts`"),
    BadLine(
      "unknown relationship", #"{"op":"link","model":"Author","key":{"id":"b"},"fields":{"books":"a"}}"#,
      "`books`"),
    BadLine("invalid UTF-8", bytes: Array(author("x").utf8).map { $0 == 0x78 ? 0xFF : $0 }, "not UTF-8"),
    BadLine("half a surrogate pair", book("shelfmark", #""\ud800""#), "this is not JSON"),
  ]

  @Test(
    "a bad line is named with its cause and the next step, and nothing of its commit is appended",
    arguments: badLines)
  func badLinesAreRefused(line: BadLine) throws {
    let work = try node()
    var text = Data("\(Self.author("a"))\n\(Self.author("b"))\n\(Self.author("c"))\n".utf8)
    text += line.bytes
    text += Data("\n\(Self.author("d"))\n".utf8)
    try write(work, "bad.ndjson", text)
    // A dry run leaves nothing to resume.
    let tried = try work.attempt("-C", "node", "import", "--dry-run", "--batch", "2", "bad.ndjson")
    #expect(tried.status == line.status, "\(tried.errors)")
    #expect(tried.errors.hasPrefix("stemma: bad.ndjson:4: "), "\(tried.errors)")
    #expect(tried.errors.hasSuffix("; this was only tried, and nothing was written\n"), "\(tried.errors)")
    #expect(!tried.errors.contains("--from-line"), "\(tried.errors)")

    let result = try work.attempt("-C", "node", "import", "--batch", "2", "bad.ndjson")
    #expect(result.status == line.status, "\(result.errors)")
    let error = try #require(result.errors.split(separator: "\n").last)
    #expect(error.hasPrefix("stemma: bad.ndjson:4: "), "\(error)")
    #expect(error.contains(line.cause), "\(error)")
    #expect(error.hasSuffix("--from-line 3"), "\(error)")
    #expect(result.errors.contains("durable through line 2\n"), "\(result.errors)")
    #expect(try eventCount(work) == 2)

    // The advised step works: repair the line and resume where the error says.
    try work.write("bad.ndjson", "\n\n\(Self.author("c"))\n\(Self.author("e"))\n\(Self.author("d"))\n")
    try work.stemma("-C", "node", "import", "--batch", "2", "--from-line", "3", "bad.ndjson")
    #expect(try eventCount(work) == 5)
  }

  /// A file name may have more bytes than characters.
  @Test(
    "a second import of a file reports how far the first one came, whatever its name",
    arguments: ["lines.ndjson", "日本語.ndjson", "été:2-9.ndjson", "\u{0600}"])
  func importedBefore(name: String) throws {
    let work = try node()
    try work.write(name, (1...6).map { Self.author("a\($0)") + "\n" }.joined())
    try work.stemma("-C", "node", "import", "--batch", "2", "--format", "ndjson", name)
    let again = try work.attempt("-C", "node", "import", "--format", "ndjson", name)
    #expect(again.status == 65)
    let advice = "an earlier import is durable through line 6, go on with --from-line 7\n"
    #expect(again.errors.hasSuffix(advice), "\(again.errors)")
    try work.stemma("-C", "node", "import", "--format", "ndjson", "--from-line", "7", name)
    #expect(try eventCount(work) == 6)
  }

  @Test("an earlier import of another file that has the same name says nothing about this one")
  func anotherFileOfTheSameName() throws {
    let work = try node()
    for name in ["one", "two"] {
      try FileManager.default.createDirectory(atPath: work.file(name), withIntermediateDirectories: true)
    }
    try work.write("one/lines.ndjson", (1...6).map { Self.author("a\($0)") + "\n" }.joined())
    try work.write("two/lines.ndjson", Self.author("b") + "\nno json\n")
    try work.stemma("-C", "node", "import", "one/lines.ndjson")
    let result = try work.attempt("-C", "node", "import", "two/lines.ndjson")
    #expect(result.status == 65)
    #expect(result.errors.hasSuffix("--from-line 1\n"), "\(result.errors)")
    #expect(try eventCount(work) == 6)
  }

  // MARK: - Long lines

  /// Runs the tool and returns its peak resident memory in KiB, nil if it cannot be measured.
  private func measured(_ arguments: [String], in work: Workplace) throws -> (result: Tool.Result, peak: Int?)
  {
    if FileManager.default.isExecutableFile(atPath: "/usr/bin/time") {
      #if os(Linux)
        let result = try Tool.run("/usr/bin/time", ["-f", "peak %M", Tool.path] + arguments, in: work.path)
        return (result, result.errors.firstMatch(of: /(?m)^peak (\d+)$/).flatMap { Int($0.1) })
      #else
        let result = try Tool.run("/usr/bin/time", ["-l", Tool.path] + arguments, in: work.path)
        let bytes = result.errors.firstMatch(of: /(\d+) +maximum resident set size/).flatMap { Int($0.1) }
        return (result, bytes.map { $0 >> 10 })
      #endif
    }
    if let python = RealData.python {
      let script = """
        import resource, subprocess, sys
        status = subprocess.call(sys.argv[1:])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print("peak", peak if sys.platform == "linux" else peak >> 10, file=sys.stderr)
        sys.exit(status)
        """
      let result = try Tool.run(python, ["-c", script, Tool.path] + arguments, in: work.path)
      return (result, result.errors.firstMatch(of: /(?m)^peak (\d+)$/).flatMap { Int($0.1) })
    }
    print("skipped: neither /usr/bin/time nor python3 is there to measure memory")
    return (try Tool.run(Tool.path, arguments, in: work.path), nil)
  }

  /// The second line has 100 MB.
  private func writeLongLine(_ work: Workplace, _ name: String) throws {
    var text = Data("\(Self.author("a"))\n".utf8)
    text += Data(#"{"op":"create","model":"Author","key":{"id":"b"},"fields":{"name":""#.utf8)
    text += Data(repeating: 0x78, count: 100_000_000)
    text += Data("\"}}\n".utf8)
    try write(work, name, text)
  }

  @Test("a line of 100 MB is refused in less than 100 MB")
  func longLine() throws {
    let work = try node()
    try writeLongLine(work, "long.ndjson")
    let (result, peak) = try measured(["-C", "node", "import", "--batch", "1", "long.ndjson"], in: work)
    #expect(result.status == 65)
    #expect(result.errors.contains("stemma: long.ndjson:2: "), "\(result.errors)")
    #expect(result.errors.contains("the line is longer than 33 MiB; split the record"), "\(result.errors)")
    #expect(result.errors.contains("--from-line 2\n"), "\(result.errors)")
    #expect(try eventCount(work) == 1)
    if let peak { #expect(peak < 100_000_000 >> 10, "\(peak) KiB") }
  }

  @Test("a line of 100 MB is refused in less than 100 MB, also out of a small gzip file")
  func longCompressedLine() throws {
    let work = try node()
    try writeLongLine(work, "long.ndjson")
    let packed = try Tool.run("/usr/bin/env", ["gzip", "-9", "long.ndjson"], in: work.path)
    try #require(packed.status == 0, "\(packed.errors)")
    let (result, peak) = try measured(["-C", "node", "import", "--batch", "1", "long.ndjson.gz"], in: work)
    #expect(result.status == 65)
    #expect(result.errors.contains("the line is longer than 33 MiB"), "\(result.errors)")
    if let peak {
      #expect(peak < 100_000_000 >> 10, "\(peak) KiB")
    }
  }

  @Test("a line just within the limit is taken, one byte more is not")
  func lineAtTheLimit() throws {
    let work = try node()
    let limit = 33 << 20
    func line(_ id: String, _ length: Int) -> Data {
      let head = Data(#"{"op":"create","model":"Author","key":{"id":"\#(id)"},"fields":{"name":"n"}}"#.utf8)
      // White space between members counts like any byte.
      return head.dropLast() + Data(repeating: 0x20, count: length - head.count) + Data("}\n".utf8)
    }
    try write(work, "limit.ndjson", line("a", limit) + line("b", limit + 1))
    let result = try work.attempt("-C", "node", "import", "--batch", "1", "limit.ndjson")
    #expect(result.status == 65)
    #expect(result.errors.contains("limit.ndjson:2: "), "\(result.errors)")
    #expect(try eventCount(work) == 1)
  }

  // MARK: - Files

  @Test("an empty gzip file, or the first byte of one, is refused; an empty text has no lines")
  func emptyFiles() throws {
    let work = try node()
    for (name, bytes, cause) in [
      ("empty.ndjson.gz", [], "the file is empty, which no gzip file is; fetch it again"),
      ("cut.ndjson.gz", [0x1F], "the gzip stream ends too early; fetch the file again"),
      ("cut.ndjson", [0x1F, 0x8B, 8, 0], "the gzip stream ends too early; fetch the file again"),
    ] as [(String, [UInt8], String)] {
      try write(work, name, Data(bytes))
      let result = try work.attempt("-C", "node", "import", name)
      #expect(result.status == 65)
      #expect(
        result.errors
          == "stemma: \(name):1: \(cause); nothing of its commit was written; go on with --from-line 1\n")
    }
    for (name, text) in [("empty.ndjson", ""), ("blank.ndjson", "\n  \n")] {
      try work.write(name, text)
      let result = try work.stemma("-C", "node", "import", name)
      #expect(result.lines == ["imported 0 lines as 0 events in 0 commits"])
    }
  }

  @Test(
    "gzip that is cut short or corrupt is refused; earlier commits stay",
    arguments: ["cut short", "corrupt", "checksum"])
  func badGzip(kind: String) throws {
    let work = try node()
    var random = SplitMix64(seed: 7)
    // Incompressible texts place the corruption several chunks after the start.
    try work.write(
      "lines.ndjson",
      (1...20_000).map { Self.author("\($0)-\(random.next())-\(random.next())") + "\n" }.joined())
    let packed = try Tool.run("/usr/bin/env", ["gzip", "lines.ndjson"], in: work.path)
    try #require(packed.status == 0, "\(packed.errors)")
    var bytes = try work.bytes("lines.ndjson.gz")
    switch kind {
    case "cut short": bytes.removeLast(bytes.count / 4)
    case "corrupt": for offset in 0..<64 { bytes[bytes.count * 3 / 4 + offset] ^= 0x5A }
    default: bytes[bytes.count - 6] ^= 1
    }
    try write(work, "lines.ndjson.gz", bytes)
    let result = try work.attempt("-C", "node", "import", "--batch", "100", "lines.ndjson.gz")
    #expect(result.status == 65, "\(result.errors.suffix(400))")
    let error = try #require(result.errors.split(separator: "\n").last)
    #expect(error.hasPrefix("stemma: lines.ndjson.gz:"), "\(error)")
    // Corrupt bytes can inflate to a line of invalid JSON before zlib detects them.
    if kind != "corrupt" {
      #expect(error.contains(/gzip stream (ends too early|is corrupt)/), "\(error)")
    }
    let durable = try #require(
      result.errors.matches(of: /durable through line (\d+)\n/).last.flatMap { Int($0.1) })
    #expect(durable > 0)
    #expect(error.hasSuffix("--from-line \(durable + 1)"), "\(error)")
    #expect(try eventCount(work) == durable)
  }

  @Test("files and nodes that are not there, or there already")
  func wrongPlaces() throws {
    let work = try node()
    #expect(try work.attempt("-C", "node", "import", "missing.ndjson").status == 66)
    for command in ["status", "verify", "log", "export", "rebuild"] {
      let result = try work.attempt("-C", ".", command)
      #expect(result.status == 66, "\(command): \(result.errors)")
      #expect(result.errors.contains("there is no node in "), "\(result.errors)")
      #expect(result.errors.contains("`stemma init DIR`"), "\(result.errors)")
    }
    let before = try work.bytes("node/stemma.json")
    let again = try work.attempt("init", "node", "--schema", "schema.graphql")
    #expect(again.status == 73)
    #expect(again.errors.contains("holds a node already"), "\(again.errors)")
    #expect(try work.bytes("node/stemma.json") == before)
    try FileManager.default.removeItem(atPath: work.file("node/schema.graphql"))
    #expect(try work.attempt("init", "node", "--schema", "schema.graphql").status == 73)
    #expect(try work.bytes("node/stemma.json") == before)
  }

  // MARK: - Schemas

  static let refusedSchemas: [(name: String, old: String, new: String, cause: String)] = [
    ("another key", "sortKeyFields: [\"number\"]", "sortKeyFields: [\"title\"]", "Book"),
    ("a shorter key", "(sortKeyFields: [\"number\"])", "", "Book"),
    ("another type", "age: Int", "age: String", "Author.age"),
    ("another type of a key part", "number: Int!", "number: String!", "Book: the key changes"),
  ]

  @Test("a schema that breaks the log is refused, and nothing changes", arguments: 0..<refusedSchemas.count)
  func breakingSchema(index: Int) throws {
    let (name, old, new, cause) = Self.refusedSchemas[index]
    let work = try node()
    try work.write("good.ndjson", Self.author("a") + "\n" + Self.book("pages", "7") + "\n")
    try work.stemma("-C", "node", "import", "good.ndjson")
    let exported = try work.stemma("-C", "node", "export").output
    let before = try work.bytes("node/schema.graphql")
    try work.write("new.graphql", Self.schema.replacingOccurrences(of: old, with: new))
    let result = try work.attempt("-C", "node", "schema", "apply", "new.graphql")
    #expect(result.status == 65, "\(name): \(result.output)\(result.errors)")
    #expect(result.errors.contains("refused"), "\(name): \(result.errors)")
    #expect(result.errors.contains(cause), "\(name): \(result.errors)")
    let check = try work.attempt("-C", "node", "schema", "check", "new.graphql")
    #expect(check.status == 1, "\(name): \(check.output)\(check.errors)")
    #expect(try work.bytes("node/schema.graphql") == before)
    #expect(try eventCount(work) == 2)
    #expect(try work.stemma("-C", "node", "export").output == exported)
  }

  @Test(
    "an error in a schema has line, column and advice",
    arguments: [
      ("age: Int", "age: Integer", "4:8: ", "declare it, or use one of"),
      ("[\"number\"]", "[\"nummer\"]", "7:45: ", "declare it, or name one of"),
      ("age: Int\n}", "age: Int", "5:6: ", "write `type: Type`"),
    ])
  func errorInSchema(old: String, new: String, place: String, advice: String) throws {
    let work = try Workplace()
    try work.write("bad.graphql", Self.schema.replacingOccurrences(of: old, with: new))
    let result = try work.attempt("init", "node", "--schema", "bad.graphql")
    #expect(result.status == 65)
    #expect(result.errors.contains(#/stemma: .*\d+:\d+: /#), "\(result.errors)")
    #expect(result.errors.contains(place), "\(result.errors)")
    #expect(result.errors.contains(advice), "\(result.errors)")
    #expect(!FileManager.default.fileExists(atPath: work.file("node")), "nothing is left of a refused node")
  }

  // MARK: - Corrupt nodes

  enum Corruption: String, CaseIterable, Sendable { case text, empty, newer, removed }

  /// CRC-32C, bit by bit.
  private func crc(_ bytes: Data) -> UInt32 {
    var crc: UInt32 = .max
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
    }
    return ~crc
  }

  private func inflict(_ corruption: Corruption, on name: String, in work: Workplace) throws {
    switch corruption {
    case .text: try work.write(name, "this is no segment\n")
    case .empty: try work.write(name, "")
    case .removed: try FileManager.default.removeItem(atPath: work.file(name))
    case .newer:
      // The preamble: the version at 8, the checksum of the first twelve bytes at 12.
      var bytes = try work.bytes(name)
      bytes[8] += 1
      withUnsafeBytes(of: crc(bytes.prefix(12)).bigEndian) { bytes.replaceSubrange(12..<16, with: $0) }
      try write(work, name, bytes)
    }
  }

  @Test(
    "a file of the log that is no such file is named and refused, without a trap",
    arguments: Corruption.allCases, ["00000002.segment", "00000003.journal"])
  func corruptLog(corruption: Corruption, file: String) throws {
    let work = try node()
    try work.write("lines.ndjson", (0..<2300).map { Self.author("a\($0)") + "\n" }.joined())
    try work.stemma("-C", "node", "import", "--batch", "100", "--segment-size", "20000", "lines.ndjson")
    let name = "node/log/\(file)"
    try #require(
      FileManager.default.fileExists(atPath: work.file(name)),
      "the log has other files than this test expects")
    try inflict(corruption, on: name, in: work)
    let log = try FileManager.default.contentsOfDirectory(atPath: work.file("node/log")).sorted()
    let corrupt = log.contains(file) ? try work.bytes(name) : nil

    let verified = try work.attempt("-C", "node", "verify")
    let read = try work.attempt("-C", "node", "log", "--oneline")
    let rebuilt = try work.attempt("-C", "node", "rebuild")
    let isSegment = file.hasSuffix("segment")
    if corruption == .newer {
      // The manifest describes a segment: only `verify` reads its header.
      for result in isSegment ? [verified] : [verified, read, rebuilt] {
        #expect(result.status == 65, "\(result.output.suffix(200))\(result.errors)")
        #expect(result.errors.contains("\(file) has format 3"), "\(result.errors)")
      }
    } else {
      #expect(verified.status == 1, "\(verified.errors)")
      let end = corruption == .text && isSegment ? 19 : 0
      let place = corruption == .text && !isSegment ? "at byte 0 (header): " : "at byte \(end): "
      #expect(verified.output.contains("log/\(file) \(place)"), "\(verified.output)")
      for result in [read, rebuilt] {
        #expect(result.status == 74, "\(result.output.suffix(200))\(result.errors)")
        #expect(result.errors.contains("\(file) is corrupt at byte \(end): "), "\(result.errors)")
        #expect(result.errors.contains("stemma verify"), "\(result.errors)")
      }
    }
    // Unreadable files are never overwritten, and no command ends by a signal.
    for arguments in [
      ["create", "Author", "id=x", "name=x"], ["import", "lines.ndjson"], ["export"], ["status"],
    ] {
      let result = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
      #expect([0, 65, 74].contains(result.status), "\(arguments): \(result.status) \(result.errors)")
      if corruption == .newer, !isSegment { #expect(result.status == 65, "\(arguments): \(result.errors)") }
      if file.hasSuffix("journal"), arguments[0] == "create" {
        #expect(result.status != 0, "\(result.errors)")
      }
    }
    // The file is kept for examination; writing continues in another one.
    let after = try FileManager.default.contentsOfDirectory(atPath: work.file("node/log")).sorted()
    #expect(after.filter { log.contains($0) } == log)
    if log.contains(file) { #expect(try work.bytes(name) == corrupt) }
  }

  @Test(
    "a node's metadata that is corrupt or of a newer format is named and refused",
    arguments: [
      ("{ corrupt", "node/stemma.json: "), ("", "node/stemma.json: "), ("[]", "node/stemma.json: "),
      ("{}", "node/stemma.json: "), (#"{"format":-1}"#, "node/stemma.json: "),
      (#"{"format":2,"unheardOf":true}"#, "node/stemma.json has format 2"),
      (#"{"format":1,"log":"zz"}"#, "node/stemma.json: "),
    ])
  func corruptMetadata(text: String, cause: String) throws {
    let work = try node()
    try work.write("lines.ndjson", Self.author("a") + "\n")
    try work.write("node/stemma.json", text)
    try FileManager.default.removeItem(atPath: work.file("node/stemma.json.copy"))
    for arguments in [["status"], ["verify"], ["log"], ["import", "lines.ndjson"], ["rebuild"]] {
      let result = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
      #expect(result.status == 65, "\(arguments): \(result.errors)")
      #expect(result.errors.contains(cause), "\(arguments): \(result.errors)")
    }
    #expect(try work.bytes("node/stemma.json") == Data(text.utf8))
  }

  @Test("newer metadata is refused beside an older copy of it, and nothing of the node changes")
  func newerMetadata() throws {
    let work = try node()
    try work.write("lines.ndjson", Self.author("a") + "\n")
    try work.write("node/stemma.json", #"{"format":2,"unheardOf":true}"#)
    func files() throws -> [String: Data] {
      let names = try FileManager.default.subpathsOfDirectory(atPath: work.file("node"))
      return Dictionary(
        uniqueKeysWithValues: try names.filter { !$0.hasSuffix("log") }.map {
          ($0, try work.bytes("node/" + $0))
        })
    }
    let before = try files()
    for arguments in [["status"], ["verify"], ["log"], ["import", "lines.ndjson"], ["rebuild"]] {
      let result = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
      #expect(result.status == 65, "\(arguments): \(result.errors)")
      #expect(result.errors.contains("node/stemma.json has format 2"), "\(arguments): \(result.errors)")
      #expect(try files() == before, "\(arguments)")
    }
  }

  @Test("a node without its schema is corrupt, not absent")
  func missingSchema() throws {
    let work = try node()
    try FileManager.default.removeItem(atPath: work.file("node/schema.graphql"))
    let result = try work.attempt("-C", "node", "status")
    #expect(result.status != 0)
    #expect(result.errors.contains("schema.graphql"), "\(result.errors)")
  }
}
