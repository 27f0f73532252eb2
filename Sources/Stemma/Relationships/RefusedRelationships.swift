// Overloads for macro expansions that match none of `RecordHandle` and `Related`: fields do not
// match the key, or a type is no model. A refused model causes no further error.

extension RecordHandle {
  /// Refuses fields of a `@BelongsTo` that are not of the types of the other model's key.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the referenced model: declare one field of the same type for each part, in key order"
  )
  @_disfavoredOverload
  public func parent<Owner: Table, Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (ReferenceFields<Owner>) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// As above, where some are no properties, too.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the referenced model: declare one field of the same type for each part, in key order"
  )
  @_disfavoredOverload
  public func parent<Owner: Table, Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (RefusedFields) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// Refuses a `@BelongsTo` whose type is no model.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public func parent<Owner: Table, Target, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (RefusedFields) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// For a `@BelongsTo` of a model that is refused.
  @_disfavoredOverload
  public func parent<Owner: RefusedTable, Target, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (RefusedFields) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// For a `@BelongsTo` that leads to a model that is refused.
  @_disfavoredOverload
  public func parent<Owner: Table, Target: RefusedTable, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (ReferenceFields<Owner>) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// Refuses fields of a `@HasOne` that are not of the types of this model's key.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the declaring model: declare one field of the same type for each part, in key order"
  )
  @_disfavoredOverload
  public func child<Owner: Table, Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (ReferenceFields<Target>) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// As above, where some are no properties, too.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the declaring model: declare one field of the same type for each part, in key order"
  )
  @_disfavoredOverload
  public func child<Owner: Table, Target: Table, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (RefusedFields) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// Refuses a `@HasOne` whose type is no model.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public func child<Owner: Table, Target, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (RefusedFields) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }

  /// For a `@HasOne` of a model that is refused.
  @_disfavoredOverload
  public func child<Owner: RefusedTable, Target, Fields>(
    _ type: Target.Type, _ name: String, of owner: Owner, _ fields: (RefusedFields) -> Fields
  ) async throws -> Target? { preconditionFailure("cannot be called") }
}

extension Related {
  /// Refuses fields of a `@HasMany` that are not of the types of this model's key.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the declaring model: declare one field of the same type for each part, in key order"
  )
  @_disfavoredOverload
  public init<Owner: Table, Fields>(
    of owner: Owner, _ name: String, _ reference: (ReferenceFields<Target>) -> Fields
  )
  where Target: Table {
    preconditionFailure("cannot be called")
  }

  /// As above, where some are no properties, too.
  @available(
    *, unavailable,
    message:
      "the reference fields of this relationship do not match the key of the declaring model: declare one field of the same type for each part, in key order"
  )
  @_disfavoredOverload
  public init<Owner: Table, Fields>(of owner: Owner, _ name: String, _ reference: (RefusedFields) -> Fields)
  where Target: Table {
    preconditionFailure("cannot be called")
  }

  /// Refuses a `@HasMany` of a type that is no model.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public init<Owner: Table, Fields>(of owner: Owner, _ name: String, _ reference: (RefusedFields) -> Fields) {
    preconditionFailure("cannot be called")
  }

  /// For a `@HasMany` of a model that is refused.
  @_disfavoredOverload
  public init<Owner: RefusedTable, Fields>(
    of owner: Owner, _ name: String, _ reference: (RefusedFields) -> Fields
  ) {
    preconditionFailure("cannot be called")
  }

  /// Refuses a `@ManyToMany` of a type that is no model.
  @available(
    *, unavailable,
    message: "a relationship leads to a model: mark its type @Table, or make the property a column"
  )
  @_disfavoredOverload
  public init<Owner: Table>(of owner: Owner, _ name: String) {
    preconditionFailure("cannot be called")
  }
}

extension ModelDescription.Relationship {
  /// For a relationship whose declaration is refused already.
  @_disfavoredOverload
  public static func belongsTo<Target>(
    _ name: String, _ target: Target.Type, fields: [String], isRequired: Bool
  ) -> Self { preconditionFailure("cannot be called") }

  /// For a relationship whose declaration is refused already.
  @_disfavoredOverload
  public static func hasMany<Target>(
    _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
  ) -> Self { preconditionFailure("cannot be called") }

  /// For a relationship whose declaration is refused already.
  @_disfavoredOverload
  public static func hasOne<Target>(
    _ name: String, _ target: Target.Type, fields: [String], onDelete rule: DeleteRule = .standard
  ) -> Self { preconditionFailure("cannot be called") }

  /// For a relationship whose declaration is refused already.
  @_disfavoredOverload
  public static func manyToMany<Target, Join: Table>(
    _ name: String, _ target: Target.Type, through join: Join.Type, by relationship: String? = nil
  ) -> Self { preconditionFailure("cannot be called") }
}
