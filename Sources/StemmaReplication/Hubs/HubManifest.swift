import Crypto
import StemmaEvents
import StemmaLog

/// A manifest of a log in a hub: what one append added. It names its predecessor by digest, so no
/// reader accepts a hole.
package struct HubManifest: Hashable, Sendable {
  /// The log and a number of one of its manifests.
  package struct Place: Hashable, Sendable {
    package var log: LogID
    package var number: UInt64

    package init(_ log: LogID, _ number: UInt64) {
      self.log = log
      self.number = number
    }
  }

  package static let currentVersion: UInt8 = 1
  private static let magic = Array("STEMMA-H".utf8)

  package var place: Place
  /// The digest of the manifest before; zeros for the first one.
  package var previous: HubDigest
  /// The name of the node that wrote it.
  package var nodeName: String
  /// The schema in canonical SDL; empty: that of the manifest before.
  package var schema: String
  /// Origins that the manifests before do not name. Sorted by origin.
  package var origins: [NamedOrigin]
  /// The last manifests that the writer had read of other logs, if there are newer ones than at the
  /// manifest before. Sorted by log. A reader reads them first: it has all causes then.
  package var seen: [Place]
  package var objects: [HubObject]

  package init(
    place: Place, previous: HubDigest, nodeName: String, schema: String = "", origins: [NamedOrigin] = [],
    seen: [Place] = [], objects: [HubObject] = []
  ) {
    self.place = place
    self.previous = previous
    self.nodeName = nodeName
    self.schema = schema
    self.origins = origins.sorted { $0.origin < $1.origin }
    self.seen = seen.sorted { $0.log.rawValue < $1.log.rawValue }
    self.objects = objects
  }

  /// Traps unless it could be written. Debug builds call it before each append.
  func checkInvariants() {
    precondition(place.number > 0, "the first manifest is number 1")
    precondition((place.number == 1) == (previous == .none), "each other one names its predecessor")
    precondition(seen.allSatisfy { $0.log != place.log }, "its own log is known by its predecessor")
  }
}

/// A segment in a hub, and the streams that it adds.
package struct HubObject: Hashable, Sendable {
  package var segment: LooseSegment
  /// Sorted by partition and origin.
  package var streams: [ShippedStream]

  package init(segment: LooseSegment, streams: [ShippedStream]) {
    self.segment = segment
    self.streams = streams
  }

  package var key: String { HubLayout.object(segment.digest) }
}

/// The SHA-256 of a manifest.
package struct HubDigest: Hashable, Sendable {
  package let bytes: [UInt8]

  package static let none = HubDigest(bytes: [UInt8](repeating: 0, count: 32))

  init(bytes: [UInt8]) { self.bytes = bytes }

  package init(of manifest: [UInt8]) { bytes = Array(SHA256.hash(data: manifest)) }
}

/// The encoding of a manifest:
///
///     magic             8 bytes, STEMMA-H
///     version           1 byte
///     log, number       8 bytes, varint
///     previous          32 bytes
///     node name, schema texts
///     origins           n, then for each: origin (8 bytes), name
///     seen              n, then for each: log (8 bytes), number
///     objects           n, then for each:
///       size, trailer of the segment (108 bytes)
///       streams         n, then for each: partition, origin (8 bytes), first sequence, event count,
///                       hash of the events before, hash of these events (16 bytes each)
///     CRC32C            4 bytes, of all before
///
/// Numbers are LEB128 varints in their shortest form, texts follow their length, and fixed numbers
/// are big-endian.
extension HubManifest {
  package var encoded: [UInt8] {
    assert(holds(checkInvariants))
    var bytes = Self.magic
    bytes.append(Self.currentVersion)
    bytes.appendFixed(place.log.rawValue)
    bytes.appendVarint(place.number)
    bytes += previous.bytes
    bytes.appendCounted(nodeName)
    bytes.appendCounted(schema)
    bytes.appendVarint(origins.count)
    for named in origins {
      bytes.append(named.origin)
      bytes.appendCounted(named.nodeName)
    }
    bytes.appendVarint(seen.count)
    for place in seen {
      bytes.appendFixed(place.log.rawValue)
      bytes.appendVarint(place.number)
    }
    bytes.appendVarint(objects.count)
    for object in objects {
      bytes.appendVarint(object.segment.size)
      bytes += object.segment.encodedTrailer
      bytes.appendVarint(object.streams.count)
      for stream in object.streams {
        bytes.appendCounted(stream.range.partition.bytes)
        bytes.append(stream.range.origin)
        bytes.appendVarint(stream.range.from.rawValue)
        bytes.appendVarint(stream.range.to.rawValue - stream.range.from.rawValue + 1)
        bytes.append(stream.hashBefore)
        bytes.append(stream.range.hash)
      }
    }
    bytes.appendFixed(CRC32C.of(bytes))
    return bytes
  }

  /// Decodes a manifest from an untrusted store.
  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    let end = bytes.count - 4
    guard bytes.count <= HubLimits.manifest else {
      throw .overLimit("manifest", found: UInt64(bytes.count), limit: UInt64(HubLimits.manifest))
    }
    guard end > Self.magic.count, bytes.starts(with: Self.magic) else {
      throw .malformed("manifest", "\(bytes.count) bytes that are no manifest of a hub")
    }
    let version = bytes[Self.magic.count]
    guard version == Self.currentVersion else {
      throw .newerFormat("manifest", found: UInt64(version), supported: UInt64(Self.currentVersion))
    }
    let checksum = try bytes.read(from: end) { (reader) throws(ReplicationError) in
      try reader.fixed32("manifest")
    }
    guard checksum == CRC32C.of(bytes[..<end]) else {
      throw .corrupt("manifest", "its checksum does not hold")
    }
    self = try bytes[(Self.magic.count + 1)..<end].read { (reader) throws(ReplicationError) in
      let manifest = try HubManifest(from: &reader)
      try reader.finish("manifest")
      return manifest
    }
  }

  private init(from reader: inout WireReader) throws(ReplicationError) {
    place = Place(LogID(try reader.fixed("manifest")), try reader.manifestNumber())
    previous = HubDigest(bytes: Array(try reader.bytes(32, "manifest")))
    nodeName = try reader.nodeName()
    schema = try reader.text("schema", limit: ReplicationLimits.schema)
    origins = []
    let named = try reader.count("origins", limit: ReplicationLimits.namedOrigins, each: 10)
    for _ in 0..<named {
      let origin = try reader.origin()
      if let last = origins.last, last.origin >= origin {
        throw .malformed("manifest", "origin \(origin) is out of order")
      }
      origins.append(NamedOrigin(origin, nodeName: try reader.nodeName(), isOwn: false))
    }
    seen = []
    let others = try reader.count("logs", limit: HubLimits.logs, each: 9)
    for _ in 0..<others {
      let place = Place(LogID(try reader.fixed("manifest")), try reader.manifestNumber())
      if let last = seen.last, last.log.rawValue >= place.log.rawValue {
        throw .malformed("manifest", "log \(place.log) is out of order")
      }
      guard place.log != self.place.log else { throw .malformed("manifest", "it follows itself") }
      seen.append(place)
    }
    objects = []
    let count = try reader.count("objects", limit: HubLimits.objects, each: LooseSegment.trailerSize)
    for _ in 0..<count {
      let size = try reader.varint("object")
      let trailer = Array(try reader.bytes(LooseSegment.trailerSize, "object"))
      let segment: LooseSegment
      do throws(Flaw) { segment = try LooseSegment(size: size, trailer: trailer) } catch {
        throw .malformed("manifest", "an object's \(error)")
      }
      let streams = try Batch.streams(from: &reader, eventCount: Int(clamping: segment.events))
      let events = streams.reduce(0) { $0 + $1.range.to.rawValue - $1.range.from.rawValue + 1 }
      guard events == segment.events else { throw .malformed("manifest", "streams of \(events) events") }
      objects.append(HubObject(segment: segment, streams: streams))
    }
    guard (place.number == 1) == (previous == .none) else {
      throw .malformed("manifest", "number \(place.number) with that predecessor")
    }
  }
}

extension WireReader {
  fileprivate mutating func manifestNumber() throws(ReplicationError) -> UInt64 {
    let number = try number("manifest", limit: Limits.highestNumber)
    guard number > 0 else { throw .malformed("manifest", "number 0") }
    return number
  }
}
