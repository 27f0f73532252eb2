/// What the accessors that the macros write call. They read what is there now; what was read along with a record is for
/// `loaded` alone, so that an accessor never shows what was true once.
extension RecordHandle {
  /// The record that a reference leads to; nil if the reference is null, or nothing is there.
  public func parent<Target: Table>(
    _ type: Target.Type, _ name: String, of model: String, _ parts: Target.PrimaryKey.OptionalParts
  ) async throws -> Target? {
    let store = try store(of: model)
    guard let key = Target.PrimaryKey(optionalParts: parts) else { return nil }
    return try await store.get(type, byIdentifier: key)
  }

  /// As `parent`, for a required reference.
  ///
  /// - Throws: `dangling` if nothing is there.
  public func requiredParent<Target: Table>(
    _ type: Target.Type, _ name: String, of model: String, _ parts: Target.PrimaryKey.OptionalParts
  ) async throws -> Target {
    guard let target = try await parent(type, name, of: model, parts) else {
      let store = try store(of: model)
      let key = try Target.PrimaryKey(optionalParts: parts).map { try store.text(of: $0, type) } ?? ""
      throw StoreError.dangling(model: model, relationship: name, target: "\(Target.modelName) \(key)")
    }
    return target
  }

  /// The record whose reference leads to `owner`. Nobody calls `reference`, which gives the reference fields of that
  /// record: it is there for the compiler to check that they are what the owner's key consists of.
  public func child<Owner: Table, Target: Table>(
    _ type: Target.Type, _ name: String, of owner: Owner,
    _ reference: (Target) -> Owner.PrimaryKey.OptionalParts
  ) async throws -> Target? {
    let store = try store(of: Owner.modelName)
    let fields = try Owner.description.route(name).relationship.fields
    let key = owner.keyValues
    return try await store.read { connection in
      try connection.snapshot { try connection.child(type, fields, of: key, store) }
    }
  }
}
