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

// Chosen by the compiler where what is above does not fit: fields that are not what the key consists of.
extension RecordHandle {
  /// The fields of a `@BelongsTo` that do not match the other model's key.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the model it leads to: there is one for each part, of its type, in the order of the key"
  )
  @_disfavoredOverload
  public func parent<Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of model: String, _ fields: Fields
  ) async throws -> Target? { nil }

  /// As for `parent`.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the model it leads to: there is one for each part, of its type, in the order of the key"
  )
  @_disfavoredOverload
  public func requiredParent<Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of model: String, _ fields: Fields
  ) async throws -> Target { throw StoreError.notFromStore(model: model) }

  /// The fields of a `@HasOne` that do not match this model's key.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the model it stands in: there is one for each part, of its type, in the order of the key"
  )
  @_disfavoredOverload
  public func child<Owner: Table, Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ reference: (Target) -> Fields
  ) async throws -> Target? { nil }
}
