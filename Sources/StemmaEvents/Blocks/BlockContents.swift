/// The events of a block by index, 0 ..< count in position order. Events are constructed on demand;
/// numbers and texts can be read without constructing any.
///
/// A class, so that many runs over one block share it. It is immutable. Bytes that it returns in
/// place stay valid as long as it is alive.
package final class BlockContents: Sendable {
  package let reader: BlockReader
  private let values: BlockValues
  private let maker: EventMaker

  /// Inflates and checks the values.
  package init(_ reader: BlockReader) throws(EventsError) {
    var reader = reader
    values = try reader.takeValues()
    self.reader = reader
    maker = EventMaker(reader, values)
  }

  package var count: Int { reader.count }
  /// Call it some events in advance: alternating reads of many blocks mostly wait for memory.
  package func prefetch(_ index: Int) { reader.rows.prefetch(index) }
  package func event(_ index: Int) -> Event {
    maker.event(index, of: reader.record(key(index))).event
  }
  package func note(_ index: Int) -> CommitMessage? {
    reader.rows.messages.isEmpty ? nil : reader.rows.message(of: commit(index))
  }

  package func relativePosition(_ index: Int) -> UInt64 { reader.rows[index].relativePosition }
  /// Number of the record among the block's keys.
  package func key(_ index: Int) -> Int { Int(reader.rows[index].key) }
  /// Number of the event's shape, which has its operation, relationship and fields.
  package func shape(_ index: Int) -> Int { Int(reader.rows[index].shape) }
  package func id(_ index: Int) -> EventID {
    let row = reader.rows[index]
    return EventID(reader.names.origins[Int(row.origin)], SequenceNumber(row.sequence))
  }
  package func timestamp(_ index: Int) -> Timestamp {
    Timestamp(rawValue: reader.rows[index].timestamp)
  }
  package func commit(_ index: Int) -> CommitID {
    let row = reader.rows[index]
    return CommitID(reader.names.origins[Int(row.commitOrigin)], row.commitNumber)
  }
  /// Several columns of an event at once, for scans: one by one they cost too many calls.
  package struct Outline {
    package var key: Int
    package var shape: Int
    /// Index in `origins`.
    package var origin: Int
    package var sequence: UInt64
    package var timestamp: Timestamp
    /// Number of its first assignment among those of the block.
    package var firstAssignment: Int
  }

  package func outline(_ index: Int) -> Outline {
    let row = reader.rows[index]
    return Outline(
      key: Int(row.key), shape: Int(row.shape), origin: Int(row.origin), sequence: row.sequence,
      timestamp: Timestamp(rawValue: row.timestamp), firstAssignment: Int(row.firstAssignment))
  }

  package var origins: [Origin] { reader.names.origins }

  /// The encoded key of a record, in place.
  package func keyBytes(_ key: Int) -> UnsafeRawBufferPointer { reader.keyTable.key(key) }

  package var shapeCount: Int { reader.names.shapes.count }
  package func operation(_ index: Int) -> EventOperation { operation(ofShape: shape(index)) }

  package func operation(ofShape shape: Int) -> EventOperation { reader.names.shapes[shape].operation }
  package func relationship(ofShape shape: Int) -> String? {
    reader.names.shapes[shape].relationship.map { reader.names.names[$0] }
  }
  /// The assigned fields of a shape, in order.
  package func fields(ofShape shape: Int) -> [(name: String, tag: ValueTag)] {
    reader.names.shapes[shape].fields.map { (reader.names.names[$0.name], $0.tag) }
  }

  /// The value of an assignment, by its number in the block.
  package func value(_ assignment: Int, _ tag: ValueTag) -> Value { values.value(assignment, tag) }
  /// The value of a Boolean (0 or 1), an integer, or a double's bits.
  package func bits(_ assignment: Int) -> UInt64 { values.bits(assignment) }
  /// The UTF-8 bytes of a string or of JSON, in place.
  package func text(_ assignment: Int) -> UnsafeRawBufferPointer { values.text(assignment) }
}
