import Crypto
import StemmaEvents
import StemmaLog
import StemmaSchema

/// The first message of each side of a session.
package struct Greeting: Hashable, Sendable {
  /// The newest version of the session protocol.
  package static let currentVersion: UInt64 = 1

  package var version: UInt64
  package var logID: LogID
  package var nodeName: String
  /// The named origins that this node knows, its own included. Sorted by origin.
  package var origins: [NamedOrigin]
  /// The schema in canonical SDL.
  package var schema: String
  package var scope: Scope
  /// Whether the node is an unfinished clone.
  package var isUnfinished: Bool
  /// Events that the node lost to corruption, in its order. Their partitions are not exchanged.
  package var losses: [StreamLoss]

  package init(
    logID: LogID, nodeName: String, origins: [NamedOrigin], schema: String, scope: Scope,
    isUnfinished: Bool = false, losses: [StreamLoss] = [], version: UInt64 = currentVersion
  ) {
    self.isUnfinished = isUnfinished
    self.losses = losses
    self.version = version
    self.logID = logID
    self.nodeName = nodeName
    self.origins = origins.sorted { $0.origin < $1.origin }
    self.schema = schema
    self.scope = scope
  }

  /// The node's own origins, present and past.
  package var ownOrigins: [Origin] { origins.filter(\.isOwn).map(\.origin) }

  package var schemaDigest: [UInt8] { Self.digest(ofSchema: schema) }

  /// - Parameter schema: canonical SDL.
  package static func digest(ofSchema schema: String) -> [UInt8] {
    Array(SHA256.hash(data: Array(schema.utf8)))
  }
}

/// Lost events of one stream.
package struct StreamLoss: Hashable, Sendable {
  package var partition: Partition
  package var origin: Origin
  package var from: SequenceNumber
  package var to: SequenceNumber

  package init(_ partition: Partition, _ origin: Origin, from: SequenceNumber, to: SequenceNumber) {
    self.partition = partition
    self.origin = origin
    self.from = from
    self.to = to
  }
}

/// An origin and the name of the node that writes or wrote under it.
package struct NamedOrigin: Hashable, Sendable {
  package var origin: Origin
  package var nodeName: String
  /// Whether the origin belongs to the sender of the greeting.
  package var isOwn: Bool

  package init(_ origin: Origin, nodeName: String, isOwn: Bool) {
    self.origin = origin
    self.nodeName = nodeName
    self.isOwn = isOwn
  }
}

/// The encoding of a greeting:
///
///     version of the protocol; a reader that does not support it reads no further
///     log id         8 bytes
///     node name      text
///     number of origins; each, by origin, once: origin (8 bytes), flags (1 byte: 1 = own), name
///     schema digest  32 bytes, SHA-256 of the next
///     schema         text
///     scope          number of patterns, texts, in canonical order
///     flags          1 byte: 1 = an unfinished clone
///     number of losses; each: partition, origin (8 bytes), first and last sequence
extension Greeting {
  func encode(into writer: inout [UInt8]) {
    writer.appendVarint(version)
    writer.appendFixed(logID.rawValue)
    writer.appendCounted(nodeName)
    writer.appendVarint(origins.count)
    for named in origins {
      writer.append(named.origin)
      writer.append(named.isOwn ? 1 : 0)
      writer.appendCounted(named.nodeName)
    }
    writer += schemaDigest
    writer.appendCounted(schema)
    scope.encode(into: &writer)
    writer.append(isUnfinished ? 1 : 0)
    writer.appendVarint(losses.count)
    for loss in losses {
      writer.appendCounted(loss.partition.bytes)
      writer.append(loss.origin)
      writer.appendVarint(loss.from.rawValue)
      writer.appendVarint(loss.to.rawValue)
    }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    version = try reader.varint("greeting")
    guard version == Self.currentVersion else {
      throw version == 0
        ? .malformed("greeting", "version 0")
        : .newerFormat("greeting", found: version, supported: Self.currentVersion)
    }
    logID = LogID(try reader.fixed("greeting"))
    nodeName = try reader.nodeName()
    let count = try reader.count("origins", limit: ReplicationLimits.namedOrigins, each: 10)
    origins = []
    for _ in 0..<count {
      let origin = try reader.origin()
      if let last = origins.last, last.origin >= origin {
        throw .malformed("greeting", "origin \(origin) is out of order")
      }
      let flags = try reader.byte("greeting")
      guard flags <= 1 else { throw .malformed("greeting", "flags \(flags)") }
      origins.append(NamedOrigin(origin, nodeName: try reader.nodeName(), isOwn: flags == 1))
    }
    let digest = Array(try reader.bytes(32, "greeting"))
    schema = try reader.text("schema", limit: ReplicationLimits.schema)
    scope = try Scope(from: &reader)
    let flags = try reader.byte("greeting")
    guard flags <= 1 else { throw .malformed("greeting", "flags \(flags)") }
    isUnfinished = flags == 1
    let lost = try reader.count("losses", limit: ReplicationLimits.losses, each: 11)
    losses = []
    for _ in 0..<lost {
      let partition = try reader.partition()
      let loss = StreamLoss(
        partition, try reader.origin(), from: try reader.sequence(), to: try reader.sequence())
      guard .zero < loss.from, loss.from <= loss.to else { throw .malformed("greeting", "an empty loss") }
      losses.append(loss)
    }
    guard digest == schemaDigest else { throw .corrupt("greeting", "the schema's digest does not hold") }
  }
}

extension Scope {
  func encode(into writer: inout [UInt8]) {
    writer.appendVarint(patterns.count)
    for text in patterns { writer.appendCounted(text) }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    let count = try reader.count("patterns", limit: ReplicationLimits.patterns, each: 2)
    var texts: [String] = []
    for _ in 0..<count {
      texts.append(try reader.text("pattern", limit: ReplicationLimits.pattern))
    }
    do { try self.init(canonical: texts) } catch { throw .malformed("greeting", error.description) }
  }
}

extension NarrowedScope {
  func encode(into writer: inout [UInt8]) {
    writer.appendVarint(scopes.count)
    for scope in scopes { scope.encode(into: &writer) }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    let count = try reader.count("scopes", limit: ReplicationLimits.narrowings, each: 1)
    guard count > 0 else { throw .malformed("greeting", "no scope") }
    var scopes: [Scope] = []
    for _ in 0..<count { scopes.append(try Scope(from: &reader)) }
    self.init(scopes)
    guard self.scopes == scopes else { throw .malformed("greeting", "scopes that narrow nothing") }
  }
}

extension WireReader {
  /// A name for display that never becomes a path. Control characters are rejected, because they
  /// would reach a terminal.
  mutating func nodeName() throws(ReplicationError) -> String {
    let name = try text("node name", limit: ReplicationLimits.nodeName)
    guard !name.isEmpty, name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
      throw .malformed("greeting", "a node name that is empty or has control characters")
    }
    return name
  }
}
