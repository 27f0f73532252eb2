import StemmaEvents
import StemmaHistory
import StemmaNode
import Testing

/// An undo or restore appends new events.
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
    _ = try node.write(plan, CommitMessage())
    return changes(plan, node)
  }

  @Test func undoGivesBackWhatTheWriterHadRead() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1},"ts":1000}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2},"ts":2000}"#)
    #expect(
      throws: NodeError.self, "another event has written since",
      performing: { try undo("@1", node) })
    #expect(try undo("@2", node) == ["changed Member age:2→1"])
    #expect(try node.fields("Member", #""m""#)?.contains(#""age":1"#) == true)
    // The other event is undone. A deletion undoes a creation, and vice versa.
    #expect(try undo("@1", node).first?.hasPrefix("removed Member") == true)
    #expect(try node.fields("Member", #""m""#) == nil)
    #expect(try undo("@4", node).first?.hasPrefix("added Member name:null→\"M\" age:null→1") == true)
  }

  @Test func aLinkThatIsGivenBackIsALink() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Team","key":"t","fields":{"name":"T"}}"#)
    try node.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M"}}"#)
    try node.commit(#"{"op":"link","model":"Member","key":"m","fields":{"team":"t"}}"#)
    try node.commit(#"{"op":"unlink","model":"Member","key":"m","fields":{"team":"t"}}"#)
    #expect(try undo("@4", node) == ["changed Member teamId:null→\"t\""])
    #expect(try node.history.last?.hasPrefix("link Member") == true)
    #expect(try undo("@5", node) == ["changed Member teamId:\"t\"→null"])
    #expect(try node.history.last?.hasPrefix("unlink Member") == true)
    // Fields that are no references remain a separate update.
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"name":"N","teamId":"t"}}"#)
    #expect(try undo("@7", node) == ["changed Member name:\"N\"→\"M\" teamId:\"t\"→null"])
    #expect(try node.history.suffix(2).map { $0.prefix { $0 != " " } } == ["update", "unlink"])
  }

  private static let library = """
    type Author @model { id: ID! name: String! books: [Book] @hasMany(references: ["authorId"]) }
    type Book @model {
      id: ID! title: String! pages: Int! authorId: ID!
      author: Author! @belongsTo(fields: ["authorId"])
    }
    """

  @Test func whatADeletionTakesAlongIsShownAndNeedsForce() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.library)
    try node.commit(#"{"op":"create","model":"Author","key":"ann","fields":{"name":"Ann"}}"#)
    for key in ["b1", "b2"] {
      try node.commit(
        #"{"op":"create","model":"Book","key":"\#(key)","fields":{"title":"T","pages":9,"authorId":"ann"}}"#)
    }
    let refusal = #expect(throws: NodeError.self) {
      try node.undoing([try node.event(named: "@1")], isForced: false)
    }
    guard case .inspection(.takesAlong(records: ["Book b1", "Book b2"])) = refusal else {
      Issue.record("\(String(describing: refusal))")
      return
    }
    #expect(try node.fields("Book", #""b1""#) != nil)
    let plan = try node.undoing([try node.event(named: "@1")], isForced: true)
    #expect(plan.changes.map(\.kind) == [.removed, .removed, .removed])
    #expect(Set(plan.changes.map(\.model.name)) == ["Author", "Book"])
    #expect(try node.write(plan, CommitMessage()).events == 3)
    #expect(try node.fields("Book", #""b2""#) == nil)
  }

  /// A cascade deletes the record, so its planned change must not recreate it with one field.
  @Test func aRecordThatIsChangedAndGoesAlongIsNotMadeAnew() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.library)
    try node.commit(#"{"op":"create","model":"Author","key":"ann","fields":{"name":"Ann"}}"#)
    try node.commit(
      #"{"op":"create","model":"Book","key":"b","fields":{"title":"T","pages":9,"authorId":"ann"}}"#)
    try node.commit(
      #"{"op":"create","model":"Author","key":"new","fields":{"name":"N"}}"#,
      #"{"op":"update","model":"Book","key":"b","fields":{"title":"U"}}"#)
    try node.commit(#"{"op":"update","model":"Book","key":"b","fields":{"authorId":"new"}}"#)
    let plan = try node.undoing(try node.commit(named: "a.3"), isForced: true)
    #expect(Set(changes(plan, node).map { $0.prefix(12) }) == ["removed Book", "removed Auth"])
    _ = try node.write(plan, CommitMessage())
    #expect(try node.fields("Book", #""b""#) == nil)
  }

  @Test func commitsAreUndoneOneAfterTheOther() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.library)
    try node.commit(#"{"op":"create","model":"Author","key":"ann","fields":{"name":"1"}}"#)
    for name in ["2", "3"] {
      try node.commit(#"{"op":"update","model":"Author","key":"ann","fields":{"name":"\#(name)"}}"#)
    }
    #expect(try undo("@3", node) == ["changed Author name:\"3\"→\"2\""])
    #expect(try undo("@2", node) == ["changed Author name:\"2\"→\"1\""])
    #expect(try undo("@1", node).first?.hasPrefix("removed Author") == true)
  }

  @Test func undoRefusesToOverwriteOthers() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2,"name":"N"}}"#)
    try node.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":3}}"#)
    #expect(throws: NodeError.self) { try node.undoing([try node.event(named: "@2")], isForced: false) }
    let plan = try node.undoing([try node.event(named: "@2")], isForced: true)
    #expect(changes(plan, node) == ["changed Member name:\"N\"→\"M\" age:3→1"])
  }

  /// Restoring the value that the winner's writer had read would discard the losing value without a
  /// decision.
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
    // At b the winner b:1 is still shown and a:2 has lost, so there is nothing to undo.
    #expect(try undo("a:2", try bench.open("b")) == [])
  }

  /// The record returns with the change that had lost against the deletion.
  @Test func undoOfADeletionThatWonKeepsTheRecord() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.schema)
    let (b, c) = (try bench.node("b", Self.schema), try bench.node("c", Self.schema))
    try a.commit(#"{"op":"create","model":"Member","key":"m","fields":{"name":"M","age":1},"ts":1000}"#)
    try a.sync(b)
    try a.sync(c)
    try a.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":2},"ts":2000}"#)
    try b.commit(#"{"op":"delete","model":"Member","key":"m","ts":3000}"#)
    try a.sync(b)
    #expect(try a.fields("Member", #""m""#) == nil)
    #expect(throws: NodeError.self, "the update cannot be undone while the record is not there") {
      try undo("a:2", a)
    }
    #expect(try undo("b:1", a).first?.hasPrefix("added Member name:null→\"M\" age:null→2") == true)
    #expect(try a.conflictTexts == [])
    // Undoing one of two deletions is refused.
    try a.sync(c)
    try a.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":3},"ts":4000}"#)
    for node in [try bench.open("b"), c] {
      try a.sync(node)
      try node.commit(#"{"op":"delete","model":"Member","key":"m"}"#)
    }
    try a.commit(#"{"op":"update","model":"Member","key":"m","fields":{"age":4}}"#)
    try a.sync(try bench.open("b"))
    try a.sync(c)
    #expect(try a.conflictTexts.count == 1)
    #expect(throws: NodeError.self) { try undo("c:1", a) }
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
    _ = try node.write(plan, CommitMessage())
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
    let then = try node.pointInTime("@2")
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
    #expect(try node.write(plan, CommitMessage(author: "ann")).events == 3)
    #expect(try node.restoration(of: team, key: nil, asOf: then, fields: []).changes.isEmpty)
  }

  /// Another process may write between the preview of an undo and its append.
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
      try node.undoing([try node.event(named: "@3")], isForced: true),
      try node.restoration(of: member, key: nil, asOf: try node.pointInTime("@2"), fields: []),
    ]
    // A change of an unrelated record does not require another preview.
    try other.commit(#"{"op":"create","model":"Team","key":"t","fields":{"name":"T"}}"#)
    #expect(try node.write(plans[0], CommitMessage()).events == 1)
    #expect(try node.fields("Member", #""m""#)?.contains(#""age":1"#) == true)

    let before = try node.history
    for plan in plans {
      #expect(throws: NodeError.self) { try node.write(plan, CommitMessage()) }
      #expect(try node.history == before)
    }
    try other.commit(#"{"op":"update","model":"Member","key":"n","fields":{"age":3}}"#)
    let plan = try node.restoration(of: member, key: nil, asOf: try node.pointInTime("@2"), fields: [])
    #expect(plan.changes.isEmpty, "this instance has not looked again")
    try other.commit(#"{"op":"delete","model":"Member","key":"n"}"#)
    #expect(throws: NodeError.self) { try node.write(plan, CommitMessage()) }
  }
}
