import StemmaEvents
import StemmaLog
import StemmaTables

/// Brings lines of mutations or rows into a node, some hundreds to a commit.
///
/// Each commit is all or nothing. After each, `progress` is told through which line everything is durable: an
/// import that is stopped or killed goes on with the line after the last one reported.
package struct Import {
  package struct Options {
    /// Lines in one commit.
    package var batch = 1000
    /// Lines before this one are skipped; the first line is 1.
    package var firstLine = 1
    /// Check everything, write nothing.
    package var isDryRun = false
    /// Treat `create` as `upsert`.
    package var isUpsert = false
    /// The format of the files; nil: the one that a file's name says.
    package var format: Format?
    /// The model of lines that name none, and of rows.
    package var model: String?
    package var dialect = CSV.Dialect()
    package var columns = ColumnNames()
    /// Of a change feed; nil: all its changes are written.
    package var offset: FeedOffset?
    /// Whether a line that states the shown value closes the conflict of its field.
    package var closesConflicts = false
    package var by: String?
    package var note: String?
    package init() {}
  }

  package struct Summary: Sendable {
    package var lines = 0
    package var events = 0
    package var commits = 0
    package var rejected = 0
    package var counts = WriteCounts()
    /// Everything through this line is durable.
    package var durableThroughLine = 0
    /// Bytes of the source that were read, as they are stored; 0 where that is not known.
    package var bytesRead = 0
    package init() {}
  }

  package let node: Node
  package let options: Options
  /// Called after each commit.
  package var progress: (Summary) throws -> Void = { _ in }
  /// Called when everything that came is durable and the source keeps its reader waiting.
  package var silence: () -> Void = {}
  /// Called with notes on the source for a person, of one sentence each.
  package var notice: (String) -> Void = { _ in }
  /// Given a line that cannot be taken; if nil, such a line ends the import.
  package var reject: ((_ line: Int, _ text: UnsafeRawBufferPointer, NodeError) throws -> Void)?

  /// The snapshot that the rows are compared with.
  package var snapshot: Snapshot?
  /// Lines that are refused because their references lead to no record.
  package var dangling: DanglingLines?
  /// Whether these lines are being looked for, and nothing is written.
  var isTrial = false

  package init(into node: Node, options: Options) {
    self.node = node
    self.options = options
  }

  /// Imports one source.
  ///
  /// - Throws: `NodeError.importLine` for a line that cannot be taken: nothing of its commit was written, all
  ///   commits before it are durable. `NodeError.importEnded` for any other error behind durable commits.
  package func run(path: String) throws -> Summary {
    let reading = try reading(path)
    defer { for sentence in reading.source.notices { notice(sentence) } }
    try locating(reading) {
      let outcome = Result { if options.isDryRun { try rehearse(reading) } else { try write(reading) } }
      try report(reading)
      try outcome.get()
    }
    reading.summary.durableThroughLine = max(reading.summary.durableThroughLine, reading.source.lineNumber)
    return reading.summary
  }

  func reading(_ path: String) throws(NodeError) -> Reading {
    // The path `/dev/fd/63` of a shell is another stream each time.
    let isNameless = path == "-" || path.hasPrefix("/dev/") || path.hasPrefix("/proc/")
    let name = isNameless ? "-" : path.fileName
    return Reading(
      try source(dangling?.copy(of: path) ?? path), path: path, name: name,
      title: path == "-" ? "standard input" : isNameless ? path : name,
      durableThroughLine: options.firstLine - 1)
  }

  /// Says of an error of `body` which line it is about, and which line to go on with.
  func locating(_ reading: Reading, _ body: () throws -> Void) throws {
    let writes = !options.isDryRun && !isTrial
    do {
      do { try body() } catch let error as SourceError { throw reading.failure(error.line, error.reason) }
    } catch NodeError.importLine(let source, let line, let reason, let told, _) {
      // Nothing of what was only tried is there to go on from.
      let resume = writes ? told : nil
      // A first line that exists already: an earlier import of this file may have been cut short, and its commits
      // say how far it came. Nothing is guessed from any other error, or of a stream without a name.
      var earlier: Int?
      let isFirst = isTrial && !options.isDryRun || resume == options.firstLine
      if case .mutation(.alreadyExists) = reason, isFirst, reading.name != "-" {
        earlier = try node.lastImportedLine(of: source)
      }
      throw NodeError.importLine(
        source: source, line: line, reason, resume: earlier.map { max(resume ?? 0, $0 + 1) } ?? resume,
        earlier: earlier)
    } catch let error as NodeError where writes && reading.summary.commits > 0 {
      throw NodeError.importEnded(
        source: reading.title, error, resume: reading.summary.durableThroughLine + 1)
    }
  }

  /// A source that is being read, and what came of it so far.
  final class Reading {
    let source: any MutationSource
    let path: String
    /// As commits remember it.
    let name: String
    /// As it is called where something is wrong with a line.
    let title: String
    var summary = Summary()
    /// Refused lines that are not reported.
    private(set) var refused: [(line: Int, text: [UInt8], reason: NodeError)] = []
    private var reported = 0
    /// The list of references that lead to no record, and the number of this source in it.
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

    /// In the order of the source. The first one of all brings the source's header.
    func takeRefused() -> [(line: Int, text: [UInt8], reason: NodeError)] {
      guard !refused.isEmpty else { return [] }
      var taken = refused.sorted { $0.line < $1.line }
      refused = []
      if reported == 0, !source.header.isEmpty { taken[0].text = source.header + [10] + taken[0].text }
      reported += taken.count
      return taken
    }

    /// Traps if there are commits of nothing. In debug builds at each commit.
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

  /// Why a batch cannot be taken as it is.
  private struct Refusal: Error {
    var index: Int
    var reason: NodeError
  }

  /// Results of the lines of a commit beside their events.
  private struct Made {
    var rows = Snapshot.Rows()
    var references: [PendingReferences.Reference] = []
  }

  private func write(_ reading: Reading) throws {
    var batch = try self.batch(of: reading)
    // After a refusal the tables have to catch up with the rest of its series: the next one is short.
    var isCareful = false
    // Whether the tables were found to be corrupt, and rebuilt.
    var isRemade = false
    // While a stream is silent nothing is held: what came is durable and shown, and others can write.
    var isSilent = false
    while !batch.isEmpty {
      var refusal: Refusal?
      // An error that ends the input is thrown when everything before it is durable, so that the line to go on with is
      // right.
      var failure: (any Error)?
      do {
        try node.series { series in
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
            // At most the changes of one commit are in the node and not before the offset.
            if options.offset != nil { try series.waitUntilDurable() }
            batch = []
            isSilent = !reading.source.isReady
            if isSilent { break }
            do { batch = try self.batch(of: reading) } catch { failure = error }
          } while !batch.isEmpty && !series.isFull && !isCareful
        }
        isCareful = false
        if isSilent {
          silence()
          batch = try self.batch(of: reading)
        }
      } catch NodeError.tables(.rebuilt) where !isRemade && refusal != nil {
        // That is no fault of the line: it is tried again.
        isRemade = true
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

  private func note(_ lines: [PendingLine], _ reading: Reading) -> CommitNote {
    CommitNote(
      by: options.by, note: options.note,
      source: "\(reading.name):\(lines.first?.number ?? 0)-\(lines.last?.last ?? 0)")
  }

  /// Nil if every line was taken.
  private func perform(
    _ lines: [PendingLine], _ transaction: WriteTransaction, _ made: inout Made
  ) -> Refusal? {
    transaction.refusesDangling = isTrial
    transaction.closesConflicts = options.closesConflicts
    for (index, line) in lines.enumerated() {
      transaction.dangling = isTrial ? [] : nil
      do throws(NodeError) {
        if let snapshot {
          try snapshot.follow(line.mutation, &made.rows, transaction)
        } else {
          try transaction.perform(line.mutation)
        }
      } catch {
        return Refusal(index: index, reason: error)
      }
      for found in transaction.dangling ?? [] {
        made.references.append(
          PendingReferences.Reference(
            line: line.number, model: found.model.storedName, key: found.key, place: found.place,
            target: found.target))
      }
    }
    return nil
  }

  /// Takes the refused line from the batch, or ends the import with it.
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

  /// One line that was read and found to be a mutation.
  fileprivate struct PendingLine {
    var number: Int
    var last: Int
    var mutation: Mutation
    /// Kept only where a refused line has to be written out.
    var text: [UInt8]
    var position: FeedPosition?
  }

  /// The lines of the next commit; none at the end. All lines before them were performed, or refused.
  private func batch(of reading: Reading) throws -> [PendingLine] {
    try report(reading)
    var batch: [PendingLine] = []
    // A line that is refused when it is read is reported behind those before it, which their commit may refuse.
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
  /// Whether one line of an import is at fault, and others may be taken.
  fileprivate var isOfLine: Bool {
    switch self {
    case .mutation, .damagedPartition: true
    default: false
    }
  }
}
