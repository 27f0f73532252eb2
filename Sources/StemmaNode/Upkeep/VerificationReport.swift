import StemmaEvents
import StemmaLog

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

  package struct Corruption: Sendable {
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
  package var corruption: [Corruption] = []
  /// The events that corruption took.
  package var losses: [RecordedCorruption.Loss] = []
  /// Whether more may be lost than `losses` lists.
  package var isVague = false
  /// Unfinished operations that the next writer completes. One sentence each.
  package var pending: [Notice] { metadata?.unfinishedSentences ?? [] }
  /// The node's metadata: peers to repair from, and names of origins.
  package var metadata: NodeMetadata?

  /// Whether there is a finding that requires an action.
  package var isCorrupt: Bool { corruption.contains { ![.none, .remove].contains($0.remedy) } }

  /// Whether the node is a clone that has not fetched its whole scope.
  package var isUnfinished: Bool { metadata?.unfinishedClone != nil }

  /// The steps that repair the node, in order. A repair rebuilds the tables.
  package var steps: [NextStep] {
    let remotes = metadata?.remotes ?? []
    return repairSteps + (isUnfinished ? [.pull(remotes.isEmpty ? NextStep.peer : nil)] : [])
  }

  private var repairSteps: [NextStep] {
    let remotes = metadata?.remotes.map(\.name) ?? []
    if corruption.contains(where: { $0.remedy == .repair }) {
      if losses.isEmpty, !isVague { return [.repair(from: [])] }
      return [.repair(from: remotes.isEmpty ? [NextStep.peer] : remotes)]
    }
    if corruption.contains(where: { $0.remedy == .pull }) { return remotes.map { .pull($0) } }
    if corruption.contains(where: { $0.remedy == .clone }) { return [.clone(nil)] }
    return corruption.contains { $0.remedy == .rebuild } ? [.rebuild(directory: nil)] : []
  }

  /// - Parameter spelling: the spelling of steps.
  package func json(_ spelling: (NextStep) -> String) -> JSON {
    .object([
      ("events", .int(Int64(events))), ("files", .int(Int64(files))),
      (
        "corruption",
        .array(
          corruption.map { corruption in
            .object([
              ("file", .string(corruption.file)),
              ("offset", corruption.offset.map { Value.int(Int64(clamping: $0)).json } ?? .null),
              ("part", corruption.part.map { .string($0) } ?? .null), ("what", .string(corruption.what)),
            ])
          })
      ),
      ("missing", .array(losses.map(\.json))), ("isVague", .bool(isVague)),
      ("repair", .array(steps.map { .string(spelling($0)) })),
    ])
  }
}

extension VerificationReport {
  /// The corrupt part of the file under its name in `inspect`; nil if unknown.
  static func part(of corruption: StemmaLog.Corruption, _ ports: Ports) -> String? {
    // The digest covers the whole file.
    if corruption.flaw == .digest { return nil }
    var name: String?
    // The corruption is already reported; this only adds the name of the part.
    do throws(LogError) {
      let file = try InspectedFile(path: corruption.path, fileSystem: ports.fileSystem)
      try inspect(file, as: try LogFileFormat(of: file), InspectionRequest()) { part in
        guard name == nil, part.offset <= corruption.offset, corruption.offset < part.offset + part.length
        else {
          return
        }
        name = part.name
      }
    } catch {}
    return name
  }

  /// The findings for events that precede their causes in the log.
  static func orderCorruption(
    in log: Log, _ filter: PartitionFilter? = nil
  ) throws(LogError) -> [VerificationReport.Corruption] {
    let files = try log.files()
    return try log.orderViolations(in: filter).map { orderViolations in
      let (event, place) = (orderViolations.first.event, orderViolations.first.position)
      let what =
        "\(counted(orderViolations.count, "event")) of partition \(event.partition) from @\(place) on "
        + (orderViolations.count == 1 ? "precedes an event that it builds" : "precede events that they build")
        + " on (\(event.id) on \(orderViolations.cause)): a peer that lacks them cannot fetch them from here; "
        + "push the other events to a peer that has them, and go on with a clone of it"
      return VerificationReport.Corruption(
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
