import StemmaEvents

extension RecordState {
  /// Takes an event in, after all events of this record that its context covers, each stream in its order
  /// (as a node receives them). False, and nothing changes, if the event was applied before: a node holds
  /// prefixes of streams, so it has every event of the record up to the highest sequence of each origin.
  ///
  /// Throws, and nothing changes, if an event of its context is missing (`gap`), if its context covers its
  /// own dot, or if its version cannot be: it is 1 exactly without a context, and at most one above the record's.
  /// A version at or below that of an event in the context is no reason to refuse it: that event is one which it
  /// has not seen (`Event.hasSeen`). Nor can the state tell whether a sequence below its own was one of this record's.
  /// Any order gives the same state, and `fold` does too, whatever was let in.
  ///
  /// Costs time in proportion to the size of the state.
  package mutating func apply(_ event: Event, _ rules: MergeRules) throws(MergeError) -> Bool {
    if context.covers(event.dot) { return false }
    if event.context.covers(event.dot) { throw .coversItself(event.dot) }
    for entry in event.context.entries where context[entry.origin] < entry.sequence {
      throw .gap(event.dot, missing: Dot(entry.origin, entry.sequence))
    }
    let expected = event.context.isEmpty ? Version(1)...Version(1) : Version(2)...version.next
    guard expected.contains(event.version) else {
      throw .wrongVersion(event.dot, found: event.version, expected: expected)
    }
    merge(event, coversAll: event.version > version && event.context == context, rules)
    return true
  }

  /// Merges an event that was checked, and whose causes were merged before. `coversAll`: whether it is known to
  /// have seen every event in the state.
  mutating func merge(_ event: Event, coversAll: Bool, _ rules: MergeRules) {
    let isCreate = event.operation == .create
    let write = insertWrite(of: event)
    let assigned = numberFields(event.assignments, rules)

    // A create writes the base and all that is listed; what it assigns beyond that is as the base.
    var touched: [UInt32] = []
    touched.reserveCapacity(assigned.count + 2)
    touched.append(MergeRules.existence)
    if isCreate {
      touched.append(MergeRules.base)
    } else {
      for (field, _) in assigned { Self.insert(rules.register(of: field), into: &touched) }
    }
    let covers = Coverage(event, own: write, all: coversAll, writes)
    let settlesExistence =
      switch event.operation {
      case .create, .delete: true
      case .resolve: event.assignments.contains { $0.field.hasSameBytes(as: Event.existenceField) }
      case .update, .link, .unlink: false
      }
    supersede(touched, all: isCreate, by: write, covers, settlesExistence: settlesExistence)
    removeCells(of: touched, all: isCreate, covers, rules)
    for (field, value) in assigned where !value.isNull || rules.distinguishesNull(Int(field)) {
      insertCell(field, write, value)
    }
    context.insert(event.dot)
    latest = max(latest, event.timestamp)

    if isCreate { unlistRegistersEqualToBase() }
    if !names.isEmpty { removeUnusedNames(rules) }
    removeUnusedWrites()
  }

  /// Which writes an event has seen: a bit for each of the first 64, and the rest.
  private struct Coverage {
    private var bits: UInt64 = 0
    private var others: [Bool] = []

    init(_ event: Event, own: UInt32, all: Bool, _ writes: [Write]) {
      for index in writes.indices
      where index != own && (all || event.hasSeen(writes[index].dot, writes[index].version)) {
        if index < 64 {
          bits |= 1 << UInt64(index)
        } else {
          if others.isEmpty { others = [Bool](repeating: false, count: writes.count - 64) }
          others[index - 64] = true
        }
      }
    }

    func contains(_ write: UInt32) -> Bool {
      write < 64 ? bits & 1 << UInt64(write) != 0 : !others.isEmpty && others[Int(write) - 64]
    }
  }

  private mutating func insertWrite(of event: Event) -> UInt32 {
    var index = writes.count
    while index > 0, event.dot < writes[index - 1].dot { index -= 1 }
    writes.insert(
      Write(
        dot: event.dot, version: event.version, timestamp: event.timestamp, operation: event.operation),
      at: index)
    let write = UInt32(index)
    if index < writes.count - 1 {
      for other in siblings.indices where siblings[other].write >= write { siblings[other].write += 1 }
      for other in cells.indices where cells[other].write >= write { cells[other].write += 1 }
    }
    return write
  }

  /// Numbers the fields that an event assigns; unknown ones get a place among `names`.
  private mutating func numberFields(
    _ assignments: [Assignment], _ rules: MergeRules
  ) -> [(field: UInt32, value: Value)] {
    var numbered: [(field: UInt32, value: Value)] = []
    numbered.reserveCapacity(assignments.count)
    var hint = 0
    var hasUnknown = false
    for assignment in assignments {
      if let index = rules.index(of: assignment.field, hint: &hint) {
        numbered.append((UInt32(index), assignment.value))
      } else if !rules.isIgnored(assignment.field) {
        insertName(assignment.field, rules)
        hasUnknown = true
      }
    }
    guard hasUnknown else { return numbered }
    // Only now are all names at their places.
    for assignment in assignments {
      var start = 0
      if rules.index(of: assignment.field, hint: &start) == nil,
        let index = names.firstIndex(where: { $0.hasSameBytes(as: assignment.field) })
      {
        numbered.append((UInt32(rules.fields.count + index), assignment.value))
      }
    }
    return numbered
  }

  private mutating func insertName(_ name: String, _ rules: MergeRules) {
    var index = 0
    while index < names.count, names[index].hasBytes(before: name) { index += 1 }
    if index < names.count, names[index].hasSameBytes(as: name) { return }
    names.insert(name, at: index)
    renumberNames(from: index, by: 1, rules)
  }

  /// Shifts what refers to names from `index` on, after one was put in or taken out there.
  private mutating func renumberNames(from index: Int, by step: Int, _ rules: MergeRules) {
    let firstField = UInt32(rules.fields.count + index)
    for other in cells.indices where cells[other].field >= firstField {
      cells[other].field = UInt32(Int(cells[other].field) + step)
    }
    if rules.isOptimistic { return }
    let firstRegister = rules.registerCount + UInt32(index)
    for other in siblings.indices where siblings[other].register >= firstRegister {
      siblings[other].register = UInt32(Int(siblings[other].register) + step)
    }
  }

  private static func insert(_ register: UInt32, into touched: inout [UInt32]) {
    var index = touched.count
    while index > 0, touched[index - 1] > register { index -= 1 }
    if index > 0, touched[index - 1] == register { return }
    touched.insert(register, at: index)
  }

  /// Gives each touched register the new write in place of what that supersedes. `all`: every listed register
  /// too.
  private mutating func supersede(
    _ touched: [UInt32], all: Bool, by write: UInt32, _ covers: Coverage, settlesExistence: Bool
  ) {
    var next: [Sibling] = []
    next.reserveCapacity(siblings.count + touched.count + 1)
    let base = listed(MergeRules.base)
    var index = 0
    var turn = 0
    while index < siblings.count || turn < touched.count {
      var register = index < siblings.count ? siblings[index].register : .max
      if turn < touched.count { register = min(register, touched[turn]) }
      var end = index
      while end < siblings.count, siblings[end].register == register { end += 1 }
      let isTouched = turn < touched.count && touched[turn] == register
      if isTouched { turn += 1 }
      if isTouched || all {
        let group = index == end && register > MergeRules.base ? base : index..<end
        let keepsDeletions = register == MergeRules.existence && !settlesExistence
        replace(group, of: register, by: write, covers, keepsDeletions: keepsDeletions, into: &next)
      } else {
        next.append(contentsOf: siblings[index..<end])
      }
      index = end
    }
    siblings = next
  }

  private func replace(
    _ group: Range<Int>, of register: UInt32, by write: UInt32, _ covers: Coverage, keepsDeletions: Bool,
    into next: inout [Sibling]
  ) {
    var isPlaced = false
    for sibling in siblings[group] {
      let isKept = keepsDeletions && !writes[Int(sibling.write)].exists
      if !isKept, covers.contains(sibling.write) { continue }
      if !isPlaced, sibling.write > write {
        next.append(Sibling(register: register, write: write))
        isPlaced = true
      }
      next.append(Sibling(register: register, write: sibling.write))
    }
    if !isPlaced { next.append(Sibling(register: register, write: write)) }
  }

  private mutating func removeCells(
    of touched: [UInt32], all: Bool, _ covers: Coverage, _ rules: MergeRules
  ) {
    var end = cells.count
    while end > 0 {
      // The next run of cells that go, from behind.
      var start = end
      while start > 0, covers.contains(cells[start - 1].write),
        all || touched.contains(rules.register(of: cells[start - 1].field))
      {
        start -= 1
      }
      if start < end { cells.removeSubrange(start..<end) }
      end = start - 1
    }
  }

  /// An event that names a field twice is not what the log gives; the last assignment then counts.
  private mutating func insertCell(_ field: UInt32, _ write: UInt32, _ value: Value) {
    var index = cells.count
    while index > 0, !cells[index - 1].isBefore(field: field, write: write) { index -= 1 }
    if index < cells.count, cells[index].field == field, cells[index].write == write {
      cells[index].value = value
    } else {
      cells.insert(Cell(field: field, write: write, value: value), at: index)
    }
  }
}

extension RecordState {
  /// Restores the rule that a register is listed only where it differs from the base.
  private mutating func unlistRegistersEqualToBase() {
    let base = listed(MergeRules.base)
    var next = Array(siblings[..<base.upperBound])
    var index = base.upperBound
    while index < siblings.count {
      var end = index
      while end < siblings.count, siblings[end].register == siblings[index].register { end += 1 }
      if !siblings[index..<end].elementsEqual(siblings[base], by: { $0.write == $1.write }) {
        next.append(contentsOf: siblings[index..<end])
      }
      index = end
    }
    siblings = next
  }

  private mutating func removeUnusedNames(_ rules: MergeRules) {
    for index in names.indices.reversed() {
      let field = UInt32(rules.fields.count + index)
      if cells.contains(where: { $0.field == field }) { continue }
      if !rules.isOptimistic, !listed(rules.register(of: field)).isEmpty { continue }
      names.remove(at: index)
      renumberNames(from: index, by: -1, rules)
    }
  }

  /// Drops the writes that are no sibling any more, and closes the gaps in their numbers.
  mutating func removeUnusedWrites() {
    if writes.isEmpty { return }
    guard writes.count <= 64 else {
      removeUnusedWritesOfMany()
      return
    }
    var used: UInt64 = 0
    for sibling in siblings { used |= 1 << UInt64(sibling.write) }
    if used == .max >> UInt64(64 - writes.count) { return }
    func renumbered(_ write: UInt32) -> UInt32 {
      UInt32((used & ((1 << UInt64(write)) - 1)).nonzeroBitCount)
    }
    for index in siblings.indices { siblings[index].write = renumbered(siblings[index].write) }
    for index in cells.indices { cells[index].write = renumbered(cells[index].write) }
    for index in writes.indices.reversed() where used & 1 << UInt64(index) == 0 { writes.remove(at: index) }
  }

  private mutating func removeUnusedWritesOfMany() {
    var number = [UInt32](repeating: 0, count: writes.count)
    for sibling in siblings { number[Int(sibling.write)] = 1 }
    var count: UInt32 = 0
    var kept: [Write] = []
    for index in writes.indices where number[index] == 1 {
      number[index] = count
      count += 1
      kept.append(writes[index])
    }
    writes = kept
    for index in siblings.indices { siblings[index].write = number[Int(siblings[index].write)] }
    for index in cells.indices { cells[index].write = number[Int(cells[index].write)] }
  }
}
