import StemmaEvents

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
    package var by: String?
    package var note: String?
    package init() {}
  }

  package struct Summary: Sendable {
    package var lines = 0
    package var events = 0
    package var commits = 0
    package var rejected = 0
    /// Everything through this line is durable.
    package var durableThroughLine = 0
    package init() {}
  }

  package let node: Node
  package let options: Options
  /// Told after each commit.
  package var progress: (Summary) throws -> Void = { _ in }
  /// Told what a person should know about the source; one sentence each.
  package var notice: (String) -> Void = { _ in }
  /// Given a line that cannot be taken; if nil, such a line ends the import.
  package var reject: ((_ line: Int, _ text: UnsafeRawBufferPointer, NodeError) throws -> Void)?

  package init(into node: Node, options: Options) {
    self.node = node
    self.options = options
  }

  /// How a commit is made: for good, or as a rehearsal.
  private typealias Committing = (CommitNote, (WriteTransaction) throws(NodeError) -> Int) throws(NodeError)
    -> Int

  /// Imports one source.
  ///
  /// - Throws: `NodeError.importLine` for a line that cannot be taken: nothing of its commit was written, all
  ///   commits before it are durable.
  package func run(path: String) throws -> Summary {
    guard options.isDryRun else {
      return try run(path) { (note, body) throws(NodeError) in try node.write(note, body) }
    }
    var outcome: Result<Summary, any Error>?
    try node.rehearse { transaction throws(NodeError) in
      outcome = Result {
        try run(path) { (_, body) throws(NodeError) in try transaction.nested(body) }
      }
    }
    guard let outcome else { throw NodeError.damaged(what: "a rehearsal ended without a result") }
    return try outcome.get()
  }

  private func run(_ path: String, _ committing: Committing) throws -> Summary {
    let reader = try source(path)
    var summary = Summary()
    summary.durableThroughLine = options.firstLine - 1
    let source = path.split(separator: "/").last.map(String.init) ?? path
    var batch: [PendingLine] = []
    do {
      while true {
        let pending = try next(reader, source, &summary)
        if let pending { batch.append(pending) }
        if batch.count >= options.batch || (pending == nil && !batch.isEmpty) {
          try commit(batch, source, reader.header, &summary, committing)
          batch.removeAll(keepingCapacity: true)
          try progress(summary)
        }
        if pending == nil { break }
      }
    } catch NodeError.importLine(let source, let line, let reason, let resume, _) {
      // A first line that exists already: an earlier import of this file may have been cut short, and its commits
      // say how far it came. Nothing is guessed from any other error, or of standard input, which has no name.
      var earlier: Int?
      if case .mutation(.alreadyExists) = reason, resume == options.firstLine, path != "-" {
        earlier = try node.lastImportedLine(of: source)
      }
      throw NodeError.importLine(
        source: source, line: line, reason, resume: max(resume, (earlier ?? 0) + 1), earlier: earlier)
    }
    summary.durableThroughLine = max(summary.durableThroughLine, reader.lineNumber)
    return summary
  }

  /// One line that was read and found to be a mutation.
  private struct PendingLine {
    var number: Int
    var last: Int
    var mutation: Mutation
    /// Kept only where a refused line has to be written out.
    var text: [UInt8]
  }

  private func next(
    _ reader: any MutationSource, _ source: String, _ summary: inout Summary
  ) throws -> PendingLine? {
    func failure(_ line: Int, _ reason: NodeError) -> NodeError {
      .importLine(
        source: source, line: line, reason, resume: summary.durableThroughLine + 1, earlier: nil)
    }
    while true {
      let item: SourceItem?
      do throws(SourceError) { item = try reader.next() } catch { throw failure(error.line, error.reason) }
      guard let item else { return nil }
      if item.line < options.firstLine { continue }
      switch item.mutation {
      case .success(var mutation):
        if options.isUpsert, mutation.operation == .create { mutation.operation = .upsert }
        return PendingLine(number: item.line, last: item.lastLine, mutation: mutation, text: item.text)
      case .failure(let error):
        guard reject != nil else { throw failure(item.line, .mutation(error)) }
        try refuse(item.line, item.text, .mutation(error), header: reader.header, &summary)
      }
    }
  }

  private func refuse(
    _ line: Int, _ text: [UInt8], _ error: NodeError, header: [UInt8], _ summary: inout Summary
  ) throws {
    let isFirst = summary.rejected == 0
    summary.rejected += 1
    try (isFirst && !header.isEmpty ? header + [10] + text : text).withUnsafeBytes {
      try reject?(line, $0, error)
    }
  }

  private func commit(
    _ lines: [PendingLine], _ source: String, _ header: [UInt8], _ summary: inout Summary,
    _ committing: Committing
  ) throws {
    guard let first = lines.first, let last = lines.last else { return }
    var lines = lines
    while !lines.isEmpty {
      var refused: (Int, NodeError)?
      do throws(NodeError) {
        let note = CommitNote(
          by: options.by, note: options.note, source: "\(source):\(first.number)-\(last.last)")
        let events = try committing(note) { tx throws(NodeError) in
          tx.refusesDangling = options.refusesDangling
          for (index, line) in lines.enumerated() {
            do throws(NodeError) { try tx.perform(line.mutation) } catch {
              refused = (index, error)
              throw error
            }
          }
          return tx.events.count
        }
        summary.events += events
        summary.lines += lines.count
        if events > 0 { summary.commits += 1 }
        lines = []
      } catch {
        guard let (index, reason) = refused else { throw error }
        guard reject != nil else {
          throw NodeError.importLine(
            source: source, line: lines[index].number, reason, resume: summary.durableThroughLine + 1,
            earlier: nil)
        }
        try refuse(lines[index].number, lines[index].text, reason, header: header, &summary)
        lines.remove(at: index)
      }
    }
    summary.durableThroughLine = last.last
  }
}
