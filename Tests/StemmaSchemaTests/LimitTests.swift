import StemmaSchema
import Testing

/// Every limit: one below, at it, and one above.
@Suite struct LimitTests {
  private func check(_ limit: Int, _ text: (Int) -> String, sourceLocation: SourceLocation = #_sourceLocation)
  {
    for count in [limit - 1, limit] {
      #expect(throws: Never.self, sourceLocation: sourceLocation) { _ = try SDL.read(text(count)) }
    }
    #expect(throws: SchemaError.self, sourceLocation: sourceLocation) { _ = try SDL.read(text(limit + 1)) }
  }

  @Test func names() {
    check(SchemaLimits.name) { "type A @model { \(String(repeating: "x", count: $0)): Int }" }
  }

  @Test func fields() {
    let rest = { (count: Int) in (1..<count).map { "f\($0): Int " }.joined() }
    check(SchemaLimits.fields) { "type A @model { id: ID! \(rest($0)) }" }
    // The implied `id` counts as well.
    check(SchemaLimits.fields - 1) { "type A @model { f0: Int \(rest($0)) }" }
    check(SchemaLimits.fields) { "type A { f0: Int \(rest($0)) }" }
  }

  @Test func types() {
    check(SchemaLimits.types) { count in (0..<count).map { "enum E\($0) { A } " }.joined() }
  }

  @Test func literalDepth() {
    check(SchemaLimits.literalDepth) {
      "type A @model { x: Int @auth(r: \(String(repeating: "[", count: $0))\(String(repeating: "]", count: $0))) }"
    }
  }

  @Test func text() {
    let type = "type A @model { x: Int }"
    check(SchemaLimits.text) { type + String(repeating: " ", count: $0 - type.utf8.count) }
  }

  @Test func diagnostics() {
    for count in [SchemaLimits.diagnostics - 1, SchemaLimits.diagnostics, SchemaLimits.diagnostics + 1] {
      for text in [
        "type A @model { " + (0..<count).map { "f\($0): Nope " }.joined() + "}",
        String(repeating: "scalar X ", count: count),
      ] {
        let error = #expect(throws: SchemaError.self) { try SDL.read(text) }
        #expect(error?.diagnostics.count == min(count, SchemaLimits.diagnostics))
      }
    }
  }
}
