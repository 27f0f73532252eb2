// A `@Selection` outside of a model can be neither its key nor a group of columns, because `@Table`
// must see its properties. These overloads give advice instead of a missing conformance.

extension ModelDescription.Column {
  /// Refuses a `@Selection` that is declared elsewhere.
  @available(*, unavailable, message: "declare the @Selection inside of the model")
  public init<Content: Selection>(
    _ name: String, _ type: Content.Type, property: String? = nil, defaultValue: Content? = nil
  ) { preconditionFailure("cannot be called") }

  /// Refuses an optional `@Selection`.
  @available(*, unavailable, message: "declare the @Selection inside of the model")
  public init<Content: Selection>(
    _ name: String, _ type: Content?.Type, property: String? = nil, defaultValue: Content? = nil
  ) { preconditionFailure("cannot be called") }
}

// MARK: Types that no column can have

// The compiler gives advice at the property and in the model's description. Other generated code
// for such a column compiles, and causes no further error.

extension RecordHandle {
  /// Refuses a type that no column can have.
  @available(
    *, unavailable,
    message:
      "the type of a column is a ColumnValue: declare that of your type, store it as JSON with @Column(as: YourType.JSONRepresentation.self), or mark the property @Ephemeral"
  )
  @_disfavoredOverload
  public mutating func noteSet<Content>(_ column: Int, from old: Content) {}

  /// For a `@Selection` that is declared elsewhere, and refused there.
  public mutating func noteSet<Content: Selection>(_ column: Int, from old: Content) {}

  /// As above, for an optional one.
  public mutating func noteSet<Content: Selection>(_ column: Int, from old: Content?) {}

  /// Refuses a model as a column.
  @available(
    *, unavailable,
    message: "a model is no column: mark the property @BelongsTo, or @HasOne, and name the reference fields"
  )
  public mutating func noteSet<Content: Table>(_ column: Int, from old: Content) {}

  /// As above, for an optional one.
  @available(
    *, unavailable,
    message: "a model is no column: mark the property @BelongsTo, or @HasOne, and name the reference fields"
  )
  public mutating func noteSet<Content: Table>(_ column: Int, from old: Content?) {}

  /// As above, for several.
  @available(
    *, unavailable,
    message: "models are no column: the property is a Related<Model>, marked @HasMany with reference fields"
  )
  public mutating func noteSet<Content: Table>(_ column: Int, from old: [Content]) {}

  /// For a column of a group; an invalid one is refused elsewhere.
  public mutating func notePart<Content: ColumnValue>(_ column: Int, from old: Content) {
    noteSet(column, from: old)
  }

  /// For a column that is refused elsewhere.
  @_disfavoredOverload
  public mutating func notePart<Content>(_ column: Int, from old: Content) {}

  /// Refuses an optional whose representation has no null: a written null could not be read.
  @available(
    *, unavailable,
    message: "the property can be nil: write `as:` with a question mark, as in `Date.DayRepresentation?.self`"
  )
  public mutating func noteSet<Representation: ColumnRepresentation>(
    _ column: Int, from old: Representation.Represented?, as type: Representation.Type
  ) {}

  /// Refuses a representation of another type.
  @available(*, unavailable, message: "the type in `as:` stores values of another type than this property's")
  @_disfavoredOverload
  public mutating func noteSet<Content, Representation>(
    _ column: Int, from old: Content, as type: Representation.Type
  ) {}
}

extension ModelDescription.Column {
  /// Refuses a type that no column can have.
  @available(
    *, unavailable,
    message:
      "the type of a column is a ColumnValue: declare that of your type, store it as JSON with @Column(as: YourType.JSONRepresentation.self), or mark the property @Ephemeral"
  )
  @_disfavoredOverload
  public init<Content>(
    _ name: String, _ type: Content.Type, property: String? = nil, defaultValue: Content? = nil
  ) { preconditionFailure("cannot be called") }
}

extension ModelDescription.Column {
  /// For a model as a column, which is refused at the property.
  public init<Content: Table>(
    _ name: String, _ type: Content.Type, property: String? = nil, defaultValue: Content? = nil
  ) { preconditionFailure("cannot be called") }

  /// As above, for an optional one.
  public init<Content: Table>(
    _ name: String, _ type: Content?.Type, property: String? = nil, defaultValue: Content?? = nil
  ) { preconditionFailure("cannot be called") }

  /// As above, for several.
  public init<Content: Table>(
    _ name: String, _ type: [Content].Type, property: String? = nil, defaultValue: [Content]? = nil
  ) { preconditionFailure("cannot be called") }
}

extension RowReader {
  /// For a column that is refused elsewhere.
  @_disfavoredOverload
  public func value<Content>(_ column: Int, as type: Content.Type) throws(StoreError) -> Content {
    preconditionFailure("cannot be called")
  }

  /// For a representation that is refused elsewhere.
  @_disfavoredOverload
  public func represented<Row, Content, Representation>(
    _ column: Int, as type: Representation.Type, _ own: (Row) -> Content
  ) throws(StoreError) -> Content { preconditionFailure("cannot be called") }
}

extension RecordWriter {
  /// For a representation that is refused elsewhere.
  @_disfavoredOverload
  public mutating func represented<Content, Representation>(
    _ value: Content, as type: Representation.Type
  ) { preconditionFailure("cannot be called") }

  /// Refuses an optional whose representation has no null: a written null could not be read.
  @available(
    *, unavailable,
    message: "the property can be nil: write `as:` with a question mark, as in `Date.DayRepresentation?.self`"
  )
  public mutating func constant<Representation: ColumnRepresentation>(
    _ value: Representation.Represented?, as type: Representation.Type
  ) { preconditionFailure("cannot be called") }

  /// Refuses a representation of another type.
  @available(*, unavailable, message: "the type in `as:` stores values of another type than this property's")
  @_disfavoredOverload
  public mutating func constant<Content, Representation>(
    _ value: Content, as type: Representation.Type
  ) { preconditionFailure("cannot be called") }

  /// For a column that is refused elsewhere.
  @_disfavoredOverload
  public mutating func value<Content>(_ value: Content) { preconditionFailure("cannot be called") }

  /// For a `@Selection` that is declared elsewhere, and refused there.
  public mutating func key<Content: Selection>(_ value: Content?) { preconditionFailure("cannot be called") }

  /// Refuses a type that no key can have.
  @available(
    *, unavailable,
    message:
      "the type of a key, or of a part of one, is a KeyValue: declare that of your type, or take String, an integer, UUID or Date"
  )
  @_disfavoredOverload
  public mutating func key<Content>(_ value: Content?) { preconditionFailure("cannot be called") }
}
