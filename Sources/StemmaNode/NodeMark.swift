import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// `stemma.json`: what makes a directory a node, and what a node knows about itself beside its log.
///
/// Small, read and written whole, replaced atomically and durably, and written once more beside itself before. Its second line
/// has a checksum of all others; one without it, as older versions wrote them or a person has made, is taken as it is.
package struct NodeMark: Sendable, Equatable {
  /// The version of the node directory's layout that this code writes; older ones are read, newer refused.
  package static let format = 1
  package static let fileName = "stemma.json"
  /// Read where the other one is not what was written.
  package static let copyName = "stemma.json.copy"

  package var logID: LogID
  package var name: String
  /// All that this node has written under; the last is the current one.
  package var origins: [Origin]
  /// Names of other nodes' origins, as far as they were told.
  package var names: [Origin: String] = [:]
  /// The identity of `log/watermark` when the current origin began; a copy of the directory has another.
  package var watermark: FileIdentity
  /// Torn tails that are kept beside the log and that the current origin knows of.
  package var keptTails: [String] = []
  package var scope: Scope
  /// A scope change that was decided but perhaps not carried out to its end.
  package var pendingScope: Scope?
  /// The mending of a fork, likewise.
  package var pendingFork: PendingFork?
  /// Branches of forks that were written again under new names, here or elsewhere: events that are not taken any more.
  package var retired: [ForkedBranch] = []
  package var remotes: [RemotePeer] = []
  /// The log of the node that this one is a clone of, until it has fetched all that it was to hold.
  package var unfinishedClone: LogID?
  /// Of the log; nil: none is known.
  package var damage: RecordedDamage?
  /// What was given up of the log, the oldest first.
  package var givenUp: [GivenUp] = []
  /// A giving up that was decided but perhaps not carried out to its end.
  package var pendingGivingUp: PendingGivingUp?
  /// Fields that peers declared with another type at the last exchange.
  package var peerTypes: [PeerType] = []
  /// Whether it was made anew after it was lost: which of the log's origins are this node's nobody knows.
  package var isRemade = false

  /// Whether the mark was damaged, and this is its copy.
  var isFromCopy: Bool { watermark == .none }

  package var origin: Origin { origins[origins.count - 1] }

  /// Whether this node may have made the events of an origin, so that it must not let go of what nobody else holds.
  func mayOwn(_ origin: Origin) -> Bool { isRemade || origins.contains(origin) }

  /// Traps if there is no origin or one stands twice, if a peer has two addresses, or if what it says of damage contradicts
  /// itself. As a part of the node, not where a mark is read: a person may have written it.
  func checkInvariants() {
    precondition(!origins.isEmpty && Set(origins).count == origins.count, "a mark has origins, each once")
    precondition(Set(remotes.map(\.name)).count == remotes.count, "a name stands for one peer")
    damage?.checkInvariants()
  }

  /// The name under which an origin is shown: its node's name, with a part of the origin where several
  /// origins share one; the origin itself where no name is known.
  package func displayName(of origin: Origin) -> String {
    guard let name = name(of: origin) else { return origin.description }
    func isNamesake(_ other: Origin) -> Bool { other != origin && self.name(of: other) == name }
    let isShared = origins.contains(where: isNamesake) || names.keys.contains(where: isNamesake)
    return isShared ? "\(name)-\(origin.description.prefix(4))" : name
  }

  /// Takes in the names of a peer's origins. Each node knows best of its own.
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

  /// The origins that a name may stand for: the one that is shown so, or all of a node of that name, which is how each
  /// of them was shown while it was the only one.
  package func origins(named text: String) -> [Origin] {
    Set(origins + names.keys).filter {
      displayName(of: $0) == text || $0.description == text || name(of: $0) == text
    }.sorted()
  }
}

/// A peer that was given a name.
package struct RemotePeer: Sendable, Equatable, Encodable {
  package var name: String
  package var address: String
  /// Nil: none since the remote was added.
  package var lastExchange: LastExchange?

  package init(name: String, address: String, lastExchange: LastExchange? = nil) {
    self.name = name
    self.address = address
    self.lastExchange = lastExchange
  }

  init(_ stored: MarkReader) throws(NodeError) {
    name = try stored.text("name")
    address = try stored.text("address")
    if stored.has("lastExchange") { lastExchange = try LastExchange(try stored.member("lastExchange")) }
  }
}

/// The time and the result of the last exchange with a remote. One that found a node in use is not recorded.
package struct LastExchange: Sendable, Equatable, Encodable {
  /// Of its end, in milliseconds since 1970.
  package var time: UInt64
  /// Events that came; nil: none were asked for, or the exchange failed.
  package var pulled: UInt64?
  /// Events that went; nil as above.
  package var pushed: UInt64?
  /// Why it failed, or left partitions out; in words.
  package var problem: String?

  init(at time: UInt64, _ report: Node.ExchangeReport) {
    self.time = time
    pulled = report.pulled?.events
    pushed = report.pushed?.events
    problem = report.missing.map { Explanations.text(of: $0) }
  }

  init(at time: UInt64, _ error: NodeError) {
    self.time = time
    problem = Explanations.text(of: error)
  }

  fileprivate init(_ stored: MarkReader) throws(NodeError) {
    time = try stored.number("time")
    if stored.has("pulled") { pulled = try stored.number("pulled") }
    if stored.has("pushed") { pushed = try stored.number("pushed") }
    if stored.has("problem") { problem = try stored.text("problem") }
  }
}

/// A field that a peer declares with another type than this node.
package struct PeerType: Sendable, Equatable, Encodable {
  /// The log id.
  package var peer: String
  package var node: String
  /// As `PeerFieldType` has them.
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
  /// Here, as SDL.
  var type: String
  /// The peer's name.
  var node: String
  /// There, as SDL.
  var nodeType: String

  var sentence: String {
    "\(field) is \(type) here and \(nodeType) at \(node): each node shows the values of the other as they "
      + "were written. Declare one type on both, under a new stored name"
  }
}

/// The JSON form, kept apart so that ids stand in it as hexadecimal text.
private struct StoredMark: Encodable {
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
  var keptTails: [String]
  var scope: [String]
  var pendingScope: [String]?
  var pendingFork: PendingFork?
  var retired: [ForkedBranch]?
  var remotes: [RemotePeer]
  var unfinishedClone: String?
  var damage: RecordedDamage?
  var givenUp: [GivenUp]?
  var pendingGivingUp: PendingGivingUp?
  var peerTypes: [PeerType]?
  var isRemade: Bool?
}

extension NodeMark {
  var encoded: [UInt8] {
    get throws(NodeError) {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      let stored = StoredMark(
        format: Self.format, log: logID.description, name: name, origins: origins.map(\.description),
        names: Dictionary(uniqueKeysWithValues: names.map { ($0.description, $1) }),
        watermark: .init(
          inode: watermark.inode, birthSeconds: watermark.birthSeconds,
          birthNanoseconds: watermark.birthNanoseconds),
        keptTails: keptTails, scope: scope.patterns, pendingScope: pendingScope?.patterns,
        pendingFork: pendingFork, retired: retired.isEmpty ? nil : retired, remotes: remotes,
        unfinishedClone: unfinishedClone?.description, damage: damage,
        givenUp: givenUp.isEmpty ? nil : givenUp,
        pendingGivingUp: pendingGivingUp, peerTypes: peerTypes.isEmpty ? nil : peerTypes,
        isRemade: isRemade ? true : nil)
      do { return Self.sealed(Array(try encoder.encode(stored)) + [10]) } catch {
        throw .badMark(path: Self.fileName, what: "it cannot be encoded")
      }
    }
  }

  private static let opening = Array("{\n".utf8)
  private static let (checksum, closing) = (Array("  \"checksum\" : \"".utf8), Array("\",\n".utf8))

  /// With the checksum of all lines as the second one.
  private static func sealed(_ text: [UInt8]) -> [UInt8] {
    opening + checksum + hexadecimal(text.crc32c(0..<text.count)) + closing + text.dropFirst(opening.count)
  }

  private static func hexadecimal(_ number: UInt32) -> [UInt8] {
    Array(Origin(UInt64(number)).description.utf8.suffix(8))
  }

  /// Whether the lines are those of which the second one is the checksum, or there is none.
  private static func isWhole(_ bytes: [UInt8], _ json: JSON) -> Bool {
    let head = opening + checksum
    let end = head.count + 8
    guard bytes.starts(with: head), bytes.dropFirst(end).starts(with: closing) else {
      return json["checksum"] == nil
    }
    let text = opening + bytes.dropFirst(end + closing.count)
    return bytes[head.count..<end].elementsEqual(hexadecimal(text.crc32c(0..<text.count)))
  }

  /// - Throws: `badMark` where its bytes are not those that were written, which its second line tells in every format;
  ///   `newerFormat`, before anything else is looked at; `badMark`.
  init(_ bytes: [UInt8], path: String) throws(NodeError) {
    let mark: MarkReader
    do { mark = MarkReader(path: path, json: try JSON.parse(bytes)) } catch {
      throw MarkReader(path: path, json: .null).failure()
    }
    // Also of a newer one, whose number may be what has changed.
    guard Self.isWhole(bytes, mark.json) else {
      throw .badMark(path: path, what: "its bytes are not those that were written")
    }
    let format = try mark.number("format", as: Int.self)
    guard format <= Self.format else {
      throw .newerFormat(path: path, found: format, supported: Self.format)
    }
    func scope(_ patterns: [String]) throws(NodeError) -> Scope {
      do { return try Scope(patterns: patterns) } catch { throw .replication(error) }
    }
    logID = LogID(try mark.origin(try mark.text("log")).rawValue)
    name = try mark.text("name")
    origins = []
    for text in try mark.texts("origins") { origins.append(try mark.origin(text)) }
    guard !origins.isEmpty else { throw .badMark(path: path, what: "it names no origin") }
    for (text, name) in try mark.textMembers("names") { names[try mark.origin(text)] = name }
    let identity = try mark.member("watermark")
    watermark = FileIdentity(
      inode: try identity.number("inode"), birthSeconds: try identity.number("birthSeconds"),
      birthNanoseconds: try identity.number("birthNanoseconds"))
    keptTails = try mark.texts("keptTails")
    self.scope = try scope(try mark.texts("scope"))
    if mark.has("pendingScope") { pendingScope = try scope(try mark.texts("pendingScope")) }
    if mark.has("pendingFork") { pendingFork = try PendingFork(try mark.member("pendingFork")) }
    if mark.has("retired") { retired = try mark.branches("retired") }
    for remote in try mark.members("remotes") { remotes.append(try RemotePeer(remote)) }
    if mark.has("unfinishedClone") {
      unfinishedClone = LogID(try mark.origin(try mark.text("unfinishedClone")).rawValue)
    }
    if mark.has("damage") { damage = try RecordedDamage(try mark.member("damage")) }
    for given in mark.has("givenUp") ? try mark.members("givenUp") : [] { givenUp.append(try GivenUp(given)) }
    if mark.has("pendingGivingUp") {
      pendingGivingUp = try PendingGivingUp(try mark.member("pendingGivingUp"))
    }
    for type in mark.has("peerTypes") ? try mark.members("peerTypes") : [] {
      peerTypes.append(
        PeerType(
          peer: try type.text("peer"), node: try type.text("node"), type: try type.text("type"),
          field: try type.text("field"), fieldType: try type.text("fieldType")))
    }
    if mark.has("isRemade") { isRemade = try mark.flag("isRemade") }
  }
}
