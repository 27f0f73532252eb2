import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

/// Changes with typed values, as Swift programs make them. They need no JSON parsing.
///
/// Values are in their canonical form (`Schema.value`), under stored names.
extension WriteTransaction {
  /// Creates a record.
  ///
  /// - Parameter values: unnamed fields get their default, or null.
  /// - Throws: `alreadyExists`, `missingField`.
  package func create(_ model: Model, _ key: Key, _ values: [Assignment]) throws(NodeError) {
    let state = try state(model, key)
    guard !state.exists(rules(model)) else {
      throw .mutation(.alreadyExists(model: model.name, key: text(key, model)))
    }
    try create(model, key, state, try checked(values, model, key), milliseconds: nil)
  }

  /// Converts a value of another type to the form of the field's type.
  ///
  /// - Throws: `value` if the type does not allow it.
  package func value(_ value: Value, of field: Field, _ model: Model) throws(NodeError) -> Value {
    if value.isNull { return value }
    do { return try checked(value, field, model) } catch { throw .mutation(.value(error)) }
  }

  /// Whether a record exists, including changes of this commit.
  package func exists(_ model: Model, _ key: Key) throws(NodeError) -> Bool {
    try state(model, key).exists(rules(model))
  }

  /// The state of an existing record, including changes of this commit, and its merge rules.
  package func shown(_ model: Model, _ key: Key) throws(NodeError) -> (RecordState, MergeRules)? {
    let rules = self.rules(model)
    let state = try state(model, key)
    return state.exists(rules) ? (state, rules) : nil
  }

  /// Prepares a statement that reads the tables with the changes of this commit.
  package func prepare(_ sql: String) throws(NodeError) -> Statement {
    do { return try tables.prepare(sql) } catch { throw .tables(error) }
  }

  /// Records the values that differ from the record as it was read.
  ///
  /// A reference becomes a `link` or `unlink` with all its free fields; the rest becomes one
  /// `update`. Events carry the context that was read, so a later change of another writer stays a
  /// sibling. Earlier changes from the same value count as seen, unless another writer changed one
  /// of the registers since. No context includes the own event without the other one.
  ///
  /// - Parameters:
  ///   - view: the part of the record that the value has seen; nil: all.
  ///   - isUnchanged: whether the value at an index of `values` spells the second argument, which
  ///     is the value that was read.
  /// - Returns: the part that the value has seen afterwards.
  /// - Throws: `requiredReference`; `notFound`, also if the record was deleted since.
  @discardableResult
  package func update(
    _ model: Model, _ key: Key, _ values: [Assignment], from view: RecordView? = nil,
    isUnchanged: (_ place: Int, Value) -> Bool
  ) throws(NodeError) -> RecordView {
    let rules = self.rules(model)
    let current = try existing(model, key)
    let view = view ?? RecordView(read: current.context)
    let seen = SeenRecord(
      view: view, read: try past(model, key, at: view.read, current),
      after: try view.after.map { after throws(NodeError) in try past(model, key, at: after, current) }, rules
    )
    var changes: [Assignment] = []
    for (place, assignment) in values.enumerated() {
      let old = seen.value(of: assignment.field)
      if isUnchanged(place, old) { continue }
      let isSurelyChanged = old == assignment.value
      changes += try checked([assignment], model, key).filter { isSurelyChanged || $0.value != old }
    }
    guard !changes.isEmpty else { return view }
    let before = events.count
    try record(changes, model, key, on: seen.base(of: changes))
    return view.moved(by: events[before...], from: current.context, to: try state(model, key))
  }

  /// Records changes based on the state `base`.
  private func record(
    _ changes: [Assignment], _ model: Model, _ key: Key, on base: RecordState
  ) throws(NodeError) {
    var (base, changes) = (base, changes)
    let rules = self.rules(model)
    try checkReferences(model, key, changes)
    for reference in model.references {
      let free = storedNames(model, model.freeReferenceFields(of: reference))
      guard changes.contains(where: { free.contains($0.field) }) else { continue }
      let written = reference.relationship ?? inverseName(reference, of: model)
      try recordReference(model, key, &base, free, changes, isRequired: reference.isRequired, written)
      changes.removeAll { free.contains($0.field) }
    }
    guard !changes.isEmpty else { return }
    try recordNext(.update, model, key, &base, nil, base.completed(changes, rules))
  }

  /// Deletes a record and treats its children as the section "Deleting" of the guarantees states.
  ///
  /// - Parameter read: the record's context when it was read; nil: the present one. Later changes
  ///   stay siblings of the deletion.
  package func delete(_ model: Model, _ key: Key, readAt read: Context? = nil) throws(NodeError) {
    let current = try existing(model, key)
    var seen: RecordState?
    if let read, read != current.context { seen = try past(model, key, at: read, current) }
    try delete(model, key, seen: seen, milliseconds: nil)
  }

  /// Links a record to another one, whichever side stores the relationship.
  package func link(_ model: String, _ key: Key, _ name: String, _ target: Key) throws(NodeError) {
    try relate(.link, model, key, name, target)
  }

  /// Removes a link.
  package func unlink(_ model: String, _ key: Key, _ name: String, _ target: Key) throws(NodeError) {
    try relate(.unlink, model, key, name, target)
  }

  private func relate(
    _ operation: Mutation.Operation, _ modelName: String, _ key: Key, _ name: String, _ target: Key
  ) throws(NodeError) {
    let model = try model(modelName)
    let other = try self.model(model.relationship(named: name)?.target ?? "")
    _ = try existing(model, key)
    try perform(
      Mutation(
        operation, model: modelName, key: schema.json(of: key, model: model),
        fields: [(name, schema.json(of: target, model: other))]))
  }

  /// The revision of a record at a causal context; nil: the present one.
  package func revision(_ model: Model, _ key: Key, readAt read: Context?) throws(NodeError) -> String {
    let current = try existing(model, key)
    guard let read else { return current.revision }
    return try past(model, key, at: read, current).revision
  }

  /// - Returns: the model.
  /// - Throws: `notFound` if the record does not exist.
  @discardableResult
  package func demand(_ modelName: String, _ key: Key) throws(NodeError) -> Model {
    let model = try model(modelName)
    _ = try existing(model, key)
    return model
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

  /// The name of the relationship that declares a reference on the other side.
  func inverseName(_ reference: Reference, of model: Model) -> String? {
    schema.model(named: reference.target)?.relationships.first {
      !$0.storesReference && $0.target == model.name && $0.referenceFields == reference.fields
    }?.name
  }

  /// Records one event based on `base`, and applies it to `base`.
  private func recordNext(
    _ operation: EventOperation, _ model: Model, _ key: Key, _ base: inout RecordState,
    _ relationship: String?,
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

  /// The state that the events in `context` produce. Reads the log unless it is the current state.
  private func past(
    _ model: Model, _ key: Key, at context: Context, _ current: RecordState
  ) throws(NodeError) -> RecordState {
    if context == current.context { return current }
    let name = RecordKey(
      partition: Partition(model: model, key: key), model: model.storedName, key: key)
    var known = try history(name)
    known += events.filter { RecordKey($0) == name }
    known.removeAll { !context.covers($0.id) }
    do { return try RecordState.fold(known, rules(model)) } catch {
      throw .tables(.merge(model: model.name, key, error))
    }
  }
}
