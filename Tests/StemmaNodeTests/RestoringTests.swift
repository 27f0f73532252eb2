import StemmaEvents
import StemmaNode
import Testing

/// Going back is going on: by new events.
@Suite struct RestoringTests {
  static let schema = """
    type Team @model { id: ID! name: String! members: [Member] @hasMany(references: ["teamId"]) }
    type Member @model {
      id: ID! name: String! age: Int updatedAt: AWSDateTime
      teamId: ID
      team: Team @belongsTo(fields: ["teamId"])
    }
    """

  private func changes(_ plan: Reversal, _ node: Node) -> [String] {
    plan.changes.map { difference in
      "\(difference.kind) \(difference.model.name) "
        + difference.descriptions(node.description).map { "\($0.field):\($0.from.text)→\($0.to.text)" }
        .joined(separator: " ")
    }
  }

  private func undo(_ text: String, _ node: Node, force: Bool = false) throws -> [String] {
    let plan = try node.undoing([try node.event(named: text)], isForced: force)
    _ = try node.write(plan, CommitNote())
    return changes(plan, node)
  }

  @Test func undoGivesBackWhatTheWriterHadRead() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1},"ts":1000}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2},"ts":2000}"#)
    #expect(
      throws: NodeError.self, "another event has written since",
      performing: { try undo("@1.0", node) })
    #expect(try undo("@1.1", node) == ["changed Member age:2→1"])
    #expect(try node.fields("Member", #""m""#)?.contains(#""age":1"#) == true)
    // A creation is undone by a deletion, and that by a creation.
    #expect(try undo("@1.0", node).first?.hasPrefix("removed Member") == true)
    #expect(try node.fields("Member", #""m""#) == nil)
    #expect(try undo("@1.3", node).first?.hasPrefix("added Member name:null→\"M\" age:null→1") == true)
  }

  @Test func undoRefusesToOverwriteOthers() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2,"name":"N"}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":3}}"#)
    #expect(throws: NodeError.self) { try node.undoing([try node.event(named: "@1.1")], isForced: false) }
    let plan = try node.undoing([try node.event(named: "@1.1")], isForced: true)
    #expect(changes(plan, node) == ["changed Member name:\"N\"→\"M\" age:3→1"])
  }

  /// If the value that its writer had read came back, the one that stands against it in the conflict would be
  /// gone without anybody having decided so.
  @Test func undoOfAWinnerInAConflictShowsTheOther() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.schema)
    let b = try bench.node("b", Self.schema)
    try a.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1},"ts":1000}"#)
    try a.sync(b)
    try a.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2},"ts":2000}"#)
    try b.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":3,"name":"N"},"ts":3000}"#)
    try a.sync(b)
    let name = "b:1"
    #expect(try undo(name, a) == ["changed Member name:\"N\"→\"M\" age:3→2"])
    #expect(try a.conflictTexts == [])
    // Over there b:1 is still shown, and a:2 has lost: there is nothing to take back.
    #expect(try undo("a:2", try bench.open("b")) == [])
  }

  @Test func undoOfACommitTakesBackItsCascade() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(
      #"{"op":"create","model":"Team","key":"t","fields":{"name":"T"}}"#,
      #"{"op":"create","model":"Member","key":"m","fields":{"name":"M","team":"t"}}"#)
    let before = try node.fields("Member", #""m""#)
    try node.commit(#"{"op":"delete","model":"Team","key":"t"}"#)
    let events = try node.commit(named: "a.2")
    #expect(events.count == 2)
    let plan = try node.undoing(events, isForced: false)
    _ = try node.write(plan, CommitNote())
    #expect(try node.fields("Team", #""t""#) == #"{"name":"T"}"#)
    let after = try node.fields("Member", #""m""#)
    #expect(after?.prefix(30) == before?.prefix(30))
  }

  @Test func restoreOfAModelDeletesWhatIsNewAndBringsBackWhatIsGone() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(
      #"{"op":"create","model":"Team","key":"kept","fields":{"name":"Kept"}}"#,
      #"{"op":"create","model":"Team","key":"gone","fields":{"name":"Gone"}}"#)
    try node.commit(#"{"op":"update","model":"Team","key":"kept","fields":{"name":"Changed"}}"#)
    try node.commit(#"{"op":"delete","model":"Team","key":"gone"}"#)
    try node.commit(#"{"op":"create","model":"Team","key":"new","fields":{"name":"New"}}"#)
    let team = try #require(node.schema.model(named: "Team"))
    let name = try #require(team.field(named: "name"))
    let then = try node.moment("@1.1")
    let plan = try node.restoration(of: team, key: nil, asOf: then, fields: [])
    #expect(
      changes(plan, node) == [
        "added Team name:null→\"Gone\"", "changed Team name:\"Changed\"→\"Kept\"",
        "removed Team name:\"New\"→null",
      ])
    #expect(
      changes(try node.restoration(of: team, key: nil, asOf: then, fields: [name]), node) == [
        "changed Team name:\"Changed\"→\"Kept\""
      ])
    #expect(try node.write(plan, CommitNote(by: "ann")) == 3)
    #expect(try node.restoration(of: team, key: nil, asOf: then, fields: []).changes.isEmpty)
  }

  /// Undoing the creation of an author once deleted three books that nobody had been shown.
  @Test func whatADeletionTakesAlongIsShown() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Author @model { id: ID! name: String! books: [Book] @hasMany(references: ["authorId"]) }
      type Book @model {
        id: ID! title: String! pages: Int!
        authorId: ID!
        author: Author! @belongsTo(references: ["authorId"])
        readerId: ID
        reader: Reader @belongsTo(references: ["readerId"])
      }
      type Reader @model { id: ID! name: String! books: [Book] @hasMany(references: ["readerId"]) }
      """)
    try node.commit(
      #"{"op":"create","model":"Author","key":"old","fields":{"name":"Old"}}"#,
      #"{"op":"create","model":"Book","key":"b","fields":{"title":"B","pages":1,"author":"old"}}"#)
    try node.commit(
      #"{"op":"create","model":"Author","key":"new","fields":{"name":"New"}}"#,
      #"{"op":"create","model":"Reader","key":"r","fields":{"name":"R"}}"#,
      #"{"op":"update","model":"Book","key":"b","fields":{"title":"C"}}"#)
    try node.commit(
      #"{"op":"create","model":"Book","key":"n","fields":{"title":"N","pages":2,"author":"new"}}"#)
    try node.commit(#"{"op":"update","model":"Book","key":"b","fields":{"author":"new","reader":"r"}}"#)
    let events = try node.commit(named: "a.2")
    #expect(throws: NodeError.self) { try node.undoing(events, isForced: false) }
    let plan = try node.undoing(events, isForced: true)
    // The book that was to get its old title back goes with its author, and so does the one that nobody named.
    #expect(
      changes(plan, node) == [
        "removed Book title:\"C\"→null pages:1→null authorId:\"new\"→null readerId:\"r\"→null",
        "removed Reader name:\"R\"→null", "removed Author name:\"New\"→null",
        "removed Book title:\"N\"→null pages:2→null authorId:\"new\"→null",
      ])
    let reader = try #require(node.schema.model(named: "Reader"))
    let key = try node.key(.string("r"), of: reader)
    let restoration = try node.restoration(of: reader, key: key, asOf: try node.moment("@1.1"), fields: [])
    #expect(
      changes(restoration, node) == ["removed Reader name:\"R\"→null", "changed Book readerId:\"r\"→null"])
    #expect(try node.write(restoration, CommitNote()) == 2)
    #expect(try node.write(try node.undoing(events, isForced: true), CommitNote()) == 3)
    #expect(try node.fields("Book", #""n""#) == nil)
  }

  /// Each undo is a change like any other, but it is not in the way of undoing what lies before it.
  @Test func undoOfUndoneChangesGoesOn() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":3}}"#)
    #expect(throws: NodeError.self) { try undo("a:2", node) }
    #expect(try undo("a:3", node) == ["changed Member age:3→2"])
    #expect(try undo("a:2", node) == ["changed Member age:2→1"])
    #expect(try undo("a:1", node) == ["removed Member name:\"M\"→null age:1→null"])
  }

  /// Between showing what an undo changes and appending it, another process may write.
  @Test func whatIsWrittenIsWhatWasShown() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    let other = try bench.open("a")
    try node.commit(
      #"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1}}"#,
      #"{"op":"create","model":"Member","key":"n","fields":{"name":"N","age":1}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2}}"#)
    let member = try #require(node.schema.model(named: "Member"))
    let plans = [
      try node.undoing([try node.event(named: "@1.2")], isForced: true),
      try node.restoration(of: member, key: nil, asOf: try node.moment("@1.1"), fields: []),
    ]
    // A record that neither touches is no reason to ask again.
    try other.commit(#"{"op":"create","model":"Team","key":"t","fields":{"name":"T"}}"#)
    #expect(try node.write(plans[0], CommitNote()) == 1)
    #expect(try node.fields("Member", #""m""#)?.contains(#""age":1"#) == true)

    let before = try node.history
    for plan in plans {
      #expect(throws: NodeError.self) { try node.write(plan, CommitNote()) }
      #expect(try node.history == before)
    }
    try other.commit(#"{"op":"update","model":"Member","key":"n","fields":{"age":3}}"#)
    let plan = try node.restoration(of: member, key: nil, asOf: try node.moment("@1.1"), fields: [])
    #expect(plan.changes.isEmpty, "this instance has not looked again")
    try other.commit(#"{"op":"delete","model":"Member","key":"n"}"#)
    #expect(throws: NodeError.self) { try node.write(plan, CommitNote()) }
  }
}
