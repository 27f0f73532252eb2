import Foundation
import Testing

/// Rows of other programs: CSV, TSV, SQLite files.
@Suite("rows come in from other programs")
struct ImportTests {
  static let schema = """
    enum Size { SMALL LARGE }
    type Author @model { id: ID! name: String! bio: String }
    type Book @model {
      shelf: String! @primaryKey(sortKeyFields: ["number"])
      number: Int!
      title: String!
      pages: Int
      price: Float
      isRare: Boolean
      size: Size
      tags: [String!]
      facts: AWSJSON
      published: AWSDate
      state: String! @default(value: "new")
    }

    """

  private func node(_ schema: String = Self.schema) throws -> Workplace {
    let work = try Workplace()
    try work.write("schema.graphql", schema)
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "office")
    return work
  }

  private func export(_ work: Workplace, _ node: String = "node") throws -> [String] {
    try work.stemma("-C", node, "export").lines
  }

  // MARK: - Streams

  @Test("while the writer of a stream is silent, what it wrote is durable, and others can write")
  func silentStream() throws {
    let work = try node()
    let lines = Pipe()
    let errors = Pipe()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["-C", "node", "import", "--batch", "2", "-"]
    process.currentDirectoryURL = URL(fileURLWithPath: work.path)
    process.standardInput = lines
    process.standardError = errors
    process.standardOutput = FileHandle.nullDevice
    try process.begin()
    func write(_ numbers: ClosedRange<Int>) throws {
      let text = numbers.map {
        #"{"op":"create","model":"Author","key":"\#($0)","fields":{"name":"a"}}"# + "\n"
      }
      try lines.fileHandleForWriting.write(contentsOf: Data(text.joined().utf8))
    }
    func wait(for report: String) throws {
      var text = ""
      while !text.contains(report) {
        let batch = errors.fileHandleForReading.availableData
        try #require(!batch.isEmpty, "\(text)")
        text += String(decoding: batch, as: UTF8.self)
      }
    }
    try write(1...5)
    try wait(for: "durable through line 4\n")
    try work.stemma("-C", "node", "create", "Author", "id=other", "name=b")
    #expect(try export(work).count == 5)
    try write(6...6)
    try wait(for: "durable through line 6\n")
    try lines.fileHandleForWriting.close()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(try export(work).count == 7)
    try work.stemma("-C", "node", "verify")
  }

  // MARK: - CSV

  @Test("quotes, line ends inside of cells, CRLF, a byte order mark; values are read by the field's type")
  func csv() throws {
    let work = try node()
    try work.write(
      "books.csv",
      "\u{FEFF}shelf,number,title,pages,price,isRare,size,tags,facts,published\r\n"
        + "a,1,\"He said \"\"no\"\"\",7,1.50,true,SMALL,\"[\"\"x\"\",\"\"y\"\"]\",\"{\"\"b\"\":1,\"\"a\"\":2}\",2024-02-29\r\n"
        + "\r\n"
        + "a,2,\"two\r\nlines\nthree, really\",,,,,,,\r\n"
        + "b,10,plain \"inner\" quotes,,,false,,,,")
    let result = try work.stemma("-C", "node", "import", "books.csv")
    #expect(result.lines == ["imported 3 lines as 3 events in 1 commit"])
    #expect(result.errors == "durable through line 7\n")
    #expect(
      try export(work) == [
        #"{"model":"Book","key":{"shelf":"a","number":1},"fields":{"title":"He said \"no\"","pages":7,"price":1.5,"isRare":true,"size":"SMALL","tags":["x","y"],"facts":"{\"a\":2,\"b\":1}","published":"2024-02-29","state":"new"}}"#,
        #"{"model":"Book","key":{"shelf":"a","number":2},"fields":{"title":"two\r\nlines\nthree, really","pages":null,"price":null,"isRare":null,"size":null,"tags":null,"facts":null,"published":null,"state":"new"}}"#,
        #"{"model":"Book","key":{"shelf":"b","number":10},"fields":{"title":"plain \"inner\" quotes","pages":null,"price":null,"isRare":false,"size":null,"tags":null,"facts":null,"published":null,"state":"new"}}"#,
      ])
    #expect(try work.stemma("-C", "node", "import", "books.csv").lines[0].contains("as 0 events"))
  }

  @Test("an empty cell is null, \"\" the empty text; what is not in the header stays as it is")
  func empty() throws {
    let work = try node()
    try work.stemma("-C", "node", "create", "Author", "id=a", "name=Ann", "bio=long")
    try work.write("one.csv", "id,name\na,\nb,\"\"\n")
    try work.stemma("-C", "node", "import", "one.csv", "--model", "Author")
    try work.write("two.csv", "id,bio\nb,\"\"\n")
    try work.stemma("-C", "node", "import", "two.csv", "--model", "Author")
    #expect(
      try export(work) == [
        #"{"model":"Author","key":{"id":"a"},"fields":{"name":"","bio":"long"}}"#,
        #"{"model":"Author","key":{"id":"b"},"fields":{"name":"","bio":""}}"#,
      ])
    try work.write("three.csv", "id,bio\na,\n")
    try work.stemma("-C", "node", "import", "three.csv", "--model", "Author")
    #expect(try export(work)[0] == #"{"model":"Author","key":{"id":"a"},"fields":{"name":"","bio":null}}"#)
  }

  @Test("without its id column, or without an id in it, a row is a new record")
  func minted() throws {
    let work = try node()
    try work.write("authors.csv", "name\nAnn\nBen\n")
    try work.stemma("-C", "node", "import", "authors.csv")
    try work.write("more.csv", "id,name\n,Cid\nd,Dee\n")
    try work.stemma("-C", "node", "import", "more.csv", "--model", "Author")
    let names = try work.stemma("-C", "node", "query", "--tsv", "SELECT name FROM authors ORDER BY name")
      .lines
    #expect(names == ["Ann", "Ben", "Cid", "Dee"])
    #expect(try work.stemma("-C", "node", "get", "Author", "d", "--json").output.contains("Dee"))
  }

  @Test("tabs between, by the file's name or as said; gzip; standard input")
  func otherForms() throws {
    let work = try node()
    try work.write("books.tsv", "shelf\tnumber\ttitle\na\t1\tcomma, no quotes\n")
    try work.stemma("-C", "node", "import", "books.tsv")
    _ = try Tool.run("/usr/bin/env", ["gzip", "-k", "books.tsv"], in: work.path)
    #expect(try work.stemma("-C", "node", "import", "books.tsv.gz").lines[0].contains("1 line as 0 events"))
    try work.stemma(
      "-C", "node", "import", "-", "--format", "csv", "--model", "Book", input: "shelf,number,title\na,2,x\n")
    #expect(
      try work.stemma("-C", "node", "query", "--tsv", "SELECT title FROM books").lines == [
        "comma, no quotes", "x",
      ])
  }

  static let bad = [
    ("a,1,t\nb,x,t\n", 3, "Book.number: \"x\" is wrong: a whole number", 65),
    ("a,1,t\nb,2\n", 3, "the row has 2 cells, the header has 3", 65),
    ("a,1,t\nb,2,t,u\n", 3, "the row has 4 cells, the header has 3", 65),
    ("a,1,\"two\nlines\"\nb,,t\n", 4, "Book.number: null is wrong", 65),
    ("a,1,t\nb,2,\"t\"u\n", 3, "text follows a closing quote", 65),
    ("a,1,t\nb,2,\"t\nu\n", 3, "a quote that begins in this row is never closed", 65),
  ]

  @Test("a bad row is named by the line that it begins with", arguments: bad)
  func badRow(text: String, line: Int, cause: String, status: Int) throws {
    let work = try node()
    try work.write("books.csv", "shelf,number,title\n" + text)
    let result = try work.attempt("-C", "node", "import", "books.csv", "--batch", "1")
    #expect(result.status == status)
    let error = try #require(result.errors.split(separator: "\n").last)
    #expect(error.hasPrefix("stemma: books.csv:\(line): "), "\(error)")
    #expect(error.contains(cause), "\(error)")
    #expect(error.hasSuffix("--from-line \(line)"), "\(error)")
    #expect(try export(work).count == 1)
    // After the repair of the line, the import continues there.
    try work.write("books.csv", "shelf,number,title\na,1,t\nb,2,t\nc,3,t\n")
    try work.stemma("-C", "node", "import", "books.csv", "--from-line", "3")
    #expect(try export(work).count == 3)
  }

  static let badHeaders = [
    ("shelf,number,titel\n", "Book has no field `titel`; did you mean `title`?"),
    ("shelf,title\n", "the key of Book has no column: number is missing"),
    ("shelf,number,title,title\n", "the column `title` occurs twice"),
  ]

  @Test("a bad header is named", arguments: badHeaders)
  func badHeader(header: String, cause: String) throws {
    let work = try node()
    try work.write("books.csv", header + "a,1,t,u\n")
    let result = try work.attempt("-C", "node", "import", "books.csv")
    #expect(result.status == 65)
    #expect(result.errors.hasPrefix("stemma: books.csv:1: \(cause)"), "\(result.errors)")
    try work.write("rows.csv", "a\n1\n")
    let unknown = try work.attempt("-C", "node", "import", "rows.csv")
    #expect(unknown.status == 65 && unknown.errors.contains("say --model NAME"), "\(unknown.errors)")
  }

  @Test("--reject puts bad rows aside, with the header; --dry-run writes nothing; --strict refuses dangling")
  func options() throws {
    let work = try node(
      "type Team @model { id: ID! } type Member @model { id: ID! age: Int teamId: ID team: Team @belongsTo(fields: [\"teamId\"]) }"
    )
    try work.stemma("-C", "node", "create", "Team", "id=red")
    try work.write("members.csv", "id,age,teamId\na,1,red\nb,x,red\nc,3,blue\n\"d\n\",y,red\n")
    let dry = try work.attempt("-C", "node", "import", "members.csv", "--dry-run", "--reject", "dry.csv")
    #expect(dry.output == "would import 2 lines as 2 events in 1 commit, rejected 2\n")
    #expect(try export(work).count == 1)
    let result = try work.attempt("-C", "node", "import", "members.csv", "--strict", "--reject", "bad.csv")
    #expect(result.status == 1)
    #expect(result.output == "imported 1 line as 1 event in 1 commit, rejected 3\n")
    for line in ["members.csv:3: ", "members.csv:4: `team` of Member c leads to blue", "members.csv:5: "] {
      #expect(result.errors.contains(line), "\(result.errors)")
    }
    let bad = String(decoding: try work.bytes("bad.csv"), as: UTF8.self)
    #expect(bad == "id,age,teamId\nb,x,red\nc,3,blue\n\"d\n\",y,red\n")
    try work.write("recovered.csv", bad.replacing("x", with: "2").replacing("y", with: "4"))
    try work.stemma("-C", "node", "import", "recovered.csv", "--model", "Member")
    #expect(try work.stemma("-C", "node", "list", "Member", "--ndjson").lines.count == 4)
  }

  /// Parsing refuses some lines, and their commit refuses others.
  @Test("refused lines and their messages have the order of the source", arguments: [1, 3, 4, 1000])
  func rejectedOrder(batch: Int) throws {
    let work = try node("type Team @model { id: ID! size: Int }")
    // Of three lines, one is imported, one is not a mutation, and one changes a missing record.
    let lines = (1...30).map { number in
      switch number * 7 % 3 {
      case 0: #"{"model":"Team","key":"\#(number)"}"#
      case 1: #"{"model":"Team","key":"\#(number)","fields":1}"#
      default: #"{"op":"update","model":"Team","key":"none\#(number)","fields":{"size":1}}"#
      }
    }
    // A complete batch of malformed lines does not end the import.
    let all = lines + Array(repeating: "{}", count: 9) + [#"{"model":"Team","key":"last"}"#, "{}"]
    try work.write("teams.ndjson", all.joined(separator: "\n") + "\n")
    let result = try work.attempt(
      "-C", "node", "import", "teams.ndjson", "--batch", "\(batch)", "--reject", "refused")
    #expect(result.status == 1 && result.output.contains("imported 11 lines"), "\(result)")
    let refused = String(decoding: try work.bytes("refused"), as: UTF8.self)
    #expect(
      refused.split(separator: "\n").map(String.init)
        == all.filter { !$0.contains(/"key":"(\d+|last)"}/) })
    let named = result.errors.matches(of: /teams.ndjson:(\d+):/).compactMap { Int($0.1) }
    #expect(named.count == 30 && named == named.sorted(), "\(named)")
    #expect(try export(work).count == 11)
  }

  @Test("--reject takes no file that is read, whatever it is called there, and leaves it as it is")
  func rejectingIntoTheInput() throws {
    let work = try node("type Team @model { id: ID! }")
    let text = #"{"model":"Team","key":{"id":"a"}}"# + "\n{}\n"
    for name in ["teams.ndjson", "more.ndjson"] { try work.write(name, text) }
    let files = FileManager.default
    try files.linkItem(atPath: work.file("teams.ndjson"), toPath: work.file("hard"))
    try files.createSymbolicLink(atPath: work.file("soft"), withDestinationPath: "teams.ndjson")
    for name in ["teams.ndjson", "./teams.ndjson", work.file("teams.ndjson"), "hard", "soft"] {
      for words in [["teams.ndjson"], ["more.ndjson", "teams.ndjson"], ["--dry-run", "teams.ndjson"]] {
        let refused = try Tool.run(
          Tool.path, ["-C", "node", "import", "--reject", name] + words, in: work.path)
        #expect(refused.status == 64, "\(name), \(words): \(refused)")
        #expect(refused.errors.contains("name another file"), "\(refused.errors)")
        #expect(try work.bytes("teams.ndjson") == Data(text.utf8), "\(name), \(words)")
      }
    }
    let input = try ConsolePage.shell(
      "stemma -C node import --reject teams.ndjson - < teams.ndjson", in: work.path)
    #expect(input.status == 64 && input.errors.contains("standard input"), "\(input)")
    #expect(try work.bytes("teams.ndjson") == Data(text.utf8))
    #expect(try export(work).isEmpty)
    // Any other file is overwritten.
    let result = try work.attempt("-C", "node", "import", "hard", "--reject", "more.ndjson")
    #expect(result.status == 1 && result.output.contains("rejected 1"), "\(result)")
    #expect(String(decoding: try work.bytes("more.ndjson"), as: UTF8.self) == "{}\n")
  }

  /// The batch size does not reserve memory.
  @Test("a batch may be larger than any stream")
  func hugeBatch() throws {
    let work = try node("type Team @model { id: ID! }")
    try work.write("teams.ndjson", #"{"model":"Team","key":{"id":"a"}}"# + "\n")
    let result = try ConsolePage.shell(
      "cat teams.ndjson | stemma -C node import --batch 1000000000 -", in: work.path)
    #expect(result.lines == ["imported 1 line as 1 event in 1 commit"], "\(result)")
  }

  @Test("a wrong line of standard input is reported under that name, and of a pipe under the pipe's")
  func namesOfStreams() throws {
    let work = try node("type Team @model { id: ID! }")
    let line = #"{"op":"update","model":"Team","key":{"id":"nobody"},"fields":{}}"# + "\n"
    let refused = try work.attempt("-C", "node", "import", "-", input: line)
    #expect(
      refused.status == 66 && refused.errors.hasPrefix("stemma: standard input:1: "), "\(refused.errors)")
    let rejected = try work.attempt("-C", "node", "import", "--reject", "refused", "-", input: line)
    #expect(rejected.errors.hasPrefix("standard input:1: "), "\(rejected.errors)")
    // An error, and an ignored argument with a warning.
    for schema in ["type A @model { id: ID! x: Strin }", "type A @model(queries: null) { id: ID! }"] {
      for words in [["init", "other", "--schema", "-"], ["-C", "node", "schema", "apply", "-"]] {
        let told = try Tool.run(Tool.path, words, in: work.path, input: Data(schema.utf8))
        #expect(told.errors.contains("standard input:1:"), "\(words): \(told.errors)")
      }
    }
    let pipe = try work.attempt("-C", "node", "import", "/dev/stdin", input: line)
    #expect(pipe.errors.hasPrefix("stemma: /dev/stdin:1: "), "\(pipe.errors)")
  }

  /// A shell names its pipes `/dev/fd/63`. An import from one must not be mistaken for a
  /// continuation of an earlier one.
  @Test("pipes of a shell: refused lines go into one, and none has a name to be remembered by")
  func shellPipes() throws {
    let work = try node("type Team @model { id: ID! }")
    try work.write("teams.ndjson", #"{"model":"Team","key":{"id":"a"}}"# + "\n" + "{}\n")
    let rejected = try ConsolePage.shell(
      "{ stemma -C node import <(cat teams.ndjson) --reject /dev/fd/3 3>&1 > /dev/null; } | cat > refused",
      in: work.path)
    #expect(rejected.errors.contains("/dev/fd/"), "\(rejected.errors)")
    #expect(String(decoding: try work.bytes("refused"), as: UTF8.self) == "{}\n")
    let event = try #require(try work.stemma("-C", "node", "log", "--json").array().first)
    #expect(event.text("source") == "-:1-1")
    try work.write("again.ndjson", #"{"op":"create","model":"Team","key":{"id":"a"}}"# + "\n")
    let again = try ConsolePage.shell("stemma -C node import <(cat again.ndjson)", in: work.path)
    #expect(again.status == 65 && again.errors.contains("exists already"), "\(again.errors)")
    #expect(!again.errors.contains("an earlier import"), "\(again.errors)")
    let missing = try work.attempt("-C", "node", "import", "teams.ndjson", "--reject", "nowhere/refused")
    #expect(missing.status == 73 && missing.errors.contains("No such file or directory"), "\(missing.errors)")
  }

  // MARK: - SQLite

  @Test("a schema is inferred from a SQLite file, and its rows are imported")
  func sqlite() throws {
    let work = try Workplace()
    try Spoil.execute(
      """
      CREATE TABLE artists (artist_id INTEGER PRIMARY KEY, name TEXT NOT NULL, born DATE, "is here" BOOLEAN, photo BLOB);
      CREATE TABLE album_tracks (album TEXT, pos INTEGER, artist_id INTEGER REFERENCES artists, price NUMERIC(6,2),
        at DATETIME, mixed INTEGER, PRIMARY KEY (pos, album));
      CREATE TABLE remarks (text TEXT, album TEXT, pos INTEGER,
        FOREIGN KEY (album, pos) REFERENCES album_tracks (album, pos));
      CREATE VIEW names AS SELECT name FROM artists;
      INSERT INTO artists VALUES (1, 'Ann', '1990-01-31', 1, x'00'), (2, 'Ben', NULL, 0, NULL);
      INSERT INTO album_tracks VALUES ('x', 1, 1, 3, '2024-01-01 10:00:00', 7), ('x', 2, NULL, 2.5, NULL, 'seven');
      INSERT INTO remarks VALUES ('good', 'x', 1), (NULL, NULL, NULL);
      """, in: work.file("music.sqlite"))
    let inferred = try work.stemma("schema", "infer", "music.sqlite")
    #expect(
      inferred.output == """
        type AlbumTrack @model @table(name: "album_tracks") {
          album: String!
          pos: Int! @primaryKey(sortKeyFields: ["album"])
          artist_id: Int
          price: Float
          at: String
          mixed: String
          artist: Artist @belongsTo(fields: ["artist_id"])
          remarks: [Remark] @hasMany(references: ["pos", "album"])
        }

        type Artist @model {
          artist_id: Int! @primaryKey
          name: String!
          born: AWSDate
          is_here: Boolean
          albumTracks: [AlbumTrack] @hasMany(references: ["artist_id"])
        }

        type Remark @model {
          rowid: Int! @primaryKey
          text: String
          album: String
          pos: Int
          albumTrack: AlbumTrack @belongsTo(fields: ["pos", "album"])
        }

        """)
    #expect(
      inferred.errors == """
        warning: names is a view: left out
        warning: album_tracks.price is declared NUMERIC(6,2): Float keeps about 15 digits
        warning: album_tracks.mixed holds text and numbers: its numbers become text
        warning: artists.is here becomes the field `is_here`
        warning: artists.photo holds bytes in 1 of 2 rows, and there is no type for bytes: left out
        warning: remarks has no primary key that a model can have: SQLite's rowid is the key, in the field `rowid`. \
        VACUUM and a new dump of the source can change it

        """)
    try work.write("schema.graphql", inferred.output)
    try work.stemma("init", "node", "--schema", "schema.graphql")
    // A binary column is skipped with a warning.
    let imported = try work.stemma("-C", "node", "import", "music.sqlite")
    #expect(imported.lines == ["imported 6 lines as 6 events in 1 commit"])
    #expect(imported.errors.contains("column photo of table artists has no field"), "\(imported.errors)")
    #expect(
      try work.stemma("-C", "node", "import", "music.sqlite").lines == [
        "imported 6 lines as 0 events in 0 commits"
      ])
    #expect(
      try export(work).prefix(4) == [
        #"{"model":"AlbumTrack","key":{"pos":1,"album":"x"},"fields":{"artist_id":1,"price":3.0,"at":"2024-01-01 10:00:00","mixed":"7"}}"#,
        #"{"model":"AlbumTrack","key":{"pos":2,"album":"x"},"fields":{"artist_id":null,"price":2.5,"at":null,"mixed":"seven"}}"#,
        #"{"model":"Artist","key":{"artist_id":1},"fields":{"name":"Ann","born":"1990-01-31","is_here":true}}"#,
        #"{"model":"Artist","key":{"artist_id":2},"fields":{"name":"Ben","born":null,"is_here":false}}"#,
      ])
  }

  @Test(
    "tables without a model are named; a file that is no database is refused; bad rows go aside as NDJSON")
  func badSQLite() throws {
    let work = try node()
    try Spoil.execute(
      """
      CREATE TABLE Author (id TEXT, name TEXT); CREATE TABLE other (x);
      INSERT INTO Author VALUES ('a', 'Ann'), ('b', NULL), ('c', x'FF');
      """, in: work.file("a.sqlite"))
    let result = try work.attempt("-C", "node", "import", "a.sqlite", "--reject", "bad.ndjson")
    #expect(result.status == 1)
    #expect(result.errors.contains("table other belongs to no model"), "\(result.errors)")
    #expect(result.errors.contains("a.sqlite:2: ") && result.errors.contains("a.sqlite:3: "))
    #expect(
      String(decoding: try work.bytes("bad.ndjson"), as: UTF8.self)
        == #"{"model":"Author","key":{"id":"b"},"fields":{"name":null}}"# + "\n"
        + #"{"model":"Author","key":{"id":"c"},"fields":{"name":null}}"# + "\n")
    #expect(try export(work).count == 1)
    let only = try work.attempt("-C", "node", "import", "a.sqlite", "--model", "Book")
    #expect(only.status == 65 && only.errors.contains("stemma schema infer"), "\(only.errors)")
    try work.write("text.sqlite", "this is no database, however long it goes on and on and on")
    for words in [["-C", "node", "import", "text.sqlite"], ["schema", "infer", "text.sqlite"]] {
      let refused = try Tool.run(Tool.path, words, in: work.path)
      #expect(refused.status == 65 && refused.errors.contains("not a database"), "\(refused.errors)")
    }
    #expect(try work.attempt("-C", "node", "import", "missing.sqlite").status == 66)
    #expect(try work.attempt("schema", "infer", "missing.sqlite").status == 66)
  }

  // MARK: - Real data

  @Test(
    "exports as CSV, and the tables themselves, are imported into a node with the same export",
    .enabled(if: RealData.isThere))
  func realData() throws {
    let work = try Workplace()
    let schema = RealData.path("chinook/schema.graphql")
    try work.stemma("init", "node", "--schema", schema)
    try work.stemma("-C", "node", "import", RealData.path("chinook/mutations.ndjson.gz"))
    let exported = try export(work)
    #expect(exported.count > 15_000)
    try work.stemma("init", "csv", "--schema", schema)
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: schema)), as: UTF8.self)
    for model in text.matches(of: /type (\w+) @model/).map({ String($0.1) }) {
      try work.write("rows.csv", try work.stemma("-C", "node", "export", model, "--format", "csv").output)
      try work.stemma("-C", "csv", "import", "rows.csv", "--model", model)
    }
    #expect(try export(work, "csv") == exported)
    try work.stemma("init", "sqlite", "--schema", schema)
    let tables = try work.stemma("-C", "sqlite", "import", "node/tables.sqlite")
    #expect(!tables.errors.contains("warning"), "\(tables.errors)")
    #expect(try export(work, "sqlite") == exported)
  }
}
