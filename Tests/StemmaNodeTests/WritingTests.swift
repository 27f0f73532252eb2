import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

@Suite struct WritingTests {
  static let note = "type Note @model { id: ID! text: String stars: Int @default(value: \"3\") }"

  @Test func defaultsAreWrittenAndAnUpdateThatChangesNothingWritesNoEvent() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    #expect(
      try node.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"}}"#)
        == [#"create Note n {"stars":3,"text":"x"}"#])
    #expect(try node.commit(#"{"op":"update","model":"Note","key":"n","fields":{"text":"x"}}"#) == [])
    #expect(try node.history.count == 1)
  }

  /// As plain fields they would be in conflict after every two concurrent edits.
  @Test func timesAreMaintainedAndNeverAConflict() throws {
    let bench = try Bench()
    let schema = "type Note @model { id: ID! text: String createdAt: AWSDateTime updatedAt: AWSDateTime }"
    let a = try bench.node("a", schema)
    let b = try bench.node("b", schema)
    try a.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"},"ts":1000}"#)
    try b.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"},"ts":2000}"#)
    try a.sync(b)
    #expect(try a.conflictTexts == [])
    #expect(
      try a.fields("Note", #""n""#)
        == #"{"text":"x","createdAt":"1970-01-01T00:16:40Z","updatedAt":"1970-01-01T00:33:20Z"}"#)
    #expect(try b.fields("Note", #""n""#) == (try a.fields("Note", #""n""#)))
  }

  /// An event with only the changed field would let a merge create a row that no node wrote.
  @Test func optimisticEventsRecordAllFields() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a", "type Note @model @conflict(policy: OPTIMISTIC) { id: ID! text: String stars: Int }")
    try node.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"}}"#)
    #expect(
      try node.commit(#"{"op":"update","model":"Note","key":"n","fields":{"stars":1}}"#)
        == [#"update Note n {"stars":1,"text":"x"}"#])
  }

  @Test func latestPrefersTheClockAndTheDefaultTheVersion() throws {
    for (policy, shown) in [("LATEST", "late"), ("AUTOMERGE", "long")] {
      let bench = try Bench()
      let schema = "type Note @model @conflict(policy: \(policy)) { id: ID! text: String }"
      let a = try bench.node("a", schema)
      let b = try bench.node("b", schema)
      try a.commit(#"{"op":"create","model":"Note","key":"n","ts":1000}"#)
      try a.sync(b)
      try a.commit(#"{"op":"update","model":"Note","key":"n","fields":{"text":"1"},"ts":1001}"#)
      try a.commit(#"{"op":"update","model":"Note","key":"n","fields":{"text":"long"},"ts":1002}"#)
      try b.commit(#"{"op":"update","model":"Note","key":"n","fields":{"text":"late"},"ts":9000}"#)
      try a.sync(b)
      #expect(try a.fields("Note", #""n""#) == #"{"text":"\#(shown)"}"#)
      #expect(try b.digestTexts == (try a.digestTexts))
    }
  }

  /// Without a delete policy, the longer history wins, as for fields.
  @Test func byDefaultTheVersionDecidesBetweenADeletionAndAChange() throws {
    for changes in [1, 2] {
      let bench = try Bench()
      let a = try bench.node("a", Self.note)
      let b = try bench.node("b", Self.note)
      try a.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"}}"#)
      try a.sync(b)
      for change in 1...changes {
        try b.commit(
          #"{"op":"update","model":"Note","key":"n","fields":{"text":"\#(change)"},"ts":\#(change)}"#)
      }
      // It has the same version as the first change and a later timestamp than both.
      try a.commit(#"{"op":"delete","model":"Note","key":"n"}"#)
      try a.sync(b)
      #expect(try (a.fields("Note", #""n""#) != nil) == (changes == 2))
      #expect(try a.conflictTexts.map { $0.prefix { $0 != ":" } } == ["delete Note n -"])
      #expect(try a.digestTexts == (try b.digestTexts))
    }
  }

  /// A field update of a record whose deletion is in conflict does not decide that the record
  /// exists.
  @Test func deletePoliciesAndTheUpdateThatDoesNotBuryADeletion() throws {
    for (policy, exists) in [("DELETE_WINS", false), ("UPDATE_WINS", true)] {
      let bench = try Bench()
      let schema = "type Note @model @conflict(deletes: \(policy)) { id: ID! text: String }"
      let a = try bench.node("a", schema)
      let b = try bench.node("b", schema)
      try a.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"}}"#)
      try a.sync(b)
      try a.commit(#"{"op":"delete","model":"Note","key":"n"}"#)
      try b.commit(#"{"op":"update","model":"Note","key":"n","fields":{"text":"y"}}"#)
      try a.sync(b)
      #expect(try (a.fields("Note", #""n""#) != nil) == exists)
      if exists {
        try a.commit(#"{"op":"update","model":"Note","key":"n","fields":{"text":"z"}}"#)
        #expect(try a.conflictTexts.map { $0.prefix { $0 != ":" } } == ["delete Note n -"])
      }
    }
  }

  @Test func deleteAndCreateAgainIsOrdinary() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    try node.commit(#"{"op":"create","model":"Note","key":"n","fields":{"text":"x"}}"#)
    try node.commit(#"{"op":"delete","model":"Note","key":"n"}"#)
    let event = try #require(try node.rawEvents(#"{"op":"create","model":"Note","key":"n"}"#).first)
    #expect(event.version.rawValue == 3)
    #expect(try node.fields("Note", #""n""#) == #"{"text":null,"stars":3}"#)
    #expect(try node.conflictTexts == [])
  }

  @Test func ifRevisionRefusesANewerState() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    try node.commit(#"{"op":"create","model":"Note","key":"n"}"#)
    let revision = try node.revision("Note", #""n""#)
    let update = #"{"op":"update","model":"Note","key":"n","fields":{"text":"y"}}"#
    #expect(try node.refusal(update, ifRevision: revision) == "")
    #expect(
      try node.refusal(
        #"{"op":"update","model":"Note","key":"n","fields":{"text":"z"}}"#, ifRevision: revision)
        == "revisionMismatch")
  }

  // MARK: Partitions and keys

  @Test func partitionsFollowTheKey() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Pair @model { tenant: Int! @primaryKey(sortKeyFields: ["n"]) n: Int! }
      type Text @model { tenant: String! @primaryKey(sortKeyFields: ["n"]) n: Int! }
      type One @model { tenant: Int! @primaryKey }
      type Own @model { id: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! }
      type None @model @partition(fields: []) { tenant: Int! @primaryKey(sortKeyFields: ["n"]) n: Int! }
      """)
    let partitions = try [
      #"{"op":"create","model":"Pair","key":{"tenant":5,"n":1}}"#,
      #"{"op":"create","model":"Text","key":{"tenant":"5","n":1}}"#,
      #"{"op":"create","model":"One","key":5}"#,
      #"{"op":"create","model":"Own","key":{"id":"x","n":1}}"#,
      #"{"op":"create","model":"None","key":{"tenant":5,"n":1}}"#,
    ].map { try #require(try node.rawEvents($0).first).partition.description }
    #expect(partitions == ["tenant=5", "tenant=5", "One", "Own", "None"])
    #expect(
      try node.refusal(#"{"op":"update","model":"Pair","key":{"tenant":5,"n":1},"fields":{"n":2}}"#)
        == "keyFieldAssigned")
  }

  /// Swift considers both equal. SQLite keeps two rows, and so do keys, partitions and streams.
  @Test func composedAndDecomposedKeysAreTwoRecords() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    try node.commit(
      "{\"op\":\"create\",\"model\":\"Note\",\"key\":\"\u{e9}\",\"fields\":{\"text\":\"composed\"}}",
      "{\"op\":\"create\",\"model\":\"Note\",\"key\":\"e\u{301}\",\"fields\":{\"text\":\"decomposed\"}}")
    #expect(try node.fields("Note", "\"\u{e9}\"") == #"{"text":"composed","stars":3}"#)
    #expect(try node.fields("Note", "\"e\u{301}\"") == #"{"text":"decomposed","stars":3}"#)
  }

  // MARK: Commits

  @Test func aCommitThatThrowsLeavesNothing() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    #expect(throws: NodeError.self) {
      try node.commit(
        #"{"op":"create","model":"Note","key":"n"}"#, #"{"op":"update","model":"Note","key":"none"}"#)
    }
    #expect(try node.history == [])
    #expect(try node.fields("Note", #""n""#) == nil)
  }

  @Test func inAGroupOnlyTheCommitThatThrowsIsGone() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    let lines = try ["1", "2", "3"].map { try mutation(#"{"op":"create","model":"Note","key":"\#($0)"}"#) }
    let outcomes = try node.write(
      lines.enumerated().map { index, line in
        Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
          try transaction.perform(line)
          if index == 1 { try transaction.perform(line) }
        }
      })
    #expect(
      outcomes.map { if case .success = $0 { true } else { false } } == [true, false, true])
    #expect(try node.history == [#"create Note 1 {"stars":3}"#, #"create Note 3 {"stars":3}"#])
    #expect(try node.fields("Note", #""2""#) == nil)
    #expect(try node.commit(#"{"op":"create","model":"Note","key":"4"}"#).count == 1)
    #expect(try bench.open("a").history.count == 3)
  }

  @Test func whatComesWhileAGroupIsMadeJoinsIt() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    let requests = try ["1", "2", "2", "3"].map { key in
      let line = try mutation(#"{"op":"create","model":"Note","key":"\#(key)"}"#)
      return Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
        try transaction.perform(line)
      }
    }
    var coming = [Array(requests[1...2]), [requests[3]]]
    let outcomes = try node.write([requests[0]], joining: { coming.isEmpty ? [] : coming.removeFirst() })
    #expect(
      outcomes.map { if case .success = $0 { true } else { false } } == [true, true, false, true])
    #expect(try node.history == ["1", "2", "3"].map { #"create Note \#($0) {"stars":3}"# })
    try node.checkInvariants()
  }

  @Test func aGroupThatIsAlwaysJoinedIsStoredNevertheless() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    var last = 0
    func next() throws -> Node.CommitRequest {
      last += 1
      let line = try mutation(#"{"op":"create","model":"Note","key":"\#(last)"}"#)
      return Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
        try transaction.perform(line)
      }
    }
    var requests = try (1...1000).map { _ in try next() }
    let outcomes = try node.write([try next()], joining: { [requests.removeLast()] })
    #expect(outcomes.count == 1001 - requests.count && !requests.isEmpty)
    #expect(try node.history.count == outcomes.count)
  }

  /// The rows of a group are written while its events are synced. Either may fail, at any point.
  @Test func aGroupThatCannotBeStoredIsWholeOrGone() throws {
    var isStored = false
    var failures = 0
    for operation in 1...100 where !isStored {
      let bench = try Bench()
      try bench.node("a", Self.note).commit(#"{"op":"create","model":"Note","key":"first"}"#)
      let files = FailingFileSystem()
      let lines = try (1...5).map { try mutation(#"{"op":"create","model":"Note","key":"\#($0)"}"#) }
      do {
        let node = try bench.open("a", on: files)
        files.fail(from: operation)
        let outcomes = try node.write(
          lines.map { line in
            Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
              try transaction.perform(line)
            }
          })
        #expect(outcomes.count == 5)
        isStored = true
      } catch let error as NodeError {
        guard case .log = error else { throw error }
        failures += 1
      }
      let again = try bench.open("a")
      let count = try again.history.count
      #expect(isStored ? count == 6 : count == 1 || count == 6, "operation \(operation): \(count)")
      try again.checkInvariants()
    }
    #expect(isStored && failures > 3)
  }
}
