/// Makes blocks, one after another, out of events in arrival order. The layout stands in `Block.swift`.
///
/// The same events appended in the same order, with the same notes and level, give the same bytes. Memory is
/// kept from block to block, so that a small block costs a few microseconds. Not for two tasks at once: copies
/// share zlib's tables.
package struct BlockWriter {
  private let deflater: Deflater
  private var names = BlockNamesWriter()
  private var keys = BlockKeysWriter()
  private var rows = BlockRowsWriter()
  private var values = BlockValuesWriter()

  /// `level`: how hard deflate tries, 1 to 9; 0: not at all.
  package init(level: Int32 = 6) { deflater = Deflater(level: level) }

  /// How many events were appended since the last `finish`.
  package var count: Int { rows.count }

  /// About how many bytes the block has before it is deflated, keys counted whole.
  package var rawBytes: Int { names.rawBytes + keys.byteCount + rows.byteCount + values.byteCount }

  /// Whether a reader takes the block that `finish` would make now. Only commits of several million events get
  /// near: those are to be refused before they are written.
  package var isWithinLimits: Bool {
    count <= Limits.blockEvents && rawBytes + 4 * values.assignmentCount <= Limits.blockStream
  }

  /// Appends an event.
  ///
  /// Traps when an event is out of order or is none that a reader would take, because events are checked where
  /// they come in: arrivals rise, the sequences of each stream rise, assignments are sorted by field.
  package mutating func append(_ event: Event, arrival: UInt64) {
    let partition = names.index(of: event.partition)
    let model = names.index(ofName: event.model)
    let key = keys.index(of: event.key, partition: partition, model: model)
    let shape = names.indexOfShape(of: event)
    rows.append(event, arrival: arrival, key: key, shape: shape, partition: partition, names: &names)
    values.append(
      event.assignments, ofShape: names.columns.ofShapes[shape], columnCount: names.columns.fields.count)
  }

  /// Gives a commit its note; some event of the commit must be in the block before it is finished. An empty
  /// note takes an earlier one away.
  package mutating func setNote(_ note: CommitNote, of commit: CommitID) { rows.setNote(note, of: commit) }

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
    append(keyStream, to: &block, &bodies)
    append(rowStream, to: &block, &bodies)
    append(valueStream, to: &block, &bodies)
    block.append(contentsOf: bodies)

    names.removeAll()
    keys.removeAll()
    rows.removeAll()
    values.removeAll()
    return block
  }

  /// Appends the sizes of a stream to `head`, and the stream to `bodies`, deflated if that makes it shorter.
  private func append(_ stream: [UInt8], to head: inout [UInt8], _ bodies: inout [UInt8]) {
    let before = bodies.count
    if stream.count >= BlockFormat.leastDeflated, deflater.appendShorter(stream, to: &bodies) {
      head.appendVarint(stream.count << 1 | 1)
      head.appendVarint(bodies.count - before)
    } else {
      head.appendVarint(stream.count << 1)
      bodies.append(contentsOf: stream)
    }
  }

  /// Traps if the parts of the block do not fit each other. For tests; in debug builds at each block. Looks at every key.
  package func checkInvariants() {
    names.checkInvariants()
    keys.checkInvariants()
    rows.checkInvariants(keys: keys.count)
    values.checkInvariants(names.columns.fields)
    deflater.checkInvariants()
  }
}
