/// Encodes events in position order as blocks. `Block.swift` describes the layout.
///
/// On one machine, the same events in the same order, with the same notes and level, give the same
/// bytes. Memory is reused from block to block, so a small block costs a few microseconds. Not for
/// concurrent use: copies share the tables of the compressor.
package struct BlockWriter {
  private let deflater: Deflater
  private var names = BlockNamesWriter()
  private var keys = BlockKeysWriter()
  private var rows = BlockRowsWriter()
  private var values = BlockValuesWriter()

  /// `level`: deflate level, 1 to 9; 0: none.
  package init(level: Int32 = 6) { deflater = Deflater(level: level) }

  /// The number of events since the last `finish`.
  package var count: Int { rows.count }

  /// The approximate size of the block in bytes before it is deflated, with whole keys.
  package var rawBytes: Int { names.rawBytes + keys.byteCount + rows.byteCount + values.byteCount }

  /// Whether a reader accepts the block that `finish` would return. Only commits of millions of
  /// events come near the limit; callers reject them before they write.
  package var isWithinLimits: Bool {
    count <= Limits.blockEvents && rawBytes + 4 * values.assignmentCount <= Limits.blockStream
  }

  /// Appends an event.
  ///
  /// Traps on an event that is out of order or invalid, because callers validate events: positions
  /// and the sequences of each stream rise, and assignments are sorted by field.
  package mutating func append(_ event: Event, relativePosition: UInt64) {
    let partition = names.index(of: event.partition)
    let model = names.index(ofName: event.model)
    let key = keys.index(of: event.key, partition: partition, model: model)
    let shape = names.indexOfShape(of: event)
    rows.append(
      event, relativePosition: relativePosition, key: key, shape: shape, partition: partition, names: &names)
    values.append(
      event.assignments, ofShape: names.columns.ofShapes[shape], columnCount: names.columns.fields.count)
  }

  /// Sets author, message and source of a commit. The block must get an event of it. An empty note
  /// removes an earlier one.
  package mutating func setMessage(_ message: CommitMessage, of commit: CommitID) {
    rows.setMessage(message, of: commit)
  }

  /// The block of all events since the last call. Traps without any.
  package mutating func finish() -> [UInt8] {
    precondition(count > 0, "a block has an event")
    assert(holds(checkInvariants))
    var keyStream: [UInt8] = []
    var rowStream: [UInt8] = []
    var valueStream: [UInt8] = []
    keyStream.reserveCapacity(names.rawBytes + keys.byteCount + 64)
    valueStream.reserveCapacity(values.byteCount + 2 * names.columns.fields.count)
    let ranks = names.write(to: &keyStream)
    let places = keys.write(
      to: &keyStream, ranks: ranks, names: names.names.elements, partitions: names.partitions.elements)
    rows.write(to: &rowStream, places: places, ranks: ranks, origins: names.origins.elements)
    values.write(to: &valueStream, names.columns.fields)

    var block: [UInt8] = []
    block.reserveCapacity(keyStream.count + rowStream.count + valueStream.count + 40)
    block.append(BlockFormat.codec)
    block.append(BlockFormat.layout)
    block.appendVarint(count)
    var bodies: [UInt8] = []
    bodies.reserveCapacity(keyStream.count + rowStream.count + valueStream.count)
    deflater.append(keyStream, to: &bodies).append(to: &block)
    deflater.append(rowStream, to: &bodies).append(to: &block)
    deflater.append(valueStream, to: &bodies).append(to: &block)
    block.append(contentsOf: bodies)

    names.removeAll()
    keys.removeAll()
    rows.removeAll()
    values.removeAll()
    return block
  }

  /// Traps if the parts of the block do not match. For tests; in debug builds at each block.
  package func checkInvariants() {
    names.checkInvariants()
    keys.checkInvariants()
    rows.checkInvariants(keys: keys.count)
    values.checkInvariants(names.columns.fields)
  }
}
