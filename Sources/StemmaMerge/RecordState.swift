import StemmaEvents
import StemmaSchema

/// The state of one record: the result of merging its events.
///
/// A record is a set of *registers*: existence, and its fields (`MergeRules` defines which share
/// one). Each event writes existence and the registers of the fields that it assigns. A `create`
/// writes all registers, also those of fields that its writer did not know. A write `b` supersedes
/// a write `a` to the same register exactly if `b`'s context covers `a`, with one exception. Only a
/// `delete`, a `create` or a `resolve` of existence supersedes a deletion, so that an ordinary
/// update during a conflict cannot hide it. A write that is not superseded is a *sibling*, and the
/// siblings of all registers are the state. The state is thus a function of the set of events, in
/// any order. The tests check this definition for every small history.
///
/// Representation: `writes` are the events that are a sibling anywhere, sorted by event id. The
/// `siblings` of each register are sorted by register and write. The base (register 1) has the
/// creates that no other create has superseded: the siblings of registers that were never named. A
/// register with the base's siblings is not listed. The `cells` are the values that are not null,
/// sorted by field and write. A sibling without a cell shows the field's default, or null. A
/// written null has a cell only if it differs from that (`MergeRules.distinguishesNull`). The
/// `names` are fields that the schema lacks, with a listed register or a cell, in byte order. Their
/// numbers follow the rules' fields. Each set of events has one such form: `==` compares states,
/// and the encoding is canonical.
package struct RecordState: Hashable, Sendable {
  /// The events of this record that the state includes.
  package internal(set) var context = Context.empty
  /// The highest version of the record's events: `_version`. Zero without events.
  package internal(set) var version = Version.zero
  /// The highest timestamp of the record's events.
  package internal(set) var latest = Timestamp.zero

  var writes: [Write] = []
  var siblings: [Sibling] = []
  var cells: [Cell] = []
  var names: [String] = []

  /// A record without events.
  package init() {}

  package var isEmpty: Bool { context.isEmpty }

  package static func == (a: RecordState, b: RecordState) -> Bool {
    a.context == b.context && a.version == b.version && a.latest == b.latest && a.writes == b.writes
      && a.siblings == b.siblings && a.cells == b.cells && a.names.count == b.names.count
      && zip(a.names, b.names).allSatisfy { $0.hasSameBytes(as: $1) }
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(context)
    hasher.combine(writes)
    hasher.combine(siblings)
    hasher.combine(cells)
  }

  /// An event that is a sibling of some register.
  struct Write: Hashable, Sendable {
    var id: EventID
    var version: Version
    var timestamp: Timestamp
    var operation: EventOperation

    /// Whether the record exists after the event.
    var exists: Bool { operation != .delete }
  }

  struct Sibling: Hashable, Sendable {
    var register: UInt32
    /// Index into `writes`.
    var write: UInt32
  }

  struct Cell: Hashable, Sendable {
    /// Index into the rules' fields, then into `names`.
    var field: UInt32
    /// Index into `writes`.
    var write: UInt32
    var value: Value

    func isBefore(field: UInt32, write: UInt32) -> Bool {
      self.field != field ? self.field < field : self.write < write
    }
  }
}

extension RecordState {
  /// The siblings of a register as a range of `siblings`: its own, or those of the base.
  func siblings(of register: UInt32) -> Range<Int> {
    let own = listed(register)
    return own.isEmpty && register > MergeRules.base ? listed(MergeRules.base) : own
  }

  func listed(_ register: UInt32) -> Range<Int> {
    var start = 0
    while start < siblings.count, siblings[start].register < register { start += 1 }
    var end = start
    while end < siblings.count, siblings[end].register == register { end += 1 }
    return start..<end
  }

  /// The value of a field in a write, or the field's default if it has none.
  func value(field: UInt32, write: UInt32, _ rules: MergeRules) -> Value {
    written(field: field, write: write) ?? rules.defaultValue(ofField: Int(field)) ?? .null
  }

  func written(field: UInt32, write: UInt32) -> Value? {
    for index in cells.indices where cells[index].field == field && cells[index].write == write {
      return cells[index].value
    }
    return nil
  }

  /// The number of a field; nil if neither the schema nor the state has it.
  func index(of name: String, _ rules: MergeRules) -> UInt32? {
    var hint = 0
    if let index = rules.index(of: name, hint: &hint) { return UInt32(index) }
    return names.firstIndex { $0.hasSameBytes(as: name) }.map { UInt32(rules.fields.count + $0) }
  }

  func name(of field: UInt32, _ rules: MergeRules) -> String {
    Int(field) < rules.fields.count ? rules.fields[Int(field)] : names[Int(field) - rules.fields.count]
  }
}
