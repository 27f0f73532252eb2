import StemmaEvents
import StemmaLog

extension Node {
  /// The result of `verify`: corruption, lost events, and the commands that repair it.
  package struct VerificationReport: Sendable {
    /// The action that repairs it.
    package enum Remedy: Sendable {
      /// None: the next write repairs it.
      case none
      /// None: an unrecognized file can be deleted.
      case remove
      case repair
      case rebuild
      /// The log cuts its end, as after a torn write. Peers that have the events send them again.
      case pull
      /// A clone of a complete peer: the log holds duplicate event ids, or events before their
      /// causes.
      case clone
    }

    package struct Damage: Sendable {
      package var file: String
      package var offset: UInt64?
      /// The name in `inspect`: `block 3`, `footer`.
      package var part: String?
      package var what: String
      package var remedy: Remedy
    }

    /// Readable events.
    package var events: UInt64 = 0
    /// Appended events that are not known to be durable: the writer is active, or crashed before
    /// its fsync. The next writer keeps or cuts them.
    package var unconfirmed: UInt64 = 0
    /// Files of the log.
    package var files = 0
    package var damage: [Damage] = []
    /// The events that corruption took.
    package var losses: [RecordedDamage.Loss] = []
    /// Whether more may be lost than `losses` lists.
    package var isVague = false
    /// Unfinished operations that the next writer completes. One sentence each.
    package var pending: [String] { mark?.unfinishedSentences ?? [] }
    /// The node's metadata: peers to repair from, and names of origins.
    package var mark: NodeMark?

    /// Whether there is a finding that requires an action.
    package var isDamaged: Bool { damage.contains { ![.none, .remove].contains($0.remedy) } }

    /// Whether the node is a clone that has not fetched its whole scope.
    package var isUnfinished: Bool { mark?.unfinishedClone != nil }

    package static let acceptingLoss = "stemma repair --accept-loss"

    /// The commands that repair the node, in order. A repair rebuilds the tables.
    package var commands: [String] {
      let remotes = mark?.remotes ?? []
      return mendingCommands + (isUnfinished ? ["stemma pull" + (remotes.isEmpty ? " PEER" : "")] : [])
    }

    private var mendingCommands: [String] {
      let remotes = mark?.remotes.map(\.name) ?? []
      if damage.contains(where: { $0.remedy == .repair }) {
        if losses.isEmpty, !isVague { return ["stemma repair"] }
        let peers = remotes.isEmpty ? ["PEER"] : remotes
        return ["stemma repair" + peers.map { " --from \($0)" }.joined()]
      }
      if damage.contains(where: { $0.remedy == .pull }) { return remotes.map { "stemma pull \($0)" } }
      if damage.contains(where: { $0.remedy == .clone }) { return ["stemma clone PEER DIR"] }
      return damage.contains { $0.remedy == .rebuild } ? ["stemma rebuild"] : []
    }

    package var json: JSON {
      .object([
        ("events", .int(Int64(events))), ("files", .int(Int64(files))),
        (
          "damage",
          .array(
            damage.map { damage in
              .object([
                ("file", .string(damage.file)),
                ("offset", damage.offset.map { Value.int(Int64(clamping: $0)).json } ?? .null),
                ("part", damage.part.map { .string($0) } ?? .null), ("what", .string(damage.what)),
              ])
            })
        ),
        ("missing", .array(losses.map(\.json))), ("isVague", .bool(isVague)),
        ("mend", .array(commands.map { .string($0) })),
      ])
    }
  }
}

extension Node {
  /// The corrupt part of the file under its name in `inspect`; nil if unknown.
  static func part(of damage: StemmaLog.Damage, _ ports: Ports) -> String? {
    // The digest covers the whole file.
    if damage.flaw == .digest { return nil }
    var name: String?
    // The corruption is already reported; this only adds the name of the part.
    do throws(NodeError) {
      try FileInspection(path: damage.path, ports: ports).parts(InspectionRequest()) { part in
        guard name == nil, part.offset <= damage.offset, damage.offset < part.offset + part.length else {
          return
        }
        name = part.name
      }
    } catch {}
    return name
  }

  /// The findings for events that precede their causes in the log.
  static func disorderDamage(
    in log: Log, _ filter: PartitionFilter? = nil
  ) throws(LogError) -> [VerificationReport.Damage] {
    let files = try log.files()
    return try log.disorder(in: filter).map { disorder in
      let (event, place) = (disorder.first.event, disorder.first.position)
      let what =
        "\(counted(disorder.count, "event")) of partition \(event.partition) from @\(place) on "
        + (disorder.count == 1 ? "precedes an event that it builds" : "precede events that they build")
        + " on (\(event.dot) on \(disorder.cause)): a peer that lacks them cannot fetch them from here; "
        + "push the other events to a peer that has them, and go on with a clone of it"
      return VerificationReport.Damage(
        file: files.first { $0.positions.contains(place) }?.path ?? "", offset: nil, what: what,
        remedy: .clone)
    }
  }

  static func readableEvents(of log: Log) throws(LogError) -> UInt64 {
    var reader = log.events(around: Omissions())
    var count: UInt64 = 0
    while try reader.next() != nil { count += 1 }
    return count
  }
}

extension InspectedPart {
  /// `block 3`, `footer`.
  package var name: String {
    let kind =
      switch self.kind {
      case .filter: "key filter"
      case .unknown: "other bytes"
      default: self.kind.rawValue
      }
    return number.map { "\(kind) \($0)" } ?? kind
  }
}
