import ArgumentParser
import StemmaEvents
import StemmaNode

struct Repair: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Put back what damage of the log has taken, or give it up.",
    discussion: """
      Takes what can be made out of the damaged files themselves, fetches exactly the other lost events from a peer, \
      or from several, checks them all against the hashes of their streams, writes the damaged files anew and \
      rebuilds the tables. Without --from it does what the files allow. Where events are missing, it puts back the \
      partitions of which it has all that a file lost, and exits with 1; another peer may have the rest. Where no checksum is left of \
      who wrote the events and why, it leaves the file as it is unless a peer has that, too, or --without-notes is given.

      With --fork: a node was copied or set back, and wrote again under numbers for which a peer holds other events. \
      Those that this node holds are written again under new names, which depend on nothing but the events. Every \
      node whose sync is refused does it, from the one that refuses; in any order all end with every event once. \
      Without --from it mends a log that holds both histories itself, as `verify` says then.

      With --give-up, when nobody has the lost events: declares them lost, so that their partitions can be written and \
      exchanged again. What stands behind them in their streams, and what the tables still show of them, is \
      written again under new origins; the tables show what they showed. `verify` goes on to say what was given up. \
      A peer that turns up with the events later sends them with the next pull. With -n nothing is changed.

      With --name: a node that lost its stemma.json and the copy of it gets a new one, under this name, and writes as a \
      new origin. Its log is kept; its scope is everything again, and it knows no remotes.
      Examples:
        stemma repair --from office
        stemma repair --from ../office --from ../home --json
        stemma repair --fork --from office && stemma sync office
        stemma repair --give-up -n
      """)
  @Option(
    help: ArgumentHelp(
      "A remote's name, or another node's directory; several times: what one lacks another may have.",
      valueName: "peer"))
  var from: [String] = []
  @Flag(help: "Put events back without their notes where nothing proves these, and no peer has them.")
  var withoutNotes = false
  @Flag(help: "Mend a fork instead: write this node's branch of it again under new names.") var fork = false
  @Flag(help: "Declare the lost events lost, and go on without them.") var giveUp = false
  @Flag(name: [.customShort("n"), .long], help: "With --give-up: only say what would be given up.")
  var dryRun = false
  @Option(help: "Make the stemma.json of a node anew that lost it and its copy.") var name: String?
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if name != nil, dryRun { throw ValidationError("--name makes a file, and --dry-run changes none") }
    if name?.isEmpty == true { throw ValidationError("--name takes a name") }
    if giveUp, fork || !from.isEmpty {
      throw ValidationError("--give-up goes with neither --from nor --fork")
    }
    if withoutNotes, fork || giveUp {
      throw ValidationError("--without-notes goes with neither --fork nor --give-up, which goes without them")
    }
    if fork, format.isJSON, from.count > 1 { throw ValidationError("--fork --json takes one --from") }
    if dryRun, !giveUp { throw ValidationError("--dry-run goes with --give-up") }
  }

  func run() throws {
    if dryRun { return try giveUp(on: try options.openLeavingFiles()) }
    if let name { try remakeMark(name) }
    let node = try options.openForWriting(isQuiet: true)
    let found = Set(node.mark.damage?.sentences ?? [])
    defer { warn(of: node, found) }
    if giveUp { return try giveUp(on: node) }
    let peers = try from.flatMap { name throws(NodeError) in try node.peers(name) }
    let from = from.joined(separator: ", ")
    if fork {
      if peers.isEmpty { try repairFork(of: node, nil, "") }
      for (peer, name) in zip(peers, self.from) { try repairFork(of: node, peer, name) }
      return
    }
    let bar = ProgressBar("rebuilding tables")
    let report = try node.repair(from: peers, takesUnnoted: withoutNotes) { bar.update($0, of: $1) }
    bar.finish()
    for name in report.strangers {
      let why = report.unconcerned.contains(name) ? "its scope leaves them out" : "is it the right peer?"
      Output.warning("\(name) has none of the lost events: \(why)")
    }
    if format.isJSON {
      Output.line(
        .object([
          ("files", .array(report.files.map { .string($0) })), ("events", .int(Int64(report.events))),
          ("rescued", .int(Int64(report.rescued))), ("unnoted", .int(Int64(report.unnoted))),
          ("missing", .array(report.missing.map(\.json))), ("waiting", .int(Int64(report.waiting))),
          ("rescuable", .array(report.rescuable.map(\.json))),
          ("refused", .array(report.refused.map { .string($0) })),
          ("damaged", .array(report.damaged.map { .string($0) })),
        ]))
    } else {
      for partition in report.refused {
        Output.warning("partition \(partition): a peer holds other events than the ones that were lost")
      }
      for line in LossText.lines(report.missing, node.mark) {
        Output.line("still missing: \(printable(line))")
      }
      if report.damaged.isEmpty, !report.missing.isEmpty {
        Output.line("  (no damaged file held these; a pull from whoever has them brings them)")
      }
      if report.waiting > 0 {
        Output.line(
          "  (\(counted(Int(report.waiting), "event")) of these \(from) can give, when another peer gives the rest of what a "
            + "file lost of their partition)")
      }
      for line in LossText.lines(report.rescuable, node.mark) {
        Output.line("left as it is: \(printable(line))")
      }
      if !report.rescuable.isEmpty, report.unnoted == 0 {
        Output.line("  (a damaged file stays until what is missing of it can be put back with what it tells)")
      }
      if report.isWhole {
        Output.line(report.files.isEmpty ? nothingToRepair(report) : summary(report))
        if report.isVague, !from.isEmpty {
          Output.line("what these files held could not be told: all that \(from) has was fetched")
        }
      } else {
        if !report.files.isEmpty { Output.line(summary(report)) }
        if self.from.isEmpty, !report.missing.isEmpty || report.isVague {
          Output.line("what is missing: stemma repair --from PEER, or if nobody has it, --give-up")
        } else if report.missing.isEmpty, report.rescuable.isEmpty, report.unnoted == 0 {
          let files = report.damaged.joined(separator: ", ")
          Output.line("still damaged: \(files); `stemma verify` says how, `stemma repair` may do the rest")
        }
      }
    }
    if report.unnoted > 0, !format.isJSON {
      let words = UnnotedText.words(report.unnoted)
      if withoutNotes {
        Output.line("left out: \(words); `stemma log` shows none for them")
      } else {
        Output.line("what needs \(from.isEmpty ? "a" : "another") peer: \(words);")
        Output.line("  stemma repair --from PEER, or if nobody has them, --without-notes")
      }
    }
    Output.flush()
    if !report.isWhole { throw ExitCode.no }
  }
}

extension Repair {
  /// Says what opening, and what was done, had to say. `found`: the damage that there was before; it is not said of what
  /// is mended by now.
  private func remakeMark(_ name: String) throws {
    do {
      let directory = try options.locate()
      throw Failure("\(directory) has its stemma.json; --name is for a node that lost it", .usage)
    } catch NodeError.lostMark(let path, false) {
      try Node.remakeMark(at: path, name: name, options.opening(.write))
      Output.warning(
        "made a new stemma.json in \(path): its scope is everything, and what it knew of remotes, of names and of what was "
          + "given up is gone")
    }
  }

  private func warn(of node: Node, _ found: Set<String>) {
    let left = Set(node.mark.damage?.sentences ?? [])
    var said: Set<String> = []
    for notice in node.notices where !found.contains(notice) || left.contains(notice) {
      if said.insert(notice).inserted { Output.warning(notice) }
    }
    if node.mark.unfinishedClone != nil { Output.warning(Explanations.unfinishedClone) }
  }

  private func nothingToRepair(_ report: RepairReport) -> String {
    switch report.renamed.count {
    case 0: "nothing to repair"
    case 1: "gave a file its own name back; no event was lost"
    case let count: "gave \(counted(count, "file")) their own names back; no event was lost"
    }
  }

  /// What the files were written from.
  private func summary(_ report: RepairReport) -> String {
    var sources: [String] = []
    if report.rescued > 0 {
      sources.append(
        "\(counted(Int(report.rescued), "event")) that \(report.files.count == 1 ? "it" : "they") still held")
    }
    if report.events > 0 {
      let givers = from.filter(report.givers.contains)
      sources.append("\(counted(Int(report.events), "event")) of \(givers.joined(separator: ", "))")
    }
    let files = "repaired \(counted(report.files.count, "file"))"
    return sources.isEmpty
      ? "\(files); no event was lost" : "\(files) with \(sources.joined(separator: " and "))"
  }

  /// `peer`: nil mends what the node's own log has twice.
  private func repairFork(of node: Node, _ peer: RemotePeer?, _ from: String) throws {
    let bar = ProgressBar("rebuilding tables")
    let progress: (UInt64, UInt64) -> Void = { bar.update($0, of: $1) }
    let report =
      if let peer { try node.repairFork(with: peer, progress: progress) } else {
        try node.repairDoubledNumbers(progress: progress)
      }
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([
          ("events", .int(Int64(report.events))),
          ("partitions", .array(report.partitions.map { .string($0) })),
          ("origin", .string(node.mark.origin.description)),
        ]))
    } else if report.events > 0 {
      Output.line(
        "wrote \(counted(Int(report.events), "event")) of \(counted(report.partitions.count, "partition")) again "
          + "under new names" + (from.isEmpty ? "" : "; `stemma sync \(from)` brings both histories together")
      )
    } else if from.isEmpty, report.copies == 0 {
      Output.line("no fork: the log has no name of an event twice; --from PEER compares it with a peer's")
    } else if !from.isEmpty, report.behind.isEmpty {
      Output.line("no fork: \(from) holds no other events under the same names")
    }
    if !format.isJSON, report.copies > 0 {
      Output.line("took out \(counted(report.copies, "event")) that stood in the log twice")
    }
    if !format.isJSON, report.unsure > 0 {
      Output.line(
        "\(counted(report.unsure, "event")) of them may have seen either history, and now \(report.unsure == 1 ? "stands" : "stand") "
          + "beside both; `stemma conflicts` lists where they differ")
    }
    for partition in format.isJSON ? [] : report.behind {
      Output.line(
        "\(from) holds events of partition \(partition) that were written again here: "
          + "run `stemma repair --fork --from \(node.mark.name)` there")
    }
    Output.flush()
  }
}

extension Repair {
  private func giveUp(on node: Node) throws {
    let bar = ProgressBar("rebuilding tables")
    let report = try node.giveUp(isDryRun: dryRun) { bar.update($0, of: $1) }
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([
          ("files", .array(report.files.map { .string($0) })), ("givenUp", report.record?.json ?? .null),
          ("rescued", .int(Int64(report.rescued))), ("unnoted", .int(Int64(report.unnoted))),
          ("dryRun", .bool(dryRun)),
        ]))
    } else if let record = report.record {
      Output.line(dryRun ? "would give up:" : "gave up:")
      for line in LossText.lines(record, node.mark) { Output.line("  \(printable(line))") }
      if report.rescued > 0 {
        Output.line(
          "\(dryRun ? "would rescue" : "rescued") \(counted(Int(report.rescued), "event")) from damaged parts"
        )
      }
      if report.unnoted > 0 { Output.line("  " + UnnotedText.words(report.unnoted)) }
      if dryRun { Output.line("nothing was changed") }
    } else if report.files.isEmpty {
      Output.line("nothing to give up")
    } else {
      let files = counted(report.files.count, "file")
      Output.line(
        report.unnoted == 0
          ? "nothing to give up: \(dryRun ? "`stemma repair` mends" : "repaired") \(files) without a loss"
          : "no event to give up: \(dryRun ? "would repair" : "repaired") \(files) without \(UnnotedText.words(report.unnoted))"
      )
    }
    Output.flush()
  }
}

/// Commits in words whose notes cannot be proven.
enum UnnotedText {
  static func words(_ commits: Int) -> String {
    "the notes of \(counted(commits, "commit")) (who wrote, and why), of which no checksum is left"
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

  /// What was given up: the losses, and what became of them.
  static func lines(_ record: GivenUp, _ mark: NodeMark?) -> [String] {
    var lines = lines(record.losses, mark)
    if record.isVague { lines.append("what else damaged files held; that cannot be told") }
    if record.standIns > 0 {
      lines.append("\(counted(Int(record.standIns), "event")) in their place, from what the tables showed")
    }
    if record.again > 0 {
      lines.append("\(counted(Int(record.again), "event")) behind them written again under new origins")
    }
    if record.fillers > 0 {
      lines.append(
        "\(counted(Int(record.fillers), "update")) of nothing, so that every version is what it was")
    }
    if record.unknown > 0 {
      lines.append(
        "of \(counted(Int(record.unknown), "lost event")) the tables knew nothing: no record shows them")
    }
    return lines
  }

  /// Of more than a few streams only how many there are in each file: nothing has to be done about each.
  static func briefLines(_ losses: [RecordedDamage.Loss], _ mark: NodeMark?) -> [String] {
    let lines = lines(losses, mark)
    if lines.count <= briefLimit { return lines }
    let files = Dictionary(grouping: losses, by: \.file).sorted { ($0.key ?? "") < ($1.key ?? "") }
    return files.map { file, losses in
      let count = losses.reduce(0) { $0 + $1.count }
      return "\(counted(Int(count), "event")) of \(counted(Set(losses.map(\.partition)).count, "partition"))"
        + (file.map { ", from log/\($0)" } ?? "")
    }
  }

  private static let briefLimit = 8

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
