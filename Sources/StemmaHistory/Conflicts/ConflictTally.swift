import StemmaEvents
import StemmaNode

/// Counts of conflicts by model and kind.
package struct ConflictTally: Sendable {
  /// In the order of position.
  package private(set) var models: [String] = []
  private var counts: [String: [ConflictFilter.Kind: Int]] = [:]
  package private(set) var total = 0

  package init() {}

  /// Conflicts without dangling references, whose records may still arrive.
  package var open: Int { total - dangling }
  package var dangling: Int { models.reduce(0) { $0 + count($1, .dangling) } }

  package var words: String {
    (open == 0 ? "no conflicts" : counted(open, "conflict"))
      + (dangling == 0 ? "" : ", \(counted(dangling, "dangling reference"))")
  }

  package var lastModel: String? { models.last }

  package mutating func add(_ model: String, _ kind: ConflictFilter.Kind, count: Int = 1) {
    if models.last != model { models.append(model) }
    counts[model, default: [:]][kind, default: 0] += count
    total += count
  }

  package func count(_ model: String, _ kind: ConflictFilter.Kind) -> Int { counts[model]?[kind] ?? 0 }

  /// The form of `conflicts --count --json`.
  package var rows: [JSON] {
    models.map { model in
      .object(
        [("model", .string(model))]
          + ConflictFilter.Kind.allCases.map { ($0.rawValue, .int(Int64(count(model, $0)))) })
    }
  }
}
