import StemmaEvents
import StemmaLog

/// A node's memory of a hub, between runs. It saves requests, and all of it but `writer` can be
/// read from the hub again.
package protocol HubJournal: AnyObject {
  /// Nil: nothing is remembered.
  func load() throws(ReplicationError) -> [HubRecord]
  /// Appends records, durable on return.
  func append(_ records: [HubRecord]) throws(ReplicationError)
  /// Removes all records.
  func forget() throws(ReplicationError)
}

package enum HubRecord: Hashable, Sendable {
  /// The log of this hub that the node writes. The last one counts.
  case writer(LogID)
  /// A manifest, in the order of the catalog.
  case manifest([UInt8])
  /// The tag of a log's hint when all of its manifests had been read.
  case tag(LogID, String)
  /// When every log was last probed, in milliseconds since 1970.
  case probed(UInt64)
}

/// The encoding of a record: its type, its fields, and the CRC32C of both in 4 bytes.
///
///     1 writer     log (8 bytes)
///     2 manifest   bytes
///     3 tag        log (8 bytes), text
///     4 probed     time (8 bytes)
extension HubRecord {
  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    switch self {
    case .writer(let log):
      bytes.append(1)
      bytes.appendFixed(log.rawValue)
    case .manifest(let manifest):
      bytes.append(2)
      bytes += manifest
    case .tag(let log, let tag):
      bytes.append(3)
      bytes.appendFixed(log.rawValue)
      bytes.appendCounted(tag)
    case .probed(let time):
      bytes.append(4)
      bytes.appendFixed(time)
    }
    return SessionMessage.seal(bytes)
  }

  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    let end = bytes.count - 4
    guard end > 0 else { throw .malformed("record of a hub", "\(bytes.count) bytes") }
    let checksum = try bytes.read(from: end) { (reader) throws(ReplicationError) in
      try reader.fixed32("record of a hub")
    }
    guard checksum == CRC32C.of(bytes[..<end]) else {
      throw .corrupt("record of a hub", "its checksum does not hold")
    }
    self = try bytes[..<end].read { (reader) throws(ReplicationError) in
      let record: HubRecord
      switch try reader.byte("record of a hub") {
      case 1: record = .writer(LogID(try reader.fixed("record of a hub")))
      case 2: record = .manifest(Array(try reader.bytes(reader.remaining, "record of a hub")))
      case 3:
        let log = LogID(try reader.fixed("record of a hub"))
        record = .tag(log, try reader.text("tag", limit: ReplicationLimits.refusalText))
      case 4: record = .probed(try reader.fixed("record of a hub"))
      case let type: throw .malformed("record of a hub", "type \(type)")
      }
      try reader.finish("record of a hub")
      return record
    }
  }
}
