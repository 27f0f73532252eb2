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
