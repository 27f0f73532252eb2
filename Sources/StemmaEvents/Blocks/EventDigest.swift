import Crypto

// The canonical form of an event: each event has one sequence of bytes, which no other event has.
// It is never stored. Its digest identifies the event's content. Stream hashes are sums of digests,
// so two nodes detect different events with the same ids. The position is local and not included.
//
//     event       01 · partition · model · key · operation u8 · relationship · event id · version ·
//                 timestamp 8 bytes · commit: origin, number · context: count, entries · cause ·
//                 assignments: count, each field · type u8 · value
//     partition, model, key, field    length · bytes
//     relationship                    0, or 1 · length · bytes
//     event id, entry                 origin 8 bytes · sequence
//     cause                           0, or 1 · partition · event id
//     value                           null nothing; Boolean 0 or 1; integer zz; double 8 bytes;
//                                     string and JSON length · bytes
//
// Numbers are varints, zz zigzag, fixed widths big-endian, types as in blocks. Each part determines
// its own end, so no two events have the same bytes.
//
//     digest      the first 16 bytes of the SHA-256 of that; as a number, big-endian

/// The hash of an event's content: 16 bytes.
package struct EventDigest: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let hash: StreamHash

  package init(_ hash: StreamHash) { self.hash = hash }

  package static func < (a: EventDigest, b: EventDigest) -> Bool {
    (a.hash.high, a.hash.low) < (b.hash.high, b.hash.low)
  }

  /// The 16 bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendFixed(hash.high)
    bytes.appendFixed(hash.low)
    return bytes
  }

  /// Thirty-two lowercase hexadecimal digits.
  package var description: String { hash.description }
}

/// Computes the digests of many events with one buffer.
package struct EventDigester {
  private var buffer: [UInt8] = []

  package init() {}

  package mutating func digest(of event: Event) -> EventDigest {
    let bound = event.canonicalBound
    if buffer.count < bound { buffer = [UInt8](repeating: 0, count: bound * 2) }
    let hash = buffer.withUnsafeMutableBytes { bytes in
      var writer = ByteWriter(bytes)
      writer.write(event)
      return writer.digest
    }
    return EventDigest(hash)
  }
}

@available(*, unavailable)
extension BlockDigester: Sendable {}

/// Computes the digests of the events of blocks in place, without constructing any `Event`.
///
/// The common parts of the events of a run or a shape are written once for each block.
package struct BlockDigester {
  /// Without reference counts, because it is read at each event.
  private struct Shape {
    /// Bytes of the operation and the relationship, in `common`.
    var head: Range<Int>
    /// Its fields, in `fields`.
    var fields: Range<Int>
    /// Upper bound of the bytes besides run, key, context, cause and texts.
    var bound: Int
  }

  private struct Field {
    /// Bytes of its name and type, in `common`.
    var name: Range<Int>
    var tag: ValueTag
  }

  /// Written at each event, so this type is not Sendable.
  private var buffer = FixedTable<UInt8>(repeating: 0, count: 1024)
  private var common: [UInt8] = []
  /// Bytes of the form's version, the partition and the model, in `common`.
  private var runs: [Range<Int>] = []
  private var shapes: [Shape] = []
  /// The fields of all shapes.
  private var fields: [Field] = []

  package init() {}

  /// Discards the previous block. Call it before the first event of each.
  package mutating func begin(_ cursor: BlockCursor) {
    common.removeAll(keepingCapacity: true)
    fields.removeAll(keepingCapacity: true)
    runs = Array(repeating: 0..<0, count: cursor.runCount)
    shapes = Array(repeating: Shape(head: 0..<0, fields: 0..<0, bound: 0), count: cursor.shapeCount)
  }

  /// The digest of the cursor's event.
  package mutating func digest(of cursor: BlockCursor) -> StreamHash {
    if runs[cursor.run].isEmpty { noteRun(cursor) }
    if shapes[cursor.shape].head.isEmpty { noteShape(cursor) }
    let run = runs[cursor.run]
    let shape = shapes[cursor.shape]
    let bound = bound(of: cursor, run, shape)
    if buffer.count < bound { buffer = FixedTable(repeating: 0, count: bound * 2) }
    var writer = ByteWriter(UnsafeMutableRawBufferPointer(buffer.elements))
    common.withUnsafeBytes { common in
      writer.copy(UnsafeRawBufferPointer(rebasing: common[run]))
      writer.counted(cursor.keyBytes)
      writer.copy(UnsafeRawBufferPointer(rebasing: common[shape.head]))
      writer.writeMiddle(cursor)
      for (place, field) in fields[shape.fields].enumerated() {
        writer.copy(UnsafeRawBufferPointer(rebasing: common[field.name]))
        switch field.tag {
        case .null: break
        case .bool: writer.byte(UInt8(truncatingIfNeeded: cursor.bits(place)))
        case .int: writer.varint(cursor.int(place).zigzag)
        case .double: writer.fixed(cursor.bits(place))
        case .string, .json: writer.counted(cursor.text(place))
        }
      }
    }
    return writer.digest
  }

  /// Traps if a common part is missing. For tests, after `begin`.
  package func checkInvariants() {
    precondition(runs.allSatisfy { $0.upperBound <= common.count }, "what events of a run share is written")
    for shape in shapes {
      precondition(shape.head.upperBound <= common.count, "what events of a shape share is written")
      precondition(shape.fields.upperBound <= fields.count, "the fields of a shape are there")
    }
    precondition(shapes.map(\.fields.count).reduce(0, +) == fields.count, "each field is of one shape")
    precondition(fields.allSatisfy { $0.name.upperBound <= common.count }, "names are written")
  }

  private func bound(of cursor: BlockCursor, _ run: Range<Int>, _ shape: Shape) -> Int {
    var bound = run.count + shape.bound + (3 + cursor.contextCount) * 18
    bound += cursor.keyBytes.count + (cursor.cause?.partition.bytes.count ?? 0)
    for (place, field) in fields[shape.fields].enumerated() where field.tag == .string || field.tag == .json {
      bound += cursor.text(place).count
    }
    return bound
  }

  private mutating func note(_ size: Int, _ write: (inout ByteWriter) -> Void) -> Range<Int> {
    let start = common.count
    common += [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      var writer = ByteWriter(UnsafeMutableRawBufferPointer(buffer))
      write(&writer)
      count = writer.count
    }
    return start..<common.count
  }

  private mutating func noteRun(_ cursor: BlockCursor) {
    let (partition, model) = (cursor.partition, cursor.model)
    runs[cursor.run] = note(21 + partition.bytes.count + model.utf8.count) { $0.writeHead(partition, model) }
  }

  private mutating func noteShape(_ cursor: BlockCursor) {
    let relationship = cursor.relationship
    let head = note(12 + (relationship?.utf8.count ?? 0)) { $0.write(cursor.operation, relationship) }
    let first = fields.count
    var bound = head.count + 8 * 10 + 16
    for place in 0..<cursor.assignmentCount {
      let (name, tag) = (cursor.fieldName(cursor.field(place)), cursor.tag(place))
      let written = note(11 + name.utf8.count) { $0.write(field: name, tag) }
      fields.append(Field(name: written, tag: tag))
      bound += written.count + 10
    }
    shapes[cursor.shape] = Shape(head: head, fields: first..<fields.count, bound: bound)
  }
}

extension Event {
  /// Allocates. For many events, use an `EventDigester`.
  package var digest: EventDigest {
    var digester = EventDigester()
    return digester.digest(of: self)
  }

  /// The canonical form, as described above.
  package var canonicalBytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: canonicalBound) { buffer, count in
      var writer = ByteWriter(UnsafeMutableRawBufferPointer(buffer))
      writer.write(self)
      count = writer.count
    }
  }

  /// Upper bound of the canonical form's bytes: every varint at its longest.
  fileprivate var canonicalBound: Int {
    let id = 18
    var bound = 4 + 9 * 10 + id + 16 + context.entries.count * id
    bound += partition.bytes.count + model.utf8.count + key.bytes.count + (relationship?.utf8.count ?? 0)
    if let cause { bound += cause.partition.bytes.count + id }
    for assignment in assignments {
      bound += assignment.field.utf8.count + 21
      switch assignment.value {
      case .string(let text), .json(let text): bound += text.utf8.count
      case .null, .bool, .int, .double: break
      }
    }
    return bound
  }
}

/// The canonical form of an event, in memory that is large enough for it (`canonicalBound`).
extension ByteWriter {
  fileprivate mutating func write(_ event: Event) {
    writeHead(event.partition, event.model)
    counted(event.key.bytes)
    write(event.operation, event.relationship)
    write(event.id.origin, event.id.sequence)
    varint(event.version.rawValue)
    fixed(event.timestamp.rawValue)
    fixed(event.commit.origin.rawValue)
    varint(event.commit.number)
    varint(UInt64(event.context.entries.count))
    for entry in event.context.entries { write(entry.origin, entry.sequence) }
    write(event.cause)
    varint(UInt64(event.assignments.count))
    for assignment in event.assignments {
      write(field: assignment.field, assignment.value.tag)
      value(assignment.value)
    }
  }

  fileprivate mutating func writeHead(_ partition: Partition, _ model: String) {
    byte(1)
    counted(partition.bytes)
    counted(model)
  }

  fileprivate mutating func write(_ operation: EventOperation, _ relationship: String?) {
    byte(operation.rawValue)
    byte(relationship == nil ? 0 : 1)
    if let relationship { counted(relationship) }
  }

  /// From the event id to the number of assignments.
  fileprivate mutating func writeMiddle(_ cursor: BlockCursor) {
    write(cursor.id.origin, cursor.id.sequence)
    varint(cursor.version.rawValue)
    fixed(cursor.timestamp.rawValue)
    fixed(cursor.commit.origin.rawValue)
    varint(cursor.commit.number)
    let entries = cursor.contextCount
    varint(UInt64(entries))
    for index in 0..<entries {
      let entry = cursor.contextEntry(index)
      write(entry.origin, entry.sequence)
    }
    write(cursor.cause)
    varint(UInt64(cursor.assignmentCount))
  }

  private mutating func write(_ cause: QualifiedEventID?) {
    byte(cause == nil ? 0 : 1)
    guard let cause else { return }
    counted(cause.partition.bytes)
    write(cause.id.origin, cause.id.sequence)
  }

  fileprivate mutating func write(field: String, _ tag: ValueTag) {
    counted(field)
    byte(tag.rawValue)
  }

  /// The digest of the written bytes.
  fileprivate var digest: StreamHash {
    var hasher = SHA256()
    hasher.update(bufferPointer: written)
    return hasher.finalize().withUnsafeBytes { bytes in
      StreamHash(
        high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  private mutating func value(_ value: Value) {
    switch value {
    case .null: break
    case .bool(let flag): byte(flag ? 1 : 0)
    case .int(let number): varint(number.zigzag)
    case .double(let number): fixed(number.bitPattern)
    case .string(let text), .json(let text): counted(text)
    }
  }

  private mutating func write(_ origin: Origin, _ sequence: SequenceNumber) {
    fixed(origin.rawValue)
    varint(sequence.rawValue)
  }
}
