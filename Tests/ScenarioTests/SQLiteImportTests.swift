import Foundation
import GRDB
import Testing

/// SQLite files of other programs: an import reads everything that the inferred schema declares.
@Suite struct SQLiteImportTests {
  /// A node with the schema inferred from a file with these statements, and its rows.
  private func imported(_ sql: String) throws -> (
    work: Workplace, inferred: Tool.Result, imported: Tool.Result, rows: [String]
  ) {
    let work = try Workplace()
    try Spoil.execute(sql, in: work.file("a.sqlite"))
    let inferred = try work.stemma("schema", "infer", "a.sqlite")
    try work.write("a.graphql", inferred.output)
    try work.stemma("init", "node", "--schema", "a.graphql")
    let imported = try work.stemma("-C", "node", "import", "a.sqlite")
    let rows = try work.stemma("-C", "node", "export").lines
    let again = try work.stemma("-C", "node", "import", "a.sqlite")
    #expect(again.lines.allSatisfy { $0.hasSuffix("as 0 events in 0 commits") }, "\(again.lines)")
    try work.stemma("-C", "node", "verify")
    return (work, inferred, imported, rows)
  }

  /// The warnings that contain a name.
  private func warnings(_ result: Tool.Result, _ name: String) -> [Substring] {
    result.errors.split(separator: "\n").filter { $0.hasPrefix("warning: ") && $0.contains(name) }
  }

  // MARK: - Values

  /// Infinities and numbers beyond 2^53 keep their values.
  @Test func valuesComeInAsTheyAre() throws {
    let (_, inferred, imported, rows) = try imported(
      """
      CREATE TABLE t (n INTEGER PRIMARY KEY, whole INTEGER, fraction REAL, both NUMERIC, beyond NUMERIC, endless REAL,
        text TEXT, any, day DATE, at DATETIME, free INTEGER, empty);
      INSERT INTO t VALUES
        (-9223372036854775808, 9007199254740993, 1e300, 1, 9007199254740993, 9e999, '', 1, '2024-02-29',
          '2024-01-01T01:00:00+01:00', '007', NULL),
        (9223372036854775807, -9223372036854775808, -0.5, 0.1, 0.5, -9e999, 'a' || char(0) || 'b', 'one', '0001-01-01',
          '1999-12-31T23:59:59.5Z', '', NULL);
      """)
    #expect(
      rows == [
        #"{"model":"T","key":{"n":"-9223372036854775808"},"fields":{"whole":"9007199254740993","fraction":1e+300,"both":1.0,"beyond":"9007199254740993","endless":"Infinity","text":"","any":"1","day":"2024-02-29","at":"2024-01-01T01:00:00+01:00","free":"7","empty":null}}"#,
        #"{"model":"T","key":{"n":"9223372036854775807"},"fields":{"whole":"-9223372036854775808","fraction":-0.5,"both":0.1,"beyond":"0.5","endless":"-Infinity","text":"a\u0000b","any":"one","day":"0001-01-01","at":"1999-12-31T23:59:59.5Z","free":"","empty":null}}"#,
      ])
    for column in ["t.beyond", "t.endless", "t.any", "t.free"] {
      #expect(warnings(inferred, column).count == 1, "\(column): \(inferred.errors)")
      #expect(warnings(imported, column).count == 1, "\(column): \(imported.errors)")
    }
    for column in ["t.whole", "t.fraction", "t.text", "t.day", "t.at", "t.empty"] {
      #expect(warnings(inferred, column).isEmpty && warnings(imported, column).isEmpty, "\(column)")
    }
  }

  @Test func aColumnWithBytesIsLeftOutWithAWarning() throws {
    let (work, inferred, imported, rows) = try imported(
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, photo BLOB, note TEXT, latin TEXT);
      INSERT INTO t VALUES ('a', x'00FF', 'x', CAST(x'FF' AS TEXT)), ('b', NULL, x'00', 'é');
      """)
    #expect(
      rows == [
        #"{"model":"T","key":{"id":"a"},"fields":{}}"#, #"{"model":"T","key":{"id":"b"},"fields":{}}"#,
      ])
    for column in ["photo", "note", "latin"] {
      #expect(warnings(inferred, "t.\(column) ").count == 1, "\(inferred.errors)")
      #expect(warnings(imported, "column \(column) of table t ").count == 1, "\(imported.errors)")
    }
    // A model with a field for them accepts the rows that it can hold.
    try work.stemma("init", "other", "--schema", "-", input: "type T @model { id: ID! note: String }")
    let partly = try work.attempt("-C", "other", "import", "a.sqlite", "--reject", "refused.ndjson")
    #expect(partly.status == 1 && partly.output.contains("rejected 1"), "\(partly)")
    #expect(
      try work.stemma("-C", "other", "export").lines == [
        #"{"model":"T","key":{"id":"a"},"fields":{"note":"x"}}"#
      ])
  }

  /// The file stores its texts as UTF-16.
  @Test func aFileInUTF16IsRead() throws {
    let work = try Workplace()
    let queue = try DatabaseQueue(path: work.file("a.sqlite"))
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA encoding = 'UTF-16'")
      try $0.execute(sql: "CREATE TABLE t (id TEXT PRIMARY KEY, größe TEXT)")
      try $0.execute(sql: "INSERT INTO t VALUES ('é', '😀')")
    }
    try queue.close()
    try work.write("a.graphql", try work.stemma("schema", "infer", "a.sqlite").output)
    try work.stemma("init", "node", "--schema", "a.graphql")
    try work.stemma("-C", "node", "import", "a.sqlite")
    #expect(
      try work.stemma("-C", "node", "export").lines == [
        #"{"model":"T","key":{"id":"é"},"fields":{"gr__e":"😀"}}"#
      ])
  }

  /// A handwritten schema may make a number less exact, or a text a number.
  @Test func eachConversionIsReportedOnce() throws {
    let work = try Workplace()
    try Spoil.execute(
      """
      CREATE TABLE t (id INTEGER, f, n, s);
      INSERT INTO t VALUES (1, 9007199254740993, '12', 1), (2, -9007199254740993, '13', 0.5), (3, 1, 1, 'x');
      """, in: work.file("a.sqlite"))
    try work.stemma(
      "init", "node", "--schema", "-", input: "type T @model { id: ID! f: Float n: Int s: String }")
    let result = try work.stemma("-C", "node", "import", "a.sqlite")
    for column in ["t.id", "t.f", "t.n", "t.s"] {
      #expect(warnings(result, column).count == 1, "\(column): \(result.errors)")
    }
    #expect(
      try work.stemma("-C", "node", "query", "--tsv", "SELECT id, n, s FROM ts ORDER BY id").lines == [
        "1\t12\t1", "2\t13\t0.5", "3\t1\tx",
      ])
    try Spoil.execute("UPDATE t SET f = 9e999 WHERE id = 3", in: work.file("a.sqlite"))
    let refused = try work.attempt("-C", "node", "import", "a.sqlite")
    #expect(refused.status == 65 && refused.errors.contains("a.sqlite:3: "), "\(refused.errors)")
  }

  // MARK: - Names

  /// Different names in the file may become equal in the schema.
  @Test func namesThatWouldMeetGetNumbers() throws {
    let (_, inferred, imported, rows) = try imported(
      """
      CREATE TABLE log (id INTEGER PRIMARY KEY, "a b" TEXT, a_b TEXT, "a-b" TEXT);
      CREATE TABLE logs (_id TEXT PRIMARY KEY, id TEXT, "1st" TEXT, größe TEXT);
      CREATE TABLE String (id INTEGER PRIMARY KEY, log INTEGER REFERENCES log);
      CREATE TABLE _PostToTag (post INTEGER, tag TEXT, PRIMARY KEY (post, tag));
      CREATE TABLE _sqlite_x (id INTEGER PRIMARY KEY);
      INSERT INTO log VALUES (1, 'space', 'plain', 'hyphen');
      INSERT INTO logs VALUES ('k', 'i', 'first', 'big');
      INSERT INTO String VALUES (1, 1);
      INSERT INTO _PostToTag VALUES (1, 'x');
      INSERT INTO _sqlite_x VALUES (1);
      """)
    #expect(
      rows == [
        #"{"model":"Log","key":{"id":1},"fields":{"a_b_2":"space","a_b":"plain","a_b_3":"hyphen"}}"#,
        #"{"model":"Log_2","key":{"id_2":"k"},"fields":{"id":"i","f1st":"first","gr__e":"big"}}"#,
        #"{"model":"PostToTag","key":{"post":1,"tag":"x"},"fields":{}}"#,
        #"{"model":"SqliteX","key":{"id":1},"fields":{}}"#,
        #"{"model":"String_2","key":{"id":1},"fields":{"log":1}}"#,
      ])
    for column in ["log.a b", "log.a-b", "logs._id", "logs.1st", "logs.größe"] {
      #expect(warnings(inferred, column).count == 1, "\(column): \(inferred.errors)")
    }
    #expect(warnings(imported, "").isEmpty, "\(imported.errors)")
  }

  @Test func aTableGoesToTheModelOfItsOwnName() throws {
    let work = try Workplace()
    try Spoil.execute(
      """
      CREATE TABLE Note (id TEXT, text TEXT); CREATE TABLE notes (id TEXT, text TEXT);
      INSERT INTO Note VALUES ('a', 'model'); INSERT INTO notes VALUES ('b', 'table');
      """, in: work.file("a.sqlite"))
    try work.stemma("init", "node", "--schema", "-", input: "type Note @model { id: ID! text: String }")
    let result = try work.stemma("-C", "node", "import", "a.sqlite")
    #expect(try work.stemma("-C", "node", "query", "--tsv", "SELECT text FROM notes").lines == ["table"])
    #expect(warnings(result, "table Note ").count == 1, "\(result.errors)")
  }

  // MARK: - Tables

  @Test func viewsAndVirtualTablesAreLeftOutWithAWarning() throws {
    let (_, inferred, imported, rows) = try imported(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, twice INTEGER GENERATED ALWAYS AS (id * 2) VIRTUAL,
        thrice INTEGER GENERATED ALWAYS AS (id * 3) STORED);
      CREATE VIEW seen AS SELECT * FROM t;
      CREATE VIRTUAL TABLE docs USING fts5(title);
      INSERT INTO t (id) VALUES (1);
      INSERT INTO docs VALUES ('x');
      """)
    #expect(rows == [#"{"model":"T","key":{"id":1},"fields":{"twice":2,"thrice":3}}"#])
    for result in [inferred, imported] {
      #expect(warnings(result, "seen").count == 1 && warnings(result, "docs").count == 1, "\(result.errors)")
    }
    #expect(warnings(inferred, "t.twice").count == 1 && warnings(inferred, "t.thrice").count == 1)
  }

  /// A repeated import finds the same records.
  @Test func withoutAKeyTheRowNumberIsTheKey() throws {
    let long = String(repeating: "x", count: 3000)
    let (work, inferred, imported, rows) = try imported(
      """
      CREATE TABLE a (x TEXT); CREATE TABLE b (x TEXT PRIMARY KEY, rowid TEXT); CREATE TABLE c (x PRIMARY KEY);
      CREATE TABLE d (x TEXT PRIMARY KEY); CREATE TABLE e (x BLOB PRIMARY KEY) WITHOUT ROWID;
      INSERT INTO a VALUES ('same'), ('same');
      INSERT INTO b VALUES (NULL, 'own'), (NULL, 'own');
      INSERT INTO c VALUES (7), ('7');
      INSERT INTO d VALUES ('\(long)');
      INSERT INTO e VALUES (x'00');
      """)
    #expect(
      rows == [
        #"{"model":"A","key":{"rowid":1},"fields":{"x":"same"}}"#,
        #"{"model":"A","key":{"rowid":2},"fields":{"x":"same"}}"#,
        #"{"model":"B","key":{"rowid_2":1},"fields":{"x":null,"rowid":"own"}}"#,
        #"{"model":"B","key":{"rowid_2":2},"fields":{"x":null,"rowid":"own"}}"#,
        #"{"model":"C","key":{"rowid":1},"fields":{"x":"7"}}"#,
        #"{"model":"C","key":{"rowid":2},"fields":{"x":"7"}}"#,
        #"{"model":"D","key":{"rowid":1},"fields":{"x":"\#(long)"}}"#,
      ])
    for table in ["a", "b", "c", "d", "e"] {
      #expect(!warnings(inferred, " \(table) has no ").isEmpty, "\(table)")
    }
    #expect(warnings(imported, "table e ").count == 1, "\(imported.errors)")
    // A handwritten model has no field for the row number.
    try work.stemma("init", "other", "--schema", "-", input: "type A @model { id: ID! x: String }")
    let made = try work.stemma("-C", "other", "import", "a.sqlite")
    #expect(made.lines == ["imported 2 lines as 2 events in 1 commit"])
    #expect(warnings(made, "table a has no column for the key").count == 1, "\(made.errors)")
  }

  @Test func inferenceNamesWhatASchemaDoesNotKeep() throws {
    let (_, inferred, imported, rows) = try imported(
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(10,2), count NUMBER(10), "check (" TEXT, word TEXT DEFAULT 'x',
        a INTEGER, b INTEGER CHECK (b > 0), p INTEGER REFERENCES p ON DELETE CASCADE ON UPDATE SET NULL,
        code TEXT REFERENCES p (code), UNIQUE (a, b));
      CREATE INDEX i ON t (a); CREATE UNIQUE INDEX u ON t (word, upper(word));
      CREATE TRIGGER changed AFTER INSERT ON t BEGIN SELECT 1; END;
      INSERT INTO p VALUES (1, 'c');
      INSERT INTO t VALUES (1, 0.1, 3, '', 'y', 1, 2, 1, 'c');
      """)
    #expect(rows.last?.contains(#""price":0.1,"count":3,"#) == true, "\(rows)")
    let expected = [
      "t.price is declared DECIMAL(10,2)": 1, "the default 'x' of t.word": 1, "UNIQUE (a, b) of t": 1,
      "UNIQUE (word, an expression) of t": 1, "UNIQUE (code) of p": 1, "CHECK constraints of t": 1,
      "CHECK constraints of p": 0, "the trigger changed of t": 1, "ON DELETE CASCADE": 1,
      "ON UPDATE SET NULL": 1,
      "the foreign key t(code)": 1, "t.count": 0,
    ]
    for (text, count) in expected {
      #expect(warnings(inferred, text).count == count, "\(text): \(inferred.errors)")
    }
    #expect(warnings(imported, "").isEmpty, "\(imported.errors)")
  }

  // MARK: - Real data

  @Test(
    "a schema is inferred from real files, and their rows are those of the file",
    .enabled(if: RealData.isThere && RealData.python != nil), arguments: ["chinook", "git-grdb"])
  func realFiles(name: String) throws {
    let work = try Workplace()
    let oracle = RealData.path("\(name)/oracle.sqlite.gz")
    #expect(try ConsolePage.shell("gzip -dc '\(oracle)' > a.sqlite", in: work.path).status == 0)
    try work.write("a.graphql", try work.stemma("schema", "infer", "a.sqlite").output)
    try work.stemma("init", "node", "--schema", "a.graphql")
    try work.stemma("-C", "node", "import", "a.sqlite")
    try work.write("export.ndjson", try work.stemma("-C", "node", "export").output)
    try RealData.check(name, ["--ndjson", work.file("export.ndjson")], in: work)
  }
}
