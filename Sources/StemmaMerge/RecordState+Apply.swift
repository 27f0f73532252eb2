import StemmaEvents

extension RecordState {
  /// Applies an event, after all events of this record that its context covers, each stream in
  /// order (as a node receives them). Returns false, without a change, if the event was applied
  /// before. A node holds prefixes of streams: all events up to the highest sequence of each
  /// origin.
  ///
  /// Throws, without a change, if an event of its context is missing (`gap`), if its context covers
  /// its own id, or if its version is impossible. A version is 1 exactly without a context, and at
  /// most one above the record's. A version at or below that of an event in the context is
  /// accepted: the state does not know the versions of superseded events. It also does not know
  /// which lower sequences belong to this record. Any order gives the same state, and so does
  /// `fold`.
  ///
  /// Takes time in proportion to the size of the state.
  package mutating func apply(_ event: Event, _ rules: MergeRules) throws(MergeError) -> Bool {
    if context.covers(event.id) { return false }
    if event.context.covers(event.id) { throw .coversItself(event.id) }
    for entry in event.context.entries where context[entry.origin] < entry.sequence {
      throw .gap(event.id, missing: EventID(entry.origin, entry.sequence))
    }
    let expected = event.context.isEmpty ? Version(1)...Version(1) : Version(2)...version.next
    guard expected.contains(event.version) else {
      throw .wrongVersion(event.id, found: event.version, expected: expected)
    }
    merge(event, coversAll: event.version > version && event.context == context, rules)
    return true
  }

  /// Merges a checked event whose causes are merged. `coversAll`: whether it has certainly seen
  /// every event in the state.
  mutating func merge(_ event: Event, coversAll: Bool, _ rules: MergeRules) {
    let isCreate = event.operation == .create
    let write = insertWrite(of: event)
    let assigned = numberFields(event.assignments, rules)

    // A create writes the base and all listed registers; its other assignments match the base.
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
    context.insert(event.id)
    version = max(version, event.version)
    latest = max(latest, event.timestamp)

    if isCreate { unlistRegistersEqualToBase() }
    if !names.isEmpty { removeUnusedNames(rules) }
    removeUnusedWrites()
  }

  /// The writes that an event has seen: a bit for each of the first 64, and the rest.
  private struct Coverage {
    private var bits: UInt64 = 0
    private var others: [Bool] = []

    init(_ event: Event, own: UInt32, all: Bool, _ writes: [Write]) {
      for index in writes.indices
      where index != own && (all || event.hasSeen(writes[index].id)) {
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
    while index > 0, event.id < writes[index - 1].id { index -= 1 }
    writes.insert(
      Write(
        id: event.id, version: event.version, timestamp: event.timestamp, operation: event.operation),
      at: index)
    let write = UInt32(index)
    if index < writes.count - 1 {
      for other in siblings.indices where siblings[other].write >= write { siblings[other].write += 1 }
      for other in cells.indices where cells[other].write >= write { cells[other].write += 1 }
    }
    return write
  }

  /// Numbers the fields that an event assigns; unknown ones are inserted into `names`.
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
    // The numbers of names are final only after all insertions.
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

  /// Shifts the references to names from `index` on, after an insertion or removal there.
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

  /// Replaces the superseded siblings of each touched register with the new write. `all`: of every
  /// listed register too.
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
      // The next run of cells to remove, from the end.
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

  /// The log has no event that names a field twice; here the last assignment counts.
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
  /// Restores the rule that a register is listed only if it differs from the base.
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

  /// Removes the writes that are not a sibling, and renumbers the others.
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
