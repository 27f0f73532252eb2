import Crypto
import StemmaEvents
import StemmaMerge
import StemmaSchema

/// The numbers of rows, tombstones, events and origins of one partition.
package struct PartitionContents: Hashable, Sendable {
  package let partition: Partition
  package var rows: UInt64 = 0
  package var tombstones: UInt64 = 0
  package var events: UInt64 = 0
  package var origins = 0
}

/// The digest of a partition's rows and tombstones.
///
/// It is the sum modulo 2^128 of the records' digests, so reading order does not matter. A record's
/// digest is the first 16 bytes of the SHA-256 of: stored model name, encoded key, 1 (row) or 0
/// (tombstone), version (8 bytes), `_state` without checksum, columns. A column that is not null is
/// its name, a type byte and its value, in byte order of the stored names. Names, key, state and
/// texts follow their length in 8 bytes. Numbers and Booleans take 8 bytes, big-endian. Equal
/// version vectors and schemas give equal digests.
package struct TableDigest: Hashable, Sendable, CustomStringConvertible {
  package let partition: Partition
  package var hash = StreamHash.zero
  package var records: UInt64 = 0
  /// The sum of the states' checksums. The hash omits them: they depend only on what it covers.
  var checksums: UInt32 = 0

  package var description: String { hash.description }
}

extension TablesReader {
  /// Every partition with a stream or a record, in name order. Reads the keys of all rows.
  ///
  /// - Throws: `needsRebuild` if there are more or fewer rows than were written.
  package func partitions() throws(TablesError) -> [PartitionContents] {
    try HeadChecksum.check(connection)
    var found: [Partition: PartitionContents] = [:]
    func change(_ partition: Partition, _ body: (inout PartitionContents) -> Void) {
      body(&found[partition, default: PartitionContents(partition: partition)])
    }
    let streams = try connection.prepare(
      "SELECT partition, sum(sequence), count(*) FROM _stemma_streams GROUP BY partition")
    while try streams.step() {
      let (events, origins) = (UInt64(clamping: streams.int(1)), Int(streams.int(2)))
      change(partition(streams, 0)) {
        $0.events = events
        $0.origins = origins
      }
    }
    let tombstones = try connection.prepare(
      "SELECT partition, count(*) FROM _stemma_tombstones GROUP BY partition")
    while try tombstones.step() {
      let count = UInt64(clamping: tombstones.int(1))
      change(partition(tombstones, 0)) { $0.tombstones = count }
    }
    for layout in tableSet.layouts {
      let rows = try connection.prepare(layout.countByPartition)
      while try rows.step() {
        let count = UInt64(clamping: rows.int(Int32(layout.model.partitionDepth)))
        if count > 0 { change(try layout.partition(rows)) { $0.rows += count } }
      }
    }
    try HeadChecksum.check(rows: Int64(clamping: found.values.reduce(0) { $0 + $1.rows }), connection)
    return found.values.sorted { $0.partition < $1.partition }
  }

  /// The digests of the selected partitions, in name order. A partition without records has none.
  package func digests(
    where isIncluded: (Partition) -> Bool = { _ in true }
  ) throws(TablesError) -> [TableDigest] {
    var sums = DigestSums()
    var bytes: [UInt8] = []
    for layout in tableSet.layouts {
      let rows = try connection.prepare(layout.selectAll)
      while try rows.step() {
        let key = try layout.key(rows)
        let partition = Partition(model: layout.model, key: key)
        guard isIncluded(partition) else { continue }
        layout.digestedRow(rows, key, into: &bytes)
        sums.add(bytes, partition, sealed: rows.bytes(layout.stateColumn))
      }
    }
    let tombstones = try connection.prepare(
      "SELECT model, key, partition, version, state FROM _stemma_tombstones")
    while try tombstones.step() {
      let partition = partition(tombstones, 2)
      guard isIncluded(partition) else { continue }
      bytes.removeAll(keepingCapacity: true)
      bytes.appendCounted(tombstones.bytes(0))
      bytes.appendCounted(tombstones.bytes(1))
      bytes.append(0)
      bytes.append(number: UInt64(bitPattern: tombstones.int(3)))
      bytes.appendCounted(StateChecksum.state(in: tombstones.bytes(4)))
      sums.add(bytes, partition, sealed: tombstones.bytes(4))
    }
    return sums.sorted
  }

  /// As `digests`, for the entries of `_stemma_conflicts`.
  package func conflictListDigests() throws(TablesError) -> [TableDigest] {
    var sums = DigestSums()
    var bytes: [UInt8] = []
    let conflicts = try connection.prepare("SELECT model, key, partition FROM _stemma_conflicts")
    while try conflicts.step() {
      bytes.removeAll(keepingCapacity: true)
      bytes.appendCounted(conflicts.bytes(0))
      bytes.appendCounted(conflicts.bytes(1))
      sums.add(bytes, partition(conflicts, 2))
    }
    return sums.sorted
  }
}

private struct DigestSums {
  private var sums: [Partition: TableDigest] = [:]

  var sorted: [TableDigest] { sums.values.sorted { $0.partition < $1.partition } }

  /// `state`: with its checksum.
  mutating func add(_ record: [UInt8], _ partition: Partition, sealed state: UnsafeRawBufferPointer) {
    add(record, partition)
    sums[partition]?.checksums &+= StateChecksum.checksum(in: state)
  }

  mutating func add(_ record: [UInt8], _ partition: Partition) {
    let hash = record.withUnsafeBytes { SHA256.hash(data: $0) }
    let sum = hash.withUnsafeBytes {
      StreamHash(
        high: UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
    sums[partition, default: TableDigest(partition: partition)].hash += sum
    sums[partition, default: TableDigest(partition: partition)].records += 1
  }
}

extension TableLayout {
  /// Columns: the key parts that name the partition, then the number of rows.
  fileprivate var countByPartition: String {
    let parts = key.prefix(model.partitionDepth).map { Self.quoted($0.field.name) }.joined(separator: ", ")
    if parts.isEmpty { return "SELECT count(*) FROM \(table)" }
    return "SELECT \(parts), count(*) FROM \(table) GROUP BY \(parts)"
  }

  /// The partition in the current row of `countByPartition`.
  fileprivate func partition(_ statement: Statement) throws(TablesError) -> Partition {
    Partition(model: model, key: Key(trusted: try keyParts(model.partitionDepth, statement)))
  }

  fileprivate func digestedRow(_ statement: Statement, _ key: Key, into bytes: inout [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    bytes.appendCounted(model.storedName)
    key.bytes.withUnsafeBytes { bytes.appendCounted($0) }
    bytes.append(1)
    bytes.append(number: UInt64(bitPattern: statement.int(versionColumn)))
    bytes.appendCounted(StateChecksum.state(in: statement.bytes(stateColumn)))
    for column in columnOfRule {
      let index = Int32(self.key.count + column)
      let type = statement.type(index)
      if type == SQLiteType.null { continue }
      bytes.appendCounted(columns[column].field.storedName)
      bytes.append(UInt8(truncatingIfNeeded: type))
      switch type {
      case SQLiteType.integer: bytes.append(number: UInt64(bitPattern: statement.int(index)))
      case SQLiteType.float: bytes.append(number: statement.double(index).bitPattern)
      default: bytes.appendCounted(statement.bytes(index))
      }
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(number: UInt64) {
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  fileprivate mutating func appendCounted(_ bytes: UnsafeRawBufferPointer) {
    append(number: UInt64(bytes.count))
    append(contentsOf: bytes)
  }

  fileprivate mutating func appendCounted(_ text: String) {
    append(number: UInt64(text.utf8.count))
    append(contentsOf: text.utf8)
  }
}
