import Foundation
import StemmaSimulation
import Testing

/// A program in another language, written from docs/FORMAT.md alone, reads the same events as the
/// tool.
@Suite("The log is read from docs/FORMAT.md alone", .enabled(if: RealData.hasPython))
struct ReadLogTests {
  private static let program = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("read_log.py").path

  private static let schema = """
    enum Kind { A B }
    type Size { x: Int, y: String }
    type Shelf @model {
      room: ID! @primaryKey(sortKeyFields: ["no"]), no: Int!
      books: [Book] @hasMany(references: ["shelfRoom", "shelfNo"])
    }
    type Book @model @mapsTo(name: "Buch") {
      room: ID! @primaryKey(sortKeyFields: ["no", "weight"]), no: Int!, weight: Float!
      title: String @mapsTo(name: "titel"), pages: Int, price: Float, ratio: Float, isNew: Boolean
      tags: [String], size: Size, data: AWSJSON, kind: Kind
      day: AWSDate, local: AWSDateTime, second: AWSDateTime, millisecond: AWSDateTime
      shelfRoom: ID, shelfNo: Int, shelf: Shelf @belongsTo(fields: ["shelfRoom", "shelfNo"])
    }
    type Author @model { id: ID! @primaryKey, hash: String, other: ID, notes: [Note] @hasMany(references: ["author"]) }
    type Note @model { id: ID! @primaryKey, author: ID! }
    type Flag @model { on: Boolean! @primaryKey(sortKeyFields: ["x"]), x: Int!, v: Int }
    type Number @model { a: Int! @primaryKey(sortKeyFields: ["b"]), b: ID!, v: Float }
    """

  /// Mutations with values of all types, in all of their encodings.
  private static var mutations: String {
    var random = SplitMix64(seed: 7)
    func digits(_ count: Int) -> String {
      (0..<count).map { _ in String(random.next() & 15, radix: 16) }.joined()
    }
    func uuid() -> String { [8, 4, 4, 4, 12].map(digits).joined(separator: "-") }
    let integers = [
      "0", "-1", "5", "9007199254740991", "\"9223372036854775807\"", "\"-9223372036854775808\"",
    ]
    let doubles = ["0.5", "-1e-7", "1e300", "3", "-0.0", "9007199254740992"]
    let parts = ["0", "255", "-256", "-1", "\"-9223372036854775808\"", "\"9223372036854775807\"", "65536"]
    var lines: [String] = []
    for i in 0..<200 {
      let two = String(i % 60 + 100).dropFirst()
      let room = [#"r%1"#, #"a,b="#, #"é\u0000x"#, "z"][i % 4]
      var fields = [
        #""pages":\#(integers[i % 6]),"price":\#(Double(i) / 4),"ratio":\#(doubles[i % 6])"#,
        #""tags":["x",null],"size":{"x":\#(i),"y":"é"},"data":"{\"b\":1.0,\"a\":[\#(i)]}","kind":"A""#,
        #""day":"2024-02-\#(i % 19 + 10)","local":"2015-06-30T13:16:\#(two)-02:30""#,
        #""second":"1960-06-30T13:16:\#(two)Z","millisecond":"2015-06-30T13:16:\#(two).0\#(two)Z""#,
      ]
      if i % 7 == 0 {
        fields.append(#""title":null"#)
      } else if i % 5 > 0 {
        fields.append(#""title":"\"q\\\n\u0001 😀 \#(i)","isNew":\#(i % 2 == 0)"#)
      }
      func line(_ model: String, _ key: String, _ fields: String) -> String {
        let time = 1_700_000_000_000 + i * 750
        return #"{"model":"\#(model)","key":{\#(key)},"fields":{\#(fields)},"ts":\#(time)}"#
      }
      let weight = ["-1.5", "2.5", "0"][i % 3]
      lines += [
        line(
          "Book", #""room":"\#(room)","no":\#(i % 7 - 3),"weight":\#(weight)"#,
          fields.joined(separator: ",")),
        line("Author", #""id":"\#(uuid())""#, #""hash":"\#(digits(40))","other":"\#(uuid())""#),
        line("Flag", #""on":\#(i % 2 == 0),"x":\#(parts[i % 7])"#, #""v":\#(1000 * i)"#),
        line("Number", #""a":\#(i % 3 * 70000 - 3),"b":"\#(digits(32))""#, #""v":\#(i)"#),
      ]
    }
    return lines.joined(separator: "\n")
  }

  @Test("a program of 120 lines prints what log --ndjson prints")
  func readsTheSame() throws {
    let work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    try work.write("rows.ndjson", Self.mutations)
    try work.stemma("init", "a", "--schema", "schema.graphql", "--name", "ann")
    try work.stemma("-C", "a", "import", "--segment-size", "16384", "--batch", "50", "rows.ndjson")
    try work.stemma("-C", "a", "create", "Author", "id=b")
    try work.stemma("-C", "a", "create", "Note", "id=n", "author=b")
    try work.stemma("-C", "a", "create", "Shelf", "room=s", "no=1")
    try work.stemma("clone", "a", "b", "--name", "bob")
    try work.stemma("-C", "a", "update", "Author", "b", "hash=left")
    try work.stemma("-C", "b", "update", "Author", "b", "hash=right")
    try work.stemma("-C", "a", "sync", "b")
    try work.stemma("-C", "a", "resolve", "Author", "b", "--take", "1", "--author", "éva", "-m", "that one")
    let book = #"{"room":"z","no":0,"weight":-1.5}"#
    try work.stemma("-C", "a", "link", "Book", book, "shelf", #"{"room":"s","no":1}"#)
    try work.stemma("-C", "a", "unlink", "Book", book, "shelf", #"{"room":"s","no":1}"#)
    try work.stemma("-C", "a", "delete", "Author", "b")
    try work.stemma("-C", "b", "pull", "a")
    for node in ["a", "b"] {
      let wanted = try work.stemma("-C", node, "log", "--reverse", "--ndjson").output
      let read = try Tool.run(try #require(RealData.python), [Self.program, node], in: work.path)
      #expect(read.status == 0, "\(read.errors)")
      let (lines, found) = (wanted.split(separator: "\n"), read.output.split(separator: "\n"))
      for (line, found) in zip(lines, found) where line != found {
        #expect(found == line)
        break
      }
      #expect(read.output == wanted, "\(found.count) lines instead of \(lines.count)")
      for word in ["delete", "link", "unlink", "resolve"] { #expect(wanted.contains(#""op":"\#(word)""#)) }
      #expect(wanted.contains(#""cause":"#) && wanted.contains(#""relationship":"#) && lines.count > 800)
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: work.file("a/log"))
    #expect(files.contains { $0.hasSuffix(".segment") } && files.contains { $0.hasSuffix(".journal") })
    let source = try String(contentsOfFile: Self.program, encoding: .utf8)
    #expect(source.split(separator: "\n", omittingEmptySubsequences: false).count <= 121)
  }
}
