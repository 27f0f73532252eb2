import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

/// Changes that come with typed values, which need no reading of JSON: what a Swift program writes.
///
/// Values are stored ones, in the one form that each has (`Schema.value`), under stored names.
extension WriteTransaction {
  /// Mints an identifier: a UUID of version 7 as text.
  package func mintedIdentifier() -> String { mintIdentifier() }

  /// Creates a record.
  ///
  /// - Parameter values: what is not named here has its default, or is null.
  /// - Throws: `alreadyExists`, `missingField`.
  package func create(_ model: Model, _ key: Key, _ values: [Assignment]) throws(NodeError) {
    let state = try state(model, key)
    guard !state.exists(rules(model)) else {
      throw .mutation(.alreadyExists(model: model.name, key: text(key, model)))
    }
    try create(model, key, state, values, milliseconds: nil)
  }

  /// Whether a record is there, changes of this commit included.
  package func exists(_ model: Model, _ key: Key) throws(NodeError) -> Bool {
    try state(model, key).exists(rules(model))
  }

  /// The state of a record that is there, changes of this commit included, and the rules to read it with.
  package func shown(_ model: Model, _ key: Key) throws(NodeError) -> (RecordState, MergeRules)? {
    let rules = self.rules(model)
    let state = try state(model, key)
    return state.exists(rules) ? (state, rules) : nil
  }

  /// Prepares a statement that reads the tables as this commit has made them so far.
  package func prepare(_ sql: String) throws(NodeError) -> Statement {
    do { return try tables.prepare(sql) } catch { throw .tables(error) }
  }

  /// Which of a record's events its present state has seen; empty if nothing is known of it.
  package func context(_ model: Model, _ key: Key) throws(NodeError) -> Context {
    try state(model, key).context
  }

  /// Records what of `values` differs from the record as it was when it was read.
  ///
  /// References are recorded as `link` and `unlink`, each with all its free fields; the rest as one `update`.
  /// The events carry the context that was read, so a change that somebody else made since stays a sibling.
  ///
  /// - Parameter read: the record's context when it was read; nil: now.
  /// - Returns: whether there was a difference.
  /// - Throws: `notFound`, `requiredReference`; `notFound` also if the record was deleted since.
  @discardableResult
  package func update(
    _ model: Model, _ key: Key, _ values: [Assignment], readAt read: Context?
  ) throws(NodeError) -> Bool {
    let rules = self.rules(model)
    let current = try existing(model, key)
    var base = current
    if let read, read != current.context { base = try past(model, key, at: read) }
    var changes = values.filter { base.value(of: $0.field, rules) != $0.value }
    guard !changes.isEmpty else { return false }
    try checkReferences(model, key, changes)
    for reference in model.references {
      let free = storedNames(model, model.freeReferenceFields(of: reference))
      guard changes.contains(where: { free.contains($0.field) }) else { continue }
      let written = reference.relationship ?? inverseName(reference, of: model)
      try recordReference(model, key, &base, free, changes, isRequired: reference.isRequired, written)
      changes.removeAll { free.contains($0.field) }
    }
    guard !changes.isEmpty else { return true }
    try recordNext(.update, model, key, &base, nil, base.completed(changes, rules))
    return true
  }

  /// Deletes a record, with what section "Deleting" of the guarantees says of its children.
  package func delete(_ model: Model, _ key: Key) throws(NodeError) {
    try delete(model, key, milliseconds: nil)
  }

  // MARK: Parts

  private func recordReference(
    _ model: Model, _ key: Key, _ base: inout RecordState, _ free: [String], _ changes: [Assignment],
    isRequired: Bool, _ relationship: String?
  ) throws(NodeError) {
    let rules = self.rules(model)
    var values: [Assignment] = free.map { name in
      let given = changes.first { $0.field == name }?.value
      return Assignment(name, given ?? base.value(of: name, rules))
    }
    let isNull = values.contains { $0.value.isNull }
    if isNull, isRequired {
      throw .mutation(
        .requiredReference(
          model: model.name, key: text(key, model), relationship: relationship ?? free.joined(separator: ", ")
        )
      )
    }
    if isNull { values = free.map { Assignment($0, .null) } }
    try recordNext(
      isNull ? .unlink : .link, model, key, &base, relationship, base.completed(values, rules))
  }

  /// The name of the relationship by which the other side declares a reference.
  private func inverseName(_ reference: Reference, of model: Model) -> String? {
    schema.model(named: reference.target)?.relationships.first {
      !$0.storesReference && $0.target == model.name && $0.referenceFields == reference.fields
    }?.name
  }

  /// Records one event on top of `base`, and moves `base` on by it.
  private func recordNext(
    _ operation: Operation, _ model: Model, _ key: Key, _ base: inout RecordState, _ relationship: String?,
    _ assignments: [Assignment]
  ) throws(NodeError) {
    try record(
      operation, model, key, state: base, relationship: relationship, assignments: assignments,
      milliseconds: nil)
    guard let event = events.last else { return }
    do { _ = try base.apply(event, rules(model)) } catch {
      throw .tables(.merge(model: model.name, key, error))
    }
  }

  /// The state of a record that the events of `context` make. Reads them from the log.
  private func past(_ model: Model, _ key: Key, at context: Context) throws(NodeError) -> RecordState {
    let name = RecordKey(
      partition: Partition(model: model, key: key), model: model.storedName, key: key)
    var known = try history(name)
    known += events.filter { RecordKey($0) == name }
    known.removeAll { !context.covers($0.dot) }
    do { return try RecordState.fold(known, rules(model)) } catch {
      throw .tables(.merge(model: model.name, key, error))
    }
  }
}
