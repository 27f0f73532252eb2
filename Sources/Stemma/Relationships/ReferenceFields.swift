// The macros' expansions use the types below for reference fields. Fields that do not match then
// cause one error, in this library's words, at the relationship's declaration.

/// The properties of a model, as the expansion of a relationship names its reference fields.
@dynamicMemberLookup
public struct ReferenceFields<Row> {
  private let _row: Row

  init(_ row: Row) { _row = row }

  /// A property's value.
  public subscript<Value>(dynamicMember property: KeyPath<Row, Value>) -> Value { _row[keyPath: property] }

  /// Refuses a name that no visible property has.
  @available(
    *, unavailable,
    message:
      "a reference field of this relationship is no property that can be seen here of the model whose records refer to the other"
  )
  @_disfavoredOverload
  public subscript<Value>(dynamicMember name: String) -> Value { preconditionFailure("cannot be called") }
}

/// The reference fields of a relationship that is refused, whatever their names.
@dynamicMemberLookup
public struct RefusedFields {
  /// One of them.
  @_disfavoredOverload
  public subscript(dynamicMember name: String) -> RefusedFields { preconditionFailure("cannot be called") }
}

/// The reference fields' values in setters and drafts, from the record to refer to.
public enum ReferenceParts {
  /// The parts of its key.
  public static func of<Target: Table>(_ target: Target) -> Target.PrimaryKey.Parts {
    target.primaryKey.parts
  }

  /// The one part of its key; nil without a record.
  public static func of<Target: Table>(_ target: Target?) -> Target.PrimaryKey.Parts?
  where Target.PrimaryKey: KeyValue { target?.primaryKey.parts }

  /// The parts of its key; without a record, each is nil.
  public static func of<Target: Table, each Part>(_ target: Target?) -> (repeat (each Part)?)
  where Target.PrimaryKey.Parts == (repeat each Part) {
    guard let parts = target?.primaryKey.parts else { return (repeat (each Part)?.none) }
    return (repeat Optional(each parts))
  }

  /// For a relationship whose declaration is refused already.
  @_disfavoredOverload
  public static func of<Target, Parts>(_ target: Target) -> Parts { preconditionFailure("cannot be called") }
}
