import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

extension Node {
  /// Options for opening a node.
  package struct OpeningOptions {
    package var mode = Mode.read
    /// The longest wait for the writer lock, in seconds: a day.
    package static let longestWait: Double = 86_400
    /// The wait for the writer lock in seconds, limited to 0 … `longestWait`; NaN becomes 0.
    package var wait: Double = 5 {
      didSet { wait = wait > 0 ? min(wait, Self.longestWait) : 0 }
    }
    /// Raw bytes of events at which the journal is sealed; nil: the log's default.
    package var segmentSize: Int?
    package var ports = Ports()
    /// Whether a copied node begins its origin with its first event instead of on opening for
    /// writing. For writers that send no greeting to a peer.
    package var delaysOrigin = false
    /// Whether a reader changes no file of the node. It uses tables that are behind as they are,
    /// and builds temporary ones if none are usable.
    package var leavesFiles = false
    /// Whether a reader records the corruption that it meets, if it can write. Not for peers.
    package var recordsCorruption = true
    /// Whether journals stay in memory after opening, for a node that is about to send its events.
    package var keepsJournals = false
    /// Called during a rebuild of the tables with the number of finished events and the total.
    package var progress: (UInt64, UInt64) -> Void = { _, _ in }

    package init(mode: Mode = .read) { self.mode = mode }

    /// The options for opening a peer. A peer opened for reading may belong to another user, so its
    /// own readers record its corruption.
    func ofPeer(writes: Bool) -> OpeningOptions {
      var options = self
      options.mode = writes ? .write : .read
      options.recordsCorruption = writes
      options.keepsJournals = true
      return options
    }

    package var waitMilliseconds: UInt32 { UInt32(wait * 1000) }

    func log(_ mode: Log.Mode) -> Log.Options {
      var options = Log.Options(mode: mode)
      if let segmentSize { options.segmentSize = segmentSize }
      options.keepsJournals = keepsJournals
      return options
    }
  }

  /// The node at `path`: the directory itself, or the nearest parent with node metadata.
  package static func nearest(from path: String) throws(NodeError) -> String {
    var candidate = PeerAddress.absolute(path)
    // Without permission to enter, it is unknown whether there is a node.
    if access(self.path(candidate, NodeMetadata.fileName), F_OK) != 0, errno == EACCES {
      throw .log(.system(path: path, operation: "stat", errno: EACCES))
    }
    while true {
      let shown = candidate == PeerAddress.absolute(path) ? path : candidate
      if isNode(at: candidate) { return shown }
      // Otherwise a command could act on a node further up.
      if let lost = try lostMetadata(in: shown, Ports()) { throw lost }
      guard let slash = candidate.lastIndex(of: "/"), candidate != "/" else { throw .noNode(path: path) }
      candidate = slash == candidate.startIndex ? "/" : String(candidate[..<slash])
    }
  }

  /// Whether a directory is a node.
  package static func isNode(at path: String) -> Bool {
    FileManager.default.fileExists(atPath: Self.path(path, NodeMetadata.fileName))
  }

  /// Returns `.lostMetadata` if a directory has everything of a node except the metadata.
  static func lostMetadata(in directory: String, _ ports: Ports) throws(NodeError) -> NodeError? {
    do throws(LogError) {
      guard try ports.isReadable(schemaFileName, in: directory) else { return nil }
      // Other software also has directories of that name.
      guard try Log.id(in: path(directory, logDirectoryName), fileSystem: ports.fileSystem) != nil else {
        return nil
      }
      return .lostMetadata(
        path: directory, hasCopy: try ports.isReadable(NodeMetadata.copyName, in: directory))
    } catch {
      if error.isNotFound { return nil }
      throw .log(error)
    }
  }

  // MARK: Create

  /// Creates a node. The directory may have other contents. The metadata is written last, so that a
  /// failed creation leaves no node and can be repeated.
  ///
  /// - Parameter clone: the remote to clone, its log and its greeting.
  package static func create(
    at directory: String, schema text: String, name: String? = nil, scope: Scope = .everything,
    clone: (source: RemotePeer, log: LogID, greeting: Greeting)? = nil,
    options: OpeningOptions = OpeningOptions(mode: .write)
  ) throws(NodeError) -> Node {
    let schema: Schema
    let canonical: String
    let warnings: [Diagnostic]
    do { (schema, canonical, warnings) = try SDL.readForStoring(text) } catch { throw .schema(error) }
    let ports = options.ports
    do {
      let node = try wrapping { () throws -> Node in
        func refuseNode() throws {
          guard try ports.exists(NodeMetadata.fileName, in: directory) else { return }
          throw NodeError.alreadyANode(path: directory)
        }
        try refuseNode()
        try Tables.checkLength(ofPath: path(directory, tablesFileName))
        for made in [directory, path(directory, logDirectoryName)] {
          do {
            try ports.fileSystem.createDirectory(made)
            // Otherwise a power loss could take the directory and all confirmed data in it.
            try ports.fileSystem.syncDirectory(Log.parent(of: made))
          } catch LogError.system(_, _, EEXIST) {} catch LogError.system(_, _, ENOENT) {
            throw NodeError.noParent(path: made)
          }
        }
        // Waits for another process that is creating the node.
        let lock = try WriterLock(
          path(directory, lockFileName), fileSystem: ports.fileSystem, wait: options.waitMilliseconds)
        defer { lock.release() }
        try refuseNode()
        let log = try Log.create(
          in: path(directory, logDirectoryName), id: LogID(ports.newID()), fileSystem: ports.fileSystem,
          options: options.log(.readWrite))
        guard let identity = log.recovery.watermarkIdentity else {
          throw NodeError.corrupt(what: "no watermark")
        }
        try ports.replace(path(directory, schemaFileName), with: Array(canonical.utf8), in: directory)
        var metadata = NodeMetadata(
          logID: log.id, name: name ?? defaultName, origins: [Origin(ports.newID())], watermark: identity,
          scope: scope)
        if let clone {
          metadata.remotes = [clone.source]
          metadata.unfinishedClone = clone.log
          metadata.learn(clone.greeting)
        }
        let tables = try openTables(directory, schema, log, metadata, options).tables
        try save(metadata, in: directory, ports)
        return Node(
          directory: directory, metadata: metadata, schema: schema, options: options, log: log, tables: tables
        )
      }
      node.schemaWarnings = warnings
      return node
    } catch .log(.logExists(let path)) {
      throw isNode(at: directory) ? .alreadyANode(path: directory) : .logWithoutMetadata(path: path)
    }
  }

  /// The host name up to its first dot.
  static var defaultName: String {
    let short = ProcessInfo.processInfo.hostName.prefix { $0 != "." }
    return short.isEmpty ? "node" : String(short)
  }

  // MARK: Open

  /// Opens a node.
  ///
  /// Reading takes no lock if the tables are current. If they are behind and the directory is
  /// writable, it refreshes them like a writer. If another process is writing, it waits at most
  /// half a second, then uses the tables as they are and adds a notice.
  package static func open(at directory: String, _ options: OpeningOptions) throws(NodeError) -> Node {
    guard options.mode == .read else { return try openForWriting(directory, options) }
    let first: Acceptance =
      try options.leavesFiles ? .asTheyAre : isHoldingBack(directory, options.ports) ? .heldBack : .current
    if let node = try openForReading(directory, options, accepts: first) { return node }
    var patient = options
    patient.wait = min(options.wait, 0.5)
    do throws(NodeError) { return try openForWriting(directory, patient) } catch {
      let accepted: Acceptance? =
        error.isInUse || error.logCorruption != nil
        ? .behind : error.isRefusalToWrite ? .any(isDiskFull: error.isDiskFull) : nil
      guard let accepted, let node = try openForReading(directory, options, accepts: accepted) else {
        throw error
      }
      return node
    }
  }

  /// The tables that a reader accepts.
  private enum Acceptance {
    case current
    /// Also tables that a writer is about to refresh.
    case behind
    /// Also tables that are refreshed when an import ends.
    case heldBack
    /// If none are usable, temporary ones: the directory is not writable.
    case any(isDiskFull: Bool)
    /// The same, or any usable tables.
    case asTheyAre
  }

  static func readMetadata(_ directory: String, _ ports: Ports) throws(NodeError) -> NodeMetadata {
    try metadata(try bytes(of: NodeMetadata.fileName, in: directory, ports), directory, ports)
  }

  /// Parses the metadata, or its copy if these bytes are corrupt. The copy gets no watermark, which
  /// begins a new origin, because it may be older than the last metadata.
  static func metadata(_ bytes: [UInt8], _ directory: String, _ ports: Ports) throws(NodeError)
    -> NodeMetadata
  {
    do throws(NodeError) {
      return try NodeMetadata(bytes, path: path(directory, NodeMetadata.fileName))
    } catch {
      let (name, original) = (NodeMetadata.copyName, error)
      guard case .badMetadata = original else { throw original }
      do throws(NodeError) {
        var copy = try NodeMetadata(
          try Self.bytes(of: name, in: directory, ports), path: path(directory, name))
        copy.watermark = .none
        return copy
      } catch {
        if case .newerFormat = error { throw error }
        throw original
      }
    }
  }

  static func readSchema(_ directory: String, _ ports: Ports) throws(NodeError) -> Schema {
    let path = path(directory, schemaFileName)
    guard let text = String(validating: try bytes(of: schemaFileName, in: directory, ports), as: UTF8.self)
    else {
      throw .badSchema(path: path, what: "it is not UTF-8")
    }
    // A printed schema is never empty.
    guard !text.isEmpty else { throw .noSchema(path: path) }
    do { return try SDL.read(text).schema } catch {
      throw .badSchema(path: path, what: error.diagnostics.first?.description ?? "it is no schema")
    }
  }

  /// Returns nil if the tables should be refreshed first and are not accepted as they are.
  private static func openForReading(
    _ directory: String, _ options: OpeningOptions, accepts accepted: Acceptance
  ) throws(NodeError) -> Node? {
    let metadata = try readMetadata(directory, options.ports)
    let schema = try readSchema(directory, options.ports)
    var refusal: String?
    var takesBehind = false
    var takesAll = false
    switch accepted {
    case .current: break
    case .behind, .heldBack: takesBehind = true
    case .any(let isDiskFull): refusal = isDiskFull ? "the disk is full" : "the directory cannot be written"
    case .asTheyAre:
      refusal = "nothing is changed"
      takesAll = true
    }
    return try wrapping {
      let log = try Log.open(
        in: path(directory, logDirectoryName), id: metadata.logID, fileSystem: options.ports.fileSystem,
        options: options.log(.readOnly))
      let end = log.token
      let isCorrupt = metadata.corruption != nil || !log.recovery.corruption.isEmpty
      var tables: Tables?
      var token = end
      do throws(TablesError) {
        let opened = try Tables.open(
          at: path(directory, tablesFileName), schema: schema, mode: .readOnly, leavesFiles: takesAll)
        token = try opened.read { reader throws(TablesError) in try reader.token() }
        tables = opened
      } catch {
        // SQLite may fail to open tables in a read-only directory or on a full disk.
        if refusal == nil, !error.isDiskFull, !error.isRefusalToOpen {
          guard case .needsRebuild = error else { throw error }
        }
      }
      var notices: [Notice] = []
      let isCurrent = token == end
      let canFollow = try isCorrupt && !isCurrent && !metadata.isUnfinished && log.stillMatches(token)
      let isUsable = takesAll || !metadata.isUnfinished && (isCurrent || takesBehind)
      if !isUsable, !isCorrupt || canFollow && refusal == nil { tables = nil }
      if canFollow {
        notices.append("the tables are behind the log: the records are shown as they were some time ago")
      } else if !isCurrent, takesBehind {
        let (what, since) =
          if case .heldBack = accepted { ("importing", "some time ago") } else { ("writing", "a moment ago") }
        notices.append("another process is \(what): the records are shown as they were \(since)")
      }
      if let tables {
        let node = Node(
          directory: directory, metadata: metadata, schema: schema, options: options, log: log, tables: tables
        )
        node.notices += notices + metadata.sentences
        if metadata.isFromCopy {
          node.notices.append(
            "\(NodeMetadata.fileName) is corrupt, its copy is read; the next write recreates it")
        }
        if isCorrupt, metadata.corruption == nil {
          var isKnown = false
          if !metadata.isUnfinished, !log.isHarmless(log.recovery.corruption) {
            do throws(NodeError) {
              try node.noteCorruptionOfOpening()
              isKnown = true
            } catch {
              // A reader that meets the corruption of the tables handles it.
              guard case .tables(.needsRebuild) = error else { throw error }
            }
          }
          if !isKnown { node.notices.append("the log is corrupt; \(step: .verify) says where") }
        }
        return node
      }
      return try refusal.map { try openBeside(directory, metadata, schema, log, options, because: $0) }
    }
  }

  /// Opens a node with an unwritable directory and unusable tables. The temporary tables are
  /// removed when the node is released.
  private static func openBeside(
    _ directory: String, _ metadata: NodeMetadata, _ schema: Schema, _ log: Log, _ options: OpeningOptions,
    because refusal: String
  ) throws -> Node {
    let folder = try TemporaryFolder()
    let (tables, isAroundCorruption) = try makeTables(
      in: folder, schema, log, metadata, options, mode: .readOnly)
    let node = Node(
      directory: directory, metadata: metadata, schema: schema, options: options, log: log, tables: tables)
    node.tablesState.temporary = folder
    node.tablesState.rememberAll = !isAroundCorruption
    node.notices.append("\(refusal): tables were made from the log in a temporary place")
    node.notices += metadata.unfinishedSentences
    return node
  }

  /// Builds tables from the log, around corruption, in a temporary directory.
  static func makeTables(
    in folder: TemporaryFolder, _ schema: Schema, _ log: Log, _ metadata: NodeMetadata,
    _ options: OpeningOptions,
    mode: Tables.Mode
  ) throws(NodeError) -> (tables: Tables, isAroundCorruption: Bool) {
    let path = folder.path + "/" + tablesFileName
    var isAroundCorruption = false
    do throws(NodeError) {
      _ = try rebuild(
        path, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
    } catch {
      guard let corruption = error.logCorruption else { throw error }
      isAroundCorruption = !corruption.flaw.isDuplicate
      _ = try rebuildAroundCorruption(
        path, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
    }
    do { return (try Tables.open(at: path, schema: schema, mode: mode), isAroundCorruption) } catch {
      throw .tables(error)
    }
  }

  /// Refreshes tables and watermark as opening the node for reading does.
  func bringUpToDate() throws(NodeError) {
    var options = options
    options.mode = .read
    options.wait = min(options.wait, 0.5)
    _ = try Self.openForWriting(directory, options)
  }

  private static func openForWriting(_ directory: String, _ options: OpeningOptions) throws(NodeError) -> Node
  {
    // Refuses an absent or newer node before it touches the lock file.
    _ = try readMetadata(directory, options.ports)
    let lock: WriterLock
    do {
      lock = try WriterLock(
        path(directory, lockFileName), fileSystem: options.ports.fileSystem, wait: options.waitMilliseconds)
    } catch { throw .log(error) }
    defer { lock.release() }
    do throws(NodeError) { return try openLocked(directory, options) } catch .tables(
      .needsRebuild(let path, let reason))
    {
      guard try readMetadata(directory, options.ports).isUnfinished else {
        throw .tables(.needsRebuild(path: path, reason))
      }
      // The pending operation must be finished first, and needs usable tables: these count as lost.
      return try wrapping {
        try Tables.remove(at: path)
        let node = try openLocked(directory, options)
        node.notices.append("the tables were corrupt (\(Explanations.text(of: reason)))")
        return node
      }
    }
  }

  /// The caller holds the writer lock.
  private static func openLocked(_ directory: String, _ options: OpeningOptions) throws(NodeError) -> Node {
    let metadata = try readMetadata(directory, options.ports)
    let schema = try readSchema(directory, options.ports)
    return try wrapping {
      let log = try Log.open(
        in: path(directory, logDirectoryName), id: metadata.logID, fileSystem: options.ports.fileSystem,
        options: options.log(.readWrite))
      let (tables, how) = try openTables(directory, schema, log, metadata, options)
      let node = Node(
        directory: directory, metadata: metadata, schema: schema, options: options, log: log, tables: tables)
      switch how {
      case .asTheyWere: break
      case .rebuilt(let reason): node.noteRebuild(because: reason)
      case .rebuiltAround(let corruption) where corruption.flaw.isDuplicate:
        node.notices.append("the tables were rebuilt from a log that has names of events twice")
      case .rebuiltAround(let corruption):
        node.tablesState.rememberAll = false
        try node.recordCorruption([corruption])
        node.notices.append("the tables were rebuilt from what can be read of a corrupt log")
      }
      try node.checkIdentity()
      try node.finishFork(options.progress)
      try node.forgetRepairedCorruption()
      try node.catchUp()
      try node.finishScopeChange()
      // After the lock is released, another process may replace tables that are opened for reading.
      if options.mode == .read {
        node.tables = try Tables.open(at: tables.path, schema: schema, mode: .readOnly)
      }
      return node
    }
  }

  /// Begins a new origin if this directory may not be the only continuation of the node's history.
  private func checkIdentity() throws(NodeError) {
    for cut in log.recovery.cuts {
      notices.append("a torn tail of \(cut.bytes) bytes was cut from \(cut.path) and kept at \(cut.keptAt)")
    }
    if let corruption = metadata.corruption, tablesState.rememberAll { notices += corruption.sentences }
    var reasons: [String] = []
    if log.recovery.cutCount > metadata.cutCount { reasons.append("a torn tail was cut") }
    // The lost events may include the last of this node, whose ids must not be used again.
    if !tablesState.rememberAll { reasons.append("events of this node may be lost") }
    if log.recovery.watermarkIdentity != metadata.watermark {
      let copied =
        metadata.isFromCopy
        ? "\(NodeMetadata.fileName) was corrupt, its copy is used"
        : "this directory is a copy, or was restored"
      if reasons.isEmpty {
        if options.mode == .read { return }
        if options.delaysOrigin {
          writer.dueOrigin = Origin(options.ports.newID())
          return notices.append("\(copied): what this node writes from now on is of a new origin")
        }
      }
      reasons.insert(copied, at: 0)
    }
    if !reasons.isEmpty { try beginOrigin(because: reasons.joined(separator: "; ")) }
  }
}

extension Log {
  /// As `matches`; false if corruption prevents the comparison.
  fileprivate func stillMatches(_ token: LogToken) throws(LogError) -> Bool {
    do throws(LogError) { return try matches(token) } catch {
      guard error.corruption != nil else { throw error }
      return false
    }
  }
}

extension Node {
  /// The names that commands accept in the node around `path`.
  package struct Names: Sendable {
    package var models: [String] = []
    package var remotes: [String] = []
    /// Names of all known origins.
    package var origins: [String] = []
    /// By model.
    package var fields: [String: [String]] = [:]

    package init() {}
  }

  /// Reads only the node's small files, for shell completion.
  package static func names(near path: String, _ ports: Ports = Ports()) throws(NodeError) -> Names {
    let directory = try nearest(from: path)
    let metadata = try readMetadata(directory, ports)
    let models = try readSchema(directory, ports).models
    var names = Names()
    names.models = models.map(\.name)
    names.remotes = metadata.remotes.map(\.name)
    names.origins = Set(metadata.origins + metadata.names.keys).map { metadata.displayName(of: $0) }.sorted()
    for model in models { names.fields[model.name] = model.fields.map(\.name) }
    return names
  }

  /// The names of the node in or around a directory for descriptions of events; nil if none is
  /// readable.
  package static func description(near directory: String, _ ports: Ports) -> EventDescription? {
    do throws(NodeError) {
      let node = try nearest(from: directory)
      return EventDescription(schema: try readSchema(node, ports), metadata: try readMetadata(node, ports))
    } catch {
      // Inspection must also work in a corrupt node.
      return nil
    }
  }
}
