import Foundation
import Testing

/// All Swift code of the documentation compiles.
///
/// Each article becomes a namespace. It contains a block's declarations, and a function with its
/// statements. The parameters of that function are the undeclared names that the articles use.
@Suite("The code of the articles")
struct ArticleCodeTests {
  private static let catalogue = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../Sources/Stemma/Stemma.docc").standardizedFileURL

  /// A line of the compiled source, and its origin.
  private struct Line {
    var text: String
    var origin: String
  }

  @Test("each block of each article compiles")
  func compiles() throws {
    var lines = Self.prelude.split(separator: "\n", omittingEmptySubsequences: false)
      .map { Line(text: String($0), origin: "the prelude") }
    var blocks = 0
    let articles = try FileManager.default.contentsOfDirectory(atPath: Self.catalogue.path)
    for name in articles.sorted() where name.hasSuffix(".md") {
      let page = try String(contentsOf: Self.catalogue.appendingPathComponent(name), encoding: .utf8)
      let found = Self.blocks(of: page, name)
      blocks += found.count
      lines.append(Line(text: "enum Article\(name.dropLast(3)) {", origin: name))
      for block in found { lines += Self.members(block, number: lines.count) }
      lines.append(Line(text: "}", origin: name))
    }
    #expect(blocks > 15)
    try Self.compile(lines)
  }

  private static func compile(_ lines: [Line]) throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("Articles-\(UUID()).swift")
    defer { do { try FileManager.default.removeItem(at: file) } catch {} }
    try lines.map(\.text).joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
    for complaint in try Compiler.complaints(about: file) {
      let line = complaint.place(in: lines)
      Issue.record("\(line?.origin ?? "nowhere"): \(complaint.message)\n\(line?.text ?? "")")
    }
  }

  @Test("each call in a table of these articles compiles")
  func cells() throws {
    let given = (Self.prelude + Self.models).split(separator: "\n", omittingEmptySubsequences: false)
    var lines = given.map { Line(text: String($0), origin: "the prelude") }
    for (article, least) in [
      ("Reading", 9), ("ComingFromAmplifyDataStore", 12), ("ComingFromStructuredQueries", 12),
    ] {
      let name = "\(article).md"
      let page = try String(contentsOf: Self.catalogue.appendingPathComponent(name), encoding: .utf8)
      let calls = Self.calls(of: page, name)
      #expect(calls.count >= least, "\(name): \(calls.map(\.text))")
      for call in calls {
        let head = "extension Cells { static func cell\(lines.count)(\(Self.cellParameters)) async throws {"
        let body = ["var member = member", "_ = try await \(call.text)"]
        lines += ([head] + body + ["} }"]).map { Line(text: $0, origin: call.origin) }
      }
    }
    try Self.compile(lines)
  }

  @Test("each attribute and argument in the table of declarations is one that is compiled")
  func declarations() throws {
    let page = try String(
      contentsOf: Self.catalogue.appendingPathComponent("DeclareModels.md"), encoding: .utf8)
    let shapes = Self.catalogue.appendingPathComponent("../../../Tests/Shapes").standardizedFileURL
    var compiled = ""
    for name in try FileManager.default.contentsOfDirectory(atPath: shapes.path) {
      compiled += try String(contentsOf: shapes.appendingPathComponent(name), encoding: .utf8)
    }
    var count = 0
    for (row, head) in Self.rows(of: page) where head.first == "declaration" {
      for span in row.first?.matches(of: /`([@a-z][^`]*)`/).map({ String($0.1) }) ?? [] {
        let pattern = NSRegularExpression.escapedPattern(for: span)
          .replacing("\"name\"", with: "\"[^\"]*\"").replacing(":\\)", with: ": .*\\)")
        #expect(compiled.firstMatch(of: try Regex(pattern)) != nil, "\(span)")
        count += 1
      }
    }
    #expect(count > 12)
  }

  /// The rows of the tables as cells, each with the head of its table.
  private static func rows(of page: String) -> [(row: [String], head: [String])] {
    var rows: [(row: [String], head: [String])] = []
    var head: [String]?
    for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
      guard line.hasPrefix("| ") || line.hasPrefix("|--") else {
        head = nil
        continue
      }
      if line.hasPrefix("|--") { continue }
      let cells = line.dropFirst(2).split(separator: " |", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      if let head { rows.append((cells, head)) } else { head = cells }
    }
    return rows
  }

  /// Our calls in the tables: the contents of our column, or of the other one if ours refers to it.
  private static func calls(of page: String, _ name: String) -> [Line] {
    rows(of: page).flatMap { row, head -> [Line] in
      guard let own = head.firstIndex(where: { ["Swift", "Stemma"].contains($0) }), own < row.count else {
        return []
      }
      let cell = row[own].hasPrefix("the same") ? row[own] + row[0] : row[own]
      return cell.matches(of: /`([^`]*)`/).map { String($0.1) }
        .filter { $0.contains(/^(try await )?[A-Za-z]\w*[.<]/) && !$0.contains("…") && !$0.hasSuffix(":)") }
        .filter { !$0.hasPrefix("Amplify.") }
        .map { Line(text: $0.replacing("try await ", with: ""), origin: "\(name): `\($0)`") }
    }
  }

  @Test("an error that names no line, or one behind the last, has no place")
  func noPlace() {
    let places = (0...3).map { Compiler.Complaint(line: $0, message: "a").place(in: ["x", "y"]) }
    #expect(places == [nil, "x", "y", nil])
  }

  private static func blocks(of page: String, _ name: String) -> [[Line]] {
    var blocks: [[Line]] = []
    var isInside = false
    for (index, text) in page.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if text.hasPrefix("```") {
        isInside = text == "```swift"
        if isInside { blocks.append([]) }
      } else if isInside {
        blocks[blocks.count - 1].append(Line(text: String(text), origin: "\(name):\(index + 1)"))
      }
    }
    return blocks
  }

  /// The block's declarations, and a function of its statements.
  private static func members(_ block: [Line], number: Int) -> [Line] {
    var declarations: [Line] = []
    var statements: [Line] = []
    var isDeclaration = false
    /// Whether the declaration has only attributes so far.
    var isOpen = false
    for line in block where !line.text.hasPrefix("import ") {
      var line = line
      line.text = line.text.replacing("#expect(", with: "expect(").replacing("@Test ", with: "")
      let begins = line.text.first.map { !" })]".contains($0) } ?? false
      if begins {
        isDeclaration = isOpen || line.text.contains(/^(@|(struct|enum|func|extension) )/)
        isOpen = isDeclaration && !line.text.contains(#/(struct|enum|func|extension) /#)
      }
      if isDeclaration { declarations.append(line) } else { statements.append(line) }
    }
    if statements.allSatisfy(\.text.isEmpty) { return declarations }
    let origin = statements[0].origin
    let head = "static func block\(number)(\(parameters)) async throws {"
    return declarations + [Line(text: head, origin: origin)] + statements + [Line(text: "}", origin: origin)]
  }

  private static let parameters = """
    store: Store, here: Store, there: Store, id: UUID, reminder: Reminder, team: Team, member: Member, \
    yesterday: Date, show: ([Reminder]) -> Void
    """

  private static let cellParameters = """
    store: Store, id: UUID, a: UUID, b: UUID, reminder: Reminder, draft: Reminder.Draft, team: Team, member: Member, \
    changed: Team, statement: Select<Reminder>
    """

  /// The models of the tables.
  private static let models = """
    enum Cells {
      @Table struct Book {
        @Selection struct ID: Hashable { let isbn: String; let title: String }
        let id: ID
      }
      @Table struct Post { let id: UUID; var rating: Int }
      @Table struct Article {
        let id: UUID
        @ManyToMany(through: ArticleTag.self) var tags: Related<Tag>
      }
      @Table struct Tag {
        let id: UUID
        @ManyToMany(through: ArticleTag.self) var articles: Related<Article>
      }
      @Table struct ArticleTag {
        @Selection struct ID: Hashable { let articleId: UUID; let tagId: UUID }
        let id: ID
        @BelongsTo("articleId") var article: Article
        @BelongsTo("tagId") var tag: Tag
      }
    }

    """

  /// Undeclared names of the articles: models of other articles, and the parts of a test and a
  /// view.
  private static let prelude = """
    import Foundation
    import Stemma

    @Table struct Reminder { let id: UUID; var title: String; var isDone = false }
    @Table struct Team {
      let id: UUID
      var mantra: String
      @HasMany("teamId") var members: Related<Member>
    }
    @Table struct Member {
      let id: UUID
      var name: String
      var teamId: UUID?
      @BelongsTo("teamId") var team: Team?
    }
    @Table struct Worker {
      let id: UUID
      var name: String
      @HasMany("workerId") var tasks: Related<Job>
    }
    @Table struct Job {
      let id: UUID
      var workerId: UUID?
      @BelongsTo("workerId") var worker: Worker?
    }
    struct Tag: Codable, Hashable, Sendable { var name: String }

    extension SyncPeer {
      // As StemmaHTTP declares it. That module has C dependencies, which would need module maps here.
      static func http(_ url: URL, token: String? = nil, authorities: URL? = nil) -> SyncPeer {
        .directory(url)
      }
      // As StemmaHub declares it.
      static func hub(_ address: String) -> SyncPeer { .directory(URL(filePath: address)) }
    }

    func expect(_ condition: Bool) {}
    @MainActor protocol View { associatedtype Body; var body: Body { get } }
    struct Text { init(_ text: String) {} }
    struct ForEach<Data: RandomAccessCollection, ID: Hashable>: View {
      var body: Void { () }
      init<Content>(_ data: Data, id: KeyPath<Data.Element, ID>, content: (Data.Element) -> Content) {}
    }

    """
}
