/// Iterates over the events of a block without allocating: numbers by value, texts in place. Tables
/// are rebuilt this way, in a few tens of nanoseconds for each event.
///
/// Bytes that it returns in place stay valid as long as the cursor is alive. A class, because a
/// copy would count references to each of the block's tables.
package final class BlockCursor {
  package enum Order: Sendable {
    case relativePosition
    /// By (partition, model, key); events of one key in position order.
    case key
  }

  private let reader: BlockReader
  private let values: BlockValues
  /// The indexes of the events in key order; nil: in position order.
  private let order: FixedTable<UInt32>?
  private let origins: FixedTable<Origin>
  /// In memory that `reader` keeps alive.
  private let rows: UnsafeMutablePointer<BlockRow>?
  private var next = 0
  private var current: UnsafeMutablePointer<BlockRow>?

  fileprivate init(_ reader: BlockReader, _ order: Order) throws(EventsError) {
    var reader = reader
    values = try reader.takeValues()
    self.reader = reader
    rows = reader.rows.table.elements.baseAddress
    current = rows
    origins = FixedTable(reader.names.origins)
    self.order = order == .key ? reader.indexesByKey() : nil
  }

  private var row: UnsafeMutablePointer<BlockRow> {
    @inline(__always) get {
      guard let current else { preconditionFailure("a block has an event") }
      return current
    }
  }

  /// Moves to the next event, at first to the first; false behind the last.
  package func advance() -> Bool {
    guard next < reader.count else { return false }
    current = rows.map { $0 + (order.map { Int($0.elements[next]) } ?? next) }
    next += 1
    return true
  }

  /// Traps if the current event is not of the block, or not the one last reached. For tests.
  package func checkInvariants() {
    precondition((0...reader.count).contains(next), "there are no more events")
    precondition(order.map { $0.count == reader.count } ?? true, "each event has one place")
    guard next > 0, let rows, let current else { return }
    precondition(
      current - rows == order.map { Int($0[next - 1]) } ?? next - 1, "the event at hand is the last one")
  }

  /// Returns to the position before the first event.
  package func rewind() { next = 0 }

  package var relativePosition: UInt64 { row.pointee.relativePosition }
  /// Number of the record among the block's keys, for `reader.record(_:)`.
  package var key: Int { Int(row.pointee.key) }
  /// The encoded key, in place.
  package var keyBytes: UnsafeRawBufferPointer { reader.keyTable.key(Int(row.pointee.key)) }
  /// Number of the key's run. Keys of one run have the same partition and model.
  package var run: Int { Int(reader.keyTable.runOfKey[Int(row.pointee.key)]) }
  package var partition: Partition { reader.partition(ofKey: Int(row.pointee.key)) }
  /// The model's stored name.
  package var model: String { reader.model(ofKey: Int(row.pointee.key)) }
  /// The partition and the model of a run of keys.
  package func names(ofRun run: Int) -> (Partition, model: String) {
    let run = reader.keyTable.runs[run]
    return (reader.names.partitions[run.partition], reader.names.names[run.model])
  }
  /// Number of the event's shape, which has its operation, relationship and fields.
  package var shape: Int { Int(row.pointee.shape) }
  /// How many shapes and runs the block has.
  package var shapeCount: Int { reader.names.shapes.count }
  package var runCount: Int { reader.keyTable.runs.count }
  private var outline: BlockNames.ShapeOutline {
    @inline(__always) get { reader.names.outlines[Int(row.pointee.shape)] }
  }
  package var operation: EventOperation { outline.operation }
  /// The stored name of the relationship, of links and unlinks.
  package var relationship: String? {
    reader.names.shapes[Int(row.pointee.shape)].relationship.map { reader.names.names[$0] }
  }
  package var id: EventID { EventID(origins[Int(row.pointee.origin)], SequenceNumber(row.pointee.sequence)) }
  package var version: Version { Version(row.pointee.version) }
  package var timestamp: Timestamp { Timestamp(rawValue: row.pointee.timestamp) }
  package var commit: CommitID {
    CommitID(origins[Int(row.pointee.commitOrigin)], row.pointee.commitNumber)
  }
  package var cause: QualifiedEventID? {
    let cause = row.pointee.cause
    return cause < 0 ? nil : reader.rows.causes[Int(cause)]
  }

  /// Whether the event saw exactly the key's previous event in this block and everything that event
  /// saw, or nothing if there is none. Then the record's history is linear here.
  package var isContextImplicit: Bool { row.pointee.isImplicit }
  /// Entries of the context, implicit or not.
  package var contextCount: Int { Int(row.pointee.contextCount) }
  /// The context, in place.
  package var context: UnsafeBufferPointer<Context.Entry> {
    let start = Int(row.pointee.contextStart)
    return UnsafeBufferPointer(rebasing: reader.rows.contexts.elements[start..<start + contextCount])
  }
  package func contextEntry(_ index: Int) -> Context.Entry {
    precondition(index < contextCount, "the context has \(contextCount) entries")
    return reader.rows.contexts[Int(row.pointee.contextStart) + index]
  }

  package var assignmentCount: Int { Int(outline.fieldCount) }
  private func assigned(_ assignment: Int) -> BlockShape.Field {
    let outline = outline
    precondition(assignment < outline.fieldCount, "the event has \(outline.fieldCount) assignments")
    return reader.names.fields[Int(outline.firstField) + assignment]
  }
  /// Number of the assigned field's name, for `fieldName(_:)`.
  package func field(_ assignment: Int) -> Int { assigned(assignment).name }
  package func tag(_ assignment: Int) -> ValueTag { assigned(assignment).tag }
  package func fieldName(_ field: Int) -> String { reader.names.names[field] }

  /// The value of a Boolean (0 or 1), an integer, or a double's bits.
  package func bits(_ assignment: Int) -> UInt64 {
    let tag = tag(assignment)
    precondition(tag == .bool || tag == .int || tag == .double, "the value is no number")
    return values.bits(Int(row.pointee.firstAssignment) + assignment)
  }
  package func int(_ assignment: Int) -> Int64 { Int64(bitPattern: bits(assignment)) }
  package func double(_ assignment: Int) -> Double { Double(bitPattern: bits(assignment)) }
  /// The UTF-8 bytes of a string or of JSON, in place.
  package func text(_ assignment: Int) -> UnsafeRawBufferPointer {
    let tag = tag(assignment)
    precondition(tag == .string || tag == .json, "the value is no text")
    return values.text(Int(row.pointee.firstAssignment) + assignment)
  }
  /// The value as in an `Event`.
  package func value(_ assignment: Int) -> Value {
    values.value(Int(row.pointee.firstAssignment) + assignment, tag(assignment))
  }

  /// The whole event, with the allocations that this cursor otherwise avoids.
  package var event: Event {
    let shape = reader.names.shapes[shape]
    var assignments: [Assignment] = []
    assignments.reserveCapacity(shape.fields.count)
    for place in shape.fields.indices {
      assignments.append(Assignment(fieldName(shape.fields[place].name), value(place)))
    }
    let start = Int(row.pointee.contextStart)
    return Event(
      partition: partition, model: model, key: Key(trusted: Array(keyBytes)), operation: shape.operation,
      relationship: shape.relationship.map { reader.names.names[$0] }, assignments: assignments, id: id,
      context: Context(trusted: Array(reader.rows.contexts.elements[start..<start + contextCount])),
      version: version, timestamp: timestamp, commit: commit, cause: cause)
  }
}

extension BlockReader {
  /// A cursor over the events; inflates and checks the values.
  package func cursor(_ order: BlockCursor.Order) throws(EventsError) -> BlockCursor {
    try BlockCursor(self, order)
  }
}
