import StemmaEvents
import StemmaSchema

/// The state of one record: what is left of its events after the merge.
///
/// A record is a set of *registers*: existence, and its fields (`MergeRules` says which share one). Each
/// event writes existence and the registers of the fields that it assigns; a `create` writes all of them,
/// also those of fields that its writer did not know. A write `b` supersedes a write `a` to the same register
/// exactly when `a`'s dot is in `b`'s context, with one exception: a deletion is superseded only by a
/// `delete`, a `create` or a `resolve` of existence, so that an ordinary update that was made while the
/// deletion was in conflict cannot bury it. What is not superseded is a *sibling*, and the siblings of all
/// registers are the state. So it is a function of the set of events, whatever the order of their arrival;
/// the tests check that against this definition for every small history.
///
/// How it is held: `writes` are the events that are a sibling anywhere, sorted by dot. `siblings` says which
/// of them each register has, sorted by register and write. The base (register 1) has the creates that no
/// other create has superseded: what a register has that was never named. A register whose siblings are those
/// of the base is not listed. `cells` are the values that are not null, sorted by field and write; a sibling
/// without a cell shows the default of the field, or null. A written null is a cell only where that differs
/// (`MergeRules.distinguishesNull`). `names` are the fields that the schema does not know and that have a listed
/// register or a cell, sorted by their bytes; they are numbered behind those of the rules. This form is the
/// only one that a set of events has, hence `==` compares states, and the encoding is canonical.
///
/// Every event writes existence, and its version is above those of its context; so the highest version of
/// the record is always that of a sibling of existence.
package struct RecordState: Hashable, Sendable {
  /// Which events of this record are in the state.
  package internal(set) var context = Context.empty
  /// The highest timestamp of the record's events.
  package internal(set) var latest = Timestamp.zero

  var writes: [Write] = []
  var siblings: [Sibling] = []
  var cells: [Cell] = []
  var names: [String] = []

  /// A record of which no event is known.
  package init() {}

  package var isEmpty: Bool { context.isEmpty }

  /// The highest version of the record's events: `_version`. Zero if there is none.
  package var version: Version {
    var highest = Version.zero
    for sibling in siblings {
      if sibling.register != MergeRules.existence { break }
      highest = max(highest, writes[Int(sibling.write)].version)
    }
    return highest
  }

  package static func == (a: RecordState, b: RecordState) -> Bool {
    a.context == b.context && a.latest == b.latest && a.writes == b.writes && a.siblings == b.siblings
      && a.cells == b.cells && a.names.count == b.names.count
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
    var dot: Dot
    var version: Version
    var timestamp: Timestamp
    var operation: Operation

    /// What the event says of existence.
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

  /// What a write says of a field: its value, or the field's default where it says nothing.
  func value(field: UInt32, write: UInt32, _ rules: MergeRules) -> Value {
    written(field: field, write: write) ?? rules.defaultValue(ofField: Int(field)) ?? .null
  }

  /// The value of a cell; nil if there is none.
  func written(field: UInt32, write: UInt32) -> Value? {
    for index in cells.indices where cells[index].field == field && cells[index].write == write {
      return cells[index].value
    }
    return nil
  }

  /// The number of a field, nil for one that neither the schema nor the state knows.
  func index(of name: String, _ rules: MergeRules) -> UInt32? {
    var hint = 0
    if let index = rules.index(of: name, hint: &hint) { return UInt32(index) }
    return names.firstIndex { $0.hasSameBytes(as: name) }.map { UInt32(rules.fields.count + $0) }
  }

  func name(of field: UInt32, _ rules: MergeRules) -> String {
    Int(field) < rules.fields.count ? rules.fields[Int(field)] : names[Int(field) - rules.fields.count]
  }
}
