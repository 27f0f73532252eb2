/// Goes over the events of a block without making Strings, arrays or anything else on the heap: numbers by
/// value, texts in place. This is how tables are rebuilt, a few tens of nanoseconds an event.
///
/// What it gives out in place stays valid as long as the cursor is alive. A class, because a copy would count
/// references to each of the block's tables.
package final class BlockCursor {
  package enum Order: Sendable {
    case arrival
    /// By (partition, model, key); events of one key in arrival order.
    case key
  }

  private let reader: BlockReader
  private let values: BlockValues
  /// The events in the cursor's order, with where their assignments begin. Memory of its own: an array in a class
  /// costs a count of references at each look.
  private let rows: UnsafeMutablePointer<Row>
  private var next = 0
  private var current: UnsafeMutablePointer<Row>

  private struct Row {
    var row: BlockRow
    var firstAssignment: UInt32
  }

  fileprivate init(_ reader: BlockReader, _ order: Order) throws(EventsError) {
    self.reader = reader
    values = try reader.values()
    rows = .allocate(capacity: reader.count)
    current = rows
    let firstAssignments = reader.firstAssignments
    let order = order == .key ? reader.indexesByKey() : nil
    for place in 0..<reader.count {
      let index = order.map { Int($0[place]) } ?? place
      (rows + place).initialize(
        to: Row(row: reader.rows.rows[index], firstAssignment: firstAssignments[index]))
    }
  }

  // Rows are plain numbers: there is nothing to deinitialize.
  deinit { rows.deallocate() }

  private var row: BlockRow {
    @inline(__always) _read { yield current.pointee.row }
  }
  private var firstAssignment: Int { Int(current.pointee.firstAssignment) }

  /// Moves to the next event, at first to the first; false behind the last.
  package func advance() -> Bool {
    guard next < reader.count else { return false }
    current = rows + next
    next += 1
    return true
  }

  package var arrival: UInt64 { row.arrival }
  /// Number of the record among the block's keys, by which `reader.record(_:)` names it.
  package var key: Int { Int(row.key) }
  /// The encoded key, in place.
  package var keyBytes: UnsafeRawBufferPointer { reader.keyTable.key(Int(row.key)) }
  /// Number of the key's run; keys of one run have partition and model in common.
  package var run: Int { Int(reader.keyTable.runOfKey[Int(row.key)]) }
  package var partition: Partition { reader.partition(ofKey: Int(row.key)) }
  /// The model's stored name.
  package var model: String { reader.model(ofKey: Int(row.key)) }
  /// Number of the event's shape; events of one shape have operation, relationship and fields in common.
  package var shape: Int { Int(row.shape) }
  /// How many shapes and runs the block has.
  package var shapeCount: Int { reader.names.shapes.count }
  package var runCount: Int { reader.keyTable.runs.count }
  package var operation: Operation { reader.names.shapes[Int(row.shape)].operation }
  /// The stored name of the relationship, of links and unlinks.
  package var relationship: String? {
    reader.names.shapes[Int(row.shape)].relationship.map { reader.names.names[$0] }
  }
  package var dot: Dot { Dot(reader.names.origins[Int(row.origin)], Sequence(row.sequence)) }
  package var version: Version { Version(row.version) }
  package var timestamp: Timestamp { Timestamp(rawValue: row.timestamp) }
  package var commit: CommitID {
    CommitID(reader.names.origins[Int(row.commitOrigin)], row.commitNumber)
  }
  package var cause: EventName? { row.cause < 0 ? nil : reader.rows.causes[Int(row.cause)] }

  /// Whether the event saw exactly its key's event before in this block and all that that one saw; if there is
  /// none before, that it saw nothing. Then the record's history is linear here.
  package var isContextImplicit: Bool { row.isImplicit }
  /// Entries of the context, implicit or not.
  package var contextCount: Int { Int(row.contextCount) }
  package func contextEntry(_ index: Int) -> Context.Entry {
    precondition(index < contextCount, "the context has \(contextCount) entries")
    return reader.rows.contexts[Int(row.contextStart) + index]
  }

  package var assignmentCount: Int { reader.names.shapes[Int(row.shape)].fields.count }
  /// Number of the assigned field's name, by which `fieldName(_:)` names it.
  package func field(_ assignment: Int) -> Int {
    reader.names.shapes[Int(row.shape)].fields[assignment].name
  }
  package func tag(_ assignment: Int) -> ValueTag {
    reader.names.shapes[Int(row.shape)].fields[assignment].tag
  }
  package func fieldName(_ field: Int) -> String { reader.names.names[field] }

  /// The value of a Boolean (0 or 1), an integer, or a double's bits.
  package func bits(_ assignment: Int) -> UInt64 {
    let tag = tag(assignment)
    precondition(tag == .bool || tag == .int || tag == .double, "the value is no number")
    return values.bits(firstAssignment + assignment)
  }
  package func int(_ assignment: Int) -> Int64 { Int64(bitPattern: bits(assignment)) }
  package func double(_ assignment: Int) -> Double { Double(bitPattern: bits(assignment)) }
  /// The UTF-8 bytes of a string or of JSON, in place.
  package func text(_ assignment: Int) -> UnsafeRawBufferPointer {
    let tag = tag(assignment)
    precondition(tag == .string || tag == .json, "the value is no text")
    return values.text(firstAssignment + assignment)
  }
  /// The value as it stands in an `Event`.
  package func value(_ assignment: Int) -> Value {
    values.value(firstAssignment + assignment, tag(assignment))
  }

  /// The event as a whole, with everything on the heap that this cursor is there to avoid.
  package var event: Event {
    let shape = reader.names.shapes[Int(row.shape)]
    var assignments: [Assignment] = []
    assignments.reserveCapacity(shape.fields.count)
    for place in shape.fields.indices {
      assignments.append(Assignment(fieldName(shape.fields[place].name), value(place)))
    }
    let start = Int(row.contextStart)
    return Event(
      partition: partition, model: model, key: Key(trusted: Array(keyBytes)), operation: shape.operation,
      relationship: shape.relationship.map { reader.names.names[$0] }, assignments: assignments, dot: dot,
      context: Context(trusted: Array(reader.rows.contexts[start..<start + contextCount])),
      version: version, timestamp: timestamp, commit: commit, cause: cause)
  }
}

extension BlockReader {
  /// A cursor over the events; inflates and checks the values.
  package func cursor(_ order: BlockCursor.Order) throws(EventsError) -> BlockCursor {
    try BlockCursor(self, order)
  }
}
