import Foundation
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaSimulation
import Testing

/// An accepted schema works with every event that the log already holds.
@Suite struct SchemaChangeTests {
  static let other = "type Other @model { id: ID! } "
  static let note = other + "type Note @model { id: ID!, color: String }"

  /// A node whose log holds a note that its schema hides.
  private func hiding(_ bench: Bench, _ schema: String = note, _ name: String = "a") throws -> Node {
    let node = try bench.node(name, schema)
    try node.commit(#"{"op":"create","model":"Note","key":"abc","fields":{"color":"red"}}"#)
    _ = try node.apply(schema: Self.other)
    return node
  }

  /// The number of refusals of a schema. A refused schema leaves the node unchanged.
  private func refused(_ node: Node, _ schema: String) throws -> Int {
    let before = SDL.print(node.schema)
    let count = try node.compare(schema: schema).refusals.count
    do throws(NodeError) {
      _ = try node.apply(schema: schema)
      #expect(count == 0)
    } catch {
      guard case .refusedSchema(let refusals) = error else { throw error }
      #expect(refusals.count == count && count > 0)
      #expect(SDL.print(node.schema) == before)
      let stored = try String(contentsOfFile: node.directory + "/schema.graphql", encoding: .utf8)
      #expect(stored == before)
    }
    _ = try node.status()
    return count
  }

  /// Otherwise each later command would fail at the first old event.
  @Test func aHiddenModelComesBackOnlyWithTheKeyOfItsEvents() throws {
    let bench = try Bench()
    let node = try hiding(bench)
    for fields in [
      "id: Int! @primaryKey", "id: ID! @primaryKey(sortKeyFields: [\"n\"]) n: Int!",
      "at: AWSDate! @primaryKey",
    ] {
      #expect(try refused(node, Self.other + "type Note @model { \(fields) }") == 1, "\(fields)")
    }
    #expect(try refused(node, Self.other + "type Note @model @partition(fields: [\"id\"]) { id: ID! }") == 1)
    #expect(try refused(node, Self.other + "type Page @model @mapsTo(name: \"Note\") { id: Int! }") == 1)
    #expect(try refused(node, Self.note) == 0)
    #expect(try bench.open("a").fields("Note", #""abc""#) == #"{"color":"red"}"#)
  }

  @Test func aHiddenModelComesBackOnlyWithTypesOfItsValues() throws {
    let bench = try Bench()
    let node = try hiding(bench)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! color: Int }") == 1)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! color: [String] }") == 1)
    #expect(try refused(node, Self.other + "enum C { BLUE } type Note @model { id: ID! color: C }") == 1)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! color: String! size: Int! }") == 1)
    let valid = "type Note @model { id: ID! color: String! size: Int! @default(value: \"1\") tone: Int }"
    #expect(try refused(node, Self.other + valid) == 0)
  }

  /// Otherwise an Int field could show `red`.
  @Test func aHiddenFieldComesBackOnlyWithATypeOfItsValues() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    try node.commit(#"{"op":"create","model":"Note","key":"abc","fields":{"color":"red"}}"#)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! }") == 0)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! color: Int }") == 1)
    #expect(
      try refused(node, Self.other + "type Note @model { id: ID! tone: Int @mapsTo(name: \"color\") }") == 1)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! color: Boolean shade: Int }") == 1)
    #expect(try refused(node, Self.other + "type Note @model { id: ID! shade: Int }") == 0)
    #expect(try refused(node, Self.other + "enum C { red } type Note @model { id: ID! color: C }") == 0)
  }

  @Test func aHiddenFieldOfAnEmbeddedTypeComesBackOnlyWithATypeOfItsValues() throws {
    let bench = try Bench()
    func schema(_ fields: String) -> String {
      "type Box @model { id: ID! parts: [Part!] } type Part { n: Int inner: Inner } type Inner { \(fields) }"
    }
    let node = try bench.node("a", schema("a: Int b: String"))
    try node.commit(
      #"{"op":"create","model":"Box","key":"1","fields":{"parts":[{"inner":{"a":1,"b":"x"}},{"n":2}]}}"#)
    #expect(try refused(node, schema("a: Int")) == 0)
    #expect(try refused(node, schema("a: Int b: Int")) == 1)
    #expect(try refused(node, schema("a: Int c: Int!")) == 1)
    #expect(try refused(node, schema("a: Int c: Int! @default(value: \"1\")")) == 0)
    #expect(try refused(node, schema("a: Int b: String")) == 0)
  }

  /// Events keep the old name of the model.
  @Test func aRenamedModelKeepsItsKey() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    try node.commit(#"{"op":"create","model":"Note","key":"abc","fields":{"color":"red"}}"#)
    let page = "type Page @model @mapsTo(name: \"Note\")"
    #expect(try refused(node, "\(page) { id: ID!, color: String }") == 0)
    #expect(try refused(node, "\(page) { id: Int!, color: String }") == 1)
    #expect(try refused(node, "\(page) { id: ID!, color: Int }") == 1)
  }

  @Test func aPulledModelIsDeclaredOnlyWithTheKeyOfItsEvents() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.note)
    try a.commit(#"{"op":"create","model":"Note","key":"abc","fields":{"color":"red"}}"#)
    let b = try bench.node("b", Self.other)
    try b.sync(a)
    #expect(try refused(b, "type Note @model { id: Int! }") == 1)
    #expect(try refused(b, Self.note) == 0)
    #expect(try b.fields("Note", #""abc""#) == #"{"color":"red"}"#)
  }

  /// Node b lacks the model, so the keys of a and c were never compared.
  @Test func eventsOfAThirdNodeWithAnotherKeyAreRefused() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.note)
    try a.commit(#"{"op":"create","model":"Note","key":"abc","fields":{"color":"red"}}"#)
    let b = try bench.node("b", Self.other)
    try b.sync(a)
    let c = try bench.node("c", Self.other + "type Note @model { id: Int!, color: String }")
    try c.commit(#"{"op":"create","model":"Note","key":7}"#)
    #expect(throws: NodeError.self) { try c.sync(b) }
    #expect(try bench.open("c").fields("Note", "7") == #"{"color":null}"#)
    #expect(try bench.open("c").history.count == 1)
  }

  @Test func fieldsOfDifferentTypesAreReportedOnBothNodes() throws {
    let bench = try Bench()
    let plain = "type Note @model { id: ID! }"
    let a = try bench.node("a", plain)
    let b = try bench.node("b", plain)
    _ = try a.apply(schema: "type Note @model { id: ID! color: String }")
    _ = try b.apply(schema: "type Note @model { id: ID! color: Int size: Int! }")
    #expect(try a.sync(b).notices.contains { $0.hasPrefix("Note.color is String here and Int at b") })
    #expect(try bench.open("a").status().notices.contains { $0.hasPrefix("Note.color is String") })
    #expect(try bench.open("b").status().notices.contains { $0.hasPrefix("Note.color is Int here") })
    _ = try bench.open("b").apply(schema: "type Note @model { id: ID! color: String }")
    #expect(try bench.open("b").status().notices.isEmpty)
    #expect(try bench.open("a").sync(bench.open("b")).notices.isEmpty)
    #expect(try bench.open("a").status().notices.isEmpty)
  }

  /// Each schema is accepted and usable, or is refused with the position of its mistake.
  @Test func drawnSchemasAreUsableOrRefused() throws {
    let bench = try Bench()
    var used = 0
    for seed in 1...Trials.count(60) {
      var generator = SchemaGenerator(seed: UInt64(seed), isLoose: true)
      let text = generator.text()
      do { _ = try bench.node("n\(seed)", text) } catch NodeError.schema { continue }
      let node = try bench.open("n\(seed)")
      _ = try node.status()
      #expect(try node.compare(schema: SDL.print(node.schema)).changes.isEmpty)
      used += 1
    }
    #expect(used > 20)
  }
}
