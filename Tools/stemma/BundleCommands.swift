import ArgumentParser
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSync

struct BundleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bundle",
    abstract: "Carry events between nodes in files.",
    discussion: """
      Examples:
        stemma bundle create monday.bundle
        stemma bundle create tuesday.bundle --since monday.bundle
        stemma -C field bundle apply monday.bundle
      """,
    subcommands: [
      BundleCreate.self, BundleApply.self, BundleShow.self, BundleVerify.self, BundleVector.self,
    ])
}

struct BundleCreate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Write the events that a receiver lacks to a file.",
    discussion: """
      Without --for and --since the file has all events, and any node of the same schema can apply it. Partitions that \
      lost events are left out, and the exit status is 74 then.
      Examples:
        stemma bundle create monday.bundle --partition tenantId=acme
        stemma bundle create tuesday.bundle --since monday.bundle
        stemma bundle create - --for field | ssh field stemma -C shop bundle apply -
      """)
  @Argument(help: "The file, which is replaced if it exists; -: standard output.", completion: .file())
  var file: String
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("Without the events that this remote is known to hold.", valueName: "remote"),
    completion: .remoteNames)
  var remote: String?
  @Option(
    help: ArgumentHelp(
      "Without the events of an earlier bundle, or of a file that `bundle vector --json` wrote at the receiver.",
      valueName: "file"), completion: .file())
  var since: String?
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only these partitions; may be repeated.", valueName: "pattern"))
  var partition: [String] = []
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if remote != nil, since != nil { throw ValidationError("--for and --since exclude each other.") }
    if file == "-", format.isJSON {
      throw ValidationError("--json and --ndjson exclude `-`, which writes the bundle to standard output.")
    }
  }

  func run() throws {
    let node = try options.open(isQuiet: true)
    for notice in node.notices { Output.warning(notice) }
    let receiver = try receiver(node)
    let (report, bytes) =
      file == "-"
      ? try BundleWriter.write(node, toDescriptor: 1, partitions: partition, for: receiver)
      : try BundleWriter.write(node, to: file, partitions: partition, for: receiver)
    for pattern in try node.idlePatterns(partition.filter { !$0.hasPrefix("!") }) {
      Output.warning("no partition with events here fits `\(pattern)`; `stemma digest` lists them")
    }
    for notice in report.notices { Output.warning(notice) }
    let text =
      "\(counted(Int(report.events), "event")) in \(counted(report.partitions, "partition")), \(size(bytes))"
    if format.isJSON {
      Output.line(
        .object([
          ("file", .string(file)), ("partitions", .int(Int64(report.partitions))),
          ("events", .int(Int64(clamping: report.events))), ("bytes", .int(Int64(clamping: bytes))),
        ]))
    } else if file != "-" {
      Output.line(printable("wrote \(text) to \(file)"))
    }
    Output.flush()
    if let missing = report.missing { throw missing }
  }

  private func receiver(_ node: Node) throws -> BundleReceiver {
    if let remote {
      guard let peer = try node.peers(remote).first else { throw NodeError.noRemotes }
      return try BundleSource(node).receiver(peer)
    }
    guard let since else { return BundleReceiver() }
    return BundleReceiver(held: try VersionVectorFile.read(since, node.ports))
  }
}

/// The argument of commands that read a bundle.
struct BundleFile: ParsableArguments {
  @Argument(help: "The bundle; -: standard input.", completion: .file()) var file: String

  var isStandardInput: Bool { file == "-" }

  func reader(_ ports: Ports = Ports()) throws(NodeError) -> BundleReader {
    isStandardInput
      ? try BundleReader("standard input", descriptor: 0) : try BundleReader(path: file, ports)
  }
}

struct BundleApply: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apply", abstract: "Fetch what a bundle has and this node lacks.",
    discussion: """
      Events that are here already, and partitions outside of the scope, are skipped. A bundle that continues events that \
      are missing here is refused with 69, and the message names them.
      Examples:
        stemma bundle apply monday.bundle
        stemma -C field bundle apply - < monday.bundle
      """)
  @OptionGroup var bundle: BundleFile
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.openForWriting(isQuiet: true)
    for notice in node.notices { Output.warning(notice) }
    let told = node.notices.count
    let bar = ProgressBar("applying")
    var reads = 0
    let outcome = Result { () throws(NodeError) in
      try node.exchange(
        with: RemotePeer(name: bundle.file, address: bundle.file), pulls: true, pushes: false, partitions: [],
        connect: { (_, node, _) throws(NodeError) in
          reads += 1
          // Standard input cannot be read again.
          if reads > 1, bundle.isStandardInput {
            throw .scopeChanged(node: node?.metadata.name ?? "this node")
          }
          return BundleLink(try bundle.reader())
        }, progress: { bar.update($0, of: $1) })
    }
    bar.finish()
    switch outcome {
    case .failure(let error):
      for notice in node.notices.dropFirst(told) { Output.warning(notice) }
      throw error
    case .success(let report):
      if let pulled = report.pulled {
        if format.isJSON {
          Output.line(pulled.json)
        } else {
          let source = bundle.isStandardInput ? "standard input" : bundle.file
          Output.line(printable("applied \(pulled.text) from \(source)"))
        }
      }
      for notice in report.notices { Output.warning(notice) }
      Output.flush()
      if let missing = report.missing { throw missing }
    }
  }
}

struct BundleShow: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the sender, the prerequisites and the partitions of a bundle.",
    discussion: """
      Reads the whole file and checks the checksum of each message; `bundle verify` checks the events, too.
      Examples:
        stemma bundle show monday.bundle
        stemma bundle show - --json < monday.bundle
      """)
  @OptionGroup var bundle: BundleFile
  @OptionGroup var format: FormatOptions

  func run() throws {
    var reader = try bundle.reader()
    while try reader.next() != nil {}
    if format.isJSON { Output.line(json(reader)) } else { write(reader) }
    Output.flush()
  }

  private func json(_ reader: BundleReader) -> JSON {
    .object([
      ("name", .string(reader.greeting.nodeName)), ("log", .string(reader.greeting.logID.description)),
      (
        "scope", .array(reader.scope.scopes.map { .array($0.patterns.map { .string($0) }) })
      ),
      ("prerequisites", reader.prerequisites.json), ("holding", reader.holding.json),
      (
        "partitions",
        .array(
          reader.counts.map {
            .object([
              ("partition", .string($0.partition.description)), ("events", .int(Int64(clamping: $0.events))),
            ])
          })
      ),
      ("events", .int(Int64(clamping: reader.events))), ("bytes", .int(Int64(clamping: reader.size))),
    ])
  }

  private func write(_ reader: BundleReader) {
    let names = Dictionary(reader.greeting.origins.map { ($0.origin, $0.nodeName) }) { first, _ in first }
    Output.line(printable("bundle of \(reader.greeting.nodeName), log \(reader.greeting.logID)"))
    let scopes = reader.scope.scopes.map { $0.patterns.joined(separator: " ") }
    Output.line(printable("scope \(scopes.joined(separator: ", within "))"))
    if reader.prerequisites.isEmpty {
      Output.line("prerequisites: none")
    } else {
      Output.line("prerequisites:")
      var table = TextTable()
      for partition in reader.prerequisites.sortedPartitions {
        for (origin, head) in reader.prerequisites.streams(of: partition) {
          let event = "\(names[origin] ?? origin.description):\(head.sequence)"
          table.append([printable(partition.description), printable(event)])
        }
      }
      table.write(indent: "  ")
    }
    let counts = reader.counts
    Output.line(
      "\(counted(Int(reader.events), "event")) in \(counted(counts.count, "partition")), \(size(reader.size))"
        + (counts.isEmpty ? "" : ":"))
    var table = TextTable(numeric: [1])
    for (partition, events) in counts {
      table.append([printable(partition.description), grouped(events)])
    }
    table.write(indent: "  ")
  }
}

struct BundleVerify: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Check every digest and every event of a bundle.",
    discussion: """
      Needs no node. The exit status of a corrupt bundle is 74.
      Examples:
        stemma bundle verify monday.bundle
        stemma bundle verify - --json < monday.bundle
      """)
  @OptionGroup var bundle: BundleFile
  @OptionGroup var format: FormatOptions

  func run() throws {
    var reader = try bundle.reader()
    try reader.verify()
    if format.isJSON {
      Output.line(
        .object([
          ("events", .int(Int64(clamping: reader.events))), ("bytes", .int(Int64(clamping: reader.size))),
        ]))
    } else {
      Output.line("\(counted(Int(reader.events), "event")), \(size(reader.size)): all good")
    }
    Output.flush()
  }
}

struct BundleVector: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vector", abstract: "Print what this node holds, for `bundle create --since`.",
    discussion: """
      Examples:
        stemma bundle vector
        stemma -C field bundle vector --json > field.json
      """)
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let held = try node.durableVector()
    if format.isJSON {
      Output.line(held.json)
    } else {
      var table = TextTable(["partition", "origin", "sequence", "node"], numeric: [2])
      for partition in held.sortedPartitions {
        for (origin, head) in held.streams(of: partition) {
          table.append([
            printable(partition.description), origin.description, grouped(head.sequence.rawValue),
            printable(node.metadata.name(of: origin) ?? ""),
          ])
        }
      }
      table.write()
    }
    Output.flush()
  }
}

/// A file that states what a node holds: a version vector in JSON, or a bundle that it applied.
private enum VersionVectorFile {
  /// Longest JSON text.
  private static let limit = 1 << 28

  static func read(_ path: String, _ ports: Ports) throws(NodeError) -> VersionVector {
    if try Bundle.isBundle(path, ports) { return try BundleReader(path: path, ports).holding }
    return try Node.wrapping { () throws in
      let bytes = try ports.contents(of: path, limit: limit)
      do { return try VersionVector(try JSON.parse(bytes)) } catch let error as JSONError {
        throw NodeError.malformedInput(
          source: path,
          what: "\(path): neither a bundle nor a version vector in JSON: \(Explanations.text(of: error))")
      } catch let error as ReplicationError {
        throw NodeError.malformedInput(source: path, what: "\(path): \(error.description)")
      }
    }
  }
}
