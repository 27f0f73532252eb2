import StemmaEvents
import StemmaLog
import StemmaMerge

/// Builds rows from events that are ordered by record: the half of a rebuild that needs no
/// database. It runs in parallel with the other half.
///
/// A linear history (`LinearRecord`) is folded in place: texts are copied from the block into the
/// batch. `RecordState` takes over at the first event that is not linear.
///
/// A struct, like `LinearRecord`: its arrays change at every event, and a class would add an
/// exclusivity check to each change.
struct RowMaker {
  /// The statements of a batch: one for each model, then these two.
  enum Statements {
    static func tombstone(_ layouts: [TableLayout]) -> Int { layouts.count }
    static func conflict(_ layouts: [TableLayout]) -> Int { layouts.count + 1 }
  }

  private let layouts: [TableLayout]
  private let indexOfModel: (String) -> Int?
  /// The model of each of the merge's runs; -1 if the schema has none of that name.
  private var modelOfRun: [Int] = []
  /// The current model.
  private var model = 0
  private var record: LinearRecord
  /// The records of the other models; that of the current model is swapped into `record`.
  private var records: [LinearRecord]
  /// Each has the type of its field's column, which the cell does not store.
  private var values: [RowBatch.Cell] = []
  /// For each model, the `values` of a record without written fields.
  private let unwritten: [[RowBatch.Cell]]
  private var plans = ShapePlans()
  private var state: RecordState?
  private var held = HeldEvents()
  private var keyBytes: [UInt8] = []
  /// The leading key bytes that all keys in the partition of `run` share.
  private var leading: (run: Int, bytes: [UInt8]) = (-1, [])
  private(set) var batch = RowBatch()
  private(set) var streams: StreamSummary
  private(set) var progress = RebuildProgress()

  init(_ tableSet: TableSet, _ streams: StreamSummary) {
    self.streams = streams
    layouts = tableSet.layouts
    indexOfModel = { tableSet.index(ofStoredName: $0) }
    records = layouts.map { LinearRecord($0.rules) }
    unwritten = layouts.map { layout in
      layout.rules.fields.indices.map { layout.rules.defaultValue(ofField: $0) == nil ? .null : .unwritten }
    }
    record = LinearRecord(MergeRules(nil))
    if !records.isEmpty { swap(&record, &records[0]) }
  }

  /// Returns the batch and begins a new one.
  mutating func takeBatch() -> RowBatch {
    batch.progress = progress
    assert(holds(checkInvariants))
    let full = batch
    batch = RowBatch()
    return full
  }

  /// Builds the row of the merge's current record.
  mutating func addRecord(_ merge: RecordMerge) throws {
    let run = merge.run
    let isKnown = begin(run, merge.key, merge)
    while let source = merge.nextSource() {
      var cursor = source.cursor
      repeat {
        note(cursor)
        if isKnown { try apply(source, cursor) }
      } while try source.nextOfRecord(&cursor)
    }
    if isKnown { try finish(run, merge) }
  }

  /// Traps if the state is inconsistent. For tests, between two records and at each batch.
  func checkInvariants() {
    precondition(records.count == layouts.count, "each model has memory for its records")
    precondition(model < max(1, layouts.count), "the model at hand is one of them")
    precondition(modelOfRun.allSatisfy { (-1..<layouts.count).contains($0) }, "runs are of models")
    precondition(leading.run < modelOfRun.count, "what was looked at is a key of a run")
    if !values.isEmpty {
      precondition(values.count == layouts[model].rules.fields.count, "each field has a value")
    }
    precondition(held.isEmpty, "no event of a record waits for another record")
    precondition(progress.folded == progress.events, "here each event counts")
    precondition(progress.rows + progress.tombstones <= progress.events, "a record has an event")
    precondition(batch.rows.count <= progress.events * 2, "a record has a row, and a conflict at most")
    batch.checkInvariants()
    plans.checkInvariants()
  }

  /// False if the schema does not have the model.
  private mutating func begin(_ run: Int, _ key: UnsafeRawBufferPointer, _ merge: RecordMerge) -> Bool {
    while modelOfRun.count <= run {
      modelOfRun.append(indexOfModel(merge.model(ofRun: modelOfRun.count)) ?? -1)
    }
    guard modelOfRun[run] >= 0 else { return false }
    if modelOfRun[run] != model {
      swap(&record, &records[model])
      model = modelOfRun[run]
      swap(&record, &records[model])
    }
    keyBytes.removeAll(keepingCapacity: true)
    keyBytes.append(contentsOf: key)
    record.removeAll()
    clearValues()
    state = nil
    return true
  }

  private mutating func clearValues() {
    let count = unwritten[model].count
    if values.count != count {
      values = unwritten[model]
    } else {
      for field in 0..<count { values[field] = unwritten[model][field] }
    }
  }

  private mutating func note(_ cursor: BlockCursor) {
    progress.events += 1
    progress.folded += 1
    streams.note(by: cursor.id.origin, commit: cursor.commit, timestamp: cursor.timestamp)
  }

  // MARK: Events

  private mutating func apply(_ source: BlockSource, _ cursor: BlockCursor) throws {
    if state == nil {
      let plan =
        plans.known(source, cursor.shape, model) ?? plans.make(source, cursor, model, layouts[model].rules)
      if plan.isPlain, applyInPlace(cursor, plan) { return }
      goOn()
    }
    try applyWhole(cursor.event, layouts[model])
  }

  private mutating func applyInPlace(_ cursor: BlockCursor, _ plan: ShapePlan) -> Bool {
    let effect = record.apply(
      plan.operation, cursor.id, cursor.version, cursor.timestamp, registers: plan.registers,
      context: cursor.context)
    switch effect {
    case .isNotLinear: return false
    case .nothing: break
    case .clearsAll: clearValues()
    case .assigns:
      for field in plan.cleared { values[field] = unwritten[model][field] }
    }
    for assignment in plan.assignments {
      values[assignment.field] =
        switch assignment.tag {
        case .null: plan.distinguishesNull[assignment.field] ? .null : unwritten[model][assignment.field]
        case .bool, .int: .int(cursor.int(assignment.place))
        case .double: .double(cursor.double(assignment.place))
        case .string, .json: batch.copy(cursor.text(assignment.place))
        }
    }
    return true
  }

  /// Hands the record over to `RecordState`.
  private mutating func goOn() {
    let all = values.indices.map { values[$0].kind == .unwritten ? nil : value($0) }
    state = record.state { all[$0] }
  }

  private func value(_ field: Int) -> Value {
    let cell = values[field]
    let tag = layouts[model].rules.tag(ofField: field)
    func text() -> String {
      String(decoding: batch.bytes[Int(cell.bits)..<Int(cell.bits) + Int(cell.count)], as: UTF8.self)
    }
    return switch cell.kind {
    case .null, .unwritten, .blob: .null
    case .int: tag == .bool ? .bool(cell.bits != 0) : .int(Int64(bitPattern: cell.bits))
    case .double: .double(Double(bitPattern: cell.bits))
    case .text: tag == .json ? .json(text()) : .string(text())
    }
  }

  private mutating func applyWhole(_ event: Event, _ layout: TableLayout) throws(TablesError) {
    var state = state ?? RecordState()
    self.state = nil
    defer { self.state = state }
    do { try held.apply(event, to: &state, layout.rules) } catch {
      throw .merge(model: layout.model.name, event.key, error)
    }
  }

  private mutating func applyHeld(_ layout: TableLayout) throws(TablesError) {
    var state = state ?? RecordState()
    do { try held.applyAll(to: &state, layout.rules, leavesOut: false) } catch {
      throw .merge(model: layout.model.name, key, error)
    }
    self.state = state
  }

  // MARK: Rows

  private mutating func finish(_ run: Int, _ merge: RecordMerge) throws(TablesError) {
    let layout = layouts[model]
    try checkPartition(run, merge, layout)
    let exists = record.exists
    // Only a state can record which columns show a default.
    if state == nil,
      !exists || layout.rules.hasDefaults && values.contains(where: { $0.kind == .unwritten })
    {
      goOn()
    }
    if !held.isEmpty { try applyHeld(layout) }
    if let state {
      try putRow(of: state, layout, merge.partition(ofRun: run))
    } else {
      batch.begin(model)
      try putKey(layout)
      // By index: iterating over the array would retain it.
      for column in layout.ruleOfColumn.indices { batch.cells.append(values[layout.ruleOfColumn[column]]) }
      batch.cells.append(.int(Int64(clamping: record.version.rawValue)))
      let start = batch.bytes.count
      record.appendState(to: &batch.bytes)
      batch.end(start, keyBytes)
      progress.rows += 1
    }
  }

  private var key: Key { Key(trusted: keyBytes) }

  /// Throws unless the key's partition is that of its events. Leading bytes that matched before are
  /// not compared again. A following FF would continue a text among them.
  private mutating func checkPartition(
    _ run: Int, _ merge: RecordMerge, _ layout: TableLayout
  ) throws(TablesError) {
    let known = leading.bytes.count
    if leading.run == run, keyBytes.count > known, keyBytes[known] != 0xFF, hasLeading(known) { return }
    let partition = merge.partition(ofRun: run)
    guard layout.holds(key, in: partition) else {
      _ = try layout.partition(of: key)
      throw .foreignPartition(partition, model: layout.model.name, key)
    }
    let end = keyBytes.withUnsafeBytes { key in
      var index = 0
      for _ in 0..<layout.model.partitionDepth where index < key.count { _ = Key.partType(key, &index) }
      return index
    }
    leading = (run, Array(keyBytes[..<end]))
  }

  private func hasLeading(_ count: Int) -> Bool {
    keyBytes.withUnsafeBytes { key in
      leading.bytes.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: key[..<count]).compare($0) == 0 }
    }
  }

  private mutating func putRow(
    of state: RecordState, _ layout: TableLayout, _ partition: Partition
  ) throws(TablesError) {
    let rules = layout.rules
    let exists = state.exists(rules)
    if exists {
      batch.begin(model)
      try putKey(layout)
      for field in layout.ruleOfColumn {
        let cell = batch.cell(state.value(ofField: field, rules))
        batch.cells.append(cell)
      }
      progress.rows += 1
    } else {
      batch.begin(Statements.tombstone(layouts))
      putName(layout)
      put(partition.bytes, .text)
      progress.tombstones += 1
    }
    batch.cells.append(.int(Int64(clamping: state.version.rawValue)))
    put(state.sealed(rules, omitsShown: exists, keyBytes), .blob)
    if state.isInConflict(rules) {
      batch.begin(Statements.conflict(layouts))
      putName(layout)
      put(partition.bytes, .text)
    }
  }

  private mutating func put(_ bytes: [UInt8], _ kind: RowBatch.Cell.Kind) {
    let cell = batch.copy(bytes, kind)
    batch.cells.append(cell)
  }

  private mutating func putName(_ layout: TableLayout) {
    let cell = batch.copy(layout.model.storedName)
    batch.cells.append(cell)
    put(keyBytes, .blob)
  }

  private mutating func putKey(_ layout: TableLayout) throws(TablesError) {
    var index = 0
    for place in layout.keyKinds.indices {
      guard index < keyBytes.count else { throw .unfitKey(model: layout.model.name, key) }
      let kind = layout.keyKinds[place]
      if kind == .text {
        let start = batch.bytes.count
        guard keyBytes.withUnsafeBytes({ batch.appendText(ofKey: $0, at: &index) }) else {
          throw .unfitKey(model: layout.model.name, key)
        }
        batch.cells.append(
          RowBatch.Cell(kind: .text, count: UInt32(batch.bytes.count - start), bits: UInt64(start)))
        continue
      }
      let part: KeyPart
      do { part = try Key.decodePart(keyBytes, &index) } catch {
        throw .unfitKey(model: layout.model.name, key)
      }
      switch (part, kind) {
      case (.int(let number), .integer): batch.cells.append(.int(number))
      case (.double(let number), .real): batch.cells.append(.double(number))
      case (.bool(let flag), .boolean): batch.cells.append(.int(flag ? 1 : 0))
      default: throw .unfitKey(model: layout.model.name, key)
      }
    }
    guard index == keyBytes.count else { throw .unfitKey(model: layout.model.name, key) }
  }
}

/// The effect of one shape's events on a model's records. A class, so that a copy is one reference.
private final class ShapePlan {
  struct Assignment {
    /// The indexes among the rules' fields, and among the event's assignments.
    var field: Int
    var place: Int
    var tag: ValueTag
  }

  let model: Int
  let operation: EventOperation
  /// True if all fields are known and each value has its column's type.
  let isPlain: Bool
  let assignments: [Assignment]
  /// The registers of the assigned fields.
  let registers: [Int32]
  /// The other fields of these registers.
  let cleared: [Int]
  /// By field: `MergeRules.distinguishesNull`.
  let distinguishesNull: [Bool]

  init(_ cursor: BlockCursor, _ model: Int, _ rules: MergeRules) {
    var assignments: [Assignment] = []
    var isPlain = true
    for place in 0..<cursor.assignmentCount {
      switch rules.place(of: cursor.fieldName(cursor.field(place))) {
      case .ignored: continue
      case .unknown: isPlain = false
      case .field(let field):
        let tag = cursor.tag(place)
        if !rules.column(field, holds: tag) { isPlain = false }
        assignments.append(.init(field: field, place: place, tag: tag))
      }
    }
    self.model = model
    operation = cursor.operation
    self.isPlain = isPlain
    self.assignments = assignments
    distinguishesNull = rules.fields.indices.map { rules.distinguishesNull($0) }
    registers = assignments.map { Int32(rules.register(ofField: $0.field)) }
    cleared = assignments.flatMap { assignment in
      rules.fieldsWritten(with: assignment.field).filter { $0 != assignment.field }
    }
  }

  /// Traps if a field is assigned twice, or an assignment lacks its register.
  func checkInvariants() {
    precondition(registers.count == assignments.count, "each assignment is one of a register")
    for (a, b) in zip(assignments, assignments.dropFirst()) {
      precondition(a.place < b.place, "assignments stand as in the event")
    }
    precondition(Set(assignments.map(\.field)).count == assignments.count, "a field is assigned once")
  }
}

/// The plans for the shapes of the blocks that are being read.
private struct ShapePlans {
  private struct Block {
    var number = 0
    var plans: [ShapePlan?] = []
  }

  /// Indexed by source number.
  private var blocks: [Block] = []

  /// Traps if plans exist without a block.
  func checkInvariants() {
    for block in blocks {
      precondition(block.plans.isEmpty == (block.number == 0), "each shape of a block has a place")
      for case let plan? in block.plans { plan.checkInvariants() }
    }
  }

  /// Separate from `make`: passing the rules would count references to their many arrays.
  func known(_ source: BlockSource, _ shape: Int, _ model: Int) -> ShapePlan? {
    let number = source.number
    guard number < blocks.count, blocks[number].number == source.blockNumber,
      let plan = blocks[number].plans[shape], plan.model == model
    else { return nil }
    return plan
  }

  mutating func make(
    _ source: BlockSource, _ cursor: BlockCursor, _ model: Int, _ rules: MergeRules
  ) -> ShapePlan {
    let number = source.number
    while blocks.count <= number { blocks.append(Block()) }
    if blocks[number].number != source.blockNumber {
      blocks[number].number = source.blockNumber
      blocks[number].plans = Array(repeating: nil, count: cursor.shapeCount)
    }
    let plan = ShapePlan(cursor, model, rules)
    blocks[number].plans[cursor.shape] = plan
    return plan
  }
}
