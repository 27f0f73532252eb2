import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

/// Changes that come with typed values, which need no reading of JSON: what a Swift program writes.
///
/// Values are stored ones, in the one form that each has (`Schema.value`), under stored names.
extension WriteTransaction {
  /// Creates a record.
  ///
  /// - Parameter values: what is not named here has its default, or is null.
  /// - Throws: `alreadyExists`, `missingField`.
  package func create(_ model: Model, _ key: Key, _ values: [Assignment]) throws(NodeError) {
    let state = try state(model, key)
    guard !state.exists(rules(model)) else {
      throw .mutation(.alreadyExists(model: model.name, key: text(key, model)))
    }
    try create(model, key, state, try checked(values, model, key), milliseconds: nil)
  }

  /// A value that comes in another type than the field's, in the form that the field's type gives it.
  ///
  /// - Throws: `value` if that type does not allow it.
  package func value(_ value: Value, of field: Field, _ model: Model) throws(NodeError) -> Value {
    if value.isNull { return value }
    do { return try checked(value, field, model) } catch { throw .mutation(.value(error)) }
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

  /// Records what of `values` differs from the record as it was when it was read.
  ///
  /// References are recorded as `link` and `unlink`, each with all its free fields; the rest as one `update`.
  /// The events carry the context that was read, so a change that somebody else made since stays a sibling. What was
  /// recorded from the same value before is seen as well, unless somebody else has written one of the registers
  /// meanwhile: a context could not name the own event without theirs.
  ///
  /// - Parameters:
  ///   - view: what the value has seen of the record; nil: all.
  ///   - isUnchanged: whether the value at a place of `values` is the one that is given, which the record had when it was
  ///     read, or another spelling of it, as a date in another zone is.
  /// - Returns: what the value has seen now.
  /// - Throws: `notFound`, `requiredReference`; `notFound` also if the record was deleted since.
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

  /// Records changes on top of `base`.
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

  /// Deletes a record, with what section "Deleting" of the guarantees says of its children.
  ///
  /// - Parameter read: the record's context when it was read; nil: now. What was changed since stays a sibling of the
  ///   deletion.
  package func delete(_ model: Model, _ key: Key, readAt read: Context? = nil) throws(NodeError) {
    let current = try existing(model, key)
    var seen: RecordState?
    if let read, read != current.context { seen = try past(model, key, at: read, current) }
    try delete(model, key, seen: seen, milliseconds: nil)
  }

  /// Makes a relationship of a record lead to another one, whichever side stores it.
  package func link(_ model: String, _ key: Key, _ name: String, _ target: Key) throws(NodeError) {
    try relate(.link, model, key, name, target)
  }

  /// Ends what `link` made.
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

  /// The revision of a record as it was when its context was this one; nil: as it is.
  package func revision(_ model: Model, _ key: Key, readAt read: Context?) throws(NodeError) -> String {
    let current = try existing(model, key)
    guard let read else { return current.revision }
    return try past(model, key, at: read, current).revision
  }

  /// - Returns: the model.
  /// - Throws: `notFound` if the record is not there.
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

  /// The name of the relationship by which the other side declares a reference.
  func inverseName(_ reference: Reference, of model: Model) -> String? {
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

  /// The state of a record that the events of `context` make. Reads them from the log, if it is not the current one.
  private func past(
    _ model: Model, _ key: Key, at context: Context, _ current: RecordState
  ) throws(NodeError) -> RecordState {
    if context == current.context { return current }
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
