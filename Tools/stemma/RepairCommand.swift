import ArgumentParser
import StemmaEvents
import StemmaNode

struct Repair: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Put back what damage of the log has taken.",
    discussion: """
      Fetches exactly the lost events from a peer, checks them against the hashes of their streams, writes the \
      damaged files anew and rebuilds the tables. Exits with 1 if events are still missing; another peer may \
      have them.

      With --fork: the node was copied or set back and wrote again under numbers for which the peer holds other \
      events; its own are written again under a new origin, and the next sync brings both histories together.
      Examples:
        stemma repair --from office
        stemma repair --from ../office --json
        stemma repair --fork --from office && stemma sync office
      """)
  @Option(help: ArgumentHelp("A remote's name, or another node's directory.", valueName: "peer")) var from:
    String
  @Flag(help: "Mend a fork instead: write this node's own events again under a new origin.") var fork = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.openForWriting()
    guard let peer = try node.peers(from).first else { throw NodeError.noRemotes }
    if fork { return try repairFork(of: node, peer) }
    let bar = ProgressBar("rebuilding tables")
    let report = try node.repair(from: peer) { bar.update($0, of: $1) }
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([
          ("files", .array(report.files.map { .string($0) })), ("events", .int(Int64(report.events))),
          ("missing", .array(report.missing.map(\.json))),
          ("refused", .array(report.refused.map { .string($0) })),
        ]))
    } else {
      for partition in report.refused {
        Output.warning("partition \(partition): the peer holds other events than the ones that were lost")
      }
      for line in LossText.lines(report.missing, node.mark) { Output.line("still missing: \(line)") }
      if report.isWhole {
        Output.line(
          report.files.isEmpty
            ? "nothing to repair"
            : "repaired \(counted(report.files.count, "file")) with \(counted(Int(report.events), "event")) of \(from)"
        )
      }
    }
    Output.flush()
    if !report.isWhole { throw ExitCode.no }
  }
}

extension Repair {
  private func repairFork(of node: Node, _ peer: RemotePeer) throws {
    let bar = ProgressBar("rebuilding tables")
    let report = try node.repairFork(with: peer) { bar.update($0, of: $1) }
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([
          ("events", .int(Int64(report.events))),
          ("partitions", .array(report.partitions.map { .string($0) })),
          ("origin", .string(node.mark.origin.description)),
        ]))
    } else if report.events == 0 {
      Output.line("no fork: \(from) holds no other events under this node's origins")
    } else {
      Output.line(
        "wrote \(counted(Int(report.events), "event")) of \(counted(report.partitions.count, "partition")) again "
          + "as origin \(node.mark.origin); `stemma sync \(from)` brings both histories together")
    }
    Output.flush()
  }
}

/// Lost events in words: those of one stream in one line.
struct LossText {
  private struct Stream: Hashable {
    let partition: String
    let origin: String
    let file: String?
  }

  /// How many runs of numbers a line names.
  private static let limit = 12

  static func lines(_ losses: [RecordedDamage.Loss], _ mark: NodeMark?) -> [String] {
    var order: [Stream] = []
    var lost: [Stream: [RecordedDamage.Loss]] = [:]
    for loss in losses {
      let stream = Stream(partition: loss.partition, origin: loss.origin, file: loss.file)
      if lost[stream] == nil { order.append(stream) }
      lost[stream, default: []].append(loss)
    }
    return order.map { stream in
      let runs = lost[stream] ?? []
      let name = UInt64(stream.origin, radix: 16).flatMap { mark?.name(of: Origin($0)) } ?? stream.origin
      let count = Int(runs.reduce(0) { $0 + $1.count })
      let numbers = runs.prefix(limit).map { $0.from == $0.to ? "\($0.from)" : "\($0.from)–\($0.to)" }
      return "\(counted(count, "event")) of \(name) in \(stream.partition)"
        + (stream.file.map { ", from log/\($0)" } ?? "") + ": " + numbers.joined(separator: ", ")
        + (runs.count > limit ? " and so on to \(runs.last?.to ?? 0)" : "")
    }
  }
}
