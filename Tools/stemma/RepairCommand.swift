import ArgumentParser
import StemmaEvents
import StemmaNode

struct Repair: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Restore events lost to corruption, or accept their loss.",
    discussion: """
      With --from: fetches the partitions that lost events from peers, from the first lost event on. It writes the \
      readable content of the corrupt files to new files, keeps the corrupt files in log/corrupt/ and rebuilds the \
      tables. If events are still missing, it changes nothing, names them, and exits with 1; another peer may have them. \
      Without --from it repairs what cost no event.

      With --accept-loss, if no peer has the lost events: the streams end before them. The rows in the tables are \
      written once more, as events of a new origin, with a message that names the loss. Events behind the lost ones \
      leave the log. A peer that has lost events sends them with the next pull. With --from, events of the peers are \
      restored first. With -n nothing is changed.

      With --manifest: the lost list of the log's files (log/manifest and manifest.previous) is rebuilt from the files.

      With --fork: a node was copied or set back, and wrote again under numbers for which a peer holds other events. \
      Its own such events are written again under new ids, which depend only on the events. Run it on every node \
      whose sync is refused, from the node that refuses. In any order all end with every event once.

      With --name: a node that lost its stemma.json and the copy of it gets a new one, under this name, and writes as a \
      new origin. Its log is kept. Its scope includes everything, and it has no remotes.
      Examples:
        stemma repair --from office
        stemma repair --from ../office --from ../home --json
        stemma repair --accept-loss -n
        stemma repair --fork --from office && stemma sync office
      """)
  @Option(
    help: ArgumentHelp(
      "A remote's name, or another node's directory; several times: what one lacks another may have.",
      valueName: "peer"))
  var from: [String] = []
  @Flag(help: "Go on without the lost events that no peer has.") var acceptLoss = false
  @Flag(name: [.customShort("n"), .long], help: "Only say what --accept-loss would do.")
  var dryRun = false
  @Flag(help: "Rebuild the lost list of the log's files.") var manifest = false
  @Flag(help: "Repair a fork instead: write this node's branch of it again under new names.") var fork = false
  @Option(help: "Recreate the stemma.json of a node that lost it and its copy.") var name: String?
  @OptionGroup var author: AuthorOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if name?.isEmpty == true { throw ValidationError("--name takes a name") }
    if [acceptLoss, fork, manifest, name != nil].count(where: { $0 }) > 1 {
      throw ValidationError("--accept-loss, --fork, --manifest and --name are different repairs: give one")
    }
    if manifest || name != nil, !from.isEmpty {
      throw ValidationError("--from goes with neither --manifest nor --name")
    }
    if fork, from.isEmpty { throw ValidationError("--fork takes --from PEER") }
    if fork, format.isJSON, from.count > 1 { throw ValidationError("--fork --json takes one --from") }
    if dryRun, !acceptLoss { throw ValidationError("--dry-run goes with --accept-loss") }
  }

  func run() throws {
    if manifest { return try remakeManifest() }
    if let name { try recreateMetadata(name) }
    let node = try dryRun ? options.openLeavingFiles() : options.openForWriting(isQuiet: true)
    let found = Set(node.metadata.corruption?.sentences ?? [])
    defer { warn(of: node, found) }
    let peers = try from.flatMap { name throws(NodeError) in try node.peers(name) }
    if fork {
      for (peer, name) in zip(peers, from) { try repairFork(of: node, peer, name) }
      return
    }
    let bar = ProgressBar("repairing")
    let report = try node.repair(from: peers, acceptsLoss: acceptLoss, isDryRun: dryRun, author: author.name)
    {
      bar.update($0, of: $1)
    }
    bar.finish()
    for name in report.strangers { Output.warning("\(name) has none of the lost events") }
    if format.isJSON { Output.line(report.json) } else { write(report, node.metadata) }
    Output.flush()
    if !report.isWhole { throw ExitCode.no }
  }

  private func write(_ report: RepairReport, _ metadata: NodeMetadata) {
    for partition in report.refused {
      Output.warning("partition \(partition): a peer holds other events under the same names")
    }
    let missing = LossText.lines(report.missing, metadata)
    guard report.isWhole else {
      for line in missing { Output.line("missing: \(printable(line))") }
      if report.isVague { Output.line("missing: what else these files held cannot be determined") }
      return Output.line(
        "nothing was changed: \(from.isEmpty ? "stemma repair --from PEER" : "name another peer, too"), "
          + "or if no peer has these events, --accept-loss")
    }
    if report.files.isEmpty { return Output.line("nothing to repair") }
    let verb = dryRun ? "would repair" : "repaired"
    Output.line(
      "\(verb) \(counted(report.files.count, "file"))"
        + (report.events > 0
          ? " with \(counted(Int(report.events), "event")) of \(from.joined(separator: ", "))" : "")
        + (report.events == 0 && missing.isEmpty ? "; no event was lost" : ""))
    for line in missing { Output.line("  lost: \(printable(line))") }
    if report.written > 0 {
      Output.line("  \(counted(Int(report.written), "event")) in their place, from what the tables showed")
    }
    if dryRun { Output.line("nothing was changed") }
  }
}

extension Repair {
  private func remakeManifest() throws {
    let (files, missing) = try Node.remakeManifest(at: try options.locate(), options.opening(.write))
    if format.isJSON {
      Output.line(
        .object([
          ("files", .array(files.map { .string($0) })), ("missing", .array(missing.map { .string($0) })),
        ]))
    } else {
      Output.line(
        files.isEmpty
          ? "the manifest is complete" : "rebuilt log/manifest; it lists \(counted(files.count, "file"))")
      if !missing.isEmpty {
        Output.line("missing: \(missing.joined(separator: ", ")); `stemma verify` lists what was lost")
      }
    }
    Output.flush()
    if !missing.isEmpty { throw ExitCode.no }
  }

  private func recreateMetadata(_ name: String) throws {
    do {
      let directory = try options.locate()
      throw Failure("\(directory) has its stemma.json; --name is for a node that lost it", .usage)
    } catch NodeError.lostMetadata(let path, false) {
      try Node.recreateMetadata(at: path, name: name, options.opening(.write))
      Output.warning(
        "made a new stemma.json in \(path): its scope is everything, and what it knew of remotes and of names is gone"
      )
    }
  }

  /// Prints the notices of opening and of the repair. `found`: the corruption before the repair.
  /// Its repaired part is not reported.
  private func warn(of node: Node, _ found: Set<Notice>) {
    let left = Set(node.metadata.corruption?.sentences ?? [])
    var said: Set<Notice> = []
    for notice in node.notices where !found.contains(notice) || left.contains(notice) {
      if said.insert(notice).inserted { Output.warning(notice) }
    }
    if node.metadata.unfinishedClone != nil { Output.warning(Explanations.unfinishedClone) }
  }

  private func repairFork(of node: Node, _ peer: RemotePeer, _ from: String) throws {
    let bar = ProgressBar("rebuilding tables")
    let report = try node.repairFork(with: peer) { bar.update($0, of: $1) }
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([
          ("events", .int(Int64(report.events))),
          ("partitions", .array(report.partitions.map { .string($0) })),
          ("origin", .string(node.metadata.origin.description)),
        ]))
    } else if report.events > 0 {
      Output.line(
        "wrote \(counted(Int(report.events), "event")) of \(counted(report.partitions.count, "partition")) again "
          + "under new names; `stemma sync \(from)` brings both histories together")
    } else if report.behind.isEmpty {
      Output.line("no fork: \(from) holds no other events under the same names")
    }
    for partition in format.isJSON ? [] : report.behind {
      Output.line(
        "\(from) holds events of partition \(partition) that were written again here: "
          + "run `stemma repair --fork --from \(node.metadata.name)` there")
    }
    Output.flush()
  }
}

/// Lost events as text, one line per stream.
struct LossText {
  private struct Stream: Hashable {
    let partition: String
    let origin: String
  }

  /// The maximum number of runs on a line.
  private static let limit = 12

  static func lines(_ losses: [RecordedCorruption.Loss], _ metadata: NodeMetadata?) -> [String] {
    var order: [Stream] = []
    var lost: [Stream: [RecordedCorruption.Loss]] = [:]
    for loss in losses {
      let stream = Stream(partition: loss.partition, origin: loss.origin)
      if lost[stream] == nil { order.append(stream) }
      lost[stream, default: []].append(loss)
    }
    return order.map { stream in
      let runs = lost[stream] ?? []
      let name = UInt64(stream.origin, radix: 16).flatMap { metadata?.name(of: Origin($0)) } ?? stream.origin
      let count = Int(runs.reduce(0) { $0 + $1.count })
      let numbers = runs.prefix(limit).map { $0.from == $0.to ? "\($0.from)" : "\($0.from)–\($0.to)" }
      return "\(counted(count, "event")) of \(name) in \(stream.partition)"
        + ": " + numbers.joined(separator: ", ")
        + (runs.count > limit ? " and so on to \(runs.last?.to ?? 0)" : "")
    }
  }
}
