import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHistory
import StemmaImport
import StemmaNode
import StemmaSchema

struct Initialize: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Make a node.",
    discussion: """
      Examples:
        stemma init shop --schema shop.graphql
        stemma init messages --name laptop
      """)
  @Argument(help: "The directory; made if it is not there.", completion: .directory) var directory: String
  @Option(
    help: ArgumentHelp(
      "A GraphQL schema, or - for standard input; more models can be applied later.", valueName: "file"),
    completion: .file())
  var schema: String?
  @Option(help: "The name that other nodes see (default: the host's name).") var name: String?
  @OptionGroup var format: FormatOptions

  func run() throws {
    let text = try schema.map { try readText($0, limit: SchemaLimits.text) } ?? ""
    let node = try namingSchema(schema) { try Node.create(at: directory, schema: text, name: name) }
    for warning in node.schemaWarnings {
      Output.warning(Explanations.text(of: warning, in: schema.map(inputName) ?? "schema"))
    }
    if format.isJSON {
      Output.line(
        .object([
          ("directory", .string(directory)), ("name", .string(node.metadata.name)),
          ("origin", .string(node.metadata.origin.description)),
          ("models", .array(node.schema.models.map { .string($0.name) })),
        ]))
    } else {
      Output.line(
        printable(
          "node \(node.metadata.name) with \(counted(node.schema.models.count, "model")) in \(directory)"))
    }
    Output.flush()
  }
}

/// Prefixes schema errors with the name of the file.
private func namingSchema<Result>(_ file: String?, _ body: () throws -> Result) throws -> Result {
  do { return try body() } catch NodeError.schema(let error) {
    let lines = error.diagnostics.map { "\(file.map(inputName) ?? "schema"):\($0.description)" }
    throw Failure(lines.joined(separator: "\n"), .badData)
  }
}

/// The name of a file, or of `-`, in error messages.
func inputName(_ path: String) -> String { path == "-" ? "standard input" : path }

/// Reads a complete text file, or a pipe to its end (`/dev/stdin`, a shell's `<(…)`, `-`). Reading
/// stops after `limit` bytes, because a device may be endless.
func readText(_ path: String, limit: Int) throws -> String {
  let handle = path == "-" ? FileHandle.standardInput : try openedFile(path)
  let name = inputName(path)
  var data = Data()
  do {
    while data.count <= limit, let more = try handle.read(upToCount: min(1 << 20, limit + 1 - data.count)),
      !more.isEmpty
    {
      data += more
    }
  } catch { throw Failure("cannot read \(name)", .noInput) }
  guard data.count <= limit else {
    throw Failure("\(name) is longer than \(size(UInt64(limit))), the most that is read here", .badData)
  }
  guard let text = String(validating: data, as: UTF8.self) else {
    throw Failure("\(name) is not UTF-8", .badData)
  }
  return text
}

/// Opens a file or a pipe for reading. Errors have the system's message.
func openedFile(_ path: String) throws -> FileHandle {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw NodeError.cannotRead(path: path, errno: errno) }
  let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  // Opening a directory succeeds; only reading it would fail.
  var status = stat()
  guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
    throw NodeError.cannotRead(path: path, errno: EISDIR)
  }
  return handle
}

/// A size in bytes as text.
func size(_ bytes: UInt64) -> String {
  if bytes < 1 << 10 { return "\(bytes) B" }
  let (value, unit) =
    bytes < 1 << 20
    ? (Double(bytes) / 1024, "KiB")
    : bytes < 1 << 30 ? (Double(bytes) / 0x1p20, "MiB") : (Double(bytes) / 0x1p30, "GiB")
  return String(format: "%.1f %@", value, unit)
}

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show what this node holds, and how it stands with its peers.",
    discussion: """
      Counts the records, and says if the tables do not have as many as were written. What is in them, and the bytes \
      of the log, only `verify` looks at.
      Examples:
        stemma status
        stemma -C shop status --json
        stemma status --check --json > status.json || echo 'look at it'
      """)
  @Flag(
    help: ArgumentHelp(
      "Exit with 1 if corruption, an unrecognized file, a duplicate event id, a dangling reference, a field of another type "
        + "at a peer, a forked peer, or a last exchange that failed or left partitions out is known."))
  var check = false
  @Option(
    help: ArgumentHelp(
      "With --check: a remote without a successful exchange for this long is a problem: 60s, 30m, 12h, 7d.",
      valueName: "time"))
  var maxLag: TimeSpan?
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if maxLag != nil, !check { throw ValidationError("--max-lag needs --check") }
  }

  func run() throws {
    // Notices are printed only once.
    let node = try options.open(isQuiet: true)
    for notice in node.notices { Output.warning(notice) }
    let found = Result { () throws(NodeError) in
      try node.status(maxLag: check ? maxLag?.milliseconds : nil) { "`\($0.command)`" }
    }
    if format.isJSON {
      Output.line(try found.get().json)
    } else {
      Output.line(
        "node \(Output.styled(printable(node.metadata.name), .bold)) in \(printable(node.directory)), origin \(node.metadata.origin)"
      )
      Output.line(
        "schema      \(counted(node.schema.models.count, "model")): \(node.schema.models.map(\.name).joined(separator: ", "))"
      )
      Output.line("scope       \(node.metadata.scope.patterns.joined(separator: " "))")
      // A log exists even if the tables cannot be used.
      if case .failure = found {
        let log = try node.logSize()
        Output.line("log         \(size(log.bytes)) in \(counted(log.files, "file"))")
        Output.flush()
      }
      let status = try found.get()
      Output.line("events      \(grouped(status.events)) in \(counted(status.partitions, "partition"))")
      for partition in status.largestPartitions {
        Output.line(
          printable(
            "partition   \(partition.partition.description): \(counted(partition.events, "event")), "
              + counted(partition.rows, "record")))
      }
      if status.largestPartitions.count < status.partitions {
        let others = status.partitions - status.largestPartitions.count
        Output.line("partition   … and \(grouped(others)) more; `stemma scope list --partitions` lists them")
      }
      Output.line("log         \(size(status.logBytes)) in \(counted(status.files, "file"))")
      Output.line("tables      \(size(status.tableBytes)), \(counted(Int(status.records), "record"))")
      Output.line("conflicts   \(status.conflicts == 0 ? "none" : grouped(status.conflicts))")
      for peer in status.peers {
        Output.line(printable("peer        \(peer.name) at \(peer.address): \(peer.text.withCommands)"))
      }
      for notice in status.notices where !node.notices.contains(notice) {
        Output.line(printable("note        \(notice.withCommands)"))
      }
    }
    Output.flush()
    if check, !(try found.get().isSound) { throw ExitCode.no }
    try node.checkTablesAreWhole()
  }
}

struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema", abstract: "Show, check or change the schema.",
    discussion: """
      Examples:
        stemma schema show > shop.graphql
        stemma schema check shop.graphql && stemma schema apply shop.graphql
      """,
    subcommands: [
      SchemaShow.self, SchemaCheck.self, SchemaApply.self, SchemaGenerate.self, SchemaInfer.self,
    ])
}

struct SchemaShow: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Print the schema in its canonical form.",
    discussion: """
      Examples:
        stemma schema show
        stemma -C shop schema show > shop.graphql
      """)
  @OptionGroup var options: NodeOptions

  func run() throws {
    Output.bytes(Array(SDL.print(try options.open().schema).utf8))
    Output.flush()
  }
}

struct SchemaCheck: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Say what a schema would change, and whether it would be refused.",
    discussion: """
      Examples:
        stemma schema check new.graphql
        stemma schema check new.graphql --json
      """)
  @Argument(help: "A GraphQL schema, or - for standard input.", completion: .file()) var file: String
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let text = try readText(file, limit: SchemaLimits.text)
    let comparison = try namingSchema(file) { try options.open().compare(schema: text) }
    try report(comparison, file, format, verb: "would")
    if !comparison.refusals.isEmpty { throw ExitCode.no }
  }
}

struct SchemaApply: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apply",
    abstract: "Change the schema; what the log cannot hold is refused before anything is written.",
    discussion: """
      Examples:
        stemma schema apply new.graphql
        stemma -C shop schema apply shop.graphql
      """)
  @Argument(help: "A GraphQL schema, or - for standard input.", completion: .file()) var file: String
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let text = try readText(file, limit: SchemaLimits.text)
    let node = try options.openForWriting()
    try report(try namingSchema(file) { try node.apply(schema: text) }, file, format, verb: "did")
  }
}

struct SchemaGenerate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate", abstract: "Print the declarations with which a program uses this node.",
    discussion: """
      Examples:
        stemma -C shop schema generate --swift > Models.swift
        ssh office stemma -C shop schema generate --swift | swift format
      """)
  @Flag(help: "Structs for the Swift library.") var swift = false
  @OptionGroup var options: NodeOptions

  func validate() throws {
    guard swift else { throw ValidationError("name the language: --swift") }
  }

  func run() throws {
    Output.bytes(Array(SwiftSource.text(of: try options.open().schema).utf8))
    Output.flush()
  }
}

struct SchemaInfer: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "infer",
    abstract: "Print a schema for the tables of a SQLite file.",
    discussion: """
      Reads all rows, because SQLite's declarations promise little. What a schema cannot say stands on standard error.
      Examples:
        stemma schema infer shop.sqlite > shop.graphql
        stemma schema infer shop.sqlite | stemma schema check /dev/stdin
      """)
  @Argument(help: "A SQLite file.", completion: .file()) var file: String

  func run() throws {
    let result = try SchemaInference.schema(ofFile: file)
    for warning in result.warnings { Output.warning(warning) }
    Output.bytes(Array(result.text.utf8))
    Output.flush()
  }
}

private func report(_ comparison: SchemaChangeReport, _ file: String, _ format: FormatOptions, verb: String)
  throws
{
  for warning in comparison.warnings { Output.warning(Explanations.text(of: warning, in: inputName(file))) }
  if format.isJSON {
    Output.line(
      .object([
        ("changes", .array(comparison.changes.map { .string($0) })),
        ("refusals", .array(comparison.refusals.map { .string($0) })),
      ]))
  } else {
    if comparison.changes.isEmpty && comparison.refusals.isEmpty { Output.line("no change") }
    for change in comparison.changes { Output.line(change) }
    for refusal in comparison.refusals { Output.line("refused: \(refusal)") }
  }
  Output.flush()
}

struct Rebuild: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rebuild",
    abstract: "Rebuild the tables from the log.",
    discussion: """
      The file of --into may be there if it holds tables that were made so, outside of a node; anything else is refused, \
      and left as it is.
      Examples:
        stemma rebuild
        stemma rebuild --as-of 2024-01-01T00:00:00Z --into then.sqlite
      """)
  @Option(
    help: ArgumentHelp(
      "A time (2026-11-21T05:14:01Z, 2h, yesterday, or 2026-11-21: its first moment), a position (@5718), or an event: "
        + "what this node knew when it came to hold it. Needs --into.", valueName: "when"))
  var asOf: String?
  @Option(
    help: ArgumentHelp("Write the tables to this file instead.", valueName: "file"), completion: .file())
  var into: String?
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if asOf != nil && into == nil { throw ValidationError("--as-of needs --into FILE") }
  }

  func run() throws {
    let bar = ProgressBar("rebuilding tables")
    let report: RebuildReport
    if let into {
      let node = try options.open()
      report = try node.rebuild(into: into, upTo: try asOf.map { try node.pointInTime($0).filter }) {
        bar.update($0, of: $1)
      }
    } else {
      let node = try options.openForWriting()
      report = try node.rebuild { bar.update($0, of: $1) }
    }
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([("events", .int(Int64(report.events))), ("records", .int(Int64(report.records)))]))
    } else {
      Output.line(
        "rebuilt \(counted(Int(report.records), "record")) from \(counted(Int(report.events), "event"))")
    }
    Output.flush()
  }
}
