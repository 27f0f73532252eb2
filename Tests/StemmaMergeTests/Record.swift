import StemmaEvents
import StemmaMerge
import StemmaSchema
import StemmaSimulation

/// Writes the events of one record, so that a test reads like the actions of several users.
struct Record {
  private(set) var events: [Event] = []
  private var sequences: [UInt64: UInt64] = [:]

  /// An event that has seen the events of `seen` and everything that they have seen.
  @discardableResult
  mutating func add(
    _ origin: UInt64, _ operation: EventOperation, _ fields: KeyValuePairs<String, Value> = [:],
    seen: [Event] = [],
    at milliseconds: UInt64? = nil
  ) -> Event {
    var context = Context.empty
    for event in seen {
      context.formUnion(event.context)
      context.insert(event.id)
    }
    var version = Version.zero
    for event in events where context.covers(event.id) { version = max(version, event.version) }
    let sequence = sequences[origin, default: 0] + 1
    sequences[origin] = sequence
    let event = Event(
      partition: Partition("Law"), model: "Law", key: Key(.string("k")), operation: operation,
      assignments: fields.map { Assignment($0.key, $0.value) }.sorted { $0.field.hasBytes(before: $1.field) },
      id: EventID(Origin(origin), SequenceNumber(sequence)), context: context, version: version.next,
      timestamp: Timestamp(milliseconds: milliseconds ?? 1_700_000_000_000 + UInt64(events.count)),
      commit: CommitID(Origin(origin), sequence))
    events.append(event)
    return event
  }

  func state(_ rules: MergeRules = MergeRules(LawModel.model(.automerge, .byVersion))) throws -> RecordState {
    try RecordState.fold(events, rules)
  }
}

extension [Event] {
  /// The smallest set that a node can have read and that contains these events: prefixes of
  /// streams, with all causes.
  func readable(_ isChosen: (Event) -> Bool) -> [Event] {
    var context = Context.empty
    for event in self where isChosen(event) { context.insert(event.id) }
    while true {
      let covered = filter { context.covers($0.id) }
      let before = context
      for event in covered { context.formUnion(event.context) }
      if context == before { return covered }
    }
  }
}

let automerge = MergeRules(LawModel.model(.automerge, .byVersion))
let latest = MergeRules(LawModel.model(.latest, .byVersion))
let optimistic = MergeRules(LawModel.model(.optimistic, .byVersion))

extension RecordState {
  /// `field: values` of each conflict, the shown value first; `exists` for existence.
  func conflictTexts(_ rules: MergeRules) -> [String] {
    conflicts(rules).map { conflict in
      let candidates = conflict.candidates.map { candidate in
        conflict.kind == .delete
          ? (candidate.exists ? "kept" : "deleted")
          : conflict.differing.map { name in
            text(candidate.values.first { $0.field == name }?.value ?? .null)
          }.joined(separator: "+")
      }
      return (conflict.kind == .delete ? "exists" : conflict.differing.joined(separator: "+")) + ": "
        + candidates.joined(separator: ", ")
    }
  }

  func text(_ field: String, _ rules: MergeRules) -> String { text(value(of: field, rules)) }

  private func text(_ value: Value) -> String {
    switch value {
    case .null: "null"
    case .string(let x), .json(let x): x
    case .int(let x): String(x)
    case .double(let x): String(x)
    case .bool(let x): String(x)
    }
  }
}
