import StemmaEvents
import StemmaMerge
import StemmaSchema
import StemmaSimulation
import Testing

/// Fields with a default that events do not contain.
@Suite struct DefaultTests {
  private static func rules(_ policy: String = "AUTOMERGE") throws -> MergeRules {
    let schema = try SDL.read(
      """
      enum Level { LOW HIGH }
      type Law @model @conflict(policy: \(policy)) {
        id: ID!
        a: String
        level: Level! @default(value: "HIGH")
        quantity: Int @default(value: "3")
      }
      """
    ).schema
    let model = try #require(schema.model(named: "Law"))
    return MergeRules(model)
  }

  private func shown(_ record: Record, _ rules: MergeRules) throws -> [String] {
    let state = try record.state(rules)
    state.checkInvariants()
    for omitsShown in [true, false] {
      let bytes = state.encoded(rules, omitsShown: omitsShown)
      let restored = try RecordState(decoding: bytes, rules) { state.value(ofField: $0, rules) }
      #expect(restored == state)
      #expect(restored.encoded(rules, omitsShown: omitsShown) == bytes)
    }
    return ["level", "quantity"].map { state.text($0, rules) }
  }

  @Test func aFieldThatNoEventNamesShowsItsDefault() throws {
    let rules = try Self.rules()
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x")])
    #expect(try shown(record, rules) == ["HIGH", "3"])
    #expect(
      try record.state(rules).values(rules) == [
        Assignment("a", .string("x")), Assignment("level", .string("HIGH")), Assignment("quantity", .int(3)),
      ])
    record.add(1, .update, ["a": .string("y")], seen: [create])
    #expect(try shown(record, rules) == ["HIGH", "3"])
  }

  /// Null is a value of an optional field. A required field shows its default instead.
  @Test func aNullThatAnEventNamesIsShownWhereTheFieldMayBeNull() throws {
    let rules = try Self.rules()
    var created = Record()
    created.add(1, .create, ["level": .null, "quantity": .null])
    #expect(try shown(created, rules) == ["HIGH", "null"])
    var updated = Record()
    let create = updated.add(1, .create, ["level": .string("LOW"), "quantity": .int(5)])
    let update = updated.add(1, .update, ["level": .null, "quantity": .null], seen: [create])
    #expect(try shown(updated, rules) == ["HIGH", "null"])
    // A create writes every field, including fields unknown to its writer.
    updated.add(1, .create, seen: [update])
    #expect(try shown(updated, rules) == ["HIGH", "3"])
  }

  /// This also holds for whole records under OPTIMISTIC.
  @Test func anUpdateOfAnOlderSchemaLeavesTheDefault() throws {
    let rules = try Self.rules("OPTIMISTIC")
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x")])
    record.add(1, .update, ["a": .string("y")], seen: [create])
    #expect(try shown(record, rules) == ["HIGH", "3"])
    let completed = try record.state(rules).completed([Assignment("a", .string("z"))], rules)
    #expect(completed.contains(Assignment("quantity", .int(3))))
  }

  @Test func aValueAndADefaultOfConcurrentCreatesAreAConflictUnlessTheyAreEqual() throws {
    let rules = try Self.rules()
    var record = Record()
    record.add(1, .create, ["quantity": .int(5)])
    record.add(2, .create, ["level": .string("HIGH")])
    #expect(try record.state(rules).conflictTexts(rules) == ["quantity: 3, 5"])
    #expect(try shown(record, rules) == ["HIGH", "3"])
  }
}
