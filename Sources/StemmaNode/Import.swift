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
    /// The model of lines that name none.
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
  /// Given a line that cannot be taken; if nil, such a line ends the import.
  package var reject: ((_ line: Int, _ text: UnsafeRawBufferPointer, NodeError) throws -> Void)?

  package init(into node: Node, options: Options) {
    self.node = node
    self.options = options
  }

  /// How a commit is made: for good, or as a rehearsal.
  private typealias Committing = (CommitNote, (WriteTransaction) throws(NodeError) -> Int) throws(NodeError)
    -> Int

  /// Imports one source of NDJSON lines.
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
    var reader = try LineReader(path: path)
    var summary = Summary()
    summary.durableThroughLine = options.firstLine - 1
    let source = path.split(separator: "/").last.map(String.init) ?? path
    var batch: [PendingLine] = []
    do {
      while true {
        let pending = try next(&reader, source, &summary)
        if let pending { batch.append(pending) }
        if batch.count >= options.batch || (pending == nil && !batch.isEmpty) {
          try commit(batch, source, &summary, committing)
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
    var mutation: Mutation
    /// Kept only where a refused line has to be written out.
    var text: [UInt8]
  }

  private func next(
    _ reader: inout LineReader, _ source: String, _ summary: inout Summary
  ) throws -> PendingLine? {
    while true {
      let number = reader.lineNumber + 1
      let isSkipped = number < options.firstLine
      var failure: (NodeError, [UInt8])?
      let read: PendingLine??
      do throws(NodeError) {
        read = try reader.next { line throws(NodeError) -> PendingLine? in
          guard !isSkipped, line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { return nil }
          do throws(MutationError) {
            var mutation = try Mutation(line: line, defaultModel: options.model)
            if options.isUpsert, mutation.operation == .create { mutation.operation = .upsert }
            return PendingLine(number: number, mutation: mutation, text: reject == nil ? [] : Array(line))
          } catch {
            failure = (.mutation(error), Array(line.prefix(4096)))
            return nil
          }
        }
      } catch {
        throw NodeError.importLine(
          source: source, line: number, error, resume: summary.durableThroughLine + 1, earlier: nil)
      }
      guard let read else { return nil }
      if let (error, text) = failure {
        guard let reject else {
          throw NodeError.importLine(
            source: source, line: number, error, resume: summary.durableThroughLine + 1, earlier: nil)
        }
        summary.rejected += 1
        try text.withUnsafeBytes { try reject(number, $0, error) }
        continue
      }
      if let pending = read { return pending }
    }
  }

  private func commit(
    _ lines: [PendingLine], _ source: String, _ summary: inout Summary, _ committing: Committing
  ) throws {
    guard let first = lines.first, let last = lines.last else { return }
    var lines = lines
    while !lines.isEmpty {
      var refused: (Int, NodeError)?
      do throws(NodeError) {
        let note = CommitNote(
          by: options.by, note: options.note, source: "\(source):\(first.number)-\(last.number)")
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
        guard let reject else {
          throw NodeError.importLine(
            source: source, line: lines[index].number, reason, resume: summary.durableThroughLine + 1,
            earlier: nil)
        }
        summary.rejected += 1
        try lines[index].text.withUnsafeBytes { try reject(lines[index].number, $0, reason) }
        lines.remove(at: index)
      }
    }
    summary.durableThroughLine = last.number
  }
}
