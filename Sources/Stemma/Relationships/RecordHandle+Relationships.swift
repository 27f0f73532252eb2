import StemmaEvents
import StemmaTables

/// What the accessors that the macros write call.
extension RecordHandle {
  /// The record that a reference leads to; nil if the reference is null, or nothing is there.
  public func parent<Target: Table>(
    _ type: Target.Type, _ name: String, of model: String, _ parts: Target.PrimaryKey.OptionalParts
  ) async throws -> Target? {
    let store = try store(of: model)
    guard let key = Target.PrimaryKey(optionalParts: parts) else { return nil }
    if let known = loaded?.related(name) as? [Target], known.first?.primaryKey == key { return known.first }
    return try await store.get(type, byIdentifier: key)
  }

  /// As `parent`, for a required reference.
  ///
  /// - Throws: `notFound` if nothing is there.
  public func requiredParent<Target: Table>(
    _ type: Target.Type, _ name: String, of model: String, _ parts: Target.PrimaryKey.OptionalParts
  ) async throws -> Target {
    guard let target = try await parent(type, name, of: model, parts) else {
      let key = Target.PrimaryKey(optionalParts: parts).map { KeyWords($0).description } ?? ""
      throw StoreError.notFound(model: Target.modelName, key: key)
    }
    return target
  }

  /// The record whose reference leads to `owner`; of several the first by key.
  public func child<Owner: Table, Target: Table>(
    _ type: Target.Type, _ name: String, of owner: Owner
  ) async throws -> Target? {
    try await Related<Target>(of: owner, name).fetch().first
  }
}

extension ReadConnection {
  /// The records of `Row` whose reference fields hold a key, in key order.
  func children<Row: Table>(
    _ type: Row.Type, _ fields: [String], _ key: [Value], _ store: Store
  ) throws -> [Row] {
    let description = Row.description
    let matches = fields.map { "\"\($0)\" = ?" }.joined(separator: " AND ")
    let order = description.key.map { "\"\($0.name)\"" }.joined(separator: ", ")
    return try rows(type, "\(description.selection) WHERE \(matches) ORDER BY \(order)", key, store)
  }

  /// Reads the records of a way of relationships along with `rows`, step by step.
  func include(_ path: ArraySlice<String>, in rows: [any Table], _ store: Store) throws {
    guard let name = path.first else { return }
    var next: [any Table] = []
    for row in rows {
      guard let loaded = row._record.loaded else { continue }
      let related: [any Table]
      if let known = loaded.related(name) {
        related = known
      } else {
        related = try self.related(to: row, through: name, store)
        loaded.setRelated(name, related)
      }
      next += related
    }
    try include(path.dropFirst(), in: next, store)
  }

  private func related(to row: some Table, through name: String, _ store: Store) throws -> [any Table] {
    let description = type(of: row).description
    guard let relationship = description.relationship(named: name) else {
      throw StoreError.notLoaded(model: description.name, relationship: name)
    }
    var record = RecordWriter()
    row.write(to: &record)
    let target = relationship.target()
    if relationship.kind == .belongsTo {
      let values = record.key.map { $0?.value ?? .null } + record.values
      let places = relationship.fields.compactMap { field in
        description.columns.firstIndex { $0.name == field }
      }
      return try parents(target, places.map { values[$0] }, store)
    }
    return try open(target, relationship.fields, record.key.map { $0?.value ?? .null }, store)
  }

  private func parents<Row: Table>(_ type: Row.Type, _ key: [Value], _ store: Store) throws -> [any Table] {
    try rows(type, Row.description.selectByKey, key, store)
  }

  private func open<Row: Table>(
    _ type: Row.Type, _ fields: [String], _ key: [Value], _ store: Store
  ) throws -> [any Table] {
    try children(type, fields, key, store)
  }
}
