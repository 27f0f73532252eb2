import StemmaEvents
import StemmaLog

extension Node {
  /// What `verify` found: what is damaged, what that took, what can still be read, and how to mend it.
  package struct VerificationReport: Sendable {
    /// What puts things right.
    package enum Remedy: Sendable {
      /// Nothing has to be done: the next write does it.
      case none
      /// Nothing has to be done: the next write gives a file its name.
      case rename
      /// Nothing has to be done: a file that is none of the log's may be taken away.
      case remove
      case repair
      case rebuild
      /// The log will cut its end, as after a torn write; whoever has what was in it sends it again.
      case pull
      /// The log has names of events twice.
      case fork
      /// Events stand before what they build on: a clone of a peer that has everything is in order.
      case clone
    }

    package struct Damage: Sendable {
      package var file: String
      package var offset: UInt64?
      /// As `inspect` calls it: `block 3`, `footer`.
      package var part: String?
      package var what: String
      package var remedy: Remedy
    }

    /// That can be read.
    package var events: UInt64 = 0
    /// Events that a writer has appended and that are not known durable: it is at work, or died before its sync.
    /// The next writer keeps or cuts them.
    package var unconfirmed: UInt64 = 0
    /// Of the log that are there, damaged ones among them.
    package var files = 0
    package var damage: [Damage] = []
    /// The events that the damage took.
    package var losses: [RecordedDamage.Loss] = []
    /// Events that cannot be read either, and that a repair makes out of the damaged files themselves.
    package var rescuable: [RecordedDamage.Loss] = []
    /// Commits of `rescuable` events whose notes nothing proves: a repair asks peers for them.
    package var unnoted = 0
    /// Whether more may be lost than `losses` says.
    package var isVague = false
    /// What was given up, the oldest first.
    package var givenUp: [GivenUp] { mark?.givenUp ?? [] }
    /// What is being given up: that was decided, and is unfinished.
    package var beingGivenUp: GivenUp? { mark?.pendingGivingUp?.record }
    /// What was decided, and is unfinished: whoever writes next finishes it. One sentence each.
    package var pending: [String] { mark?.unfinishedSentences ?? [] }
    /// Of the node: whom to repair from, and names for origins.
    package var mark: NodeMark?

    /// Whether there is something that does not mend itself.
    package var isDamaged: Bool { damage.contains { ![.none, .rename, .remove].contains($0.remedy) } }

    /// Whether the node is a clone that has not fetched all that it was to hold.
    package var isUnfinished: Bool { mark?.unfinishedClone != nil }

    package static let givingUp = "stemma repair --give-up"

    /// The commands that mend it, in their order. Tables are rebuilt by a repair.
    package var commands: [String] {
      let remotes = mark?.remotes ?? []
      return mendingCommands + (isUnfinished ? ["stemma pull" + (remotes.isEmpty ? " PEER" : "")] : [])
    }

    private var mendingCommands: [String] {
      if damage.contains(where: { $0.remedy == .repair }) {
        if mark?.givesUp(losses) == true { return [Self.givingUp] }
        let remotes = mark?.remotes.map(\.name) ?? []
        if losses.isEmpty, !isVague, unnoted == 0 { return ["stemma repair"] }
        let peers = remotes.isEmpty ? ["PEER"] : remotes
        return peers.map { "stemma repair --from \($0)" }
      }
      if damage.contains(where: { $0.remedy == .pull }) {
        return (mark?.remotes.map(\.name) ?? []).map { "stemma pull \($0)" }
      }
      if damage.contains(where: { $0.remedy == .fork }) { return ["stemma repair --fork"] }
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
        ("missing", .array(losses.map(\.json))), ("rescuable", .array(rescuable.map(\.json))),
        ("unnoted", .int(Int64(unnoted))), ("isVague", .bool(isVague)),
        ("isUnfinished", .bool(isUnfinished)),
        ("unconfirmed", .int(Int64(unconfirmed))), ("givenUp", .array(givenUp.map(\.json))),
        ("pending", .array(pending.map { .string($0) })),
        ("mend", .array(commands.map { .string($0) })),
      ])
    }
  }
}

extension RecordedDamage.Loss {
  package var json: JSON {
    .object([
      ("partition", .string(partition)), ("origin", .string(origin)), ("from", .int(Int64(from))),
      ("to", .int(Int64(to))), ("file", file.map { .string($0) } ?? .null),
    ])
  }
}

extension Node {
  /// What of the file is damaged there, as `inspect` calls it. nil: the file cannot tell.
  static func part(of damage: StemmaLog.Damage, _ ports: Ports) -> String? {
    // The digest is that of the file as a whole.
    if damage.flaw == .digest { return nil }
    var name: String?
    // What is damaged is said already; this only says it better.
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

  /// What a person should know of events that stand before what they build on.
  static func disorderDamage(
    in log: Log, _ filter: PartitionFilter? = nil
  ) throws(LogError) -> [VerificationReport.Damage] {
    let files = try log.files()
    return try log.disorder(in: filter).map { disorder in
      let (event, place) = (disorder.first.event, disorder.first.position)
      let what =
        "\(counted(disorder.count, "event")) of partition \(event.partition) from @\(place) on "
        + (disorder.count == 1 ? "stands before what it builds" : "stand before what they build")
        + " on (\(event.dot) on \(disorder.cause)): who has none of them cannot take them from here; push what else "
        + "there is to a peer that has them, and go on with a clone of it"
      return VerificationReport.Damage(
        file: files.first { $0.place == place.file }?.path ?? "", offset: nil, what: what, remedy: .clone)
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
