import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaTables

/// Imports mutations or rows, `Options.batch` lines to a commit.
///
/// A commit is atomic. After each, `progress` receives the last durable line, so that a stopped
/// import can continue with the next one.
package struct Import {
  package struct Options {
    /// Lines in one commit.
    package var batch = 1000
    /// Lines before this one are skipped; the first line is 1.
    package var firstLine = 1
    /// Check every line, write nothing.
    package var isDryRun = false
    /// Treat `create` as `upsert`.
    package var isUpsert = false
    /// The format of the files; nil: determined by the name of each file.
    package var format: Format?
    /// The model of rows, and of mutations that name none.
    package var model: String?
    package var dialect = CSV.Dialect()
    package var columns = ColumnNames()
    /// The offset of a change feed; nil: all its changes are written.
    package var offset: FeedOffset?
    /// Whether a line with the shown value resolves the conflict of its field.
    package var closesConflicts = false
    package var author: String?
    package var message: String?
    /// Whether commits share an fsync about once a second.
    package var isRelaxed = false
    /// The memory for record states, in bytes, before the tables follow the log.
    package var memory = 256 << 20
    package init() {}
  }

  package struct Summary: Sendable {
    package var lines = 0
    package var events = 0
    package var commits = 0
    package var rejected = 0
    package var counts = WriteCounts()
    /// The last line through which everything is durable.
    package var durableThroughLine = 0
    /// Bytes read from the stored source, before decompression; 0 if unknown.
    package var bytesRead = 0
    package init() {}
  }

  package let node: Node
  package let options: Options
  /// Called after each commit.
  package var progress: (Summary) throws -> Void = { _ in }
  /// Called when everything read is durable and the source has no more data yet.
  package var silence: () -> Void = {}
  /// Called with warnings about the source, one sentence each.
  package var notice: (String) -> Void = { _ in }
  /// Called with a refused line; if nil, a refused line ends the import.
  package var reject: ((_ line: Int, _ text: UnsafeRawBufferPointer, NodeError) throws -> Void)?

  /// The snapshot to compare the rows with.
  package var snapshot: Snapshot?
  /// Lines that are refused because their references lead to no record.
  package var dangling: DanglingLines?
  /// Whether the import only looks for such lines and writes nothing.
  var isTrial = false

  package init(into node: Node, options: Options) {
    self.node = node
    self.options = options
  }

  /// Imports one source.
  ///
  /// - Throws: `NodeError.importLine` for a refused line: its commit is not written, all earlier
  ///   commits are durable. `NodeError.importEnded` for any other error after durable commits.
  package func run(path: String) throws -> Summary {
    let reading = try reading(path)
    defer { for sentence in reading.source.notices { notice(sentence) } }
    try locating(reading) {
      let outcome = Result { if options.isDryRun { try rehearse(reading) } else { try write(reading) } }
      node.endSeries()
      try report(reading)
      try outcome.get()
    }
    reading.summary.durableThroughLine = max(reading.summary.durableThroughLine, reading.source.lineNumber)
    return reading.summary
  }

  func reading(_ path: String) throws(NodeError) -> Reading {
    // A shell reuses the path `/dev/fd/63` for different streams.
    let isNameless = path == "-" || path.hasPrefix("/dev/") || path.hasPrefix("/proc/")
    let name = isNameless ? "-" : path.fileName
    return Reading(
      try source(dangling?.copy(of: path) ?? path), path: path, name: name,
      title: path == "-" ? "standard input" : isNameless ? path : name,
      durableThroughLine: options.firstLine - 1)
  }

  /// Adds to an error of `body` the line that caused it and the line to continue with.
  func locating(_ reading: Reading, _ body: () throws -> Void) throws {
    let writes = !options.isDryRun && !isTrial
    do {
      do { try body() } catch let error as SourceError { throw reading.failure(error.line, error.reason) }
    } catch NodeError.importLine(let source, let line, let reason, let told, _) {
      // A trial writes nothing that a later import could continue from.
      let resume = writes ? told : nil
      // If the first line exists already, an earlier import of this file may have been interrupted.
      // The last line is then in its commits. Other errors and nameless streams give no such hint.
      var earlier: Int?
      let isFirst = isTrial && !options.isDryRun || resume == options.firstLine
      if case .mutation(.alreadyExists) = reason, isFirst, reading.name != "-" {
        earlier = try lastImportedLine(of: source)
      }
      throw NodeError.importLine(
        source: source, line: line, reason, resume: earlier.map { max(resume ?? 0, $0 + 1) } ?? resume,
        earlier: earlier)
    } catch let error as NodeError where writes && reading.summary.commits > 0 {
      throw NodeError.importEnded(
        source: reading.title, error, resume: reading.summary.durableThroughLine + 1)
    }
  }

  /// The last durable line of earlier imports of a source, according to the notes of their commits.
  /// Reads the log, newest first, until it finds one.
  private func lastImportedLine(of source: String) throws(NodeError) -> Int? {
    try Node.wrapping {
      // The count includes the colon, which can form one character with the end of a name.
      let prefix = source + ":"
      let length = prefix.count
      var reader = node.log.eventsNewestFirst()
      while try reader.next() != nil {
        // A peer may have written any number; no line can follow the highest one.
        guard let message = reader.message?.source, message.hasPrefix(prefix),
          let line = Int(message.dropFirst(length).split(separator: "-").last ?? ""), line < .max
        else { continue }
        return line
      }
      return nil
    }
  }

  /// A source and the progress of its import.
  final class Reading {
    let source: any MutationSource
    let path: String
    /// The name that commits record.
    let name: String
    /// The name in error messages.
    let title: String
    var summary = Summary()
    /// Refused lines that are not reported yet.
    private(set) var refused: [(line: Int, text: [UInt8], reason: NodeError)] = []
    private var reported = 0
    /// The references to check at the end, and the number of this source among them.
    var pending: (source: Int, references: PendingReferences)?

    init(
      _ source: any MutationSource, path: String, name: String, title: String, durableThroughLine: Int
    ) {
      self.source = source
      self.path = path
      self.name = name
      self.title = title
      summary.durableThroughLine = durableThroughLine
    }

    func failure(_ line: Int, _ reason: NodeError) -> NodeError {
      .importLine(
        source: title, line: line, reason, resume: summary.durableThroughLine + 1, earlier: nil)
    }

    func add(_ references: [PendingReferences.Reference]) throws(NodeError) {
      guard let pending else { return }
      do throws(TablesError) { try pending.references.add(references, source: pending.source) } catch {
        throw .tables(error)
      }
    }

    func refuse(_ line: Int, _ text: [UInt8], _ reason: NodeError) {
      summary.rejected += 1
      refused.append((line, text, reason))
    }

    /// Returns refused lines in the order of the source. The first one carries the source's header.
    func takeRefused() -> [(line: Int, text: [UInt8], reason: NodeError)] {
      guard !refused.isEmpty else { return [] }
      var taken = refused.sorted { $0.line < $1.line }
      refused = []
      if reported == 0, !source.header.isEmpty { taken[0].text = source.header + [10] + taken[0].text }
      reported += taken.count
      return taken
    }

    /// Traps if there is an empty commit. Runs in debug builds at each commit.
    func checkInvariants() {
      precondition(summary.commits <= summary.events, "a commit has an event")
      precondition(summary.commits <= summary.lines, "a commit has a line")
      source.checkInvariants()
    }

    fileprivate func note(_ lines: [PendingLine], events: Int, _ counts: WriteCounts) {
      defer { assert(holds(checkInvariants)) }
      summary.counts = summary.counts + counts
      summary.events += events
      summary.bytesRead = source.bytesRead
      summary.lines += lines.count
      if events > 0 { summary.commits += 1 }
      summary.durableThroughLine = lines.last?.last ?? summary.durableThroughLine
    }
  }

  // MARK: Commits

  /// The reason why a batch cannot be committed.
  private struct Refusal: Error {
    var index: Int
    var reason: NodeError
  }

  /// Results of the lines of a commit, apart from their events.
  private struct Made {
    var rows = Snapshot.Rows()
    var references: [PendingReferences.Reference] = []
  }

  private func write(_ reading: Reading) throws {
    try node.beginSeries(memory: options.memory)
    var batch = try self.batch(of: reading)
    // After a refusal, the tables must apply the rest of the series; the next one is short.
    var isCareful = false
    // Whether the tables were found to be corrupt, and rebuilt.
    var isRecreated = false
    // While a stream is idle, no lock is held and everything read is durable and visible.
    var isSilent = false
    while !batch.isEmpty {
      var refusal: Refusal?
      // An error that ends the input is thrown after everything before it is durable, so that it
      // reports the right line to continue with.
      var failure: (any Error)?
      do {
        try node.series(isRelaxed: options.isRelaxed) { series in
          repeat {
            var events = 0
            var counts = WriteCounts()
            var made = Made()
            let lines = batch
            try series.commit(
              note(lines, reading),
              durable: {
                try snapshot?.record(made.rows)
                reading.note(lines, events: events, counts)
                try options.offset?.note(lines.compactMap(\.position))
                try progress(reading.summary)
              }
            ) { transaction throws(NodeError) in
              refusal = perform(lines, transaction, &made)
              if let refusal { throw refusal.reason }
              events = transaction.events.count
              counts = transaction.counts
            }
            snapshot?.note(made.rows)
            // At most one commit is durable in the node before the offset records it.
            if options.offset != nil { try series.waitUntilDurable() }
            batch = []
            isSilent = !reading.source.isReady
            if isSilent { break }
            do { batch = try self.batch(of: reading) } catch { failure = error }
          } while !batch.isEmpty && !series.isFull && !isCareful
          series.holdsBack = !batch.isEmpty && failure == nil
        }
        isCareful = false
        if isSilent {
          silence()
          batch = try self.batch(of: reading)
        }
      } catch NodeError.tables(.rebuilt) where !isRecreated && refusal != nil {
        // The line is not at fault, so it is tried again.
        isRecreated = true
        isCareful = true
      } catch {
        guard let refusal else { throw error }
        try refuse(refusal, in: &batch, reading)
        isCareful = true
      }
      if let failure { throw failure }
    }
  }

  private func rehearse(_ reading: Reading) throws {
    var outcome = Result<Void, any Error>.success(())
    try node.rehearse { transaction throws(NodeError) in
      outcome = Result { try rehearse(reading, in: transaction) }
    }
    try outcome.get()
  }

  func rehearse(_ reading: Reading, in transaction: WriteTransaction) throws {
    var batch = try self.batch(of: reading)
    while !batch.isEmpty {
      var refusal: Refusal?
      var events = 0
      var made = Made()
      let countsBefore = transaction.counts
      do throws(NodeError) {
        events = try transaction.nested { transaction throws(NodeError) in
          refusal = perform(batch, transaction, &made)
          if let refusal { throw refusal.reason }
          return transaction.events.count
        }
      } catch {
        guard let refusal else { throw error }
        try refuse(refusal, in: &batch, reading)
        continue
      }
      try snapshot?.record(made.rows)
      try reading.add(made.references)
      transaction.forgetEvents()
      reading.note(batch, events: events, transaction.counts - countsBefore)
      try progress(reading.summary)
      batch = try self.batch(of: reading)
    }
  }

  private func note(_ lines: [PendingLine], _ reading: Reading) -> CommitMessage {
    CommitMessage(
      author: options.author, text: options.message,
      source: "\(reading.name):\(lines.first?.number ?? 0)-\(lines.last?.last ?? 0)")
  }

  /// Returns nil if every line succeeds.
  private func perform(
    _ lines: [PendingLine], _ transaction: WriteTransaction, _ made: inout Made
  ) -> Refusal? {
    transaction.refusesDangling = isTrial
    transaction.closesConflicts = options.closesConflicts
    for index in lines.indices {
      transaction.dangling = isTrial ? [] : nil
      do throws(NodeError) {
        if let snapshot {
          try snapshot.follow(lines[index].mutation, &made.rows, transaction)
        } else {
          try transaction.perform(lines[index].mutation)
        }
      } catch {
        return Refusal(index: index, reason: error)
      }
      for found in transaction.dangling ?? [] {
        made.references.append(
          PendingReferences.Reference(
            line: lines[index].number, model: found.model.storedName, key: found.key, place: found.place,
            target: found.target))
      }
    }
    return nil
  }

  /// Removes the refused line from the batch, or throws if refusals end the import.
  private func refuse(_ refusal: Refusal, in batch: inout [PendingLine], _ reading: Reading) throws {
    let line = batch[refusal.index]
    guard reject != nil, refusal.reason.isOfLine else {
      throw reading.failure(line.number, refusal.reason)
    }
    reading.refuse(line.number, line.text, refusal.reason)
    batch.remove(at: refusal.index)
    if batch.isEmpty {
      reading.summary.durableThroughLine = line.last
      batch = try self.batch(of: reading)
    }
  }

  // MARK: Lines

  /// A parsed mutation and its line.
  fileprivate struct PendingLine {
    var number: Int
    var last: Int
    var mutation: Mutation
    /// Kept only if refused lines are written out.
    var text: [UInt8]
    var position: FeedPosition?
  }

  /// The lines of the next commit; empty at the end. All earlier lines were performed or refused.
  private func batch(of reading: Reading) throws -> [PendingLine] {
    try report(reading)
    var batch: [PendingLine] = []
    batch.reserveCapacity(min(options.batch, 1000))
    // A line refused on reading is reported after earlier lines of its commit.
    while batch.count < options.batch, reading.refused.count < options.batch,
      let item = try reading.source.next()
    {
      if item.line < options.firstLine { continue }
      let mutation = dangling?.reason(reading.path, item.line).map { .failure($0) } ?? item.mutation
      switch mutation {
      case .success(var mutation):
        if options.isUpsert, mutation.operation == .create { mutation.operation = .upsert }
        batch.append(
          PendingLine(
            number: item.line, last: item.lastLine, mutation: mutation, text: item.text,
            position: item.position
          ))
      case .failure(let error):
        guard reject != nil else { throw SourceError(line: item.line, reason: .mutation(error)) }
        reading.refuse(item.line, item.text, .mutation(error))
        if batch.isEmpty { try report(reading) }
      }
    }
    return batch
  }

  private func report(_ reading: Reading) throws {
    for refused in reading.takeRefused() {
      try refused.text.withUnsafeBytes { try reject?(refused.line, $0, refused.reason) }
    }
  }
}

extension NodeError {
  /// Whether the error concerns one line, so that other lines can be imported.
  fileprivate var isOfLine: Bool {
    switch self {
    case .mutation, .corruptPartition: true
    default: false
    }
  }
}
