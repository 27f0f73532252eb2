import ArgumentParser
import StemmaEvents
import StemmaHub
import StemmaNode
import StemmaTables

struct Clone: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "clone",
    abstract: "Make a node from another, whole or some of its partitions.",
    discussion: """
      The other node is remembered as the remote `source`. Repeated, an interrupted clone goes on, also from a copy of it or \
      from where it stands now; if it is gone, `stemma -C DIR pull PEER` fetches the rest from a node that has it all. Ends \
      with exit status 74 if the other node has lost events.
      Examples:
        stemma clone ../office laptop
        stemma clone ../hq field --partition tenantId=acme --partition 'region=eu*'
        stemma clone hq.example.org:shop field
        stemma clone https://hq.example.org:7433 field --token-file field.token
        stemma clone s3://shop/hub field --region eu-1 --partition tenantId=acme
      """)
  @Argument(help: "Another node: its directory, HOST:PATH, or the URL of a server.", completion: .directory)
  var source: String
  @Argument(help: "The new node's directory.", completion: .directory) var directory: String
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Hold only these partitions; may be repeated.", valueName: "pattern"))
  var partition: [String] = []
  @Option(help: "The name that other nodes see (default: the host's name).") var name: String?
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var hub: HubOptions
  @OptionGroup var format: FormatOptions

  func run() throws {
    let bar = ProgressBar("cloning")
    let source = try hub.address(source)
    let report = try clone(bar, from: source)
    bar.finish()
    try connection.token.keep(for: source, in: directory, Ports())
    for notice in report.notices { Output.warning(notice) }
    if format.isJSON {
      Output.line(report.json)
    } else {
      Output.line(printable("cloned \(report.text) into \(directory)"))
    }
    Output.flush()
    if let missing = report.missing { throw missing }
  }

  private func clone(_ bar: ProgressBar, from source: String) throws -> TransferReport {
    do {
      let options = Node.OpeningOptions(mode: .write)
      var isKept = false
      let progress: (UInt64, UInt64) -> Void = {
        // The directory exists. An interrupted clone goes on with the same token.
        if !isKept {
          isKept = true
          do { try connection.token.keep(for: source, in: directory, Ports()) } catch {
            Output.warning("the token was not kept: \(error)")
          }
        }
        bar.update($0, of: $1)
      }
      return try Node.clone(
        from: source, to: directory, partitions: partition, name: name, options: options,
        connect: connection.connections(options, progress: progress).connect, progress: progress)
    } catch {
      switch error {
      case .noNode:
        throw Failure("there is no node in \(source); name the directory of the one to clone", .noInput)
      case .alreadyANode where FilePlace(source) == FilePlace(directory):
        throw Failure("\(directory) is the node that is to be cloned; name another directory", .cannotCreate)
      default: throw error
      }
    }
  }
}

/// The arguments that pull, push and sync share.
struct PeerOptions: ParsableArguments {
  @Argument(
    help: "A remote's name, another node's directory, HOST:PATH, or a URL; none: all remotes.",
    completion: .remoteNames)
  var peer: String?
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only these partitions in this run; may be repeated.", valueName: "pattern"))
  var partition: [String] = []
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var node: NodeOptions
}

struct Pull: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pull",
    abstract: "Fetch what a peer has and this node lacks.",
    discussion: """
      Partitions that one of the two has lost events of are left out, and the exit status is 74 then. \
      Of several remotes those that fail are told, the others go on, and the exit status is that of the first failure.
      Examples:
        stemma pull
        stemma pull ../office --partition tenantId=acme
      """)
  @OptionGroup var options: PeerOptions

  func run() throws { try exchange(options, pulls: true, pushes: false) }
}

struct Push: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "push",
    abstract: "Give a peer what this node has and it lacks.",
    discussion: """
      Partitions that one of the two has lost events of are left out, and the exit status is 74 then. \
      Of several remotes those that fail are told, the others go on, and the exit status is that of the first failure.
      Examples:
        stemma push
        stemma push ../office
      """)
  @OptionGroup var options: PeerOptions

  func run() throws { try exchange(options, pulls: false, pushes: true) }
}

struct Sync: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Pull, then push.",
    discussion: """
      Partitions that one of the two has lost events of are left out, and the exit status is 74 then. \
      Of several remotes those that fail are told, the others go on, and the exit status is that of the first failure.
      Examples:
        stemma sync
        stemma sync ../office --json
        stemma sync --follow
      """)
  @Flag(
    help: ArgumentHelp(
      "Go on until SIGTERM or SIGINT: exchange when either side has new events, and at an interval. A failure is reported "
        + "once, and tried again after up to a minute."))
  var follow = false
  @Option(
    help: ArgumentHelp(
      "With --follow: how often to ask peers that give no hints, such as hubs: 5s, 10m (default: 30s).",
      valueName: "time"))
  var interval: TimeSpan?
  @OptionGroup var options: PeerOptions

  func validate() throws {
    guard let interval else { return }
    if !follow { throw ValidationError("--interval needs --follow") }
    if interval.milliseconds < 1000 { throw ValidationError("--interval takes a second or more") }
  }

  func run() throws {
    if follow {
      try Following(options, interval: interval).run()
    } else {
      try exchange(options, pulls: true, pushes: true)
    }
  }
}

extension TransferReport {
  var text: String {
    events == 0
      ? "nothing new"
      : "\(counted(Int(events), "event")) in \(counted(partitions.count, "partition")), \(size(bytesShipped))"
  }
}

private func exchange(_ options: PeerOptions, pulls: Bool, pushes: Bool) throws {
  let node = try options.node.openForWriting(isQuiet: true)
  for notice in node.notices { Output.warning(notice) }
  let peers = try node.peers(options.peer)
  let isOne = peers.count == 1
  let isArray = !isOne || (pulls && pushes)
  var results: [JSON] = []
  /// The error of a single peer, thrown at the end.
  var error: NodeError?
  var failure: ExitCode?
  for peer in peers {
    let bar = ProgressBar(peer.name)
    let told = node.notices.count
    let outcome = Result { () throws(NodeError) in
      let progress: (UInt64, UInt64) -> Void = { bar.update($0, of: $1) }
      let connections = options.connection.connections(node.options, progress: progress)
      return try node.exchange(
        with: peer, pulls: pulls, pushes: pushes, partitions: options.partition, connect: connections.connect,
        progress: progress)
    }
    bar.finish()
    func note(_ met: NodeError) {
      if isOne {
        error = met
      } else {
        let code = tell(met, of: peer.name)
        failure = failure ?? code
      }
    }
    var members: [(name: String, value: JSON)] = []
    if isArray { members.append(("peer", .string(peer.name))) }
    let report: ExchangeReport
    switch outcome {
    case .success(let made): report = made
    case .failure(let met):
      for notice in node.notices.dropFirst(told) { Output.warning(notice) }
      note(met)
      if isArray { results.append(.object(members + [("error", .string(Explanation(met).message))])) }
      continue
    }
    if pulls && pushes {
      members.append(("pulled", report.pulled?.json ?? .null))
      members.append(("pushed", report.pushed?.json ?? .null))
    } else if case .object(let inner)? = (report.pulled ?? report.pushed)?.json {
      members += inner
    }
    results.append(.object(members))
    if !options.format.isJSON {
      if let pulled = report.pulled { Output.line("pulled \(pulled.text) from \(peer.name)") }
      if let pushed = report.pushed { Output.line("pushed \(pushed.text) to \(peer.name)") }
    }
    for notice in report.notices { Output.warning(notice) }
    if let lost = report.missing { note(lost) }
  }
  if options.format.json {
    if isArray { Output.line(.array(results)) } else { results.forEach { Output.line($0) } }
  } else if options.format.ndjson {
    for result in results { Output.line(result) }
  }
  Output.flush()
  if let error { throw error }
  if let failure { throw failure }
}

/// Prints the error of one of several peers and returns its exit code.
private func tell(_ error: NodeError, of peer: String) -> ExitCode {
  let explanation = Explanation(error)
  var advice = ""
  if case .notAPeer = error { advice = "; fix that, or forget it with `stemma remote remove`" }
  Output.error("stemma: " + printable(peer) + ": " + explanation.message + advice)
  return explanation.exitCode
}

struct Remote: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remote",
    abstract: "Name the peers of this node.",
    discussion: """
      Examples:
        stemma remote add office ../office
        stemma remote list --json
      """,
    subcommands: [RemoteAdd.self, RemoteList.self, RemoteSetURL.self, RemoteRemove.self],
    defaultSubcommand: RemoteList.self)
}

struct RemoteAdd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Give a peer a name.",
    discussion: """
      Examples:
        stemma remote add office ../office
        stemma remote add backup /mnt/backup/shop
        stemma remote add hq hq.example.org:shop
        stemma remote add web https://hq.example.org:7433 --token-file web.token
        stemma remote add hub s3://shop/hub --region eu-1
      """)
  @Argument(help: "The name.") var name: String
  @Argument(help: "The other node: its directory, HOST:PATH, or a URL.", completion: .directory) var address:
    String
  @OptionGroup var token: TokenOptions
  @OptionGroup var hub: HubOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if name.allSatisfy(\.isWhitespace) { throw ValidationError("a remote needs a name") }
  }

  func run() throws {
    let address = try hub.address(address)
    let node = try options.openForWriting()
    try refuseItself(address, node)
    try node.addRemote(name, address)
    try token.keep(for: address, in: node.directory, node.ports)
  }
}

private func refuseItself(_ address: String, _ node: Node) throws {
  guard let place = FilePlace(address), place == FilePlace(node.directory) else { return }
  throw Failure("\(address) is this node itself; name another node's directory", .usage)
}

struct RemoteSetURL: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set-url", abstract: "Change the address of a peer.",
    discussion: """
      Examples:
        stemma remote set-url office ../moved/office
        stemma -C shop remote set-url backup /mnt/backup/shop
      """)
  @Argument(help: "The name.", completion: .remoteNames) var name: String
  @Argument(help: "The other node: its directory, HOST:PATH, or a URL.", completion: .directory) var address:
    String
  @OptionGroup var token: TokenOptions
  @OptionGroup var hub: HubOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let address = try hub.address(address)
    let node = try options.openForWriting()
    try refuseItself(address, node)
    try node.setRemote(name, address)
    try token.keep(for: address, in: node.directory, node.ports)
  }
}

struct RemoteList: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the peers.",
    discussion: """
      Examples:
        stemma remote list
        stemma remote list --json
      """)
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let rows = node.metadata.remotes.map {
      JSON.object([("name", .string($0.name)), ("address", .string($0.address))])
    }
    if format.json {
      Output.line(.array(rows))
    } else if format.ndjson {
      for row in rows { Output.line(row) }
    } else {
      var table = TextTable()
      for remote in node.metadata.remotes { table.append([remote.name, remote.address]) }
      table.write()
    }
    Output.flush()
  }
}

struct RemoteRemove: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Forget a peer; its data stays.",
    discussion: """
      Examples:
        stemma remote remove office
        stemma -C shop remote remove backup
      """)
  @Argument(help: "The name.", completion: .remoteNames) var name: String
  @OptionGroup var options: NodeOptions

  func run() throws { try options.openForWriting().removeRemote(name) }
}

struct ScopeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "scope",
    abstract: "Which partitions this node holds.",
    discussion: """
      Examples:
        stemma scope add 'tenantId=ac*'
        stemma scope list --json
      """,
    subcommands: [ScopeList.self, ScopeAdd.self, ScopeRemove.self], defaultSubcommand: ScopeList.self)
}

struct ScopeList: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the patterns of this node's scope, and what it holds of each.",
    discussion: """
      Examples:
        stemma scope list
        stemma scope list --partitions --json
      """)
  @Flag(help: "The partitions that this node holds instead of the patterns.") var partitions = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let contents = try node.partitions()
    var array: [JSON] = []
    var table: TextTable
    if partitions {
      table = TextTable(["partition", "events", "records"], numeric: [1, 2])
      for content in contents {
        table.append([
          printable(content.partition.description), grouped(content.events), grouped(content.rows),
        ])
        array.append(content.json)
      }
    } else {
      table = TextTable(["pattern", "partitions", "events", "records"], numeric: [1, 2, 3])
      for pattern in node.metadata.scope.patterns {
        // An exclusion counts the excluded partitions, which the node holds while a purge is
        // unfinished.
        let scope = try node.scope([pattern.hasPrefix("!") ? String(pattern.dropFirst()) : pattern])
        let fitting = contents.filter { scope.contains($0.partition) }
        let counts = [UInt64(fitting.count), fitting.events, fitting.records]
        table.append([printable(pattern)] + counts.map { grouped($0) })
        let members = zip(["partitions", "events", "records"], counts).map { name, count in
          (name: name, value: JSON.int(Int64(clamping: count)))
        }
        array.append(.object([("pattern", .string(pattern))] + members))
      }
    }
    if format.json {
      Output.line(.array(array))
    } else if format.ndjson {
      array.forEach { Output.line($0) }
    } else {
      table.write()
    }
    Output.flush()
  }
}

extension [PartitionContents] {
  fileprivate var events: UInt64 { reduce(0) { $0 + $1.events } }
  fileprivate var records: UInt64 { reduce(0) { $0 + $1.rows } }

  /// `3 partitions, 120 events and 40 records`.
  fileprivate var text: String {
    "\(counted(count, "partition")), \(counted(events, "event")) and \(counted(records, "record"))"
  }
}

/// The common part of `scope add` and `scope remove`.
/// Pushes to the hubs among the remotes. Their folders and buckets can be replaced or set back, so
/// an earlier acknowledgment is no reason to purge.
private func confirmHubs(of node: Node) throws {
  for remote in node.metadata.remotes {
    guard case .hub = PeerAddress(remote.address) else { continue }
    let report = try node.exchange(
      with: remote, pulls: false, pushes: true, partitions: [], connect: HubLink.connect
    ) { _, _ in }
    for notice in report.notices { Output.warning(notice) }
  }
}

private func changeScope(
  _ options: NodeOptions, adding: [String], removing: [String], discards: Bool, rehearses: Bool
) throws {
  let node = try rehearses ? options.openForRehearsal() : options.openForWriting()
  let purged = try node.contentsPurged(adding: adding, removing: removing)
  let idle = try node.idlePatternsAnywhere(adding)
  if rehearses {
    Output.line(purged.isEmpty ? "would purge nothing" : "would purge \(purged.text):")
    for content in purged {
      Output.line(
        printable(
          "  \(content.partition.description): \(counted(content.events, "event")), \(counted(content.rows, "record"))"
        ))
    }
  } else {
    if !discards, !purged.isEmpty { try confirmHubs(of: node) }
    let names = try node.changeScope(adding: adding, removing: removing, discards: discards)
    let counts = purged.filter { names.contains($0.partition.description) }.text
    Output.line(
      printable(
        "scope \(node.metadata.scope.patterns.joined(separator: " "))"
          + (names.isEmpty ? "" : "; purged \(counts): \(names.joined(separator: " "))")))
  }
  for pattern in idle {
    Output.warning("no partition here, or of a remote that can be read, fits `\(pattern)`")
  }
  Output.flush()
}

struct ScopeAdd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Hold more partitions; the next pull fetches them.",
    discussion: """
      A pattern with ! before it leaves partitions out: these are purged, and that is refused while one has events of \
      this node that no peer has acknowledged. -n asks no peer.
      Examples:
        stemma scope add partition=Documentation
        stemma scope add 'tenantId=ac*' '!tenantId=acid'
        stemma scope add '!tenantId=acid' -n
      """)
  @Argument(help: "Patterns.") var patterns: [String]
  @Flag(help: "Purge also what no peer has, where a pattern leaves partitions out.") var discard = false
  @Flag(name: .short, help: "Only show what would be purged.") var n = false
  @OptionGroup var options: NodeOptions

  func run() throws {
    try changeScope(options, adding: patterns, removing: [], discards: discard, rehearses: n)
  }
}

struct ScopeRemove: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Hold fewer partitions; what no other pattern covers is purged.",
    discussion: """
      Refused while a partition has events of this node that no peer has acknowledged. -n asks no peer.
      Examples:
        stemma scope remove partition=Documentation -n
        stemma scope remove 'tenantId=ac*' --discard
      """)
  @Argument(help: "Patterns, as `scope list` shows them.") var patterns: [String]
  @Flag(help: "Purge also what no peer has.") var discard = false
  @Flag(name: .short, help: "Only show what would be purged.") var n = false
  @OptionGroup var options: NodeOptions

  func run() throws {
    try changeScope(options, adding: [], removing: patterns, discards: discard, rehearses: n)
  }
}

struct Digest: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "digest",
    abstract: "One line for each partition: digests of its log and of its rows.",
    discussion: """
      Equal lines on two nodes: equal partitions.
      Examples:
        stemma digest --partition 'partition=Tests'
        diff <(stemma -C a digest) <(stemma -C b digest)
      """)
  @Option(
    parsing: .singleValue, help: ArgumentHelp("Only these partitions; may be repeated.", valueName: "pattern")
  )
  var partition: [String] = []
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    var array: [JSON] = []
    var partitions: Set<String> = []
    for digest in try node.digests(within: partition.isEmpty ? [] : [try node.scope(ofPartitions: partition)])
    {
      let row = JSON.object([
        ("partition", .string(digest.partition)), ("events", .int(Int64(digest.events))),
        ("log", .string(digest.log)), ("tables", .string(digest.tables ?? "")),
      ])
      partitions.insert(digest.partition)
      if format.json {
        array.append(row)
      } else if format.ndjson {
        Output.line(row)
      } else {
        Output.line("\(digest.log) \(digest.tables ?? "") \(printable(digest.partition))")
      }
    }
    if format.json { Output.line(.array(array)) }
    Output.flush()
    try node.checkTablesAreWhole()
    try node.checkLogIsWhole(in: partitions)
  }
}
