import Foundation
import StemmaEvents
import StemmaLog
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

/// A reference to no record in a line that is being written.
struct DanglingReference {
  var model: Model
  var key: Key
  /// The index of the reference among those of its model.
  var place: Int
  var target: Key
}

extension WriteTransaction {
  /// With `refusesDangling`, requires that every written reference leads to an existing record or
  /// to the new one; others go to `dangling`. Key fields count as written only in a new record.
  /// `changed` is the set of values written for their own sake; nil: all.
  func checkReferences(
    _ model: Model, _ key: Key, _ values: [Assignment], changed: [Assignment]? = nil, isNew: Bool = false
  ) throws(NodeError) {
    guard refusesDangling else { return }
    let written = Set((changed ?? values).map(\.field))
    for (place, reference) in model.references.enumerated() {
      var isWritten = isNew
      let target = target(of: reference, model, key) { field in
        guard let value = values.first(where: { $0.field == field })?.value else { return nil }
        isWritten = isWritten || !value.isNull && written.contains(field)
        return value
      }
      guard isWritten, let target, try !leads(to: target, reference, isNew ? key : nil, model) else {
        continue
      }
      let found = DanglingReference(model: model, key: key, place: place, target: target)
      guard dangling != nil else { throw .mutation(try refusal(of: found)) }
      dangling?.append(found)
    }
  }

  /// The key that a reference leads to; nil if a part of it is null or absent.
  private func target(
    of reference: Reference, _ model: Model, _ key: Key, value: (String) -> Value?
  ) -> Key? {
    let own = key.parts
    var parts: [KeyPart] = []
    for name in reference.fields {
      guard let index = model.index(ofField: name) else { continue }
      if let place = model.keyFields.firstIndex(of: index) {
        parts.append(own[place])
      } else if let value = value(model.fields[index].storedName), let part = KeyPart(value) {
        parts.append(part)
      }
    }
    return parts.count == reference.fields.count ? Key(parts) : nil
  }

  /// Whether the target exists or is out of scope. `new` is the key of the record in creation.
  private func leads(
    to key: Key, _ reference: Reference, _ new: Key?, _ model: Model
  ) throws(NodeError) -> Bool {
    let target = try self.model(reference.target)
    if target.name == model.name, key == new { return true }
    guard isInScope(Partition(model: target, key: key)) else { return true }
    return try state(target, key).exists(rules(target))
  }

  private func refusal(of found: DanglingReference) throws(NodeError) -> MutationError {
    let (model, reference) = (found.model, found.model.references[found.place])
    return .danglingReference(
      model: model.name, key: text(found.key, model),
      relationship: reference.relationship ?? inverseName(reference, of: model)
        ?? reference.fields.joined(separator: ", "),
      target: text(found.target, try self.model(reference.target)))
  }

  /// The reason to refuse a noted reference at the end; nil if its target exists or it has changed.
  fileprivate func refusal(of pending: PendingReferences.Reference) throws(NodeError) -> MutationError? {
    guard let model = schema.models.first(where: { $0.storedName == pending.model }),
      model.references.indices.contains(pending.place)
    else { return nil }
    let (state, rules) = (try state(model, pending.key), rules(model))
    let reference = model.references[pending.place]
    guard state.exists(rules),
      target(of: reference, model, pending.key, value: { state.value(of: $0, rules) }) == pending.target,
      try !leads(to: pending.target, reference, nil, model)
    else { return nil }
    return try refusal(
      of: DanglingReference(model: model, key: pending.key, place: pending.place, target: pending.target))
  }
}
