import StemmaEvents

/// The state, without values, of a record whose every event has seen exactly those before it.
///
/// Most records have this form, and tables are rebuilt from millions of them. Each register then
/// has one sibling, the last write. The state is a few numbers, in memory that the next record
/// reuses. The caller keeps the values: `apply` returns which are cleared. If the history proves
/// not to be linear, the caller passes them to `state`, and a `RecordState` continues. For the same
/// events both have the same encoding. Change the struct in place, so that its arrays are not
/// copied.
package struct LinearRecord {
  /// The effect of an event on the caller's values.
  package enum Effect {
    /// All become null, except those that the event assigns.
    case clearsAll
    /// Fields that share a register with an assigned one become null, unless they are assigned too.
    case assigns
    /// No value changes.
    case nothing
    /// The event is not linear: nothing has changed, and `RecordState` must take over.
    case isNotLinear
  }

  private let rules: MergeRules
  private var context: [Context.Entry] = []
  private var latest = Timestamp.zero
  private var writes: [RecordState.Write] = []
  /// The index of the last create.
  private var base: Int?
  /// For each register of the model, its write since the base; -1 if it has that of the base.
  private var listed: [Int32]
  private var used: [Int] = []

  package init(_ rules: MergeRules) {
    self.rules = rules
    listed = Array(repeating: -1, count: Int(rules.registerCount))
  }

  package var isEmpty: Bool { writes.isEmpty }
  package var version: Version { writes.last?.version ?? .zero }
  /// Whether the record is shown as existing.
  package var exists: Bool { writes.last?.exists ?? false }

  package mutating func removeAll() {
    context.removeAll(keepingCapacity: true)
    latest = .zero
    writes.removeAll(keepingCapacity: true)
    base = nil
    unlistAll()
  }

  private mutating func unlistAll() {
    for register in listed.indices { listed[register] = -1 }
  }

  /// Applies the next event. `registers`: those of its fields (`MergeRules.register(ofField:)`).
  package mutating func apply(
    _ operation: EventOperation, _ id: EventID, _ version: Version, _ timestamp: Timestamp,
    registers: [Int32],
    context seen: UnsafeBufferPointer<Context.Entry>
  ) -> Effect {
    guard operation != .resolve, version.rawValue == self.version.rawValue + 1, seen.count == context.count,
      !covers(id)
    else { return .isNotLinear }
    for index in context.indices where context[index] != seen[index] { return .isNotLinear }
    // An update that has seen a deletion does not supersede it.
    if operation != .create, operation != .delete, let last = writes.last, !last.exists {
      return .isNotLinear
    }
    writes.append(
      RecordState.Write(id: id, version: version, timestamp: timestamp, operation: operation))
    insert(id)
    latest = max(latest, timestamp)
    if operation == .create {
      base = writes.count - 1
      unlistAll()
      return .clearsAll
    }
    for register in registers { listed[Int(register)] = Int32(writes.count - 1) }
    return registers.isEmpty ? .nothing : .assigns
  }

  /// Traps if writes do not follow each other, or a register has none of them. For tests; debug
  /// builds call it whenever a record is written out.
  package func checkInvariants() {
    Context(trusted: context).checkInvariants()
    precondition(context.isEmpty == writes.isEmpty, "what was written is known")
    precondition(writes.allSatisfy { covers($0.id) }, "what was written is known")
    for (a, b) in zip(writes, writes.dropFirst()) {
      precondition(b.version == a.version.next, "each event has seen the one before")
    }
    precondition(writes.allSatisfy { $0.timestamp <= latest }, "the latest time is that of a write")
    if let base { precondition(writes[base].operation == .create, "a create is the base") }
    precondition(listed.count == rules.registerCount, "each register has a place")
    precondition(
      listed.allSatisfy { $0 < writes.count && ($0 < 0 || Int($0) > base ?? -1) },
      "a register has a write behind the base")
  }

  private func covers(_ id: EventID) -> Bool {
    for entry in context where entry.origin == id.origin { return entry.sequence >= id.sequence }
    return false
  }

  private mutating func insert(_ id: EventID) {
    var place = 0
    while place < context.count, context[place].origin < id.origin { place += 1 }
    if place < context.count, context[place].origin == id.origin {
      context[place].sequence = id.sequence
    } else {
      context.insert(Context.Entry(origin: id.origin, sequence: id.sequence), at: place)
    }
  }

  // MARK: Results

  /// Finds the writes that are siblings, sorted by event id, as indexes of `writes`. There are few.
  private mutating func findSiblings() {
    used.removeAll(keepingCapacity: true)
    use(writes.count - 1)
    if let base { use(base) }
    // Fields that one event assigned are adjacent.
    var last: Int32 = -1
    for write in listed where write >= 0 && write != last {
      use(Int(write))
      last = write
    }
  }

  private mutating func use(_ write: Int) {
    if used.contains(write) { return }
    var place = used.count
    while place > 0, writes[write].id < writes[used[place - 1]].id { place -= 1 }
    if place == used.count { used.append(write) } else { used.insert(write, at: place) }
  }

  /// Appends `RecordState.encoded(rules, omitsShown: true)`. Every value must be null or have its
  /// column's type, and no column may show a default. The record must exist.
  package mutating func appendState(to output: inout [UInt8]) {
    assert(holds(checkInvariants))
    findSiblings()
    // A number takes at most ten bytes, an entry two numbers, a write five.
    let bound = 90 + 20 * context.count + 50 * used.count + 20 * listed.count
    withUnsafeTemporaryAllocation(byteCount: bound, alignment: 1) { bytes in
      var writer = ByteWriter(bytes)
      writeState(to: &writer)
      output.append(contentsOf: writer.written)
    }
  }

  /// Mutating, so that the closure above calls it in place: a copy would retain every array.
  private mutating func writeState(to writer: inout ByteWriter) {
    var highest = Timestamp.zero
    for write in used { highest = max(highest, writes[write].timestamp) }
    writer.byte(RecordState.head(isLatestGiven: latest != highest))
    writer.varint(UInt64(context.count))
    for entry in context {
      writer.fixed(entry.origin.rawValue)
      writer.varint(entry.sequence.rawValue)
    }
    writer.varint(UInt64(used.count))
    var milliseconds: UInt64 = 0
    var entry = 0
    for place in used {
      let write = writes[place]
      while context[entry].origin != write.id.origin { entry += 1 }
      writer.varint(UInt64(entry) << 3 | UInt64(write.operation.rawValue))
      writer.varint(context[entry].sequence.rawValue - write.id.sequence.rawValue)
      writer.varint(write.version.rawValue)
      writer.varint((Int64(write.timestamp.milliseconds) - Int64(milliseconds)).zigzag)
      writer.varint(UInt64(write.timestamp.counter))
      milliseconds = write.timestamp.milliseconds
    }
    writeSets(to: &writer)
    // No cell: all values are in columns.
    writer.varint(0)
    if latest != highest {
      writer.varint(latest.milliseconds)
      writer.varint(UInt64(latest.counter))
    }
  }

  /// The encoding of a set of one sibling.
  private func set(_ write: Int) -> UInt64 {
    var place = 0
    while used[place] != write { place += 1 }
    return 1 + UInt64(place)
  }

  private func writeSets(to writer: inout ByteWriter) {
    writer.varint(set(writes.count - 1))
    if let base { writer.varint(set(base)) } else { writer.varint(0) }
    var count: UInt64 = 0
    for write in listed where write >= 0 { count += 1 }
    writer.varint(count)
    if count == 0 { return }
    var next = Int(MergeRules.firstRegister)
    for register in listed.indices where listed[register] >= 0 {
      writer.varint(UInt64(register - next))
      writer.varint(set(Int(listed[register])))
      next = register + 1
    }
  }

  /// A `RecordState` to continue with. `value`: of each of the rules' fields; nil if not written.
  package mutating func state(_ value: (Int) -> Value?) -> RecordState {
    guard !isEmpty else { return RecordState() }
    assert(holds(checkInvariants))
    findSiblings()
    func index(_ write: Int) -> UInt32 { UInt32(used.firstIndex(of: write) ?? 0) }
    var state = RecordState()
    state.context = Context(trusted: context)
    state.version = version
    state.latest = latest
    state.writes = used.map { writes[$0] }
    state.siblings = [.init(register: MergeRules.existence, write: index(writes.count - 1))]
    if let base { state.siblings.append(.init(register: MergeRules.base, write: index(base))) }
    for (register, write) in listed.enumerated() where write >= 0 {
      state.siblings.append(.init(register: UInt32(register), write: index(Int(write))))
    }
    for field in rules.fields.indices {
      guard let value = value(field), !value.isNull || rules.distinguishesNull(field) else { continue }
      let own = listed[Int(rules.registers[field])]
      guard let write = own >= 0 ? Int(own) : base else { continue }
      state.cells.append(.init(field: UInt32(field), write: index(write), value: value))
    }
    return state
  }
}
