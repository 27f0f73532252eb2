import StemmaEvents
import StemmaMerge
import StemmaSchema

/// The result of a merge for a record, independent of the representation of its state.
package struct MergeOutcome: Hashable, Sendable {
  package struct Sibling: Hashable, Sendable {
    package var id: EventID
    package var value: Value
  }

  package struct FieldOutcome: Hashable, Sendable {
    package var name: String
    /// Sorted by event id.
    package var siblings: [Sibling]
    package var shown: Value
  }

  package struct Conflict: Hashable, Sendable {
    /// The differing fields; empty for existence.
    package var fields: [String]
    /// The shown one first, then from the strongest to the weakest.
    package var candidates: [EventID]
  }

  package var context: Context
  package var version: Version
  package var latest: Timestamp
  package var exists: Bool
  /// Sorted by event id.
  package var existence: [Sibling]
  package var fields: [FieldOutcome]
  package var conflicts: [Conflict]
}

extension MergeOutcome {
  /// The differences, for the report of a failure.
  func differences(from other: MergeOutcome) -> String {
    var lines: [String] = []
    func compare<T: Equatable>(_ name: String, _ a: T, _ b: T) {
      if a != b { lines.append("\(name): \(a) instead of \(b)") }
    }
    compare("context", context, other.context)
    compare("version", version, other.version)
    compare("latest", latest, other.latest)
    compare("exists", exists, other.exists)
    compare("existence", existence, other.existence)
    for (field, expected) in zip(fields, other.fields) {
      compare("siblings of \(field.name)", field.siblings, expected.siblings)
      compare("shown of \(field.name)", field.shown, expected.shown)
    }
    compare("conflicts", conflicts, other.conflicts)
    return lines.joined(separator: "; ")
  }
}

/// The model that the merge laws are checked on: plain fields, a reference of two fields, times.
package enum LawModel {
  /// Known fields in byte order, then one that the schema lacks.
  package static let fields = ["a", "b", "createdAt", "r1", "r2", "updatedAt", "unknown"]

  /// Indexes of `fields`.
  static let createdAt = 2
  static let reference = 3..<5
  static let updatedAt = 5

  /// Times as texts, and the order of their points in time.
  package static let times = [
    "2024-01-01T00:30:00+01:00": 0, "2024-01-01T00:00:00Z": 1, "2024-01-01T01:00:00+01:00": 1,
    "2024-01-01T00:00:00.25Z": 2,
  ]

  package static func model(_ policy: ConflictPolicy, _ deletes: DeletePolicy) -> Model {
    func text(_ name: String) -> Field {
      Field(name: name, type: FieldType(.scalar(.string)), isRequired: false)
    }
    func time(_ name: String) -> Field {
      Field(name: name, type: FieldType(.scalar(.awsDateTime)), isRequired: false)
    }
    return Model(
      name: "Law", tableName: "laws",
      fields: [
        Field(name: "id", type: FieldType(.scalar(.id)), isRequired: true), text("r2"), text("r1"), text("b"),
        time("updatedAt"), text("a"), time("createdAt"),
      ],
      keyFields: [0], partitionDepth: 0,
      relationships: [
        Relationship(
          name: "r", kind: .belongsTo, target: "Other", storesReference: true, referenceFields: ["r1", "r2"])
      ],
      conflictPolicy: policy, deletePolicy: deletes, createdAt: "createdAt", updatedAt: "updatedAt")
  }

  /// Every pair of policies. The models of one list number registers alike and share one state.
  package static let perField: [Model] = [ConflictPolicy.automerge, .latest].flatMap(models)
  package static let perRecord: [Model] = models(.optimistic)

  private static func models(_ policy: ConflictPolicy) -> [Model] {
    [DeletePolicy.byVersion, .deleteWins, .updateWins].map { model(policy, $0) }
  }
}
