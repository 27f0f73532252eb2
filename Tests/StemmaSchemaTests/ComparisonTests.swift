import StemmaSchema
import Testing

@Suite struct ComparisonTests {
  private static let base = """
    enum State { OPEN DONE }
    type Place { street: String  state: State }
    type Task @model {
      list: String! @primaryKey(sortKeyFields: ["number"])
      number: Int!
      title: String!
      state: State @index
      done: Boolean! @default(value: "false")
      place: Place
      ownerId: ID
      owner: Owner @belongsTo(fields: ["ownerId"])
    }
    type Owner @model { name: String }
    """

  /// Replaces one part of the base schema, and compares.
  private func compare(
    _ old: String, _ new: String, withEvents: Set<String> = ["Task"],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> SchemaComparison {
    #expect(Self.base.contains(old), sourceLocation: sourceLocation)
    let before = try SDL.read(Self.base).schema
    let after = try SDL.read(Self.base.replacing(old, with: new)).schema
    return before.changes(to: after) { withEvents.contains($0) }
  }

  private func expectAccepted(
    _ old: String, _ new: String, _ changes: SchemaChange...,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let comparison = try compare(old, new, sourceLocation: sourceLocation)
    #expect(comparison.refusals == [], sourceLocation: sourceLocation)
    #expect(comparison.changes == changes, sourceLocation: sourceLocation)
  }

  /// Refused with events, accepted without.
  private func expectRefused(
    _ old: String, _ new: String, _ field: String?, _ message: String, _ advice: String,
    type: String = "Task", sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let refusals = try compare(old, new, sourceLocation: sourceLocation).refusals
    let isThere = refusals.contains {
      $0.type == type && $0.field == field && $0.message.contains(message) && $0.advice.contains(advice)
    }
    #expect(isThere, "found \(refusals)", sourceLocation: sourceLocation)
    let without = try compare(old, new, withEvents: [], sourceLocation: sourceLocation)
    #expect(without.refusals == [], sourceLocation: sourceLocation)
    #expect(!without.changes.isEmpty, sourceLocation: sourceLocation)
  }

  @Test func nothingChanges() throws {
    #expect(try compare("title", "title").isEmpty)
    // Another spelling of the same declaration is not a change.
    #expect(try compare("fields: [\"ownerId\"]", "references: \"ownerId\"").isEmpty)
  }

  @Test func additiveChangesApply() throws {
    try expectAccepted("enum State", "type New @model { x: Int } enum State", .modelAdded("New"))
    try expectAccepted("title: String!", "title: String! more: Int", .fieldAdded(type: "Task", field: "more"))
    try expectAccepted(
      "title: String!", "title: String! more: Int! @default(value: \"1\")",
      .fieldAdded(type: "Task", field: "more"))
    try expectAccepted("title: String!", "title: String", .fieldBecameOptional(type: "Task", field: "title"))
    try expectAccepted("OPEN DONE", "OPEN DONE LATE", .caseAdded(enumeration: "State", name: "LATE"))
    try expectAccepted("title: String!\n", "", .fieldRemoved(type: "Task", field: "title"))
    try expectAccepted(
      "title: String!", "name: String! @mapsTo(name: \"title\")",
      .fieldRenamed(type: "Task", from: "title", to: "name"))
    try expectAccepted(
      "title: String!", "title: String! @index", .indexAdded(model: "Task", name: "byTitle"))
    try expectAccepted("state: State @index", "state: State", .indexRemoved(model: "Task", name: "byState"))
    try expectAccepted(
      "street: String", "street: String zip: Int", .fieldAdded(type: "Place", field: "zip"))
    try expectAccepted(
      "type Task @model", "type Task @model @table(name: \"todo\")",
      .tableRenamed(model: "Task", from: "tasks", to: "todo"))
    try expectAccepted(
      "type Task @model", "type Job @model @mapsTo(name: \"Task\")", .modelRenamed(from: "Task", to: "Job"),
      .tableRenamed(model: "Job", from: "tasks", to: "jobs"))
    try expectAccepted(
      "ownerId: ID\n", "ownerId: ID @default(value: \"x\")\n", .defaultChanged(type: "Task", field: "ownerId")
    )
  }

  @Test func aRemovedModelIsHidden() throws {
    let before = try SDL.read("type A @model { x: Int } type B @model { x: Int }").schema
    let after = try SDL.read("type A @model { x: Int }").schema
    let comparison = before.changes(to: after) { _ in true }
    #expect(comparison.changes == [.modelRemoved("B")])
    #expect(comparison.refusals == [])
  }

  /// Key, partition rule and conflict policy cannot change once the model has events.
  @Test func keyPartitionRuleAndConflictPolicyAreForEver() throws {
    try expectRefused(
      "sortKeyFields: [\"number\"]", "sortKeyFields: [\"number\", \"title\"]", nil,
      "the key changes from (list: String, number: Int) to (list: String, number: Int, title: String)",
      "a new model")
    try expectRefused("number: Int!", "number: Float!", nil, "the key changes", "a new model")
    try expectRefused(
      "type Task @model", "type Task @model @partition(fields: [])", nil,
      "the partition rule changes from one for each list to one of all records", "keep the rule")
    try expectRefused(
      "type Task @model", "type Task @model @conflict(policy: LATEST)", nil,
      "the conflict policy changes from AUTOMERGE, deletes BY_VERSION to LATEST, deletes BY_VERSION", "keep")
    try expectRefused(
      "type Task @model", "type Task @model @conflict(deletes: DELETE_WINS)", nil,
      "the conflict policy changes",
      "keep the policy")
  }

  @Test func aKeyPartMayBeRenamed() throws {
    let comparison = try compare(
      "list: String! @primaryKey", "folder: String! @mapsTo(name: \"list\") @primaryKey")
    #expect(comparison.refusals == [])
    #expect(comparison.changes == [.fieldRenamed(type: "Task", from: "list", to: "folder")])
  }

  @Test func whatEventsMayContradictIsRefused() throws {
    try expectRefused("title: String!", "title: Int!", "title", "changes from String to Int", "a new field")
    try expectRefused("state: State @index", "state: State!", "state", "becomes required", "keep it optional")
    try expectRefused("title: String!", "title: String! more: Int!", "more", "is required", "`@default`")
    try expectRefused(
      "done: Boolean! @default(value: \"false\")", "done: Boolean!", "done", "loses its default",
      "keep the default")
    try expectRefused("ownerId: ID\n", "ownerId: ID!\n", "ownerId", "becomes required", "keep it optional")
    try expectRefused("owner: Owner ", "owner: Owner! ", "owner", "relationship becomes required", "optional")
    try expectRefused("OPEN DONE", "OPEN", nil, "case DONE is gone", "keep the case", type: "State")
    try expectRefused(
      "street: String", "street: Int", "street", "changes from String to Int", "a new field", type: "Place")
    try expectRefused(
      "street: String", "street: String!", "street", "becomes required", "optional", type: "Place")
  }

  @Test func elementsMayBecomeOptionalButNotRequired() throws {
    let strict = try SDL.read("type A @model { x: [Int!] }").schema
    let loose = try SDL.read("type A @model { x: [Int] }").schema
    #expect(strict.changes(to: loose) { _ in true }.refusals == [])
    #expect(loose.changes(to: strict) { _ in true }.refusals.count == 1)
  }

  @Test func modelsWithoutEventsChangeFreely() throws {
    let comparison = try compare("type Owner @model { name: String }", "type Owner @model { name: Int! }")
    #expect(comparison.refusals == [])
  }

  @Test func relationshipsComeAndGo() throws {
    let with = "owner: Owner @belongsTo(fields: [\"ownerId\"])"
    try expectAccepted(with, "", .relationshipRemoved(model: "Task", name: "owner"))
    let before = try SDL.read(Self.base.replacing(with, with: "")).schema
    let added = before.changes(to: try SDL.read(Self.base).schema) { _ in true }
    #expect(added.changes == [.relationshipAdded(model: "Task", name: "owner")])
  }

  /// Peers that differ in key, partition rule or conflict policy are refused.
  @Test func peersMustAgreeOnKeyPartitionAndPolicy() throws {
    let ours = try SDL.read(Self.base).schema
    func conflicts(_ old: String, _ new: String) throws -> [PeerConflict.Subject] {
      ours.conflictsWithPeer(try SDL.read(Self.base.replacing(old, with: new)).schema).map(\.subject)
    }
    #expect(try conflicts("title: String!", "title: Int") == [])
    #expect(try conflicts("enum State", "type New @model { x: Int } enum State") == [])
    #expect(try conflicts("number: Int!", "number: Float!") == [.key])
    #expect(try conflicts("type Task @model", "type Task @model @partition(fields: [])") == [.partitionRule])
    #expect(
      try conflicts("type Task @model", "type Task @model @conflict(policy: LATEST)") == [.conflictPolicy])
    #expect(try conflicts("type Task @model", "type Job @model @mapsTo(name: \"Task\")") == [])
  }
}
