import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

extension WriteTransaction {
  /// The result of one mutation.
  package struct Outcome: Sendable {
    package var model: String
    package var key: Key
    /// False if the record already had the requested state, so that no event was recorded.
    package var isChanged: Bool
  }

  /// Performs one mutation.
  ///
  /// - Throws: `NodeError.mutation` with the reason. The caller must then abandon the commit.
  @discardableResult
  package func perform(_ mutation: Mutation, ifRevision: String? = nil) throws(NodeError) -> Outcome {
    let model = try model(mutation.model)
    let before = events.count
    let key = try key(mutation.key, of: model, mints: mutation.operation == .create)
    if let ifRevision { try check(ifRevision, model, key) }
    switch mutation.operation {
    case .create: try create(model, key, mutation)
    case .update:
      let state = try existing(model, key)
      try update(
        model, key, state, try assignments(model, key, mutation.fields), mutation.milliseconds)
    case .upsert:
      try move(model, mutation.previousKey, key, milliseconds: mutation.milliseconds)
      let state = try state(model, key)
      if state.exists(rules(model)) {
        try update(
          model, key, state, try assignments(model, key, mutation.fields), mutation.milliseconds)
      } else {
        try create(model, key, mutation)
      }
    case .delete:
      // Fields have no effect here, but an unknown one is an error.
      _ = try assignments(model, key, mutation.fields)
      if mutation.toleratesAbsence, try !state(model, key).exists(rules(model)) { break }
      try delete(model, key, milliseconds: mutation.milliseconds)
    case .link: try link(model, key, mutation)
    case .unlink: try unlink(model, key, mutation)
    }
    return Outcome(model: model.name, key: key, isChanged: events.count > before)
  }

  /// Deletes the record if its source has changed its key.
  private func move(
    _ model: Model, _ previous: JSON?, _ key: Key, milliseconds: UInt64?
  ) throws(NodeError) {
    guard let previous else { return }
    let old = try self.key(previous, of: model)
    guard old != key, try state(model, old).exists(rules(model)) else { return }
    try delete(model, old, milliseconds: milliseconds)
    counts.moved += 1
  }

  /// - Throws: `revisionMismatch` with the current revision; `notFound`.
  package func check(_ revision: String, _ model: Model, _ key: Key) throws(NodeError) {
    let current = try existing(model, key).revision
    guard current == revision else {
      throw .mutation(
        .revisionMismatch(
          model: model.name, key: text(key, model), expected: revision, current: current))
    }
  }

  // MARK: Create

  private func create(_ model: Model, _ key: Key, _ mutation: Mutation) throws(NodeError) {
    let state = try state(model, key)
    guard !state.exists(rules(model)) else {
      throw .mutation(.alreadyExists(model: model.name, key: text(key, model)))
    }
    try create(
      model, key, state, try assignments(model, key, mutation.fields),
      milliseconds: mutation.milliseconds)
  }

  /// Records the creation of an absent record, with defaults for fields that are not given.
  func create(
    _ model: Model, _ key: Key, _ state: RecordState, _ given: [Assignment], milliseconds: UInt64?
  ) throws(NodeError) {
    var values = given
    for index in model.fields.indices where !model.isKeyField(index) {
      // Copying a whole field is costly, and most fields need only their name.
      let name = model.fields[index].storedName
      if values.contains(where: { $0.field == name && !$0.value.isNull }) { continue }
      guard model.fields[index].isRequired || model.fields[index].defaultValue != nil else { continue }
      let field = model.fields[index]
      if let value = model.defaultValue(of: field), !values.contains(where: { $0.field == name }) {
        values.append(Assignment(name, value))
      } else if field.isRequired, field.name != model.createdAt, field.name != model.updatedAt {
        throw .mutation(
          .missingField(model: model.name, key: text(key, model), field: field.name))
      }
    }
    // A create writes every field. Only under OPTIMISTIC must the event name them all. A null is
    // named if it differs from an absent field.
    if model.conflictPolicy == .optimistic {
      for (index, field) in model.fields.enumerated()
      where !model.isKeyField(index) && !values.contains(where: { $0.field == field.storedName }) {
        values.append(Assignment(field.storedName, .null))
      }
      values = withoutUnsetTimes(values, model)
    } else {
      let rules = self.rules(model)
      values.removeAll { $0.value.isNull && !rules.distinguishesNull($0.field) }
    }
    try checkReferences(model, key, values, isNew: true)
    try record(.create, model, key, state: state, assignments: values, milliseconds: milliseconds)
  }

  /// Removes null times that the node maintains, because null does not set them.
  package func withoutUnsetTimes(_ values: [Assignment], _ model: Model) -> [Assignment] {
    let maintained = storedNames(model, [model.createdAt, model.updatedAt].compactMap(\.self))
    return values.filter { !$0.value.isNull || !maintained.contains($0.field) }
  }

  // MARK: Update

  /// Records the values that differ from the record.
  func update(
    _ model: Model, _ key: Key, _ state: RecordState, _ given: [Assignment], _ milliseconds: UInt64?
  ) throws(NodeError) {
    let rules = self.rules(model)
    var values = given
    for assignment in values where assignment.value.isNull {
      if let field = model.fields.first(where: { $0.storedName == assignment.field }), field.isRequired {
        throw .mutation(
          .missingField(model: model.name, key: text(key, model), field: field.name))
      }
    }
    values.removeAll { !isChanged(state, by: $0, rules) }
    guard !values.isEmpty else { return }
    let changed = values
    values = state.completed(values, rules)
    try checkReferences(model, key, values, changed: changed)
    try record(.update, model, key, state: state, assignments: values, milliseconds: milliseconds)
  }

  package func storedNames(_ model: Model, _ names: [String]) -> [String] {
    names.compactMap { model.field(named: $0)?.storedName }
  }

  // MARK: Fields

  /// Converts fields to assignments. The name of a belongsTo means its reference fields.
  func assignments(
    _ model: Model, _ key: Key, _ fields: [(name: String, value: JSON)]
  ) throws(NodeError) -> [Assignment] {
    var values: [Assignment] = []
    values.reserveCapacity(fields.count)
    // A relationship and its field may both be given; two relationships may share a field.
    func set(_ assignment: Assignment) throws(NodeError) {
      guard let given = values.first(where: { $0.field == assignment.field }) else {
        return values.append(assignment)
      }
      guard given.value != assignment.value else { return }
      let name = model.fields.first { $0.storedName == assignment.field }?.name ?? assignment.field
      throw .mutation(
        .wrongShape(
          "`\(name)` of \(model.name) is given twice, by itself or a relationship, with different values"))
    }
    for (name, json) in fields {
      if let index = model.index(ofField: name) {
        let value: Value
        do { value = try schema.value(json, for: model.fields[index], of: model.name) } catch {
          throw .mutation(.value(error.named(by: text(key, model))))
        }
        if model.isKeyField(index) {
          // An export repeats no key part, but people do. An equal value is harmless.
          guard let part = model.keyFields.firstIndex(of: index), key.parts[part].value == value else {
            throw .mutation(
              .keyFieldAssigned(model: model.name, key: text(key, model), field: name))
          }
          continue
        }
        try set(Assignment(model.fields[index].storedName, value))
      } else if let relationship = model.relationship(named: name), relationship.storesReference {
        let target = json.isNull ? nil : try self.key(json, of: try self.model(relationship.target))
        for assignment in try reference(model, key, relationship, target) { try set(assignment) }
      } else {
        throw .mutation(
          .unknownField(model: model.name, field: name, known: model.fields.map(\.name)))
      }
    }
    return values
  }

  /// The assignments that make a record refer to `target`, or to no record.
  func reference(
    _ model: Model, _ key: Key, _ relationship: Relationship, _ target: Key?
  ) throws(NodeError) -> [Assignment] {
    let free = model.freeReferenceFields(of: relationship)
    guard let target else {
      let isRequired =
        free.isEmpty || relationship.isRequired
        || free.contains { model.field(named: $0)?.isRequired ?? false }
      guard !isRequired else {
        throw .mutation(
          .requiredReference(model: model.name, key: text(key, model), relationship: relationship.name))
      }
      return storedNames(model, free).map { Assignment($0, .null) }
    }
    let own = key.parts
    var values: [Assignment] = []
    for (name, part) in zip(relationship.referenceFields, target.parts) {
      guard let index = model.index(ofField: name) else { continue }
      if let place = model.keyFields.firstIndex(of: index) {
        guard own[place] == part else {
          throw .mutation(
            .fixedReference(model: model.name, key: text(key, model), field: name))
        }
      } else {
        values.append(Assignment(model.fields[index].storedName, part.value))
      }
    }
    return values
  }
}

extension WriteTransaction {
  /// Whether writing a value has an effect: it differs from the shown one, or resolves a conflict.
  func isChanged(_ state: RecordState, by assignment: Assignment, _ rules: MergeRules) -> Bool {
    if state.value(of: assignment.field, rules) != assignment.value { return true }
    guard closesConflicts else { return false }
    let siblings = state.siblings(of: assignment.field, rules)
    return siblings.count > 1
      && siblings.contains { sibling in
        sibling.values.contains {
          $0.field.hasSameBytes(as: assignment.field) && $0.value != assignment.value
        }
      }
  }
}

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
