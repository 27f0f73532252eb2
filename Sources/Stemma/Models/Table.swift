/// A type whose values are records of a store. `@Table` writes the conformance.
public protocol Table: Sendable {
  /// The type of the primary key: one value, or a `@Selection` of several.
  associatedtype PrimaryKey: TableKey
  /// A record that is yet to be inserted.
  associatedtype Draft: TableDraft where Draft.Row == Self
  /// The columns, as the closures of statements see them.
  associatedtype Columns: Sendable
  /// The relationships, as `including` and `loaded` see them.
  associatedtype Relationships: Sendable

  /// The model's name in the schema: that of the type, or what `@Table(model:)` says.
  static var modelName: String { get }
  /// The declaration from which the schema is built. Always the same for a type.
  static var description: ModelDescription { get }
  /// The argument of the closures of statements.
  static var columns: Columns { get }
  /// The argument of the closures of `including`.
  static var relationships: Relationships { get }

  /// The key; it fixes the record's partition permanently.
  var primaryKey: PrimaryKey { get }
  /// The value's tie to its store. Programs do not use it; it is not a part of the record.
  var _record: RecordHandle { get set }

  /// Reads a record from the columns of its description, in their order, with `_state` behind them.
  ///
  /// - Throws: `unreadable` for a column that does not fit its property.
  init(_ row: RowReader) throws(StoreError)
  /// Gives the values of all columns, in the order of the description.
  func write(to record: inout RecordWriter)
}

/// A record that is yet to be inserted. A key part that can be minted may be absent.
public protocol TableDraft: Sendable {
  /// The type of the record that the draft creates.
  associatedtype Row: Table
  /// A draft with a row's key and values.
  init(_ row: Row)
  /// Gives the values of all columns, in the order of the description; nil for a key part to mint.
  func write(to record: inout RecordWriter)
}

/// A primary key: one value, or a `@Selection` of several.
public protocol TableKey: Hashable, Sendable {
  /// A tuple of its parts; of a single value, the value.
  associatedtype Parts
  /// The same, each optional: what a reference to such a key is made of.
  associatedtype OptionalParts
  /// The type of a draft's part that is named `id`: an optional, if the node can mint one.
  associatedtype DraftPart = Self
  /// Nil if any part is.
  init?(optionalParts: OptionalParts)
  /// The parts, in the order of the key.
  var parts: Parts { get }
  /// Gives the parts, in the order of the key.
  func write(to record: inout RecordWriter)
  /// Reads the parts from the columns of a row, in the order of the key.
  static func readKey(_ row: RowReader) throws(StoreError) -> Self
}

extension TableKey where Self: Selection {
  /// Reads the properties in order of declaration.
  public static func readKey(_ row: RowReader) throws(StoreError) -> Self { try Self(row) }
}
