import StemmaEvents

/// What the state of a record still says of one of its events.
package struct EventRemains: Sendable {
  package var dot: Dot
  package var version: Version
  package var timestamp: Timestamp
  package var operation: Operation
  /// What it wrote and no other event has superseded. Sorted by the bytes of the fields' names.
  package var assignments: [Assignment]
  /// Siblings in any of its registers: events that it had not seen, and that had not seen it.
  package var rivals: [Dot]
}

extension RecordState {
  /// What is left of the events for which `isWanted` holds; nothing of those that others have superseded in
  /// all that they wrote.
  ///
  /// An event of these assignments and this operation, that has seen what the wanted one had, has the same
  /// effect on the state: `link` and `unlink` are given as `update`, and a `resolve` as one of existence, which
  /// differ only in how they read.
  package func remains(of isWanted: (Dot) -> Bool, _ rules: MergeRules) -> [EventRemains] {
    writes.indices.filter { isWanted(writes[$0].dot) }.map { index in
      let number = UInt32(index)
      let write = writes[index]
      let operation: Operation =
        switch write.operation {
        case .create where contains(number, listed(MergeRules.base)): .create
        case .create, .update, .link, .unlink: .update
        case .delete: .delete
        case .resolve: .resolve
        }
      return EventRemains(
        dot: write.dot, version: write.version, timestamp: write.timestamp, operation: operation,
        assignments: assignments(of: number, operation, rules), rivals: rivals(of: number, operation))
    }
  }

  private func contains(_ write: UInt32, _ group: Range<Int>) -> Bool {
    siblings[group].contains { $0.write == write }
  }

  /// The fields in whose registers a write still stands. Of a `create` without those that have no cell: it writes
  /// them all. A field that shows its default because the write says nothing of it is left out, too.
  private func assignments(
    of write: UInt32, _ operation: Operation, _ rules: MergeRules
  ) -> [Assignment] {
    var assignments: [Assignment] = []
    for field in 0..<UInt32(rules.fields.count + names.count) {
      let register = rules.register(of: field)
      let group = operation == .create ? siblings(of: register) : listed(register)
      guard contains(write, group) else { continue }
      let value = written(field: field, write: write)
      if value == nil, operation == .create || rules.distinguishesNull(Int(field)) { continue }
      assignments.append(Assignment(name(of: field, rules), value ?? .null))
    }
    if operation == .resolve { assignments.append(Assignment(Event.existenceField, .bool(true))) }
    return assignments.sorted { $0.field.hasBytes(before: $1.field) }
  }

  /// Of existence a deletion is no rival of what cannot settle it: that one may have seen it.
  private func rivals(of write: UInt32, _ operation: Operation) -> [Dot] {
    var rivals: [Dot] = []
    for sibling in siblings where sibling.write == write {
      let settles = operation != .update || sibling.register != MergeRules.existence
      for other in siblings[listed(sibling.register)] where other.write != write {
        let rival = writes[Int(other.write)]
        if settles || rival.exists { rivals.append(rival.dot) }
      }
    }
    return rivals
  }
}

extension RecordState {
  /// What has to be assigned so that this state shows what another does: all fields of each register that differs
  /// and is not in conflict there, sorted by the bytes of their names.
  package func differences(from other: RecordState, _ rules: MergeRules) -> [Assignment] {
    var differing: Set<UInt32> = []
    var fields: [(name: String, register: UInt32)] = []
    for field in 0..<UInt32(rules.fields.count) {
      fields.append((rules.fields[Int(field)], rules.register(of: field)))
    }
    for name in names + other.names.filter({ name in !names.contains { $0.hasSameBytes(as: name) } }) {
      // Outside of the schema each field is a register of its own, but under OPTIMISTIC.
      fields.append(
        (name, rules.isOptimistic ? MergeRules.firstRegister : rules.registerCount + UInt32(fields.count)))
    }
    for (name, register) in fields where value(of: name, rules) != other.value(of: name, rules) {
      let theirs = other.index(of: name, rules).map { other.siblings(of: rules.register(of: $0)) } ?? 0..<0
      if theirs.count < 2 { differing.insert(register) }
    }
    return fields.filter { differing.contains($0.register) }
      .map { Assignment($0.name, other.value(of: $0.name, rules)) }
      .sorted { $0.field.hasBytes(before: $1.field) }
  }
}
