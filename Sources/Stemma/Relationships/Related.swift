import StemmaEvents

/// The records on the other side of a `@HasMany`. Nothing is read until it is asked for.
public struct Related<Target: Table>: Sendable {
  private let record: RecordHandle
  private let model: String
  private let name: String
  private let key: [Value]
  private let fields: [String]

  public init<Owner: Table>(of owner: Owner, _ name: String) {
    record = owner._record
    model = Owner.modelName
    self.name = name
    var writer = RecordWriter()
    owner.primaryKey.write(to: &writer)
    key = writer.key.map { $0?.value ?? .null }
    fields = Owner.description.relationship(named: name)?.fields ?? []
  }

  /// The related records in key order: those that were read along, else as they are now.
  ///
  /// - Throws: `notFromStore`.
  public func fetch() async throws -> [Target] {
    let store = try record.store(of: model)
    if let loaded = record.loaded?.related(name) as? [Target] { return loaded }
    let (fields, key) = (fields, key)
    return try await store.read { connection in
      try connection.children(Target.self, fields, key, store)
    }
  }
}

extension Table {
  /// The related records that were read along with this one.
  ///
  /// - Throws: `notLoaded` if they were not; they are never taken for none.
  public func loaded<Target>(
    _ path: KeyPath<Relationships, RelationshipPath<Self, Target, [Target]>>
  ) throws(StoreError) -> [Target] {
    let name = Self.relationships[keyPath: path].names[0]
    guard let rows = _record.loaded?.related(name) as? [Target] else {
      throw .notLoaded(model: Self.modelName, relationship: name)
    }
    return rows
  }

  public func loaded<Target>(
    _ path: KeyPath<Relationships, RelationshipPath<Self, Target, Target?>>
  ) throws(StoreError) -> Target? {
    let name = Self.relationships[keyPath: path].names[0]
    guard let rows = _record.loaded?.related(name) as? [Target] else {
      throw .notLoaded(model: Self.modelName, relationship: name)
    }
    return rows.first
  }
}
