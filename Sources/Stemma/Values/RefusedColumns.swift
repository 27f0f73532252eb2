// A `@Selection` beside a model can be neither its key nor a group of its columns: `@Table` has to see its properties. Of
// these the compiler says what to do; without them it would say only that there is no conformance.

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

// MARK: Types of which no column can be

// Where the property stands, and in the description of the model, the compiler says what to do. What else is written for
// such a column has no error of its own.

extension RecordHandle {
  /// Refuses a type that no column can have.
  @available(
    *, unavailable,
    message:
      "the type of a column is a ColumnValue: declare that of your type, store it as JSON with @Column(as: YourType.JSONRepresentation.self), or mark the property @Ephemeral"
  )
  @_disfavoredOverload
  public mutating func noteSet<Content>(_ column: Int, from old: Content) {}

  /// Of a `@Selection` that is declared elsewhere, which is refused there.
  public mutating func noteSet<Content: Selection>(_ column: Int, from old: Content) {}

  /// As above, of an optional one.
  public mutating func noteSet<Content: Selection>(_ column: Int, from old: Content?) {}

  /// Refuses a model as a column.
  @available(
    *, unavailable,
    message: "a model is no column: mark the property @BelongsTo, or @HasOne, and name the reference fields"
  )
  public mutating func noteSet<Content: Table>(_ column: Int, from old: Content) {}

  /// As above, of an optional one.
  @available(
    *, unavailable,
    message: "a model is no column: mark the property @BelongsTo, or @HasOne, and name the reference fields"
  )
  public mutating func noteSet<Content: Table>(_ column: Int, from old: Content?) {}

  /// As above, of several.
  @available(
    *, unavailable,
    message: "models are no column: the property is a Related<Model>, marked @HasMany with reference fields"
  )
  public mutating func noteSet<Content: Table>(_ column: Int, from old: [Content]) {}

  /// Of a column of a group; of one that is refused, elsewhere.
  public mutating func notePart<Content: ColumnValue>(_ column: Int, from old: Content) {
    noteSet(column, from: old)
  }

  /// Of a column that is refused elsewhere.
  @_disfavoredOverload
  public mutating func notePart<Content>(_ column: Int, from old: Content) {}

  /// Refuses an optional whose representation knows no null: null would be written, and could not be read.
  @available(
    *, unavailable,
    message: "the property can be nil: write `as:` with a question mark, as in `Date.DayRepresentation?.self`"
  )
  public mutating func noteSet<Representation: ColumnRepresentation>(
    _ column: Int, from old: Representation.Represented?, as type: Representation.Type
  ) {}

  /// Refuses a representation of other values.
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
  /// Of a model as a column, which is refused where the property stands.
  public init<Content: Table>(
    _ name: String, _ type: Content.Type, property: String? = nil, defaultValue: Content? = nil
  ) { preconditionFailure("cannot be called") }

  /// As above, of an optional one.
  public init<Content: Table>(
    _ name: String, _ type: Content?.Type, property: String? = nil, defaultValue: Content?? = nil
  ) { preconditionFailure("cannot be called") }

  /// As above, of several.
  public init<Content: Table>(
    _ name: String, _ type: [Content].Type, property: String? = nil, defaultValue: [Content]? = nil
  ) { preconditionFailure("cannot be called") }
}

extension RowReader {
  /// Of a column that is refused elsewhere.
  @_disfavoredOverload
  public func value<Content>(_ column: Int, as type: Content.Type) throws(StoreError) -> Content {
    preconditionFailure("cannot be called")
  }

  /// Of a representation that is refused elsewhere.
  @_disfavoredOverload
  public func represented<Row, Content, Representation>(
    _ column: Int, as type: Representation.Type, _ own: (Row) -> Content
  ) throws(StoreError) -> Content { preconditionFailure("cannot be called") }
}

extension RecordWriter {
  /// Of a representation that is refused elsewhere.
  @_disfavoredOverload
  public mutating func represented<Content, Representation>(
    _ value: Content, as type: Representation.Type
  ) { preconditionFailure("cannot be called") }

  /// Refuses an optional whose representation knows no null: null would be written, and could not be read.
  @available(
    *, unavailable,
    message: "the property can be nil: write `as:` with a question mark, as in `Date.DayRepresentation?.self`"
  )
  public mutating func constant<Representation: ColumnRepresentation>(
    _ value: Representation.Represented?, as type: Representation.Type
  ) { preconditionFailure("cannot be called") }

  /// Refuses a representation of other values.
  @available(*, unavailable, message: "the type in `as:` stores values of another type than this property's")
  @_disfavoredOverload
  public mutating func constant<Content, Representation>(
    _ value: Content, as type: Representation.Type
  ) { preconditionFailure("cannot be called") }

  /// Of a column that is refused elsewhere.
  @_disfavoredOverload
  public mutating func value<Content>(_ value: Content) { preconditionFailure("cannot be called") }

  /// Of a `@Selection` that is declared elsewhere, which is refused there.
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
