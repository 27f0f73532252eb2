import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

extension Node {
  // MARK: Rebuild

  /// Builds the tables anew from the log; the old ones stay in place until the new ones are complete.
  ///
  /// - Throws: `.log(.damaged)` where the log is, and the tables stay: they may be all that tells of what it lost.
  package func rebuild(progress: (UInt64, UInt64) -> Void) throws(NodeError) -> RebuildReport {
    try locked { () throws(NodeError) in
      try checkLogIsWhole()
      let report = try Self.rebuild(
        tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: progress)
      try reopenTables()
      return report
    }
  }

  /// Builds tables of the past, or of now, in another file. One that is there is replaced if it holds such tables, and lies
  /// outside of the node.
  ///
  /// - Throws: `.occupied` if anything else is there, which stays as it is.
  package func rebuild(
    into path: String, upTo filter: RebuildFilter?, progress: (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RebuildReport {
    try checkIsReplaceable(path)
    do throws(NodeError) {
      return try Self.rebuild(
        path, schema: schema, log: log, ownOrigins: mark.origins, filter: filter ?? .all, progress: progress)
    } catch {
      // Streams may have holes until that is finished.
      guard error.logDamage != nil, let sentence = mark.unfinishedGivingUp else { throw error }
      throw .damaged(what: sentence)
    }
  }

  private func checkIsReplaceable(_ path: String) throws(NodeError) {
    switch Tables.occupant(of: path) {
    case .nothing: return
    case .noFile: throw .occupied(path: path, what: "is no file")
    case .otherFile: throw .occupied(path: path, what: "holds no tables that Stemma made")
    case .tables:
      guard isInNode(path) else { return }
      throw .occupied(path: path, what: "lies in a node's directory")
    }
  }

  /// Whether a file lies somewhere in this node's directory, or beside another node's mark.
  private func isInNode(_ path: String) -> Bool {
    let folder = Log.parent(of: path)
    guard !Self.isNode(at: folder), let inner = Self.resolved(folder), let outer = Self.resolved(directory)
    else { return true }
    return (inner + "/").hasPrefix(outer == "/" ? outer : outer + "/")
  }

  /// The path without symbolic links, `.` and `..`; nil if it leads nowhere.
  private static func resolved(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  // MARK: Verify

  /// Checks every byte of the log; if that is whole, whether the tables are what it says. What is found to be
  /// damaged is recorded in the node's mark, where that can be written; nothing else is: no tail is cut, no tables are
  /// made, and a copy begins no origin.
  ///
  /// Reads beside writers. What these replace meanwhile can look like damage: so whatever is found is looked at again
  /// while nobody writes, before it is said or recorded.
  ///
  /// - Throws: `.log(.inUse)` if something was found and others went on writing.
  package static func verify(
    at directory: String, options: OpeningOptions
  ) throws(NodeError) -> VerificationReport {
    _ = try readMark(directory, options.ports)
    let first = Result { () throws(NodeError) in try look(at: directory, options) }
    if case .success(let finding) = first, finding.isGood { return finding.report }
    var finding: Finding
    if let lock = try lockIfWritable(directory, options) {
      defer { lock.release() }
      finding = try look(at: directory, options)
    } else {
      finding = try first.get()
    }
    return try wrapping {
      if finding.isWhole {
        let isReadable = !finding.report.damage.contains { [.fork, .clone].contains($0.remedy) }
        // A giving up that is unfinished forgets the damage when it is done.
        if let mark = finding.report.mark, mark.damage != nil, mark.pendingGivingUp == nil, isReadable {
          try forgetDamage(in: directory, options)
        }
      } else {
        let toll = try record(finding.damage, in: directory, options)
        finding.report.losses = toll.missing
        finding.report.rescuable = toll.rescuable
        finding.report.isVague = toll.isVague
        finding.report.unnoted = toll.unnoted
      }
      return finding.report
    }
  }

  /// What `verify` saw.
  private struct Finding {
    var report = VerificationReport()
    let log: Log
    /// Of the log.
    let damage: [Damage]

    /// Whether the log has all of its events.
    var isWhole: Bool { log.isHarmless(damage) }
    var isGood: Bool { report.damage.isEmpty && report.mark?.damage == nil }
  }

  /// Looks at everything, and changes nothing.
  private static func look(at directory: String, _ options: OpeningOptions) throws(NodeError) -> Finding {
    let mark = try readMark(directory, options.ports)
    let schema = try readSchema(directory, options.ports)
    return try wrapping {
      let log = try Log.open(
        in: path(directory, logDirectoryName), id: mark.logID, fileSystem: options.ports.fileSystem,
        options: options.log(.readOnly))
      var finding = Finding(log: log, damage: try log.verify())
      finding.report.damage = log.standIns.map { missing, other in
        .init(file: missing, what: Explanations.missing(unless: other), remedy: .repair)
      }
      finding.report.damage += finding.damage.map { damage in
        let isHarmless = log.isHarmless([damage])
        let isAnotherThing = isHarmless && damage.flaw.isNotAFile
        return .init(
          file: damage.path, offset: damage.offset, part: part(of: damage, options.ports),
          what: damage.flaw.description
            + (isAnotherThing ? "; the next write moves it aside, and makes the file anew" : ""),
          remedy: !isHarmless ? .repair : isAnotherThing ? .rename : .none)
      }
      let misnamed = try log.misnamedFiles()
      finding.report.damage += log.outsiders.map { outsider in
        .init(
          file: outsider.path, what: outsider.flaw.description,
          remedy: misnamed.contains(outsider.path) ? .repair : .remove)
      }
      finding.report.damage += log.renamedJournals.map { journal in
        .init(file: journal.path, what: journal.flaw.description, remedy: .rename)
      }
      finding.report.damage += try markDamage(in: directory, mark, options.ports)
      finding.report.mark = mark
      finding.report.unconfirmed = log.unconfirmedEvents
      let files = try log.filesThatAreThere()
      finding.report.files = files.count
      guard finding.isWhole else {
        finding.report.events = try readableEvents(of: log)
        return finding
      }
      finding.report.events = files.reduce(0) { $0 + $1.events }
      let isUnsettled = mark.isUnsettled
      let streams: Knowledge
      do throws(LogError) { streams = try log.streams { !isUnsettled($0) } } catch {
        guard let flaw = error.damage?.flaw else { throw error }
        finding.report.damage +=
          flaw.isDoubled
          ? try doubledDamage(in: log)
          : try disorderDamage(in: log) { !isUnsettled($0) }
        return finding
      }
      // Nobody sees own events only.
      let shared = Set(streams.partitions.filter { $0.value.count > 1 }.keys)
      let disorder = shared.isEmpty ? [] : try disorderDamage(in: log) { shared.contains($0) }
      guard disorder.isEmpty else {
        finding.report.damage += disorder
        return finding
      }
      // Whoever finishes what is unfinished makes these anew.
      if mark.remakesTables { return finding }
      let tables = path(directory, tablesFileName)
      do {
        try compareTables(tables, schema, log, options, &finding.report)
      } catch TablesError.needsRebuild(tables, let reason) {
        // Noticed on opening, or only where the damage is read.
        if case .damaged(let what) = reason {
          finding.report.damage.append(.init(file: tables, what: what, remedy: .rebuild))
        }
      } catch let error as TablesError where error.isDiskFull || error.isRefusalToOpen {
        // Nothing to compare: who reads here makes tables in another place.
      }
      return finding
    }
  }

  /// What is wrong with the mark, or with its copy; one that is not there is made with the next change.
  private static func markDamage(
    in directory: String, _ mark: NodeMark, _ ports: Ports
  ) throws(NodeError) -> [VerificationReport.Damage] {
    var (file, what) = (path(directory, NodeMark.fileName), "the next write makes it anew from its copy")
    var flaw = "its bytes are not those that were written"
    if !mark.isFromCopy {
      do throws(NodeError) {
        _ = try NodeMark(try bytes(of: NodeMark.copyName, in: directory, ports), path: file)
        return []
      } catch {
        switch error {
        case .log(let error) where error.isNotFound: return []
        case .badMark: break
        case .log(.notAFile), .log(.overLimit): flaw = "it is no copy that could be read"
        default: throw error
        }
        file = path(directory, NodeMark.copyName)
        what = "the next change of \(NodeMark.fileName) makes it anew"
      }
    }
    return [.init(file: file, what: "\(flaw); \(what)", remedy: .none)]
  }

  /// How long `verify` waits for writers at least, in seconds: they let go of the lock between groups of commits.
  private static let patience: Double = 10

  /// Keeps others from writing; nil where nobody can write.
  private static func lockIfWritable(
    _ directory: String, _ options: OpeningOptions
  ) throws(NodeError) -> WriterLock? {
    var options = options
    options.wait = max(options.wait, patience)
    do throws(LogError) {
      return try WriterLock(
        path(directory, lockFileName), fileSystem: options.ports.fileSystem, wait: options.waitMilliseconds)
    } catch {
      let error = NodeError.log(error)
      guard error.isRefusalToWrite else { throw error }
      return nil
    }
  }

  /// Records damage in the node's mark, and works out what it took. Where that cannot be written, or another process is
  /// writing, nothing is recorded.
  private static func record(
    _ found: [Damage], in directory: String, _ options: OpeningOptions
  ) throws(NodeError) -> DamageToll {
    var reading = options
    reading.mode = .read
    reading.leavesFiles = true
    let node = try open(at: directory, reading)
    try node.recordIfWritable(found)
    var toll = try node.toll(of: found)
    toll.isVague = toll.isVague || node.mark.damage?.isVague == true
    return toll
  }

  /// The log is whole although damage of it is recorded: somebody put a file back. Takes the record away, and
  /// makes the tables anew; where nothing can be written, the record stays.
  private static func forgetDamage(in directory: String, _ options: OpeningOptions) throws(NodeError) {
    _ = try ifWritable(directory, options) { node throws(NodeError) in
      try node.finishRepair(wasVague: false, options.progress)
      return ()
    }
  }

  /// Changes a node, under its lock; nil if it cannot be written, or another process is writing.
  private static func ifWritable<Result>(
    _ directory: String, _ options: OpeningOptions, _ body: (Node) throws(NodeError) -> Result?
  ) throws(NodeError) -> Result? {
    var writing = options
    writing.mode = .write
    writing.wait = 0
    // Nothing is made here that would need one.
    writing.delaysOrigin = true
    do throws(NodeError) {
      let node = try open(at: directory, writing)
      return try node.locked { () throws(NodeError) in try body(node) }
    } catch {
      guard error.isRefusalToWrite || error.isInUse else { throw error }
      return nil
    }
  }

  /// Throws the damage of the log that is known.
  func checkLogIsWhole() throws(NodeError) {
    if let damage = log.recovery.damage.first { throw .log(damage.error) }
    guard let place = mark.damage?.places.first else { return }
    throw .log(
      .damaged(
        path: Self.path(directory, Self.logDirectoryName) + "/" + place.file, offset: place.offset,
        .disagreement(place.what)))
  }

  /// Compares the tables with fresh ones. Tables that are behind the log, or missing, are no damage: they catch
  /// up. So do partitions that a change of scope takes away.
  private static func compareTables(
    _ path: String, _ schema: Schema, _ log: Log, _ options: OpeningOptions,
    _ report: inout VerificationReport
  ) throws {
    let tables = try Tables.open(at: path, schema: schema, mode: .readOnly)
    let (held, token) = try tables.read { reader throws(TablesError) in
      (try reader.knowledge(), try reader.token())
    }
    let isBehind = token != log.token
    // Tables that have not followed yet, as after a process that died, show what the log held until then.
    if isBehind {
      try compareEnd(log, held, path, &report)
      // Nor do those that have taken in what no watermark confirms any more.
      guard log.tornTail == nil, token != .start, token.position <= log.durableEnd, try log.matches(token)
      else { return }
    }
    let found = try tables.read { reader throws(TablesError) in
      try reader.token() == token ? try reader.summary() : nil
    }
    guard let found else { return }
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let fresh = Self.tablesPath(in: folder.path)
    _ = try rebuild(
      fresh, schema: schema, log: log, ownOrigins: [],
      filter: isBehind ? .position(lastPosition(before: token.position)) : .all, progress: options.progress)
    let wanted = try Tables.openForReading(at: fresh, schema: schema)
      .read { reader throws(TablesError) in try reader.summary() }
    let isUnsettled = report.mark?.isUnsettled ?? { _ in false }
    for what in found.differences(from: wanted, comparesHeads: !isBehind, in: { !isUnsettled($0) }) {
      report.damage.append(.init(file: path, what: what, remedy: .rebuild))
    }
  }

  private static func lastPosition(before end: Position) -> Position {
    end.index > 0
      ? Position(file: end.file, index: end.index - 1) : Position(file: max(end.file, 1) - 1, index: .max)
  }

  /// Tables are never ahead of what was durable. Where they are, an older log stands in the place of theirs; or it ends with bytes
  /// that are no frame, and those held the events: with a watermark that says nothing they look like a torn write.
  private static func compareEnd(
    _ log: Log, _ held: Knowledge, _ tables: String, _ report: inout VerificationReport
  ) throws {
    let isUnsettled = report.mark?.isUnsettled ?? { _ in false }
    let lead = held.restricted { !isUnsettled($0) }
      .lag(against: try log.streams { !isUnsettled($0) }).reduce(0) { $0 + $1.ahead }
    // What no watermark confirms is there, and is read when a writer has confirmed it.
    guard lead > report.unconfirmed else { return }
    let lost = lead - report.unconfirmed
    guard let torn = log.tornTail else {
      return report.damage.append(
        .init(
          file: tables,
          what:
            "they hold \(counted(lost, "event")) that the log does not have: an older one stands in its place, or its end was "
            + "lost, and the next command forgets them: copy the node first, or pull them from a peer then",
          remedy: .pull))
    }
    report.damage.append(
      .init(
        file: torn.path, offset: torn.offset,
        what:
          "\(torn.flaw); the tables hold \(counted(lost, "event")) that cannot be read any "
          + "more, and the next command takes this for a torn write and forgets them: copy the node first, or pull "
          + "them from a peer then", remedy: .pull))
  }
}
