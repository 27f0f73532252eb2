extension RecordState {
  /// Traps if the state is not the canonical form of its events. For tests and the suites.
  package func checkInvariants() {
    context.checkInvariants()
    for (a, b) in zip(writes, writes.dropFirst()) { precondition(a.id < b.id, "writes rise by id") }
    for write in writes {
      precondition(context.covers(write.id), "what is a sibling is known")
      precondition(write.version > .zero, "versions begin with 1")
      precondition(write.version <= version && write.timestamp <= latest, "the highest are known")
    }
    for (a, b) in zip(siblings, siblings.dropFirst()) {
      precondition((a.register, a.write) < (b.register, b.write), "siblings rise by register and write")
    }
    for (a, b) in zip(cells, cells.dropFirst()) {
      precondition(a.isBefore(field: b.field, write: b.write), "cells rise by field and write")
    }
    let known = Set(siblings.map(\.write))
    precondition(known.count == writes.count, "each write is a sibling of some register")
    precondition(known.allSatisfy { $0 < writes.count }, "siblings are writes")
    precondition(
      cells.allSatisfy { known.contains($0.write) }, "cells are values of siblings")
    precondition(context.isEmpty == writes.isEmpty, "a record with events has one that is not superseded")
    for (a, b) in zip(names, names.dropFirst()) { precondition(a.hasBytes(before: b), "names rise") }
  }
}
