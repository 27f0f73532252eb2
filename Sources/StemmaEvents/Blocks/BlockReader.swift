/// A block, decoded and verified. Later access to events cannot fail, except that the values are
/// inflated and verified on first use.
///
/// Memory: about 100 bytes for each event, and the keys. The result of `values()` holds the values.
package struct BlockReader: Sendable {
  let names: BlockNames
  let keyTable: BlockKeys
  let rows: BlockRows
  /// nil after `takeValues`.
  private var valueStream: StoredStream?
  private let limit: Int

  /// Decodes a whole untrusted block. Each stream, and the unpacked keys, names and texts, have at
  /// most `limit` raw bytes. `strictly`: for a received block that is stored unchanged.
  package init(
    _ bytes: ArraySlice<UInt8>, limit: Int = Limits.blockStream, strictly: Bool = false
  ) throws(EventsError) {
    let head = try bytes.withUnsafeBytes { raw in
      Result { () throws(EventsError) -> Head in try Head(raw, limit: limit) }
    }.get()
    guard head.total == bytes.count else {
      throw .malformed(
        "block", "\(bytes.count - head.size) bytes of streams instead of \(head.total - head.size)")
    }
    var start = bytes.startIndex + head.size
    var streams: [StoredStream] = []
    for size in head.streams {
      streams.append(
        StoredStream(bytes: bytes[start..<start + size.stored], size: size, isStrict: strictly))
      start += size.stored
    }
    valueStream = streams[2]
    self.limit = limit

    let keyStream = try streams[0].inflate("keys")
    defer { withExtendedLifetime(keyStream) {} }
    var reader = ByteReader<EventsError>(keyStream.bytes)
    names = try BlockNames(&reader, limit: limit)
    keyTable = try BlockKeys(&reader, names, limit: head.count, byteLimit: limit)
    try reader.finish("keys")

    let rowStream = try streams[1].inflate("events")
    defer { withExtendedLifetime(rowStream) {} }
    reader = ByteReader<EventsError>(rowStream.bytes)
    rows = try BlockRows(&reader, count: head.count, names, keyTable, assignmentLimit: limit / 4)
  }

  package init(_ bytes: [UInt8], limit: Int = Limits.blockStream) throws(EventsError) {
    try self.init(bytes[...], limit: limit)
  }

  /// The first bytes of every block.
  package static let beginning = [BlockFormat.codec, BlockFormat.layout]

  /// Maximum bytes of the header that states the length of a block.
  package static let headSize = 48

  /// The length of the block that begins here, for a search without a footer. `bytes`: its first
  /// `headSize` bytes, or fewer at the end of the file.
  package static func storedSize(
    _ bytes: ArraySlice<UInt8>, limit: Int = Limits.blockStream
  ) throws(EventsError) -> Int {
    try bytes.withUnsafeBytes { raw in
      Result { () throws(EventsError) -> Int in try Head(raw, limit: limit).total }
    }.get()
  }

  /// The number of events.
  package var count: Int { rows.count }

  package func relativePosition(_ index: Int) -> UInt64 { rows[index].relativePosition }

  /// Author, message and source of each commit with events in the block, by commit.
  package var messages: [(commit: CommitID, message: CommitMessage)] {
    rows.messages.map { ($0.commit, rows.note($0)) }
  }

  /// The number of distinct keys.
  package var keyCount: Int { keyTable.count }

  /// A record with events in the block.
  package struct Record: Hashable, Sendable {
    package var partition: Partition
    package var model: String
    package var key: Key

    package init(partition: Partition, model: String, key: Key) {
      self.partition = partition
      self.model = model
      self.key = key
    }
  }

  /// The distinct keys, by (partition, model, key). O(keys) allocations.
  package var keys: [Record] { (0..<keyCount).map(record) }

  package func record(_ key: Int) -> Record {
    let run = keyTable.runs[Int(keyTable.runOfKey[key])]
    return Record(
      partition: names.partitions[run.partition], model: names.names[run.model],
      key: Key(trusted: Array(keyTable.key(key))))
  }

  /// The number of a key's run. Keys of one run have the same partition and model.
  package func run(ofKey key: Int) -> Int { Int(keyTable.runOfKey[key]) }

  /// The encoded key, in place: valid as long as the block is alive.
  package func keyBytes(_ key: Int) -> UnsafeRawBufferPointer { keyTable.key(key) }

  /// The partition of a key, without reading the key.
  package func partition(ofKey key: Int) -> Partition {
    names.partitions[keyTable.runs[Int(keyTable.runOfKey[key])].partition]
  }

  /// The stored name of a key's model.
  package func model(ofKey key: Int) -> String {
    names.names[keyTable.runs[Int(keyTable.runOfKey[key])].model]
  }

  /// The partitions with events in the block, sorted.
  package var partitions: [Partition] {
    var indexes: [Int] = []
    for run in keyTable.runs where indexes.last != run.partition { indexes.append(run.partition) }
    return indexes.map { names.partitions[$0] }
  }

  /// Inflates and verifies the values, again at each call: keep the result.
  package func values() throws(EventsError) -> BlockValues {
    guard let valueStream else { preconditionFailure("the values were taken before") }
    return try BlockValues(try valueStream.inflate("values"), names, rows, limit: limit)
  }

  /// The values, like `values`, and releases their stored bytes. Call it once.
  mutating func takeValues() throws(EventsError) -> BlockValues {
    defer { valueStream = nil }
    return try values()
  }

  /// All events in position order.
  package func events() throws(EventsError) -> [BlockEvent] {
    let maker = EventMaker(self, try values())
    let keys = keys
    return (0..<count).map { maker.event($0, keys) }
  }

  /// All events by (partition, model, key), and by position for one key.
  package func eventsByKey() throws(EventsError) -> [BlockEvent] {
    let maker = EventMaker(self, try values())
    let keys = keys
    let order = indexesByKey()
    return (0..<count).map { maker.event(Int(order[$0]), keys) }
  }

  /// The number of a record among the block's keys; nil without an event. O(keys), no allocation.
  package func number(of record: Record) -> Int? { Self.number(of: record, names, keyTable) }

  private static func number(of record: Record, _ names: BlockNames, _ keys: BlockKeys) -> Int? {
    record.key.bytes.withUnsafeBytes { wanted in
      (0..<keys.count).first { key in
        let bytes = keys.key(key)
        guard bytes.count == wanted.count, bytes.elementsEqual(wanted) else { return false }
        let run = keys.runs[Int(keys.runOfKey[key])]
        return names.partitions[run.partition] == record.partition
          && names.names[run.model].hasSameBytes(as: record.model)
      }
    }
  }

  /// Whether a block has events of a record. Unpacks only the keys of its partition and model.
  package static func holds(_ record: Record, in bytes: [UInt8]) throws(EventsError) -> Bool {
    let limit = Limits.blockStream
    let head = try bytes.withUnsafeBytes { raw in
      Result { () throws(EventsError) -> Head in try Head(raw, limit: limit) }
    }.get()
    let stored = StoredStream(
      bytes: bytes[head.size..<head.size + head.streams[0].stored], size: head.streams[0], isStrict: false)
    let stream = try stored.inflate("keys")
    defer { withExtendedLifetime(stream) {} }
    var reader = ByteReader<EventsError>(stream.bytes)
    let names = try BlockNames(&reader, limit: limit)
    let keys = try BlockKeys(&reader, names, limit: head.count, byteLimit: limit, for: record)
    return number(of: record, names, keys) != nil
  }

  /// The events' indexes in position order, stably sorted by key.
  func indexesByKey() -> FixedTable<UInt32> {
    let rows = rows.table.elements
    // The number of events before those of each key.
    let places = FixedTable(repeating: UInt32(0), count: keyCount + 1)
    for row in rows.indices { places.elements[Int(rows[row].key) + 1] += 1 }
    for key in 0..<keyCount { places.elements[key + 1] += places.elements[key] }
    let indexes = FixedTable(repeating: UInt32(0), count: count)
    for row in rows.indices {
      let key = Int(rows[row].key)
      indexes.elements[Int(places.elements[key])] = UInt32(truncatingIfNeeded: row)
      places.elements[key] += 1
    }
    return indexes
  }
}

/// The sizes at the front of a block.
private struct Head {
  var count: Int
  /// Bytes before the streams.
  var size: Int
  var streams: [StoredSize] = []

  /// Bytes of the whole block.
  var total: Int { streams.reduce(size) { $0 + $1.stored } }

  init(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(EventsError) {
    var reader = ByteReader<EventsError>(bytes)
    let codec = try reader.byte("block")
    guard codec == BlockFormat.codec else { throw .malformed("block", "codec \(codec)") }
    let layout = try reader.byte("block")
    guard layout == BlockFormat.layout else { throw .malformed("block", "layout \(layout)") }
    count = try reader.count("events", limit: Limits.blockEvents)
    guard count > 0 else { throw .malformed("block", "no events") }
    for _ in 0..<3 { streams.append(try StoredSize(&reader, "stream of a block", limit: limit)) }
    size = bytes.count - reader.remaining
  }
}

/// One stream in its stored form.
private struct StoredStream: Sendable {
  let bytes: ArraySlice<UInt8>
  let size: StoredSize
  let isStrict: Bool

  func inflate(_ subject: String) throws(EventsError) -> Memory {
    let memory = bytes.withUnsafeBytes { size.inflate($0, strictly: isStrict) }
    guard let memory else { throw .malformed(subject, "not the deflate stream it should be") }
    return memory
  }
}

/// Constructs whole events.
struct EventMaker: Sendable {
  private let names: BlockNames
  private let rows: BlockRows
  private let values: BlockValues

  init(_ reader: BlockReader, _ values: BlockValues) {
    names = reader.names
    rows = reader.rows
    self.values = values
  }

  /// `keys`: all keys of the block, so that the events of one key share its bytes.
  func event(_ index: Int, _ keys: [BlockReader.Record]) -> BlockEvent {
    event(index, of: keys[Int(rows[index].key)])
  }

  func event(_ index: Int, of record: BlockReader.Record) -> BlockEvent {
    let row = rows[index]
    let shape = names.shapes[Int(row.shape)]
    var assignments: [Assignment] = []
    assignments.reserveCapacity(shape.fields.count)
    for (place, field) in shape.fields.enumerated() {
      let value = values.value(Int(row.firstAssignment) + place, field.tag)
      assignments.append(Assignment(names.names[field.name], value))
    }
    let start = Int(row.contextStart)
    return BlockEvent(
      relativePosition: row.relativePosition,
      event: Event(
        partition: record.partition, model: record.model, key: record.key, operation: shape.operation,
        relationship: shape.relationship.map { names.names[$0] }, assignments: assignments,
        id: EventID(names.origins[Int(row.origin)], SequenceNumber(row.sequence)),
        context: Context(trusted: Array(rows.contexts.elements[start..<start + Int(row.contextCount)])),
        version: Version(row.version), timestamp: Timestamp(rawValue: row.timestamp),
        commit: CommitID(names.origins[Int(row.commitOrigin)], row.commitNumber),
        cause: row.cause < 0 ? nil : rows.causes[Int(row.cause)]))
  }
}
