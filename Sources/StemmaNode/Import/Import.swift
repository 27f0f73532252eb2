import StemmaEvents
import StemmaLog

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
    /// What is read; nil: what the file's name says.
    package var format: Format?
    /// The model of lines that name none, and of rows.
    package var model: String?
    package var refusesDangling = false
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
  /// Told after each commit.
  package var progress: (Summary) throws -> Void = { _ in }
  /// Called when everything that came is durable and the source keeps its reader waiting.
  package var silence: () -> Void = {}
  /// Told what a person should know about the source; one sentence each.
  package var notice: (String) -> Void = { _ in }
  /// Given a line that cannot be taken; if nil, such a line ends the import.
  package var reject: ((_ line: Int, _ text: UnsafeRawBufferPointer, NodeError) throws -> Void)?

  package init(into node: Node, options: Options) {
    self.node = node
    self.options = options
  }

  /// Imports one source.
  ///
  /// - Throws: `NodeError.importLine` for a line that cannot be taken: nothing of its commit was written, all
  ///   commits before it are durable. `NodeError.importEnded` for any other error behind durable commits.
  package func run(path: String) throws -> Summary {
    // What a shell calls `/dev/fd/63` is another stream each time.
    let isNameless = path == "-" || path.hasPrefix("/dev/") || path.hasPrefix("/proc/")
    let name = isNameless ? "-" : path.fileName
    let reading = Reading(
      try source(path), name: name, title: path == "-" ? "standard input" : isNameless ? path : name,
      durableThroughLine: options.firstLine - 1)
    defer { for sentence in reading.source.notices { notice(sentence) } }
    do {
      do {
        let outcome = Result { if options.isDryRun { try rehearse(reading) } else { try write(reading) } }
        try options.offset?.write()
        try outcome.get()
      } catch let error as SourceError { throw reading.failure(error.line, error.reason) }
    } catch NodeError.importLine(let source, let line, let reason, let resume, _) {
      // Nothing of what was only tried is there to go on from.
      guard !options.isDryRun, let resume else {
        throw NodeError.importLine(source: source, line: line, reason, resume: nil, earlier: nil)
      }
      // A first line that exists already: an earlier import of this file may have been cut short, and its commits
      // say how far it came. Nothing is guessed from any other error, or of a stream without a name.
      var earlier: Int?
      if case .mutation(.alreadyExists) = reason, resume == options.firstLine, !isNameless {
        earlier = try node.lastImportedLine(of: source)
      }
      throw NodeError.importLine(
        source: source, line: line, reason, resume: max(resume, (earlier ?? 0) + 1), earlier: earlier)
    } catch let error as NodeError where !options.isDryRun && reading.summary.commits > 0 {
      throw NodeError.importEnded(
        source: reading.title, error, resume: reading.summary.durableThroughLine + 1)
    }
    reading.summary.durableThroughLine = max(reading.summary.durableThroughLine, reading.source.lineNumber)
    return reading.summary
  }

  /// A source that is being read, and what came of it so far.
  private final class Reading {
    let source: any MutationSource
    /// As commits remember it.
    let name: String
    /// As it is called where something is wrong with a line.
    let title: String
    var summary = Summary()

    init(_ source: any MutationSource, name: String, title: String, durableThroughLine: Int) {
      self.source = source
      self.name = name
      self.title = title
      summary.durableThroughLine = durableThroughLine
    }

    func failure(_ line: Int, _ reason: NodeError) -> NodeError {
      .importLine(
        source: title, line: line, reason, resume: summary.durableThroughLine + 1, earlier: nil)
    }

    /// Traps if there are commits of nothing. In debug builds at each commit.
    func checkInvariants() {
      precondition(summary.commits <= summary.events, "a commit has an event")
      precondition(summary.commits <= summary.lines, "a commit has a line")
      source.checkInvariants()
    }

    func note(_ lines: [PendingLine], events: Int, _ counts: WriteCounts) {
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

  private func write(_ reading: Reading) throws {
    var batch = try self.batch(of: reading)
    // After a refusal the tables have to catch up with the rest of its series: the next one is short.
    var isCareful = false
    // Whether the tables were found to be damaged, and made anew.
    var isRemade = false
    // While a stream is silent nothing is held: what came is durable and shown, and others can write.
    var isSilent = false
    while !batch.isEmpty {
      var refusal: Refusal?
      // What ends the input is told when everything before it is durable, so that the line to go on with is right.
      var failure: (any Error)?
      do {
        try node.series { series in
          repeat {
            var events = 0
            var counts = WriteCounts()
            let lines = batch
            try series.commit(
              note(lines, reading),
              durable: {
                reading.note(lines, events: events, counts)
                try options.offset?.note(lines.compactMap(\.position))
                try progress(reading.summary)
              }
            ) { transaction throws(NodeError) in
              refusal = perform(lines, transaction)
              if let refusal { throw refusal.reason }
              events = transaction.events.count
              counts = transaction.counts
            }
            batch = []
            isSilent = !reading.source.isReady
            if isSilent { break }
            do { batch = try self.batch(of: reading) } catch { failure = error }
          } while !batch.isEmpty && !series.isFull && !isCareful
        }
        isCareful = false
        if isSilent {
          silence()
          try options.offset?.write()
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
      outcome = Result {
        var batch = try self.batch(of: reading)
        while !batch.isEmpty {
          var refusal: Refusal?
          var events = 0
          let countsBefore = transaction.counts
          do throws(NodeError) {
            events = try transaction.nested { transaction throws(NodeError) in
              refusal = perform(batch, transaction)
              if let refusal { throw refusal.reason }
              return transaction.events.count
            }
          } catch {
            guard let refusal else { throw error }
            try refuse(refusal, in: &batch, reading)
            continue
          }
          reading.note(batch, events: events, transaction.counts - countsBefore)
          try progress(reading.summary)
          batch = try self.batch(of: reading)
        }
      }
    }
    try outcome.get()
  }

  private func note(_ lines: [PendingLine], _ reading: Reading) -> CommitNote {
    CommitNote(
      by: options.by, note: options.note,
      source: "\(reading.name):\(lines.first?.number ?? 0)-\(lines.last?.last ?? 0)")
  }

  /// Nil if every line was taken.
  private func perform(_ lines: [PendingLine], _ transaction: WriteTransaction) -> Refusal? {
    transaction.refusesDangling = options.refusesDangling
    transaction.closesConflicts = options.closesConflicts
    for (index, line) in lines.enumerated() {
      do throws(NodeError) { try transaction.perform(line.mutation) } catch {
        return Refusal(index: index, reason: error)
      }
    }
    return nil
  }

  /// Writes the refused line out and takes it from the batch, or ends the import with it.
  private func refuse(_ refusal: Refusal, in batch: inout [PendingLine], _ reading: Reading) throws {
    let line = batch[refusal.index]
    guard reject != nil else { throw reading.failure(line.number, refusal.reason) }
    try refuse(line.number, line.text, refusal.reason, reading)
    batch.remove(at: refusal.index)
    if batch.isEmpty {
      reading.summary.durableThroughLine = line.last
      batch = try self.batch(of: reading)
    }
  }

  // MARK: Lines

  /// One line that was read and found to be a mutation.
  private struct PendingLine {
    var number: Int
    var last: Int
    var mutation: Mutation
    /// Kept only where a refused line has to be written out.
    var text: [UInt8]
    var position: FeedPosition?
  }

  /// The lines of the next commit; none at the end.
  private func batch(of reading: Reading) throws -> [PendingLine] {
    var batch: [PendingLine] = []
    while batch.count < options.batch, let line = try next(reading) { batch.append(line) }
    return batch
  }

  private func next(_ reading: Reading) throws -> PendingLine? {
    while let item = try reading.source.next() {
      if item.line < options.firstLine { continue }
      switch item.mutation {
      case .success(var mutation):
        if options.isUpsert, mutation.operation == .create { mutation.operation = .upsert }
        return PendingLine(
          number: item.line, last: item.lastLine, mutation: mutation, text: item.text, position: item.position
        )
      case .failure(let error):
        guard reject != nil else { throw SourceError(line: item.line, reason: .mutation(error)) }
        try refuse(item.line, item.text, .mutation(error), reading)
      }
    }
    return nil
  }

  private func refuse(_ line: Int, _ text: [UInt8], _ error: NodeError, _ reading: Reading) throws {
    let header = reading.source.header
    let isFirst = reading.summary.rejected == 0
    reading.summary.rejected += 1
    try (isFirst && !header.isEmpty ? header + [10] + text : text).withUnsafeBytes {
      try reject?(line, $0, error)
    }
  }
}
