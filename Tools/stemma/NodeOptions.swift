import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema

/// A command without a node, which therefore accepts none.
protocol NodelessCommand {}

/// Selects the node of a command. Other paths of the command are relative to the working directory,
/// not to the node.
struct NodeOptions: ParsableArguments {
  @Option(
    name: .customShort("C"), parsing: .singleValue,
    help: ArgumentHelp(
      "Work on the node in this directory; a second one is relative to it.", valueName: "dir"),
    completion: .directory)
  var directories: [String] = []

  @Option(help: ArgumentHelp("How long to wait while another process writes.", valueName: "seconds"))
  var wait: Double = 5

  func validate() throws {
    guard wait >= 0, wait <= Node.OpeningOptions.longestWait else {
      throw ValidationError("--wait takes a number of seconds, from 0 to 86400.")
    }
  }

  /// From `-C` before the command. Set once, before any command runs.
  nonisolated(unsafe) static var leadingDirectory: String?

  static func resolve(_ path: String, from base: String?) -> String {
    guard let base, !path.hasPrefix("/") else { return path }
    return base + "/" + path
  }

  /// The node's directory: the named one, or the nearest one from the working directory upwards.
  func locate() throws -> String {
    let named = directories.reduce(Self.leadingDirectory) { Self.resolve($1, from: $0) }
    if let named {
      // A directory that does not exist has no parent to search.
      var isDirectory: ObjCBool = false
      let exists = FileManager.default.fileExists(atPath: named, isDirectory: &isDirectory)
      guard exists, isDirectory.boolValue else { throw NodeError.noNode(path: named) }
      return try Node.nearest(from: named)
    }
    if let named = ProcessInfo.processInfo.environment["STEMMA_NODE"], !named.isEmpty {
      return try Node.nearest(from: named)
    }
    return try Node.nearest(from: FileManager.default.currentDirectoryPath)
  }

  /// Whether `-C` names a node.
  var isNamed: Bool { !directories.isEmpty || Self.leadingDirectory != nil }

  /// Opens the node for reading and refreshes the tables if possible. `isQuiet`: the caller prints
  /// the node's notices.
  func open(isQuiet: Bool = false) throws -> Node { try open(.read, isQuiet: isQuiet) }

  /// Opens the node for a dry run.
  func openForRehearsal() throws -> Node { try open(.read, recordsCorruption: false) }

  /// Opens the node for reading and changes none of its files, not even outdated tables.
  func openLeavingFiles() throws -> Node { try open(.read, leavesFiles: true) }

  /// `isQuiet`: the caller prints the node's notices.
  func openForWriting(isQuiet: Bool = false) throws -> Node { try open(.write, isQuiet: isQuiet) }

  /// Opens the node for commits of its own.
  func openForAppending(segmentSize: Int? = nil) throws -> Node {
    try open(.write, segmentSize: segmentSize, delaysOrigin: true)
  }

  func opening(_ mode: Node.Mode, progress: ProgressBar? = nil) -> Node.OpeningOptions {
    var options = Node.OpeningOptions(mode: mode)
    options.wait = wait
    if let progress { options.progress = { progress.update($0, of: $1) } }
    return options
  }

  private func open(
    _ mode: Node.Mode, segmentSize: Int? = nil, delaysOrigin: Bool = false, isQuiet: Bool = false,
    leavesFiles: Bool = false, recordsCorruption: Bool = true
  ) throws -> Node {
    let bar = ProgressBar("rebuilding tables")
    var options = opening(mode, progress: bar)
    options.segmentSize = segmentSize
    options.delaysOrigin = delaysOrigin
    options.leavesFiles = leavesFiles
    options.recordsCorruption = recordsCorruption && !leavesFiles
    let node = try Node.open(at: try locate(), options)
    bar.finish()
    if isQuiet { return node }
    for notice in node.notices { Output.warning(notice) }
    if node.metadata.unfinishedClone != nil { Output.warning(Explanations.unfinishedClone) }
    return node
  }
}

/// The format of results.
struct FormatOptions: ParsableArguments {
  @Flag(help: "Write one JSON value.") var json = false
  @Flag(help: "Write one JSON object a line.") var ndjson = false

  func validate() throws {
    if json && ndjson { throw ValidationError("--json and --ndjson exclude each other.") }
  }

  var isJSON: Bool { json || ndjson }
}

/// Options for reading the past.
struct PastOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Read what was there then: a time (2026-11-21T05:14:01Z, 2h, yesterday, or 2026-11-21: its first moment), a "
        + "position (@5718), or an event: what this node knew when it came to hold it.", valueName: "when"))
  var asOf: String?

  /// `partition`: the partition of the result, if it is only one.
  func pointInTime(_ node: Node, in partition: Partition? = nil) throws -> PointInTime? {
    try asOf.map { try node.pointInTime($0, in: partition?.description) }
  }

  /// Passes the node in its current or past state.
  func read(_ node: Node, _ model: Model? = nil, _ body: (Node) throws -> Void) throws {
    try node.withTables(
      asOf: try pointInTime(node, in: model.flatMap(Partition.init(of:))) ?? .now, of: model, body)
  }
}

/// The author of a change.
struct AuthorOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The author of the change (default: STEMMA_AUTHOR, or your login name where that is not set; empty: none).",
      valueName: "name"))
  var author: String?

  var name: String? {
    let name = author ?? ProcessInfo.processInfo.environment["STEMMA_AUTHOR"] ?? NSUserName()
    return name.isEmpty ? nil : name
  }
}

struct CommitOptions: ParsableArguments {
  @OptionGroup var author: AuthorOptions

  @Option(
    name: [.customShort("m"), .customLong("message")],
    help: ArgumentHelp("Why the change is made.", valueName: "message"))
  var text: String?

  var message: CommitMessage {
    CommitMessage(author: author.name, text: text)
  }
}

extension Node {
  /// The scope of `--partition` in lists of events or digests. A warning names each pattern that
  /// matches no partition. Exclusions without a match get no warning.
  func scope(ofPartitions patterns: [String]) throws(NodeError) -> Scope {
    let scope = try scope(patterns)
    for pattern in try idlePatterns(patterns.filter { !$0.hasPrefix("!") }) {
      Output.warning("no partition with events here fits `\(pattern)`; `stemma digest` lists them")
    }
    return scope
  }
}
