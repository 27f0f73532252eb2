import Foundation
import StemmaSchema
import Testing

@testable import Stemma
@testable import StemmaTables

/// The models of the article on identifiers.
private enum Keys {
  @Table struct Reminder {
    let id: UUID
    var title: String
  }
  @Table struct Book {
    @Column(primaryKey: true) let isbn: String
    var title: String
  }
  @Table struct Enrollment {
    @Selection struct ID: Hashable {
      let courseID: Int
      let studentID: Int
    }
    let id: ID
    var grade: String?
  }
}

/// The model of the article on models.
private enum Declared {
  struct Tag: Codable, Hashable { var name: String }

  @Table("articles", policy: .latest)
  @Index("title", "rank")
  struct Article {
    @Selection struct Span {
      var start: Date
      var end: Date?
    }

    let id: UUID
    @Column("headline") var title: String
    var rank = 0
    var span: Span
    @Column(as: [Tag].JSONRepresentation.self) var tags: [Tag]
    @Column(as: String.AWSEmail.self) var author: String
    @Ephemeral var isSelected = false
    var createdAt: Date
  }
}

/// The model of the article for users of structured-queries.
private enum Numbered {
  @Table struct Reminder {
    let id: Int
    var title: String
    var isDone = false
  }
}

/// The articles show the actual events, rows and SQL.
@Suite("The events of the articles", .timeLimit(.minutes(20)))
struct ArticleEventTests {
  private static func page(_ name: String) throws -> String {
    let file = URL(fileURLWithPath: #filePath)
      .appendingPathComponent("../../../Sources/Stemma/Stemma.docc/\(name).md").standardizedFileURL
    return try String(contentsOf: file, encoding: .utf8)
  }

  /// Expects exactly these events, each of which the article shows.
  @discardableResult
  private func expect<Result>(
    _ witness: Witness, _ page: String, appends events: String..., id: String = "019a…",
    location: Testing.SourceLocation = #_sourceLocation, _ body: () async throws -> Result
  ) async throws -> Result {
    for event in events {
      let shown = event.replacing(/#\d+/, with: id)
      #expect(page.contains("`\(shown)`"), "\(shown)", sourceLocation: location)
    }
    return try await witness.expect(location, body) { events.joined(separator: "\n") }
  }

  /// Expects these statements in the article, in this order. The column lists of records and the
  /// table's name before a column are left out.
  private func expectShown(
    _ statements: [StatementText], _ page: String, _ location: Testing.SourceLocation = #_sourceLocation
  ) {
    var rest = page[...]
    for statement in statements {
      let models: [ModelDescription] = [
        Reminder.description, Team.description, Member.description, Article.description, Tag.description,
        Keys.Book.description, Keys.Enrollment.description, School.Course.description,
      ]
      var sql = statement.sql
      for model in models { sql = sql.replacing(model.selectedColumns, with: "…") }
      sql = sql.replacing("\"reminders\".", with: "")
      let shown = rest.range(of: "`\(sql)`")
      #expect(shown != nil, "\(sql)", sourceLocation: location)
      if let shown { rest = rest[shown.upperBound...] }
    }
  }

  /// Expects the statements in the article that write and delete the rows of a model, without their
  /// columns.
  private func expectWriting(
    of model: String, in witness: Witness, _ page: String, deletes: Bool = false,
    _ location: Testing.SourceLocation = #_sourceLocation
  ) async throws {
    let schema = try await witness.store.writer.access { node in node.schema }
    let layout = TableLayout(try #require(schema.models.first { $0.name == model }))
    let upsert = layout.upsert.replacing(#/\(.*\?\) /#, with: "… ").replacing(#/ SET .*/#, with: " SET …")
    for shown in [upsert] + (deletes ? [layout.delete] : []) {
      #expect(page.contains("| `\(shown)` |"), "\(shown)", sourceLocation: location)
    }
    #expect(!page.contains("`UPDATE "), sourceLocation: location)
  }

  @Test("Declare models: the schema that results, the events of a record, and the SQL")
  func models() async throws {
    let page = try Self.page("DeclareModels")
    typealias Article = Declared.Article
    let witness = try await Witness(Article.self)
    let store = witness.store
    let schema = try await store.writer.access { node in node.schema }
    #expect(page.contains("```graphql\n\(SDL.print(schema))```"), "\(SDL.print(schema))")
    let span = Article.Span(start: Date(timeIntervalSince1970: 0), end: nil)
    let created = """
      create Article #1 author="a@b.example" createdAt="1970-01-01T00:00:00Z" headline="One" rank=0 \
      start="1970-01-01T00:00:00Z" tags="[]"
      """
    let article = try await witness.expect {
      try await store.insert(
        Article.Draft(title: "One", span: span, tags: [], author: "a@b.example", createdAt: span.start))
    } appends: {
      created
    }
    // The article leaves `createdAt` to the node and omits its value.
    let shown = created.replacing("#1", with: "019a…")
      .replacing("createdAt=\"1970-01-01T00:00:00Z\"", with: "createdAt=…")
    #expect(page.contains("`\(shown)`"), "\(shown)")
    try await expect(witness, page, appends: "update Article #1 headline=\"Two\"") {
      try await Article.find(article.id).update { $0.title = "Two" }.execute(store)
    }
    try await expectWriting(of: "Article", in: witness, page)
    let sql = Article.where { $0.title == "Two" && $0.span.end == nil }.text.sql
      .replacing(Article.description.selectedColumns, with: "…").replacing("\"articles\".", with: "")
    #expect(page.contains("`\(sql)`"), "\(sql)")
  }

  @Test("Reading: the SQL of each statement")
  func reading() throws {
    let page = try Self.page("Reading")
    let id = UUID()
    expectShown(
      [
        Reminder.all.text, Reminder.where { !$0.isDone && $0.title.hasPrefix("G") }.text,
        Reminder.find(id).text, Reminder.find([id]).text,
        Reminder.order { $0.title.desc() }.limit(10, offset: 20).text,
        Reminder.select { ($0.title, $0.isDone) }.text, Reminder.count().text,
        Reminder.group { $0.isDone }.select { ($0.isDone, $0.id.count()) }.text,
        Member.join { $0.team }.text, Article.join { $0.tags }.text,
      ], page)
    expectShown([Reminder.where { !$0.isDone }.order { $0.title }.text], try Self.page("Stemma"))
  }

  @Test("The first page: the events of its table")
  func first() async throws {
    let page = try Self.page("Stemma")
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    let event = "create Reminder #1 isDone=false title=\"Get groceries\""
    let reminder = try await expect(witness, page, appends: event, id: "…") {
      try await store.insert(Reminder.Draft(title: "Get groceries"))
    }
    try await expect(witness, page, appends: "update Reminder #1 isDone=true", id: "…") {
      try await Reminder.find(reminder.id).update { $0.isDone = true }.execute(store)
    }
  }

  @Test("Identifiers: the events of each insert, and the SQL of reading by key")
  func identifiers() async throws {
    let page = try Self.page("Identifiers")
    let witness = try await Witness(Keys.Reminder.self, Keys.Book.self, Keys.Enrollment.self)
    let store = witness.store
    try await expect(witness, page, appends: "create Reminder #1 title=\"Rest\"") {
      try await store.insert(Keys.Reminder.Draft(title: "Rest"))
    }
    try await expect(witness, page, appends: "create Book 978-1 title=\"One\"") {
      try await store.insert(Keys.Book.Draft(isbn: "978-1", title: "One"))
    }
    try await expect(witness, page, appends: "create Enrollment courseID=7 studentID=3") {
      try await store.insert(Keys.Enrollment.Draft(courseID: 7, studentID: 3))
    }
    let enrollment = Keys.Enrollment.find(Keys.Enrollment.ID(courseID: 7, studentID: 3))
    expectShown(
      [
        Keys.Book.find("978-1").text, enrollment.text, Keys.Enrollment.where { $0.id.courseID == 7 }.text,
      ], page)
    #expect(try await Keys.Book.find("978-1").fetchOne(store)?.title == "One")
    #expect(try await enrollment.fetchOne(store) != nil)
  }

  @Test("Relationships: the SQL of what is read when it is asked for")
  func lazy() async throws {
    let store = try await Store.temporary(
      models: Team.self, Member.self, School.Student.self, School.Course.self, School.Attendance.self)
    let team = try await store.insert(Team.Draft(mantra: "a"))
    let student = try await store.insert(School.Student.Draft())
    let members = try team.members.rows()
    expectShown(
      [
        members.text, members.limit(10, offset: 20).text, try student.courses.rows().text,
      ], try Self.page("Relationships"))
  }

  @Test("Coming from structured-queries: the events of its last table")
  func structuredQueries() async throws {
    let page = try Self.page("ComingFromStructuredQueries")
    let witness = try await Witness(Numbered.Reminder.self)
    let store = witness.store
    func expectEvent(_ event: String, _ body: () async throws -> Void) async throws {
      try await expect(witness, page, appends: event, id: "…", body)
    }
    try await expectEvent("create Reminder #1 isDone=false title=\"a\"") {
      try await Numbered.Reminder.insert { Numbered.Reminder.Draft(title: "a") }.execute(store)
    }
    let id = try #require(try await Numbered.Reminder.all.fetchOne(store)).id
    try await expectEvent("update Reminder #1 title=\"b\"") {
      try await Numbered.Reminder.find(id).update { $0.title = "b" }.execute(store)
    }
    try await expectEvent("delete Reminder #1") {
      try await Numbered.Reminder.find(id).delete().execute(store)
    }
    try await expectWriting(of: "Reminder", in: witness, page, deletes: true)
  }

  private func titles(_ stores: Store...) async throws -> [String] {
    var titles: [String] = []
    for store in stores {
      titles += try await SQL<String>("SELECT \"title\" FROM \"reminders\"").fetchAll(store)
    }
    return titles
  }

  @Test("Conflicts: two updates, a sync, a decision, a sync")
  func conflicts() async throws {
    let page = try Self.page("Conflicts")
    let (here, there) = (try await Witness(Reminder.self), try await Witness(Reminder.self))
    let id = try await here.store.insert(Reminder.Draft(title: "Rest")).id
    #expect(here.number(of: id) == 1 && there.number(of: id) == 1)
    try await here.store.sync(with: there.store)
    try await expect(here, page, appends: "update Reminder #1 title=\"Walk\"") {
      try await Reminder.find(id).update { $0.title = "Walk" }.execute(here.store)
    }
    #expect(try await titles(here.store, there.store) == ["Walk", "Rest"])
    // The other update must be later according to the clock.
    let last = try #require(try await here.store.history(of: Reminder.self, id).last).time
    while Date() <= last.addingTimeInterval(0.002) {}
    try await expect(there, page, appends: "update Reminder #1 title=\"Run\"") {
      try await Reminder.find(id).update { $0.title = "Run" }.execute(there.store)
    }
    #expect(try await titles(here.store, there.store) == ["Walk", "Run"])
    try await here.store.sync(with: there.store)
    #expect(try await titles(here.store, there.store) == ["Run", "Run"])
    let conflict = try await here.store.conflicts(of: Reminder.self)[0]
    #expect(try conflict.candidates.map { try $0.value(as: String.self) } == ["Run", "Walk"])
    try await expect(here, page, appends: "resolve Reminder #1 title=\"Walk\"") {
      try await here.store.resolve(conflict, .take(conflict.candidates[1]))
    }
    #expect(try await titles(here.store, there.store) == ["Walk", "Run"])
    try await here.store.sync(with: there.store)
    #expect(try await titles(here.store, there.store) == ["Walk", "Walk"])
    for store in [here.store, there.store] { #expect(try await store.conflicts().isEmpty) }
  }

  @Test("Sync: what one side inserts and the other one changes")
  func sync() async throws {
    let page = try Self.page("Sync")
    let (here, stick) = (try await Witness(Reminder.self), try await Witness(Reminder.self))
    let reminder = try await expect(here, page, appends: "create Reminder #1 isDone=false title=\"Rest\"") {
      try await here.store.insert(Reminder.Draft(title: "Rest"))
    }
    #expect(stick.number(of: reminder.id) == 1)
    var report = try await here.store.sync(with: stick.store.directory)
    #expect(report.pushed?.events == 1 && report.pulled?.events == 0)
    try await expect(stick, page, appends: "update Reminder #1 isDone=true") {
      try await Reminder.find(reminder.id).update { $0.isDone = true }.execute(stick.store)
    }
    report = try await here.store.sync(with: stick.store.directory)
    #expect(report.pushed?.events == 0 && report.pulled?.events == 1)
    for store in [here.store, stick.store] {
      let count = "SELECT count(*) FROM \"reminders\" WHERE \"isDone\""
      #expect(page.contains("`\(count)`"))
      #expect(try await SQL<Int>("SELECT count(*) FROM \"reminders\" WHERE \"isDone\"").fetchOne(store) == 1)
    }
  }

  @Test("Observing: which commits yield, and the SQL that runs")
  func observing() async throws {
    let page = try Self.page("Observing")
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    let open = Reminder.where { !$0.isDone }.order { $0.title }
    expectShown([open.text], page)
    var rows = store.observe(open).makeAsyncIterator()
    #expect(try await rows.next()?.isEmpty == true)
    let rest = try await expect(witness, page, appends: "create Reminder #1 isDone=false title=\"Rest\"") {
      try await store.insert(Reminder.Draft(title: "Rest"))
    }
    #expect(try await rows.next()?.map(\.title) == ["Rest"])
    try await expect(witness, page, appends: "create Reminder #2 isDone=true title=\"Old\"") {
      try await store.insert(Reminder.Draft(title: "Old", isDone: true))
    }
    await #expect(throws: StoreError.alreadyExists(model: "Reminder", key: rest.id.uuidString.lowercased())) {
      try await store.write { try $0.insert(rest) }
    }
    try await expect(witness, page, appends: "update Reminder #1 isDone=true") {
      try await Reminder.find(rest.id).update { $0.isDone = true }.execute(store)
    }
    // No other element comes in between.
    #expect(try await rows.next()?.isEmpty == true)
    let peer = try await Store.temporary(models: Reminder.self)
    for number in 0..<10 { try await peer.insert(Reminder.Draft(title: "\(number)")) }
    try await store.sync(with: peer)
    #expect(try await rows.next()?.count == 10)
  }

  @Test("Observing: after a peer's write of the same value, what is yielded is saved without a conflict")
  func observingEqualValues() async throws {
    let (here, there) = (try await Witness(Reminder.self), try await Witness(Reminder.self))
    let id = try await here.store.insert(Reminder.Draft(title: "Sleep")).id
    try await here.store.sync(with: there.store)
    var rows = here.store.observe(Reminder.all).makeAsyncIterator()
    for witness in [here, there] {
      try await expect(witness, try Self.page("Observing"), appends: "update Reminder #1 title=\"Rest\"") {
        try await Reminder.find(id).update { $0.title = "Rest" }.execute(witness.store)
      }
    }
    _ = try await rows.next()
    try await here.store.sync(with: there.store)
    var reminder = try #require(try await rows.next()?.first)
    #expect(reminder.title == "Rest")
    reminder.title = "Walk"
    try await here.store.update(reminder)
    #expect(try await here.store.conflicts().isEmpty)
  }

  @Test("Testing your app: the events of its test; Relationships: those of a join model")
  func testing() async throws {
    let page = try Self.page("TestingYourApp")
    let witness = try await Witness(Reminder.self)
    let reminder = try await expect(witness, page, appends: "create Reminder #1 isDone=false title=\"Rest\"")
    {
      try await witness.store.insert(Reminder.Draft(title: "Rest"))
    }
    try await expect(witness, page, appends: "update Reminder #1 isDone=true") {
      try await Reminder.find(reminder.id).update { $0.isDone = true }.execute(witness.store)
    }
    #expect(Reminder.find(reminder.id).text.sql.contains("\"id\" = ?"))
    #expect(page.contains("WHERE \"id\" = ?"))
  }

  @Test("Writing: the events of its first block, and the rows they leave")
  func writing() async throws {
    let page = try Self.page("Writing")
    let witness = try await Witness(Reminder.self)
    let store = witness.store
    /// Rows in the form of the article.
    func shown() async throws -> String {
      let rows = try await Reminder.order { $0.id }.fetchAll(store)
      return rows.map { "`\($0.title), \($0.isDone ? 1 : 0)`" }.joined(separator: " and ")
    }
    try await expect(
      witness, page, appends: "create Reminder #1 isDone=false title=\"a\"",
      "create Reminder #2 isDone=false title=\"b\""
    ) {
      try await Reminder.insert {
        Reminder.Draft(title: "a"); Reminder.Draft(title: "b")
      }.execute(store)
    }
    #expect(page.contains("| \(try await shown()) |"))
    try await expect(witness, page, appends: "update Reminder #1 isDone=true") {
      try await Reminder.where { $0.title == "a" }.update { $0.isDone = true }.execute(store)
    }
    #expect(page.contains("| \(try await shown()) |"))
    try await expect(witness, page, appends: "delete Reminder #1") {
      try await Reminder.where { $0.isDone }.delete().execute(store)
    }
    #expect(page.contains("`delete Reminder 019a…` | \(try await shown()) |"))
    try await expect(witness, page, appends: "update Reminder #2 title=\"B\"") {
      try await store.write(author: "ana", message: "spring cleaning") { tx in
        for var reminder in try Reminder.all.fetchAll(tx) {
          reminder.title = reminder.title.capitalized
          try tx.update(reminder)
        }
      }
    }
    #expect(page.contains("| \(try await shown()) |"))
  }

  @Test("Coming from Amplify DataStore: the events of its block")
  func amplify() async throws {
    let page = try Self.page("ComingFromAmplifyDataStore")
    let witness = try await Witness(Team.self, Member.self)
    let store = witness.store
    let team = try await store.insert(Team.Draft(mantra: "Go Frontend!"))
    let other = try await store.insert(Team.Draft(mantra: "Go Fullstack!"))
    #expect([team.id, other.id].map(witness.number) == [1, 2])
    // Minted ids in values are quoted, as in the log.
    let quoted = page.replacing(/teamId="019a…"/, with: "teamId=019a…")
    #expect(!page.contains("teamId=019a…"))
    var tim = try await expect(witness, quoted, appends: "create Member #3 name=\"Tim\" teamId=#1") {
      try await store.insert(Member.Draft(name: "Tim", team: team))
    }
    tim.setTeam(other)
    tim = try await expect(witness, quoted, appends: "link Member #3 team: teamId=#2") { [tim] in
      try await store.update(tim)
    }
    tim.setTeam(nil)
    try await expect(witness, page, appends: "unlink Member #3 team: teamId=null") { [tim] in
      try await store.update(tim)
    }
    try await expectWriting(of: "Member", in: witness, page)
    let found = try await store.get(Team.self, byIdentifier: other.id, including: { [$0.members] })
    #expect(try found?.loaded(\.members).isEmpty == true)
    #expect(page.contains("`SELECT … FROM \"teams\" WHERE \"teams\".\"id\" = ?`"))
    #expect(Team.description.selectByKey.hasSuffix(" FROM \"teams\" WHERE \"teams\".\"id\" = ?"))
  }
}
