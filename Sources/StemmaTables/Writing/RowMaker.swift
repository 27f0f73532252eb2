import StemmaEvents
import StemmaLog
import StemmaMerge

/// Makes rows of events that come record by record: the half of a rebuild that needs no database, and runs beside
/// the other.
///
/// A linear history (`LinearRecord`) is folded in place, texts going from the block into the batch. From the first
/// event on that is not linear, `RecordState` takes over.
///
/// A struct, as `LinearRecord` is: its arrays are changed at every event, and in a class each change would be checked
/// for exclusive access.
struct RowMaker {
  /// The statements of a batch: one for each model, then these two.
  enum Statements {
    static func tombstone(_ layouts: [TableLayout]) -> Int { layouts.count }
    static func conflict(_ layouts: [TableLayout]) -> Int { layouts.count + 1 }
  }

  private let layouts: [TableLayout]
  private let indexOfModel: (String) -> Int?
  private var records: [LinearRecord]
  /// For each model, the other fields of each field's register.
  private let companions: [[[Int]]]
  private var values: [RowBatch.Cell] = []
  /// The type of each value, which its cell does not tell.
  private var tags: [ValueTag] = []
  private var plans = ShapePlans()
  private var state: RecordState?
  private var held: [Event] = []
  private(set) var batch = RowBatch()
  private(set) var streams: StreamSummary
  private(set) var progress = RebuildProgress()

  init(_ tableSet: TableSet, _ streams: StreamSummary) {
    self.streams = streams
    layouts = tableSet.layouts
    indexOfModel = { tableSet.index(ofStoredName: $0) }
    records = layouts.map { LinearRecord($0.rules) }
    companions = layouts.map { layout in
      layout.rules.fields.indices.map { field in
        layout.rules.fieldsWritten(with: field).filter { $0 != field }
      }
    }
  }

  /// Gives the batch away and begins a new one.
  mutating func takeBatch() -> RowBatch {
    batch.progress = progress
    let full = batch
    batch = RowBatch()
    return full
  }

  /// Makes the row of the record to which the merge has just moved.
  mutating func addRecord(_ merge: RecordMerge) throws {
    guard let first = merge.nextSource() else { return }
    let partition = first.cursor.partition
    let model = indexOfModel(first.cursor.model)
    if let model { begin(model, first.cursor.keyBytes) }
    var source = Optional(first)
    while let current = source {
      repeat {
        note(current.cursor)
        if let model { try apply(current, model) }
      } while try current.nextOfRecord()
      source = merge.nextSource()
    }
    if let model { try finish(model, Key(trusted: keyBytes), partition) }
  }

  private var keyBytes: [UInt8] = []

  private mutating func begin(_ model: Int, _ key: UnsafeRawBufferPointer) {
    keyBytes.removeAll(keepingCapacity: true)
    keyBytes.append(contentsOf: key)
    let count = layouts[model].rules.fields.count
    records[model].removeAll()
    values.removeAll(keepingCapacity: true)
    values.append(contentsOf: repeatElement(.null, count: count))
    tags.removeAll(keepingCapacity: true)
    tags.append(contentsOf: repeatElement(.null, count: count))
    state = nil
  }

  private mutating func note(_ cursor: BlockCursor) {
    progress.events += 1
    progress.folded += 1
    streams.note(by: cursor.dot.origin, commit: cursor.commit, timestamp: cursor.timestamp)
  }

  // MARK: Events

  private mutating func apply(_ source: BlockSource, _ model: Int) throws {
    if state == nil {
      let plan = plans.plan(source, model, layouts[model].rules)
      if plan.isPlain, applyInPlace(source.cursor, model, plan) { return }
      goOn(model)
    }
    try applyWhole(source.cursor.event, layouts[model])
  }

  private mutating func applyInPlace(_ cursor: BlockCursor, _ model: Int, _ plan: ShapePlan) -> Bool {
    let effect = records[model].apply(
      plan.operation, cursor.dot, cursor.version, cursor.timestamp, fields: plan.fields,
      contextCount: cursor.contextCount, contextEntry: { cursor.contextEntry($0) })
    switch effect {
    case .isNotLinear: return false
    case .nothing: break
    case .clearsAll:
      for field in values.indices { values[field] = .null }
    case .assigns:
      for field in plan.fields { for other in companions[model][field] { values[other] = .null } }
    }
    for assignment in plan.assignments {
      tags[assignment.field] = assignment.tag
      values[assignment.field] =
        switch assignment.tag {
        case .null: .null
        case .bool, .int: .int(cursor.int(assignment.place))
        case .double: .double(cursor.double(assignment.place))
        case .string, .json: batch.copy(cursor.text(assignment.place))
        }
    }
    return true
  }

  /// Lets `RecordState` take over.
  private mutating func goOn(_ model: Int) {
    let all = values.indices.map { value($0) }
    state = records[model].state { all[$0] }
  }

  private func value(_ field: Int) -> Value {
    let cell = values[field]
    func text() -> String {
      String(decoding: batch.bytes[Int(cell.bits)..<Int(cell.bits) + Int(cell.count)], as: UTF8.self)
    }
    return switch cell.kind {
    case .null, .blob: .null
    case .int: tags[field] == .bool ? .bool(cell.bits != 0) : .int(Int64(bitPattern: cell.bits))
    case .double: .double(Double(bitPattern: cell.bits))
    case .text: tags[field] == .json ? .json(text()) : .string(text())
    }
  }

  private mutating func applyWhole(_ event: Event, _ layout: TableLayout) throws(TablesError) {
    var state = state ?? RecordState()
    self.state = nil
    defer { self.state = state }
    do { _ = try state.apply(event, layout.rules) } catch {
      guard case .gap = error else { throw .merge(model: layout.model.name, event.key, error) }
      held.append(event)
    }
  }

  /// Events that came before one that their context names. Causes before effects: no event has a version at or below
  /// one that it has seen.
  private mutating func applyHeld(_ layout: TableLayout) throws(TablesError) {
    var state = state ?? RecordState()
    held.sort { $0.version != $1.version ? $0.version < $1.version : $0.dot < $1.dot }
    for event in held {
      do { _ = try state.apply(event, layout.rules) } catch {
        throw .merge(model: layout.model.name, event.key, error)
      }
    }
    held.removeAll()
    self.state = state
  }

  // MARK: Rows

  private mutating func finish(_ model: Int, _ key: Key, _ partition: Partition) throws(TablesError) {
    let layout = layouts[model]
    guard layout.holds(key, in: partition) else {
      _ = try layout.partition(of: key)
      throw .foreignPartition(partition, model: layout.model.name, key)
    }
    let (exists, version) = records[model].summary()
    if state == nil, !exists { goOn(model) }
    if !held.isEmpty { try applyHeld(layout) }
    if let state {
      try putRow(of: state, model, key, partition)
    } else {
      batch.begin(model)
      try putKey(key, layout)
      for field in layout.ruleOfColumn { batch.cells.append(values[field]) }
      batch.cells.append(.int(Int64(clamping: version.rawValue)))
      let start = batch.bytes.count
      records[model].appendState(to: &batch.bytes)
      batch.cells.append(
        RowBatch.Cell(kind: .blob, count: UInt32(batch.bytes.count - start), bits: UInt64(start)))
      progress.rows += 1
    }
  }

  private mutating func putRow(
    of state: RecordState, _ model: Int, _ key: Key, _ partition: Partition
  ) throws(TablesError) {
    let layout = layouts[model]
    let rules = layout.rules
    let exists = state.exists(rules)
    if exists {
      batch.begin(model)
      try putKey(key, layout)
      for field in layout.ruleOfColumn {
        let cell = batch.cell(state.value(ofField: field, rules))
        batch.cells.append(cell)
      }
      progress.rows += 1
    } else {
      batch.begin(Statements.tombstone(layouts))
      putName(layout, key)
      put(partition.bytes, .text)
      progress.tombstones += 1
    }
    batch.cells.append(.int(Int64(clamping: state.version.rawValue)))
    put(state.encoded(rules, omitsShown: exists), .blob)
    if state.isInConflict(rules) {
      batch.begin(Statements.conflict(layouts))
      putName(layout, key)
      put(partition.bytes, .text)
    }
  }

  private mutating func put(_ bytes: [UInt8], _ kind: RowBatch.Cell.Kind) {
    let cell = batch.copy(bytes, kind)
    batch.cells.append(cell)
  }

  private mutating func putName(_ layout: TableLayout, _ key: Key) {
    let cell = batch.copy(layout.model.storedName)
    batch.cells.append(cell)
    put(key.bytes, .blob)
  }

  private mutating func putKey(_ key: Key, _ layout: TableLayout) throws(TablesError) {
    var index = 0
    for column in layout.key {
      guard index < key.bytes.count else { throw .unfitKey(model: layout.model.name, key) }
      if column.kind == .text {
        let start = batch.bytes.count
        guard key.appendText(at: &index, to: &batch.bytes) else {
          throw .unfitKey(model: layout.model.name, key)
        }
        batch.cells.append(
          RowBatch.Cell(kind: .text, count: UInt32(batch.bytes.count - start), bits: UInt64(start)))
        continue
      }
      let part: KeyPart
      do { part = try Key.decodePart(key.bytes, &index) } catch {
        throw .unfitKey(model: layout.model.name, key)
      }
      switch (part, column.kind) {
      case (.int(let number), .integer): batch.cells.append(.int(number))
      case (.double(let number), .real): batch.cells.append(.double(number))
      case (.bool(let flag), .boolean): batch.cells.append(.int(flag ? 1 : 0))
      default: throw .unfitKey(model: layout.model.name, key)
      }
    }
    guard index == key.bytes.count else { throw .unfitKey(model: layout.model.name, key) }
  }
}

extension Key {
  /// Appends the string part at `index` without its escapes, and moves `index` behind it. False if there is none.
  fileprivate func appendText(at index: inout Int, to output: inout [UInt8]) -> Bool {
    guard bytes[index] == 0x02 else { return false }
    index += 1
    while true {
      var end = index
      while end < bytes.count, bytes[end] != 0 { end += 1 }
      if end == bytes.count { return false }
      output.append(contentsOf: bytes[index..<end])
      index = end + 1
      guard index < bytes.count, bytes[index] == 0xFF else { return true }
      output.append(0)
      index += 1
    }
  }
}

/// What the events of a shape do to the records of a model. A class, so that it is handed around for one reference.
private final class ShapePlan {
  struct Assignment {
    /// The place among the rules' fields, and among the event's assignments.
    var field: Int
    var place: Int
    var tag: ValueTag
  }

  let model: Int
  let operation: Operation
  /// Known fields only, each type that of its column.
  let isPlain: Bool
  let assignments: [Assignment]
  let fields: [Int]

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
    fields = assignments.map(\.field)
  }
}

/// The plans for the shapes of the blocks that are being read.
private struct ShapePlans {
  private struct Block {
    var number = 0
    var plans: [ShapePlan?] = []
  }

  /// For each source.
  private var blocks: [Block] = []

  mutating func plan(_ source: BlockSource, _ model: Int, _ rules: MergeRules) -> ShapePlan {
    while blocks.count <= source.number { blocks.append(Block()) }
    if blocks[source.number].number != source.blockNumber {
      blocks[source.number].number = source.blockNumber
      blocks[source.number].plans.removeAll(keepingCapacity: true)
    }
    let shape = source.cursor.shape
    while blocks[source.number].plans.count <= shape { blocks[source.number].plans.append(nil) }
    if let plan = blocks[source.number].plans[shape], plan.model == model { return plan }
    let plan = ShapePlan(source.cursor, model, rules)
    blocks[source.number].plans[shape] = plan
    return plan
  }
}
