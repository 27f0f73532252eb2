import StemmaEvents
import StemmaTables

extension ReadConnection {
  /// Reads the related records on a path for `rows`, all of one type: one query for each step. A
  /// step that was read before is not read again, so that paths can share a beginning. References
  /// in a cycle are followed only as far as the path goes.
  func include(
    _ path: ArraySlice<String>, in rows: [any Table], _ store: Store, isPast: Bool = false
  ) throws {
    guard let name = path.first, let first = rows.first else { return }
    var owners: [(row: any Table, record: LoadedRecord)] = []
    var isOpen = false
    var seen: Set<LoadedRecord> = []
    for row in rows {
      guard let record = row._record.loaded, seen.insert(record).inserted else { continue }
      owners.append((row, record))
      if record.related(name) == nil { isOpen = true }
    }
    if isOpen { try load(name, of: type(of: first).description, owners, store, isPast) }
    try include(
      path.dropFirst(), in: owners.flatMap { $0.record.related(name)?.rows ?? [] }, store, isPast: isPast)
  }

  private func load(
    _ name: String, of description: ModelDescription, _ owners: [(row: any Table, record: LoadedRecord)],
    _ store: Store, _ isPast: Bool
  ) throws {
    let (relationship, route) = try description.route(name)
    let target = relationship.target()
    let keys = owners.map { owner in
      if case .parent(let fields) = route { return owner.row.values(of: fields) }
      return owner.row.keyValues
    }
    var found = try related(target, route, keys, store, isPast)
    if relationship.kind == .hasOne {
      for (key, rows) in found where rows.count > 1 {
        found[key] = try shown(of: rows, relationship.fields, key, store)
      }
    }
    for (owner, key) in zip(owners, keys) where owner.record.related(name) == nil {
      owner.record.setRelated(name, RecordsReadAlong(rows: found[key] ?? [], key: key))
    }
  }

  /// The rows that belong to each of several keys, in the order of their own.
  private func related<Target: Table>(
    _ type: Target.Type, _ route: Route, _ keys: [[Value]], _ store: Store, _ isPast: Bool = false
  ) throws -> [[Value]: [any Table]] {
    let description = Target.description
    let wanted = Set(keys).filter { !$0.contains(where: \.isNull) }
    guard !wanted.isEmpty else { return [:] }
    let list = ValueList(Array(wanted))
    let bindings = [list.parameter]
    let order = " ORDER BY \(Route.list(description.tableName, description.key.map(\.name)))"
    var found: [[Value]: [any Table]] = [:]
    switch route {
    case .parent:
      let columns = description.key.map(\.name)
      let sql = "\(description.selection) WHERE \(Self.isAmong(list, description.tableName, columns))"
      for row in try rows(type, sql, bindings, store, isPast) { found[row.keyValues] = [row] }
    case .children(let fields):
      let sql = "\(description.selection) WHERE \(Self.isAmong(list, description.tableName, fields))\(order)"
      for row in try rows(type, sql, bindings, store, isPast) {
        found[row.values(of: fields), default: []].append(row)
      }
    case .joined(let join, let near, let far):
      let matches = zip(far, description.keyColumns).map { "\(Route.column(join.tableName, $0)) = \($1)" }
      // DISTINCT: a join model with its own key can have two rows for one pair.
      let sql =
        "SELECT DISTINCT \(Route.list(join.tableName, near)), \(description.selectedColumns) "
        + "FROM \(StatementText.quoted(join.tableName)) JOIN \(StatementText.quoted(description.tableName)) "
        + "ON \(matches.joined(separator: " AND ")) WHERE \(Self.isAmong(list, join.tableName, near))\(order)"
      let types = near.map { name in join.columns.first { $0.name == name }?.type ?? .text }
      try statement(sql).read(StatementText(sql, bindings), store, isPast: isPast) { cursor in
        while try cursor.next() {
          let key = cursor.row(of: nil)
          found[types.indices.map { key.datum($0, types[$0]).value }, default: []]
            .append(try Target(key.row(of: Target.self, from: near.count)))
        }
      }
    }
    return found
  }

  /// The child that a `hasOne` shows, of several children of one parent.
  private func shown(
    of rows: [any Table], _ fields: [String], _ key: [Value], _ store: Store
  ) throws -> [any Table] {
    guard let first = rows.first else { return [] }
    let child = try store.model(of: type(of: first))
    let shown = try shownChild(of: Key(key.compactMap { KeyPart($0) }), child, fields)
    let values = shown.map { $0.parts.map(\.value) }
    return rows.filter { $0.keyValues == values }
  }

  private static func isAmong(_ list: ValueList, _ table: String, _ columns: [String]) -> String {
    "\(Route.row(table, columns)) IN \(list.sql(parts: columns.count))"
  }
}

extension ReadConnection {
  /// The one child that a `hasOne` shows.
  func child<Target: Table>(
    _ type: Target.Type, _ fields: [String], of key: [Value], _ store: Store
  ) throws -> Target? {
    let found = try related(type, .children(fields: fields), [key], store)[key] ?? []
    return (found.count > 1 ? try shown(of: found, fields, key, store) : found).first as? Target
  }
}

extension Table {
  /// The parts of the primary key as columns hold them.
  var keyValues: [Value] { primaryKey.keyValues }

  func values(of fields: [String]) -> [Value] {
    var record = RecordWriter()
    write(to: &record)
    let values = record.key.map { $0?.value ?? .null } + record.values
    let columns = Self.description.columns
    return fields.compactMap { field in columns.firstIndex { $0.name == field }.map { values[$0] } }
  }
}

extension Table {
  /// The related records that were read along with this one.
  ///
  /// - Throws: `notLoaded` if they were not read; an unread relationship never counts as empty.
  public func loaded<Target: Table>(
    _ path: KeyPath<Relationships, RelationshipPath<Self, Target, [Target]>>
  ) throws(StoreError) -> [Target] {
    try readAlong(Self.relationships[keyPath: path].names[0])
  }

  /// The related record that was read along; nil if there was none, or the reference is null.
  ///
  /// - Throws: `notLoaded` if it was not read or the reference was set to another record since;
  ///   `dangling` if a required reference leads nowhere, as the accessor does.
  public func loaded<Target: Table>(
    _ path: KeyPath<Relationships, RelationshipPath<Self, Target, Target?>>
  ) throws(StoreError) -> Target? {
    let rows: [Target] = try readAlong(Self.relationships[keyPath: path].names[0])
    return rows.first
  }

  private func readAlong<Target: Table>(_ name: String) throws(StoreError) -> [Target] {
    guard let read = _record.loaded?.related(name), let rows = read.rows as? [Target],
      let relationship = Self.description.relationship(named: name)
    else { throw .notLoaded(model: Self.modelName, relationship: name) }
    let isReference = relationship.kind == .belongsTo
    let key = isReference ? values(of: relationship.fields) : keyValues
    let leadsNowhere = isReference && key.contains(where: \.isNull)
    // The records were read for another key.
    guard leadsNowhere || read.key == key else {
      throw .notLoaded(model: Self.modelName, relationship: name)
    }
    guard leadsNowhere || rows.isEmpty else { return rows }
    if isReference, relationship.isRequired { throw try _record.dangling(name, of: self) }
    return []
  }
}
