import StemmaEvents
import StemmaMerge
import StemmaSchema

extension TablesReader {
  /// The keys of the records that refer to this key, in key order. The parent need not exist.
  package func children(of key: Key, through inverse: InverseReference) throws(TablesError) -> [Key] {
    let layout = try tableSet.layout(named: inverse.child.name)
    let cursor = try children(of: key, layout, inverse.relationship.referenceFields, isReadAtOnce: true)
    var keys: [Key] = []
    while try cursor.statement.step() { keys.append(try layout.key(cursor.statement)) }
    return keys
  }

  /// The target records of a relationship of a record, in key order.
  ///
  /// `belongsTo`, and `hasOne` that stores the reference: the one target, if it exists. Other
  /// `hasOne`: the winner of several children; the others are cardinality conflicts.
  /// - Throws: `unknownModel`, `unknownRelationship`.
  package func related(
    to key: Key, of model: String, through name: String
  ) throws(TablesError) -> RowCursor {
    let layout = try tableSet.layout(named: model)
    guard let relationship = layout.model.relationship(named: name) else {
      throw .unknownRelationship(model: model, relationship: name)
    }
    let target = try tableSet.layout(named: relationship.target)
    if relationship.kind == .manyToMany { return try joined(key, layout, relationship, target) }
    if relationship.storesReference { return try parent(key, layout, relationship, target) }
    if relationship.kind == .hasOne,
      let winner = try siblings(key, target, relationship.referenceFields).first
    {
      let statement = try connection.prepare(target.selectByKey)
      try target.bind(winner.key, to: statement)
      return RowCursor(layout: target, statement: statement)
    }
    return try children(of: key, target, relationship.referenceFields)
  }

  private func children(
    of key: Key, _ child: TableLayout, _ fields: [String], isReadAtOnce: Bool = false
  ) throws(TablesError) -> RowCursor {
    let matches = fields.enumerated().map { "\(TableLayout.quoted($1)) = ?\($0 + 1)" }
    let sql =
      "\(child.selection()) FROM \(child.table) WHERE \(matches.joined(separator: " AND ")) "
      + "ORDER BY \(child.keyOrder())"
    let statement = isReadAtOnce ? try connection.prepareOnce(text: sql) : try connection.prepare(sql)
    for (index, part) in key.parts.prefix(fields.count).enumerated() {
      statement.bind(Int32(index + 1), part.value)
    }
    return RowCursor(layout: child, statement: statement)
  }

  private func parent(
    _ key: Key, _ child: TableLayout, _ relationship: Relationship, _ parent: TableLayout
  ) throws(TablesError) -> RowCursor {
    let matches = zip(parent.key, relationship.referenceFields).map {
      "p.\(TableLayout.quoted($0.field.name)) = c.\(TableLayout.quoted($1))"
    }
    let own = child.key.enumerated().map { "c.\(TableLayout.quoted($1.field.name)) = ?\($0 + 1)" }
    let statement = try connection.prepare(
      "\(parent.selection(alias: "p")) FROM \(child.table) c JOIN \(parent.table) p "
        + "ON \(matches.joined(separator: " AND ")) WHERE \(own.joined(separator: " AND "))")
    try child.bind(key, to: statement)
    return RowCursor(layout: parent, statement: statement)
  }

  private func joined(
    _ key: Key, _ layout: TableLayout, _ relationship: Relationship, _ target: TableLayout
  ) throws(TablesError) -> RowCursor {
    guard let join = relationship.joinModel else {
      throw .unknownRelationship(model: layout.model.name, relationship: relationship.name)
    }
    let joinLayout = try tableSet.layout(named: join)
    let near = relationship.referenceFields
    let far = joinLayout.key.map(\.field.name).filter { !near.contains($0) }
    let matches = zip(target.key, far).map {
      "t.\(TableLayout.quoted($0.field.name)) = j.\(TableLayout.quoted($1))"
    }
    let own = near.enumerated().map { "j.\(TableLayout.quoted($1)) = ?\($0 + 1)" }
    let statement = try connection.prepare(
      "\(target.selection(alias: "t")) FROM \(joinLayout.table) j JOIN \(target.table) t "
        + "ON \(matches.joined(separator: " AND ")) WHERE \(own.joined(separator: " AND ")) "
        + "ORDER BY \(target.keyOrder(alias: "t"))")
    try layout.bind(key, to: statement)
    return RowCursor(layout: target, statement: statement)
  }

  /// A candidate child of a `hasOne`, and the write that made it refer to its parent.
  struct Sibling {
    let key: Key
    let write: Candidate
  }

  /// The children of a parent, the one that a `hasOne` shows first. They are ordered by the highest
  /// (version, timestamp, origin, sequence) of the reference's write, then by key.
  func siblings(_ key: Key, _ child: TableLayout, _ fields: [String]) throws(TablesError) -> [Sibling] {
    let cursor = try children(of: key, child, fields, isReadAtOnce: true)
    defer { cursor.statement.reset() }
    var siblings: [Sibling] = []
    while try cursor.statement.step() {
      let key = try child.key(cursor.statement)
      let state = try child.state(cursor.statement, key)
      guard let write = child.write(ofReference: fields, state) else { continue }
      siblings.append(Sibling(key: key, write: write))
    }
    return siblings.sorted { ReferenceRank.isAbove(($0.write, $0.key), ($1.write, $1.key)) }
  }
}

extension ReadConnection {
  /// The key of the child that a parent's `hasOne` shows; nil if it has none.
  package func shownChild(
    of key: Key, _ child: Model, _ fields: [String]
  ) throws(TablesError) -> Key? {
    let reader = TablesReader(connection: connection, tableSet: TableSet(Schema(models: [child])))
    return try reader.siblings(key, TableLayout(child), fields).first?.key
  }
}

extension TableLayout {
  /// The shown write of a reference: that of its fields, or of the existence if the key has them.
  func write(ofReference fields: [String], _ state: RecordState) -> Candidate? {
    let free = columns.first { fields.contains($0.field.name) }
    if let free { return state.siblings(of: free.field.storedName, rules).first }
    return state.existenceSiblings(rules).first
  }
}
