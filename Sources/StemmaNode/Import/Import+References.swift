import Foundation
import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

/// Lines of one import may come in any order, and records may refer to each other in a circle. So whether a reference
/// leads to a record is known when all sources are read: they are rehearsed first, and then written without those lines
/// that were found.
extension Import {
  /// The lines of an import whose references lead to no record once all its sources are read.
  package final class DanglingLines {
    /// By the path of the source, then by line.
    fileprivate var reasons: [String: [Int: MutationError]] = [:]
    /// The copies of sources that can be read once only, by the paths of the sources.
    fileprivate var copies: [String: String] = [:]
    private var folder: TemporaryFolder?

    func reason(_ path: String, _ line: Int) -> MutationError? { reasons[path]?[line] }
    func copy(of path: String) -> String { copies[path] ?? path }

    /// Copies a stream into a file of the same name, from which the format follows.
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

  /// Finds the dangling lines of an import that writes nothing before it. Without `reject`, the first one ends the
  /// import.
  ///
  /// Reads all sources once, and once more after lines were found: their records are not there for others to refer to.
  ///
  /// - Throws: as `run`. Nothing was written.
  package func danglingLines(of paths: [String]) throws -> DanglingLines {
    let lines = DanglingLines()
    // Standard input goes on where its last reader stopped, whatever it is.
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

/// A reference that is being written and leads to no record.
struct DanglingReference {
  var model: Model
  var key: Key
  /// The place of the reference among those of its model.
  var place: Int
  var target: Key
}

extension WriteTransaction {
  /// With `refusesDangling`: every reference that is being written leads to a record that exists, or to the one that is
  /// being made, or is noted in `dangling`. The key is written only when the record is made. `changed`: the
  /// values that are written for their own sake, and not because others are. Nil: all.
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

  /// The key that a reference leads to; nil if a part of it is null, or not given.
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

  /// Whether the record is there, or out of reach. `new`: that of a record that is being made.
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

  /// Why a reference that was noted is refused at the end; nil if it leads to a record by now, or somewhere else.
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
