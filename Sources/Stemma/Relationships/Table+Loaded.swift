extension Table {
  /// The related records that were read along with this one.
  ///
  /// - Throws: `notLoaded` if they were not; they are never taken for none.
  public func loaded<Target: Table>(
    _ path: KeyPath<Relationships, RelationshipPath<Self, Target, [Target]>>
  ) throws(StoreError) -> [Target] {
    try readAlong(Self.relationships[keyPath: path].names[0])
  }

  /// The related record that was read along with this one; nil if there was none.
  ///
  /// - Throws: `notLoaded` if it was not, or if the reference was set to another record since.
  public func loaded<Target: Table>(
    _ path: KeyPath<Relationships, RelationshipPath<Self, Target, Target?>>
  ) throws(StoreError) -> Target? {
    let name = Self.relationships[keyPath: path].names[0]
    let rows: [Target] = try readAlong(name)
    let row = rows.first
    guard let relationship = Self.description.relationship(named: name), relationship.kind == .belongsTo
    else {
      return row
    }
    let key = values(of: relationship.fields)
    if key.contains(where: \.isNull) { return nil }
    if let row, row.keyValues != key { throw .notLoaded(model: Self.modelName, relationship: name) }
    return row
  }

  private func readAlong<Target: Table>(_ name: String) throws(StoreError) -> [Target] {
    guard let rows = _record.loaded?.related(name) as? [Target] else {
      throw .notLoaded(model: Self.modelName, relationship: name)
    }
    return rows
  }
}
