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
