import StemmaEvents
import StemmaMerge
import StemmaSchema

/// A merge that the laws check: the real one, and broken ones that they must detect.
package protocol MergeSubject {
  associatedtype State: Hashable

  var empty: State { get }
  /// The models whose policies read one state.
  var policies: [Model] { get }
  func apply(_ event: Event, to state: inout State) throws -> Bool
  /// The state of all events, in any order, with repetitions; nil if the subject has no fold.
  func fold(_ events: [Event]) throws -> State?
  /// Encodes and decodes a state, as between two transactions. Nil if the bytes are not canonical.
  func restored(_ state: State, policy: Int) throws -> State?
  func outcome(_ state: State, policy: Int) -> MergeOutcome
}

package struct RealMerge: MergeSubject {
  package let policies: [Model]
  private let rules: [MergeRules]

  /// The models must number registers alike: `LawModel.perField` or `.perRecord`.
  package init(_ policies: [Model]) {
    self.policies = policies
    rules = policies.map(MergeRules.init)
  }

  package var empty: RecordState { RecordState() }

  package func apply(_ event: Event, to state: inout RecordState) throws -> Bool {
    defer { state.checkInvariants() }
    return try state.apply(event, rules[0])
  }

  package func fold(_ events: [Event]) throws -> RecordState? { try RecordState.fold(events, rules[0]) }

  package func restored(_ state: RecordState, policy: Int) throws -> RecordState? {
    let rules = rules[policy]
    let whole = state.encoded(rules, omitsShown: false)
    let short = state.encoded(rules, omitsShown: true)
    let restored = try RecordState(decoding: short, rules) { field in
      let value = state.value(ofField: field, rules)
      return rules.column(field, holds: value) ? value : .null
    }
    guard restored == state, restored.encoded(rules, omitsShown: true) == short,
      restored.encoded(rules, omitsShown: false) == whole, try RecordState(decoding: whole, rules) == state
    else { return nil }
    return restored
  }

  package func outcome(_ state: RecordState, policy: Int) -> MergeOutcome {
    let rules = rules[policy]
    return MergeOutcome(
      context: state.context, version: state.version, latest: state.latest, exists: state.exists(rules),
      existence: state.existenceSiblings(rules).map { .init(id: $0.id, value: .bool($0.exists)) }
        .sorted { $0.id < $1.id },
      fields: LawModel.fields.map { field in
        .init(
          name: field,
          siblings: state.valuesBySibling(of: field, rules).map { .init(id: $0.id, value: $0.value) },
          shown: state.value(of: field, rules))
      },
      conflicts: state.conflicts(rules).map {
        .init(fields: $0.differing, candidates: $0.candidates.map(\.id))
      })
  }
}
