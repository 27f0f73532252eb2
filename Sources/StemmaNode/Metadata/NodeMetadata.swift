import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// `stemma.json`, the metadata of a node: identity, scope, remotes and unfinished operations.
///
/// It is small, written whole, atomically and durably, after a copy beside it. The second line is a
/// checksum of all other lines. A file without one, by hand or an older version, is accepted.
package struct NodeMetadata: Sendable, Equatable {
  /// The layout version of the node directory. Older ones are read, newer ones refused.
  package static let format = 1
  package static let fileName = "stemma.json"
  /// Read if the original is corrupt.
  package static let copyName = "stemma.json.copy"

  package var logID: LogID
  package var name: String
  /// The origins of this node; the last is the current one.
  package var origins: [Origin]
  /// Known names of other nodes' origins.
  package var names: [Origin: String] = [:]
  /// The identity of `log/watermark` when the current origin began. A copied directory has another.
  package var watermark: FileIdentity
  /// The number of torn tails cut from the log before the current origin began.
  package var cutCount: UInt32 = 0
  package var scope: Scope
  /// A decided scope change that may be incomplete.
  package var pendingScope: Scope?
  /// A decided fork repair that may be incomplete.
  package var pendingFork: PendingFork?
  /// Branches of forks that were rewritten, here or elsewhere. Their old ids are refused.
  package var retired: [ForkedBranch] = []
  package var remotes: [RemotePeer] = []
  /// The log of the source of this clone, until the clone is complete.
  package var unfinishedClone: LogID?
  /// Recorded corruption of the log, if any.
  package var corruption: RecordedCorruption?
  /// Fields that peers declared with another type at the last exchange.
  package var peerTypes: [PeerType] = []
  /// Whether the metadata was lost and recreated, so that the node's own origins are unknown.
  package var isRecreated = false

  /// Whether the metadata was corrupt and this is its copy.
  var isFromCopy: Bool { watermark == .none }

  package var origin: Origin { origins[origins.count - 1] }

  /// Whether an origin may be this node's. A purge requires another copy of its events.
  func mayOwn(_ origin: Origin) -> Bool { isRecreated || origins.contains(origin) }

  /// Traps if origins or remotes are not unique, or recorded corruption is inconsistent. Called for
  /// the node, not on reading the file, which a person may have edited.
  func checkInvariants() {
    precondition(
      !origins.isEmpty && Set(origins).count == origins.count, "node metadata has origins, each once")
    precondition(Set(remotes.map(\.name)).count == remotes.count, "a name identifies one peer")
    corruption?.checkInvariants()
  }

  /// The display name of an origin: its node's name, or the origin itself if the name is unknown.
  /// If several origins share the name, a prefix of the origin is appended.
  package func displayName(of origin: Origin) -> String {
    guard let name = name(of: origin) else { return origin.description }
    func isNamesake(_ other: Origin) -> Bool { other != origin && self.name(of: other) == name }
    let isShared = origins.contains(where: isNamesake) || names.keys.contains(where: isNamesake)
    return isShared ? "\(name)-\(origin.description.prefix(4))" : name
  }

  /// Stores the names of a peer's origins. A node's names for its own origins take precedence.
  mutating func learn(_ greeting: Greeting) {
    for named in greeting.origins where !origins.contains(named.origin) {
      if named.isOwn || names[named.origin] == nil { names[named.origin] = named.nodeName }
    }
  }

  /// Replaces the fields that a peer's schema declares with another type than this node's.
  mutating func learnTypes(of greeting: Greeting, against schema: Schema) throws(NodeError) {
    let theirs: Schema
    do { theirs = try SDL.read(greeting.schema).schema } catch { throw .schema(error) }
    let peer = greeting.logID.description
    peerTypes.removeAll { $0.peer == peer }
    peerTypes += schema.differingFieldTypes(of: theirs).map {
      PeerType(peer: peer, node: greeting.nodeName, type: $0.type, field: $0.field, fieldType: $0.fieldType)
    }
  }

  package func name(of origin: Origin) -> String? { origins.contains(origin) ? name : names[origin] }

  /// The origins that a name may mean: the one displayed so, or all of a node with that name. Each
  /// of the latter was displayed so while it was the only one.
  package func origins(named text: String) -> [Origin] {
    Set(origins + names.keys).filter {
      displayName(of: $0) == text || $0.description == text || name(of: $0) == text
    }.sorted()
  }
}

/// A peer with a name.
package struct RemotePeer: Sendable, Equatable, Encodable {
  package var name: String
  package var address: String
  /// Nil: no exchange since the remote was added.
  package var lastExchange: LastExchange?

  package init(name: String, address: String, lastExchange: LastExchange? = nil) {
    self.name = name
    self.address = address
    self.lastExchange = lastExchange
  }

  init(_ stored: MetadataReader) throws(NodeError) {
    name = try stored.text("name")
    address = try stored.text("address")
    if stored.has("lastExchange") { lastExchange = try LastExchange(try stored.member("lastExchange")) }
  }
}

/// The time and result of the last exchange with a remote. Exchanges with a busy node do not count.
package struct LastExchange: Sendable, Equatable, Encodable {
  /// The end of the exchange, in milliseconds since 1970.
  package var time: UInt64
  /// The number of pulled events; nil if none were requested, or if the exchange failed.
  package var pulled: UInt64?
  /// The number of pushed events; nil as above.
  package var pushed: UInt64?
  /// The reason for a failure or for left out partitions, in words.
  package var problem: String?
  /// The end of the last exchange that did not fail, in milliseconds since 1970; nil: none.
  package var lastSuccess: UInt64?

  fileprivate init(_ stored: MetadataReader) throws(NodeError) {
    time = try stored.number("time")
    if stored.has("pulled") { pulled = try stored.number("pulled") }
    if stored.has("pushed") { pushed = try stored.number("pushed") }
    if stored.has("problem") { problem = try stored.text("problem") }
    if stored.has("lastSuccess") { lastSuccess = try stored.number("lastSuccess") }
  }
}

/// A field that a peer declares with another type than this node.
package struct PeerType: Sendable, Equatable, Encodable {
  /// The log id.
  package var peer: String
  package var node: String
  /// In the form of `PeerFieldType`.
  package var type: String
  package var field: String
  package var fieldType: String

  /// Nil if the schema declares the field with the peer's type, or not at all.
  func difference(from schema: Schema) -> FieldDifference? {
    let theirs = PeerFieldType(type: type, field: field, fieldType: fieldType)
    return schema.ownField(of: theirs).map {
      FieldDifference(field: $0.name, type: $0.type, node: node, nodeType: fieldType)
    }
  }
}

/// A field that this node and a peer declare with different types.
struct FieldDifference {
  /// `Note.color`.
  var field: String
  /// The type at this node, as SDL.
  var type: String
  /// The peer's name.
  var node: String
  /// The type at the peer, as SDL.
  var nodeType: String

  var sentence: Notice {
    "\(field) is \(type) here and \(nodeType) at \(node): each node shows the values of the other as they "
      + "were written. Declare one type on both, under a new stored name"
  }
}

/// The JSON form, separate because ids are stored as hexadecimal text.
private struct StoredMetadata: Encodable {
  struct Identity: Encodable {
    var inode: UInt64
    var birthSeconds: Int64
    var birthNanoseconds: UInt32
  }

  var format: Int
  var log: String
  var name: String
  var origins: [String]
  var names: [String: String]
  var watermark: Identity
  var cutCount: UInt32
  var scope: [String]
  var pendingScope: [String]?
  var pendingFork: PendingFork?
  var retired: [ForkedBranch]?
  var remotes: [RemotePeer]
  var unfinishedClone: String?
  var corruption: RecordedCorruption?
  var peerTypes: [PeerType]?
  var isRecreated: Bool?
}

extension NodeMetadata {
  var encoded: [UInt8] {
    get throws(NodeError) {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      let stored = StoredMetadata(
        format: Self.format, log: logID.description, name: name, origins: origins.map(\.description),
        names: Dictionary(uniqueKeysWithValues: names.map { ($0.description, $1) }),
        watermark: .init(
          inode: watermark.inode, birthSeconds: watermark.birthSeconds,
          birthNanoseconds: watermark.birthNanoseconds),
        cutCount: cutCount, scope: scope.patterns, pendingScope: pendingScope?.patterns,
        pendingFork: pendingFork, retired: retired.isEmpty ? nil : retired, remotes: remotes,
        unfinishedClone: unfinishedClone?.description, corruption: corruption,
        peerTypes: peerTypes.isEmpty ? nil : peerTypes,
        isRecreated: isRecreated ? true : nil)
      do { return Self.sealed(Array(try encoder.encode(stored)) + [10]) } catch {
        throw .badMetadata(path: Self.fileName, what: "it cannot be encoded")
      }
    }
  }

  private static let opening = Array("{\n".utf8)
  private static let (checksum, closing) = (Array("  \"checksum\" : \"".utf8), Array("\",\n".utf8))

  /// Inserts the checksum of all lines as the second line.
  private static func sealed(_ text: [UInt8]) -> [UInt8] {
    opening + checksum + hexadecimal(text.crc32c(0..<text.count)) + closing + text.dropFirst(opening.count)
  }

  private static func hexadecimal(_ number: UInt32) -> [UInt8] {
    Array(Origin(UInt64(number)).description.utf8.suffix(8))
  }

  /// Whether the second line is the checksum of the other lines, or absent.
  private static func isWhole(_ bytes: [UInt8], _ json: JSON) -> Bool {
    let head = opening + checksum
    let end = head.count + 8
    guard bytes.starts(with: head), bytes.dropFirst(end).starts(with: closing) else {
      return json["checksum"] == nil
    }
    let text = opening + bytes.dropFirst(end + closing.count)
    return bytes[head.count..<end].elementsEqual(hexadecimal(text.crc32c(0..<text.count)))
  }

  /// - Throws: `badMetadata` if the checksum in the second line does not match, in any format;
  ///   `newerFormat` before other members are read; `badMetadata` for an invalid member.
  init(_ bytes: [UInt8], path: String) throws(NodeError) {
    let metadata: MetadataReader
    do { metadata = MetadataReader(path: path, json: try JSON.parse(bytes)) } catch {
      throw MetadataReader(path: path, json: .null).failure()
    }
    // Checked before the format, because the corruption may be in its number.
    guard Self.isWhole(bytes, metadata.json) else {
      throw .badMetadata(path: path, what: "its bytes are not those that were written")
    }
    let format = try metadata.number("format", as: Int.self)
    guard format <= Self.format else {
      throw .newerFormat(path: path, found: format, supported: Self.format)
    }
    func scope(_ patterns: [String]) throws(NodeError) -> Scope {
      do { return try Scope(patterns: patterns) } catch { throw .replication(error) }
    }
    logID = LogID(try metadata.origin(try metadata.text("log")).rawValue)
    name = try metadata.text("name")
    origins = []
    for text in try metadata.texts("origins") { origins.append(try metadata.origin(text)) }
    guard !origins.isEmpty else { throw .badMetadata(path: path, what: "it names no origin") }
    for (text, name) in try metadata.textMembers("names") { names[try metadata.origin(text)] = name }
    let identity = try metadata.member("watermark")
    watermark = FileIdentity(
      inode: try identity.number("inode"), birthSeconds: try identity.number("birthSeconds"),
      birthNanoseconds: try identity.number("birthNanoseconds"))
    cutCount = try metadata.number("cutCount")
    self.scope = try scope(try metadata.texts("scope"))
    if metadata.has("pendingScope") { pendingScope = try scope(try metadata.texts("pendingScope")) }
    if metadata.has("pendingFork") { pendingFork = try PendingFork(try metadata.member("pendingFork")) }
    if metadata.has("retired") { retired = try metadata.branches("retired") }
    for remote in try metadata.members("remotes") { remotes.append(try RemotePeer(remote)) }
    if metadata.has("unfinishedClone") {
      unfinishedClone = LogID(try metadata.origin(try metadata.text("unfinishedClone")).rawValue)
    }
    if metadata.has("corruption") { corruption = try RecordedCorruption(try metadata.member("corruption")) }
    for type in metadata.has("peerTypes") ? try metadata.members("peerTypes") : [] {
      peerTypes.append(
        PeerType(
          peer: try type.text("peer"), node: try type.text("node"), type: try type.text("type"),
          field: try type.text("field"), fieldType: try type.text("fieldType")))
    }
    if metadata.has("isRecreated") { isRecreated = try metadata.flag("isRecreated") }
  }
}
