import StemmaEvents
import StemmaMerge
import StemmaSchema

/// Concurrent changes that contradict each other and need a decision.
package struct OpenConflict: Hashable, Sendable {
  package enum Kind: String, Sendable, CaseIterable {
    /// A field, or a group of fields that are written together, has differing values.
    case value
    /// The record was deleted, and concurrently changed or recreated.
    case delete
    /// Several children refer to one parent whose `hasOne` shows only one of them.
    case cardinality
    /// The target of a reference does not exist, although this node holds its partition.
    case dangling
  }

  package struct Choice: Hashable, Sendable {
    package enum Value: Hashable, Sendable {
      case field(StemmaEvents.Value)
      /// The values of a register of several fields, by declared name.
      case fields([Assignment])
      case exists(Bool)
      /// The child (cardinality) or the missing parent (dangling).
      case record(model: String, Key)
    }

    package var value: Value
    /// The event that wrote it.
    package var event: QualifiedEventID
    package var version: Version
    package var timestamp: Timestamp
    package var operation: EventOperation
  }

  package var kind: Kind
  /// Declared name.
  package var model: String
  package var key: Key
  /// The declared name of the field; of the relationship for a register of several reference
  /// fields, cardinality and dangling. Nil for `delete`, and for a whole record under OPTIMISTIC.
  package var field: String?
  /// For cardinality: the relationship that stores the reference, as the child declares it, or as
  /// the parent does if the child declares none.
  package var reference: String?
  /// The shown choice comes first. Dangling has one choice.
  package var choices: [Choice]
}

/// Streams conflicts by model name. For each model: value and delete conflicts by key, then
/// cardinality by the parent's key, then dangling by the child's key.
package struct ConflictCursor {
  private let reader: TablesReader
  private let isInScope: (Partition) -> Bool
  /// The record in question; nil for all records.
  private let key: Key?
  /// The first record with value and delete conflicts; nil: of all.
  private let start: Key?
  private var searches: ArraySlice<ConflictSearch>
  private var current: (search: ConflictSearch, statement: Statement)?
  private var found: ArraySlice<OpenConflict> = []
  private var isFirst = true

  init(
    _ reader: TablesReader, _ searches: [ConflictSearch], _ key: Key?, from start: Key?,
    _ isInScope: @escaping (Partition) -> Bool
  ) {
    self.reader = reader
    self.searches = searches[...]
    self.key = key
    self.start = start
    self.isInScope = isInScope
  }

  package mutating func next() throws(TablesError) -> OpenConflict? {
    while true {
      if let conflict = found.popFirst() { return conflict }
      if let (search, statement) = current {
        if try statement.step() {
          found = try read(search, statement)[...]
          continue
        }
        current = nil
      }
      guard let search = searches.popFirst() else { return nil }
      current = (search, try reader.begin(search, key, from: isFirst ? start : nil))
      isFirst = false
    }
  }

  /// Traps if conflicts are pending without a search.
  package func checkInvariants() {
    precondition(found.isEmpty || current != nil, "what is found is of the row at hand")
  }

  /// The conflicts in the current row of a search.
  private func read(
    _ search: ConflictSearch, _ statement: Statement
  ) throws(TablesError) -> [OpenConflict] {
    switch search {
    case .registers(let layout): try reader.registers(layout, statement)
    case .cardinality(let parent, let reference, let hasOne):
      [try reader.cardinality(parent, reference, hasOne, statement)]
    case .dangling(let child, let reference):
      try reader.dangling(child, reference, statement, isInScope).map { [$0] } ?? []
    }
  }
}

/// One query of the search for conflicts.
enum ConflictSearch {
  /// Value and delete conflicts of a model.
  case registers(TableLayout)
  /// Cardinality conflicts of the parent's `hasOne` of this name.
  case cardinality(TableLayout, StoredReference, hasOne: String)
  /// Dangling references of the child.
  case dangling(TableLayout, StoredReference)
}

extension TablesReader {
  /// All open conflicts of these models, or of all. `isInScope` selects the partitions that this
  /// node holds: a reference into another one is not dangling. Nil omits dangling references. The
  /// time is O(value and delete conflicts + children of relationships), of the `kinds` among them.
  /// A `key` requires exactly one model and selects one record.
  ///
  /// - Parameter start: omits the models before its model, and of that one the value and delete
  ///   conflicts of records before its key.
  package func conflicts(
    _ models: [String]? = nil, key: Key? = nil, from start: (model: String, key: Key)? = nil,
    kinds: Set<OpenConflict.Kind> = Set(OpenConflict.Kind.allCases), isInScope: ((Partition) -> Bool)?
  ) throws(TablesError) -> ConflictCursor {
    try HeadChecksum.checkConflicts(connection)
    var layouts = tableSet.layoutsByName
    if let models {
      for name in models { _ = try tableSet.layout(named: name) }
      layouts.removeAll { !models.contains($0.model.name) }
    }
    if let start, let place = layouts.firstIndex(where: { $0.model.name == start.model }) {
      layouts.removeFirst(place)
    }
    var searches: [ConflictSearch] = []
    for layout in layouts {
      let isOfRegisters = !kinds.isDisjoint(with: [.value, .delete])
      if isOfRegisters || start?.model == layout.model.name { searches.append(.registers(layout)) }
      for reference in tableSet.references where reference.parent.name == layout.model.name {
        if let hasOne = reference.hasOne, kinds.contains(.cardinality) {
          searches.append(.cardinality(layout, reference, hasOne: hasOne))
        }
      }
      guard isInScope != nil, kinds.contains(.dangling) else { continue }
      for reference in tableSet.references where reference.child.name == layout.model.name {
        searches.append(.dangling(layout, reference))
      }
    }
    return ConflictCursor(self, searches, key, from: start?.key, isInScope ?? { _ in false })
  }

  fileprivate func begin(
    _ search: ConflictSearch, _ key: Key?, from start: Key?
  ) throws(TablesError) -> Statement {
    switch search {
    case .registers(let layout):
      let statement = try connection.prepare(
        "SELECT key FROM _stemma_conflicts WHERE model = ? AND key >= ?\(key == nil ? "" : " AND key <= ?") "
          + "ORDER BY key")
      statement.bind(1, layout.model.storedName)
      statement.bind(2, blob: (key ?? start)?.bytes ?? [])
      if let key { statement.bind(3, blob: key.bytes) }
      return statement
    case .cardinality(let parent, let reference, _):
      let child = TableLayout.quoted(reference.child.tableName)
      let fields = reference.fields.map { "c.\(TableLayout.quoted($0))" }.joined(separator: ", ")
      let statement = try connection.prepare(
        "SELECT \(parent.keyOrder(alias: "p")) FROM \(child) c JOIN \(parent.table) p "
          + "ON \(match(parent, reference))\(key == nil ? "" : " AND " + parent.keyMatches(alias: "p")) GROUP BY \(fields) HAVING count(*) > 1 "
          + "ORDER BY \(parent.keyOrder(alias: "p"))")
      if let key { try parent.bind(key, to: statement) }
      return statement
    case .dangling(let child, let reference):
      let parent = try tableSet.layout(named: reference.parent.name)
      let fields = reference.fields.map { "c.\(TableLayout.quoted($0))" }
      let isSet = fields.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
      let statement = try connection.prepare(
        "\(child.selection(alias: "c")), \(fields.joined(separator: ", ")) FROM \(child.table) c "
          + "WHERE \(isSet) \(key == nil ? "" : "AND " + child.keyMatches(alias: "c") + " ")"
          + "AND NOT EXISTS (SELECT 1 FROM \(parent.table) p WHERE \(match(parent, reference))) "
          + "ORDER BY \(child.keyOrder(alias: "c"))")
      if let key { try child.bind(key, to: statement) }
      return statement
    }
  }

  fileprivate func registers(
    _ layout: TableLayout, _ statement: Statement
  ) throws(TablesError) -> [OpenConflict] {
    let key = try layout.storedKey(statement, 0)
    guard let state = try self.state(of: key, in: layout.model) else { return [] }
    return state.conflicts(layout.rules).map { conflict in
      OpenConflict(
        kind: conflict.kind == .delete ? .delete : .value, model: layout.model.name, key: key,
        field: layout.name(of: conflict),
        choices: conflict.candidates.map { layout.choice(layout.value(of: $0, conflict), $0, key) })
    }
  }

  fileprivate func cardinality(
    _ parent: TableLayout, _ reference: StoredReference, _ hasOne: String, _ statement: Statement
  ) throws(TablesError) -> OpenConflict {
    let child = try tableSet.layout(named: reference.child.name)
    let key = try parent.key(statement)
    let choices = try siblings(key, child, reference.fields).map {
      child.choice(.record(model: child.model.name, $0.key), $0.write, $0.key)
    }
    return OpenConflict(
      kind: .cardinality, model: parent.model.name, key: key, field: hasOne,
      reference: reference.inverse.relationship.name, choices: choices)
  }

  fileprivate func dangling(
    _ child: TableLayout, _ reference: StoredReference, _ statement: Statement,
    _ isInScope: (Partition) -> Bool
  ) throws(TablesError) -> OpenConflict? {
    let parent = try tableSet.layout(named: reference.parent.name)
    let target = try parent.key(statement, first: child.stateColumn + 1)
    let key = try child.key(statement)
    let state = try child.state(statement, key)
    guard isInScope(try parent.partition(of: target)),
      let write = child.write(ofReference: reference.fields, state)
    else { return nil }
    return OpenConflict(
      kind: .dangling, model: child.model.name, key: key, field: reference.inverse.relationship.name,
      choices: [child.choice(.record(model: parent.model.name, target), write, key)])
  }

  private func match(_ parent: TableLayout, _ reference: StoredReference) -> String {
    zip(parent.key, reference.fields).map {
      "p.\(TableLayout.quoted($0.field.name)) = c.\(TableLayout.quoted($1))"
    }.joined(separator: " AND ")
  }
}

extension TableLayout {
  fileprivate func choice(
    _ value: OpenConflict.Choice.Value, _ write: Candidate, _ key: Key
  ) -> OpenConflict.Choice {
    OpenConflict.Choice(
      value: value, event: QualifiedEventID(partition: Partition(model: model, key: key), id: write.id),
      version: write.version, timestamp: write.timestamp, operation: write.operation)
  }

  fileprivate func value(of candidate: Candidate, _ conflict: RegisterConflict) -> OpenConflict.Choice.Value {
    if conflict.kind == .delete { return .exists(candidate.exists) }
    // A whole record is returned as fields, even if it has only one.
    if candidate.values.count == 1, model.conflictPolicy != .optimistic {
      return .field(candidate.values[0].value)
    }
    return .fields(candidate.values.map { Assignment(declaredName($0.field), $0.value) })
  }

  fileprivate func name(of conflict: RegisterConflict) -> String? {
    if conflict.kind == .delete || model.conflictPolicy == .optimistic { return nil }
    let names = conflict.fields.map(declaredName)
    if names.count == 1 { return names[0] }
    // If only the other model declares the reference, one field suffices to find it.
    return model.relationships.first { relationship in
      relationship.storesReference && names.contains { relationship.referenceFields.contains($0) }
    }?.name ?? names.first
  }

  func declaredName(_ stored: String) -> String {
    columns.first { $0.field.storedName == stored }?.field.name ?? stored
  }
}
