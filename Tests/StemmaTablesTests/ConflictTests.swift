import StemmaEvents
import StemmaMerge
import StemmaSchema
import Testing

@testable import StemmaTables

@Suite struct ConflictTests {
  private func tables(_ writers: Writers) throws -> Tables {
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    try tables.check()
    return tables
  }

  @Test func differingValuesAreListedWithTheShownOneFirst() throws {
    var writers = Writers(try sampleSchema())
    let key = Key(.string("t"))
    try writers.write(.create, "Team", key, ["name": .string("old")], by: 1)
    try writers.sync(2)
    let low = try writers.write(.update, "Team", key, ["name": .string("low")], by: 1)
    let high = try writers.write(.update, "Team", key, ["name": .string("high")], by: 2)
    var tables = try tables(writers)
    let conflict = try #require(try tables.conflicts().first)
    #expect(conflict.kind == .value && conflict.model == "Team" && conflict.key == key)
    #expect(conflict.field == "name")
    #expect(conflict.choices.map(\.value) == [.field(.string("high")), .field(.string("low"))])
    #expect(conflict.choices.map(\.event) == [high.name, low.name])
    #expect(conflict.choices.map(\.version) == [Version(2), Version(2)])

    try writers.sync(1)
    try writers.write(.resolve, "Team", key, ["name": .string("low")], by: 1)
    tables = try self.tables(writers)
    #expect(try tables.conflicts().isEmpty)
  }

  @Test func deletionAgainstAChangeIsListedWhetherTheRecordIsShownOrNot() throws {
    for deletesMore in [false, true] {
      var writers = Writers(try sampleSchema())
      let key = Key(.string("t"))
      try writers.write(.create, "Team", key, ["name": .string("old")], by: 1)
      try writers.sync(2)
      try writers.write(.delete, "Team", key, by: 1)
      try writers.write(.update, "Team", key, ["name": .string("kept")], by: 2)
      // The deletion wins if it follows a longer history.
      if deletesMore { try writers.write(.delete, "Team", key, by: 1) }
      let tables = try tables(writers)
      let conflict = try #require(try tables.conflicts().first)
      #expect(conflict.kind == .delete && conflict.field == nil)
      #expect(
        conflict.choices.map(\.value)
          == (deletesMore ? [.exists(false), .exists(true)] : [.exists(true), .exists(false)]))
      #expect(try tables.exported().isEmpty == deletesMore)
    }
  }

  /// Two captains for one team after a merge: `hasOne` shows the winner, and both are listed.
  @Test func secondChildOfAHasOneIsAConflictOfCardinality() throws {
    var writers = Writers(try sampleSchema())
    let team = Key(.string("t"))
    try writers.write(.create, "Team", team)
    let first = try writers.write(.create, "Captain", Key(.string("a")), ["teamId": .string("t")], by: 1)
    let second = try writers.write(.create, "Captain", Key(.string("b")), ["teamId": .string("t")], by: 2)
    try writers.write(.create, "Captain", Key(.string("c")), ["teamId": .null], by: 2)
    let tables = try tables(writers)
    let conflicts = try tables.conflicts()
    #expect(conflicts.count == 1)
    let conflict = try #require(conflicts.first)
    #expect(conflict.kind == .cardinality && conflict.model == "Team" && conflict.key == team)
    #expect(conflict.field == "captain")
    #expect(
      conflict.choices.map(\.value) == [
        .record(model: "Captain", Key(.string("b"))), .record(model: "Captain", Key(.string("a"))),
      ])
    #expect(conflict.choices.map(\.event) == [second.name, first.name])
    let shown = try tables.read { reader throws(TablesError) in
      var cursor = try reader.related(to: team, of: "Team", through: "captain")
      return try cursor.all().map(\.key)
    }
    #expect(shown == [Key(.string("b"))])
  }

  @Test func danglingReferenceIsListedUnlessItLeadsOutOfScope() throws {
    var writers = Writers(try sampleSchema())
    let write = try writers.write(.create, "Member", Key(.string("m")), ["teamId": .string("gone")])
    try writers.write(.create, "Member", Key(.string("n")), ["teamId": .null])
    let tables = try tables(writers)
    let conflicts = try tables.conflicts()
    #expect(conflicts.count == 1)
    let conflict = try #require(conflicts.first)
    #expect(conflict.kind == .dangling && conflict.model == "Member" && conflict.field == "team")
    #expect(conflict.choices.map(\.value) == [.record(model: "Team", Key(.string("gone")))])
    #expect(conflict.choices.map(\.event) == [write.name])
    #expect(try tables.conflicts { $0 != Partition("Team") }.isEmpty)
    try writers.write(.create, "Team", Key(.string("gone")))
    #expect(try self.tables(writers).conflicts().isEmpty)
  }

  @Test func conflictsCanBeAskedForOneModel() throws {
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Member", Key(.string("m")), ["teamId": .string("gone")])
    try writers.write(.create, "Captain", Key(.string("c")), ["teamId": .string("gone")])
    let tables = try tables(writers)
    let models = try tables.read { reader throws(TablesError) in
      var cursor = try reader.conflicts(["Captain"]) { _ in true }
      var models: [String] = []
      while let conflict = try cursor.next() { models.append(conflict.model) }
      return models
    }
    #expect(models == ["Captain"])
    #expect(throws: TablesError.unknownModel("Nothing")) {
      try tables.read { reader throws(TablesError) in
        _ = try reader.conflicts(["Nothing"]) { _ in true }
      }
    }
  }
}
