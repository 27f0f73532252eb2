import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSchema
import StemmaTables

/// The lines of an import may come in any order, and records may refer to each other in a cycle. A
/// reference can be checked only after all sources are read. All sources are therefore rehearsed
/// first, then written without the lines that were found.
extension Import {
  /// The lines of an import whose references lead to no record after all sources are read.
  package final class DanglingLines {
    /// By path of the source, then by line.
    fileprivate var reasons: [String: [Int: MutationError]] = [:]
    /// Copies of sources that can be read only once, by path of the source.
    fileprivate var copies: [String: String] = [:]
    private var folder: TemporaryFolder?

    func reason(_ path: String, _ line: Int) -> MutationError? { reasons[path]?[line] }
    func copy(of path: String) -> String { copies[path] ?? path }

    /// Copies a stream to a file that keeps its name, which determines the format.
    fileprivate func keep(_ path: String) throws(NodeError) {
      guard copies[path] == nil else { return }
      let folder: TemporaryFolder
      if let made = self.folder { folder = made } else { folder = try TemporaryFolder() }
      self.folder = folder
      let copy = "\(folder.path)/\(copies.count)-\(path == "-" ? "input" : path.fileName)"
      try LineReader.copy(path, to: copy)
      copies[path] = copy
    }
  }

  /// Finds the dangling lines of an import before it writes. Without `reject`, the first one
  /// throws.
  ///
  /// Reads all sources until no more lines are found: refused lines create no records to refer to.
  ///
  /// - Throws: the errors of `run`. Nothing is written.
  package func danglingLines(of paths: [String]) throws -> DanglingLines {
    let lines = DanglingLines()
    // Standard input continues after its last reader, whatever its file type.
    for path in paths where path == "-" || LineReader.isStream(path: path) { try lines.keep(path) }
    var trial = self
    trial.dangling = lines
    trial.isTrial = true
    trial.progress = { _ in }
    trial.notice = { _ in }
    if reject != nil { trial.reject = { _, _, _ in } }
    while try trial.findDangling(paths, lines) {}
    return lines
  }

  /// Returns whether lines were found.
  private func findDangling(_ paths: [String], _ lines: DanglingLines) throws -> Bool {
    var trial = self
    trial.snapshot = try snapshot?.copy()
    let pending = try Node.wrapping { try PendingReferences() }
    var readings: [Reading] = []
    var isFound = false
    var outcome = Result<Void, any Error>.success(())
    try node.rehearse { transaction throws(NodeError) in
      outcome = Result {
        for (place, path) in paths.enumerated() {
          let reading = try trial.reading(path)
          reading.pending = (source: place, references: pending)
          readings.append(reading)
          try trial.locating(reading) { try trial.rehearse(reading, in: transaction) }
        }
        while let reference = try pending.next() {
          guard let reason = try transaction.refusal(of: reference) else { continue }
          let reading = readings[reference.source]
          guard reject != nil else {
            try trial.locating(reading) { throw reading.failure(reference.line, .mutation(reason)) }
            return
          }
          lines.reasons[paths[reference.source], default: [:]][reference.line] = reason
          isFound = true
        }
      }
    }
    try outcome.get()
    return isFound
  }
}
