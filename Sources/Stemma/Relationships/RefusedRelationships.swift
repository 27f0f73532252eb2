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

// Chosen where what a relationship leads to is no model.
extension RecordHandle {
  /// A `@BelongsTo` whose type is no model.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public func parent<Target, Fields>(
    _ type: Target.Type, _ name: String, of model: String, _ fields: Fields
  ) async throws -> Target? { nil }

  /// As for `parent`.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public func requiredParent<Target, Fields>(
    _ type: Target.Type, _ name: String, of model: String, _ fields: Fields
  ) async throws -> Target { throw StoreError.notFromStore(model: model) }

  /// A `@HasOne` whose type is no model.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public func child<Owner: Table, Target, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ reference: (Target) -> Fields
  ) async throws -> Target? { nil }
}

extension ModelDescription.Relationship {
  /// Of a relationship that is refused where it stands.
  @_disfavoredOverload
  public static func belongsTo<Target>(
    _ name: String, _ target: Target.Type, fields: [String], isRequired: Bool
  ) -> Self { preconditionFailure("cannot be called") }

  /// Of a relationship that is refused where it stands.
  @_disfavoredOverload
  public static func hasMany<Target>(
    _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
  ) -> Self { preconditionFailure("cannot be called") }

  /// Of a relationship that is refused where it stands.
  @_disfavoredOverload
  public static func hasOne<Target>(
    _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
  ) -> Self { preconditionFailure("cannot be called") }
}
