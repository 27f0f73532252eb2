import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaTables

/// The state of a node in `status`.
package struct NodeStatus: Sendable {
  package struct Peer: Sendable {
    package var name: String
    package var address: String
    /// Events that only the peer has, or only this node, by partition; nil: unreachable.
    package var lag: [(partition: String, behind: UInt64, ahead: UInt64)]?
    /// The patterns of the peer's scope; nil: unknown.
    package var scope: [String]?
    package var problem: Notice?
    /// Whether `lag` compares with what the peer held after the last successful exchange.
    package var isRemembered = false
    package var lastExchange: LastExchange?
    /// Whether it holds different events under the same ids.
    package var isForked = false

    package var behind: UInt64 { (lag ?? []).reduce(0) { $0 + $1.behind } }
    package var ahead: UInt64 { (lag ?? []).reduce(0) { $0 + $1.ahead } }

    package var text: Notice {
      "\(distance)\(lastExchange.map { "; \($0.text)" } ?? "")"
    }

    private var distance: Notice {
      if let problem { return problem }
      guard isRemembered else { return "\(events)" }
      guard let lastExchange else { return "never reached" }
      if lag == nil { return "no exchange succeeded" }
      if lastExchange.problem != nil {
        let since = lastExchange.lastSuccess.map { Timestamp(milliseconds: $0).utcText } ?? "the beginning"
        return "\(events), stuck since \(since)"
      }
      return "\(events)"
    }

    private var events: String {
      if behind == 0 && ahead == 0 { return "in sync" }
      let parts = [behind > 0 ? "behind by \(behind)" : "", ahead > 0 ? "ahead by \(ahead)" : ""]
      return parts.filter { !$0.isEmpty }.joined(separator: ", ")
    }
  }

  package var json: JSON
  package var events: UInt64
  package var partitions: Int
  /// The partitions with the most events, in descending order.
  package var largestPartitions: [PartitionContents]
  package var files: Int
  package var logBytes: UInt64
  package var tableBytes: UInt64
  package var records: UInt64
  package var conflicts: UInt64
  package var peers: [Peer]
  package var notices: [Notice]
  /// Whether `status --check` succeeds. It fails for recorded corruption, an unrecognized file, a
  /// duplicate event id, a dangling reference or a field with another type at a peer. It also fails
  /// for a forked peer, and for a remote whose last exchange failed or left partitions out.
  package var isSound: Bool
}

extension Node {
  /// The size of the log in bytes, and the number of its files.
  package func logSize() throws(NodeError) -> (bytes: UInt64, files: Int) {
    let files = try Self.wrapping { try log.files() }
    return (files.reduce(0) { $0 + $1.storedBytes }, files.count)
  }

  /// The number of partitions listed.
  private static let listedPartitions = 5

  /// The number of files that a notice names.
  private static let unrecognizedInWords = 3

  /// - Parameters:
  ///   - maxLag: the age of the last successful exchange, in milliseconds, from which a remote is a
  ///     problem; nil: any.
  ///   - counts: the numbers of open conflicts and dangling references, if they are known.
  ///   - spelling: the spelling of steps in the JSON form.
  package func status(
    maxLag: UInt64? = nil, counts: (open: UInt64, dangling: UInt64)? = nil,
    spelling: (NextStep) -> String = \.description
  ) throws(NodeError) -> NodeStatus {
    let files = try Self.wrapping { try log.files() }
    let contents = try reading { try $0.partitions() }
    let (conflicts, dangling) = if let counts { counts } else { try countConflicts() }
    var tableBytes: UInt64 = 0
    for name in ["", "-wal"] {
      tableBytes += try Self.wrapping {
        do {
          let attributes = try FileManager.default.attributesOfItem(atPath: tablesPath + name)
          return (attributes[.size] as? NSNumber)?.uint64Value ?? 0
        } catch let error as CocoaError where [.fileNoSuchFile, .fileReadNoSuchFile].contains(error.code) {
          // A rebuild replaces the files.
          return 0
        }
      }
    }
    var notices = metadata.sentences
    let records = contents.reduce(0) { $0 + $1.rows }
    if contents.count > 1000, records < UInt64(contents.count) * 2 {
      notices.append(
        "partitions hold about one record each; `@partition` on the models would make fewer and larger ones")
    }
    if metadata.unfinishedClone != nil {
      notices.append(Explanations.unfinishedClone)
    }
    if log.isSealingHeldUp {
      notices.append(
        "the journal grows and is not sealed as long as the log is corrupt; \(step: .verify) shows the repair"
      )
    }
    let recorded = Set(metadata.corruption?.places.map(\.file) ?? [])
    let unreadable = files.filter { $0.kind == .corrupt && !recorded.contains($0.path.fileName) }
    if !unreadable.isEmpty {
      let names = unreadable.prefix(Self.unrecognizedInWords).map(\.path.fileName).joined(separator: ", ")
      notices.append(
        "\(counted(UInt64(unreadable.count), "file")) of log/ cannot be read: \(names); \(step: .verify) lists what "
          + "was lost")
    }
    let unrecognized = try Self.wrapping { try log.unrecognizedFiles() }
    if !unrecognized.isEmpty {
      let names = unrecognized.prefix(Self.unrecognizedInWords).joined(separator: ", ")
      notices.append(
        "log/ contains \(counted(UInt64(unrecognized.count), "unrecognized file")): \(names)"
          + (unrecognized.count > Self.unrecognizedInWords ? " and so on" : "")
          + "; \(step: .verify) describes \(unrecognized.count == 1 ? "it" : "them")")
    }
    if dangling > 0 {
      notices.append(
        "\(counted(dangling, "reference")) \(dangling == 1 ? "leads" : "lead") to a record that is missing; "
          + "\(step: .listConflicts(kind: "dangling")) lists \(dangling == 1 ? "it" : "them")")
    }
    let differing = metadata.peerTypes.compactMap { $0.difference(from: schema) }
    notices += differing.map(\.sentence)
    var clock = HybridClock()
    clock.observe(try reading { try $0.clock() })
    if let lag = clock.lag(wall: ports.clock.milliseconds()) {
      notices.append(
        "events were seen whose times lie \(Explanations.duration(lag)) ahead of this machine's clock; check it, and those "
          + "of the peers (what wins a merge is decided by versions, not by such a time)")
    }
    var hasDuplicateEvents = false
    do throws(NodeError) { try checkNames() } catch {
      guard case .duplicateEvents = error else { throw error }
      hasDuplicateEvents = true
      notices.append(Explanations.text(of: error))
    }
    let largest = Array(
      contents.sorted { ($1.events, $0.partition) < ($0.events, $1.partition) }.prefix(Self.listedPartitions))
    let events = try contents.reduce(0) { $0 + $1.events } - lostEvents()
    let logBytes = files.reduce(0) { $0 + $1.storedBytes }
    let peers = try metadata.remotes.map { (remote) throws(NodeError) in try lag(behind: remote) }
    let now = ports.clock.milliseconds()
    let late = peers.filter { peer in
      guard let maxLag else { return false }
      // A clock that went back shows no age.
      return (peer.lastExchange?.lastSuccess).map { now > $0 && now - $0 > maxLag } ?? true
    }
    for peer in late {
      let last = peer.lastExchange?.lastSuccess
      notices.append(
        last.map {
          "the last successful exchange with \(peer.name) was \(Explanations.duration(now - $0)) ago"
        } ?? "no exchange with \(peer.name) has succeeded")
    }
    let isSound =
      metadata.corruption == nil && unreadable.isEmpty && unrecognized.isEmpty && dangling == 0
      && differing.isEmpty
      && !hasDuplicateEvents
      && late.isEmpty && !peers.contains { $0.isForked || $0.lastExchange?.problem != nil }
    return NodeStatus(
      json: .object([
        ("directory", .string(directory)), ("name", .string(metadata.name)),
        ("origin", .string(metadata.origin.description)),
        ("scope", .array(metadata.scope.patterns.map { .string($0) })),
        ("models", .array(schema.models.map { .string($0.name) })), ("events", .int(Int64(clamping: events))),
        ("partitions", .int(Int64(contents.count))), ("largestPartitions", .array(largest.map(\.json))),
        ("files", .int(Int64(files.count))),
        ("logBytes", .int(Int64(clamping: logBytes))), ("tableBytes", .int(Int64(clamping: tableBytes))),
        ("records", .int(Int64(clamping: records))), ("conflicts", .int(Int64(clamping: conflicts))),
        ("danglingReferences", .int(Int64(clamping: dangling))),
        ("corruption", .array((metadata.corruption?.places ?? []).map(\.json))),
        ("missing", .array((metadata.corruption?.losses ?? []).map(\.json))),
        ("unrecognizedFiles", .array(unrecognized.map { .string($0) })),
        ("schemaDifferences", .array(differing.map(\.json))), ("isSound", .bool(isSound)),
        ("peers", .array(peers.map { $0.json(spelling) })),
        ("notices", .array(notices.map { .string($0.text(spelling)) })),
      ]),
      events: events, partitions: contents.count, largestPartitions: largest, files: files.count,
      logBytes: logBytes,
      tableBytes: tableBytes,
      records: records, conflicts: conflicts, peers: peers, notices: notices, isSound: isSound)
  }

  /// The number of open conflicts in scope, and of dangling references.
  private func countConflicts() throws(NodeError) -> (open: UInt64, dangling: UInt64) {
    let scope = metadata.scope
    return try reading { reader in
      var (open, dangling): (UInt64, UInt64) = (0, 0)
      var cursor = try reader.conflicts(nil, isInScope: { scope.contains($0) })
      while let conflict = try cursor.next() {
        if conflict.kind == .dangling { dangling += 1 } else { open += 1 }
      }
      return (open, dangling)
    }
  }

  /// The number of lost events that the tables had applied.
  private func lostEvents() throws(NodeError) -> UInt64 {
    guard let corruption = metadata.corruption else { return 0 }
    let held = try reading { try $0.versionVector() }
    return corruption.losses.reduce(0) { sum, loss in
      let streams = held.partitions[Partition(loss.partition)] ?? [:]
      let head = streams.first { $0.key.description == loss.origin }?.value.sequence.rawValue
      guard let head, head >= loss.from else { return sum }
      return sum + min(head, loss.to) - loss.from + 1
    }
  }

  /// Compares the version vector with a peer's, within both scopes.
  private func lag(behind remote: RemotePeer) throws(NodeError) -> NodeStatus.Peer {
    let own = try reading { try $0.versionVector() }
    let isRemembered = !PeerAddress(remote.address).isDirectory
    let theirs: TransferRequest?
    do throws(NodeError) { theirs = try holding(of: remote) } catch {
      return NodeStatus.Peer(
        name: remote.name, address: remote.address, lag: nil, scope: nil,
        problem: "cannot be read: \(Explanations.text(of: error))", lastExchange: remote.lastExchange)
    }
    let scope = metadata.scope
    let lag = theirs.map { theirs in
      own.lag(against: theirs.versionVector).filter {
        scope.contains($0.partition) && theirs.scope.contains($0.partition)
      }
    }
    let isForked = !isRemembered && (lag ?? []).contains { !$0.forked.isEmpty }
    return NodeStatus.Peer(
      name: remote.name, address: remote.address,
      lag: lag?.filter { $0.behind > 0 || $0.ahead > 0 }
        .map { ($0.partition.description, $0.behind, $0.ahead) },
      scope: theirs.flatMap { $0.scope.scopes.count == 1 ? $0.scope.scopes[0].patterns : nil },
      problem: isForked ? "forked: it holds other events under one of the shared origins" : nil,
      isRemembered: isRemembered, lastExchange: remote.lastExchange, isForked: isForked)
  }
}

extension NodeStatus.Peer {
  fileprivate func json(_ spelling: (NextStep) -> String) -> JSON {
    .object([
      ("name", .string(name)), ("address", .string(address)),
      ("scope", scope.map { .array($0.map { .string($0) }) } ?? .null),
      ("behind", lag == nil ? .null : .int(Int64(clamping: behind))),
      ("ahead", lag == nil ? .null : .int(Int64(clamping: ahead))),
      (
        "partitions",
        .object(
          (lag ?? []).map {
            (
              $0.partition,
              .object([
                ("behind", .int(Int64(clamping: $0.behind))), ("ahead", .int(Int64(clamping: $0.ahead))),
              ])
            )
          })
      ),
      ("problem", problem.map { .string($0.text(spelling)) } ?? .null),
      ("lastExchange", lastExchange?.json ?? .null),
    ])
  }
}

extension PartitionContents {
  package var json: JSON {
    .object([
      ("partition", .string(partition.description)), ("events", .int(Int64(clamping: events))),
      ("records", .int(Int64(clamping: rows))),
    ])
  }
}

extension LastExchange {
  private var timeText: String { Timestamp(milliseconds: time).utcText }

  fileprivate var text: String {
    "last exchange \(timeText)" + (problem.map { ": \($0)" } ?? "")
  }

  fileprivate var json: JSON {
    func count(_ events: UInt64?) -> JSON { events.map { .int(Int64(clamping: $0)) } ?? .null }
    return .object([
      ("time", .string(timeText)), ("pulled", count(pulled)), ("pushed", count(pushed)),
      ("lastSuccess", lastSuccess.map { .string(Timestamp(milliseconds: $0).utcText) } ?? .null),
      ("problem", problem.map { .string($0) } ?? .null),
    ])
  }
}

extension FieldDifference {
  fileprivate var json: JSON {
    .object([
      ("field", .string(field)), ("type", .string(type)), ("peer", .string(node)),
      ("peerType", .string(nodeType)),
    ])
  }
}

extension RecordedCorruption.Place {
  fileprivate var json: JSON {
    .object([
      ("file", .string(file)), ("offset", .int(Int64(clamping: offset))), ("what", .string(what)),
    ])
  }
}
