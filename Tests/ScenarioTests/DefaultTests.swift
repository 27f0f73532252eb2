import Foundation
import Testing

/// A default field that was added after the records.
@Suite("defaults")
struct DefaultTests {
  private static func schema(_ fields: String) -> String {
    "enum Level { LOW HIGH } type Item @model { id: ID! @primaryKey name: String \(fields) }"
  }

  private static let both = schema(
    "quantity: Int @default(value: \"3\") level: Level! @default(value: \"HIGH\")")

  /// A node with the items a and b, created before the fields were declared.
  private func open() throws -> Workplace {
    let work = try Workplace()
    try work.write("old.graphql", Self.schema(""))
    try work.write("new.graphql", Self.both)
    try work.stemma("init", "n", "--schema", "old.graphql")
    for id in ["a", "b"] { try work.stemma("-C", "n", "create", "Item", "id=\(id)", "name=\(id)") }
    return work
  }

  private func export(_ work: Workplace, _ node: String = "n") throws -> [String] {
    try work.stemma("-C", node, "export", "--format", "csv", "Item").lines
  }

  /// A rebuild produces the same rows.
  private func checkRebuild(_ work: Workplace, _ node: String = "n") throws {
    let before = try export(work, node)
    try work.stemma("-C", node, "verify")
    try work.stemma("-C", node, "rebuild")
    #expect(try export(work, node) == before)
  }

  @Test("get, list, query, export and conditions show the default of a field that a record lacks")
  func faces() throws {
    let work = try open()
    try work.stemma("-C", "n", "schema", "apply", work.file("new.graphql"))
    let fields = try work.stemma("-C", "n", "get", "Item", "a", "--json").object().object("fields")
    #expect(fields["quantity"] as? Int == 3 && fields.text("level") == "HIGH")
    #expect(try export(work) == ["id,name,quantity,level", "a,a,3,HIGH", "b,b,3,HIGH"])
    #expect(
      try work.stemma("-C", "n", "query", "--tsv", "SELECT id, quantity, level FROM items").lines
        == ["a\t3\tHIGH", "b\t3\tHIGH"])
    for condition in ["quantity=3", "quantity<4", "level=HIGH"] {
      #expect(try work.stemma("-C", "n", "list", "Item", "--where", condition, "--json").array().count == 2)
    }
    #expect(try work.stemma("-C", "n", "list", "Item", "--where", "quantity!=3", "--json").array().isEmpty)
    let was = try work.stemma("-C", "n", "get", "Item", "a", "--as-of", "@1", "--json").object()
    #expect(was.object("fields")["quantity"] as? Int == 3)
    try checkRebuild(work)
  }

  /// The create event did not write the default.
  @Test("why and blame name no event as the writer of a default")
  func unwritten() throws {
    let work = try open()
    try work.stemma("-C", "n", "schema", "apply", work.file("new.graphql"))
    for command in ["why", "blame"] {
      let record = try work.stemma("-C", "n", command, "Item", "a", "--json").object()
      let decisions = record.array("fields")
      let rules = decisions.map { "\($0.text("field") ?? "-") \($0.text("rule") ?? "")" }
      #expect(rules.contains("name only") && rules.contains("quantity unwritten"), "\(command): \(rules)")
      let quantity = try #require(decisions.first { $0.text("field") == "quantity" })
      #expect(
        quantity.number("value") == 3 && quantity.array("candidates").isEmpty, "\(command): \(quantity)")
    }
    try work.stemma("-C", "n", "update", "Item", "a", "quantity=4")
    let written = try work.stemma("-C", "n", "why", "Item", "a", "quantity", "--json").object().array(
      "fields")
    #expect(written.first?.text("rule") == "only" && written.first?.array("candidates").count == 1)
  }

  @Test("null that was written is null, and what is shown is no change")
  func writing() throws {
    let work = try open()
    try work.stemma("-C", "n", "schema", "apply", work.file("new.graphql"))
    let all = try work.stemma("-C", "n", "export").output
    try work.write("all.ndjson", all)
    let events = try work.stemma("-C", "n", "log", "--json").array().count
    try work.stemma("-C", "n", "import", "all.ndjson")
    try work.stemma("-C", "n", "update", "Item", "a", "quantity=3")
    #expect(try work.stemma("-C", "n", "log", "--json").array().count == events)
    try work.stemma("-C", "n", "update", "Item", "a", "quantity:=null")
    try work.stemma("-C", "n", "create", "Item", "id=c", "quantity:=null")
    try work.stemma("-C", "n", "create", "Item", "id=d")
    let shown = ["id,name,quantity,level", "a,a,,HIGH", "b,b,3,HIGH", "c,,,HIGH", "d,,3,HIGH"]
    #expect(try export(work) == shown)
    #expect(try work.attempt("-C", "n", "update", "Item", "a", "level:=null").status == 65)
    try checkRebuild(work)
    // A record that was created with the default keeps that value.
    try work.write("newer.graphql", Self.both.replacing("\"3\"", with: "\"8\""))
    try work.stemma("-C", "n", "schema", "apply", work.file("newer.graphql"))
    #expect(try export(work) == shown.map { $0 == "b,b,3,HIGH" ? "b,b,8,HIGH" : $0 })
    try checkRebuild(work)
  }

  @Test("a node shows the defaults of its own schema, whichever node wrote the record")
  func otherSchema() throws {
    let work = try open()
    try work.stemma("clone", "n", "m")
    try work.stemma("-C", "n", "schema", "apply", work.file("new.graphql"))
    try work.stemma("-C", "m", "create", "Item", "id=c", "name=c")
    try work.stemma("-C", "m", "update", "Item", "a", "name=A")
    try work.stemma("-C", "n", "create", "Item", "id=d", "quantity=5")
    try work.stemma("-C", "n", "update", "Item", "b", "quantity:=null")
    try work.stemma("-C", "n", "pull", work.file("m"))
    let shown = ["id,name,quantity,level", "a,A,3,HIGH", "b,b,,HIGH", "c,c,3,HIGH", "d,,5,HIGH"]
    #expect(try export(work) == shown)
    try checkRebuild(work)
    try work.stemma("-C", "m", "pull", work.file("n"))
    #expect(try export(work, "m") == ["id,name", "a,A", "b,b", "c,c", "d,"])
    try work.stemma("-C", "m", "schema", "apply", work.file("new.graphql"))
    #expect(try export(work, "m") == shown)
    try checkRebuild(work, "m")
  }
}
