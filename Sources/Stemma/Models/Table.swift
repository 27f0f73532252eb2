/// A type whose values are records of a store. `@Table` writes the conformance.
public protocol Table: Sendable {
  associatedtype PrimaryKey: TableKey
  associatedtype Draft: TableDraft where Draft.Row == Self
  /// The columns, as the closures of statements see them.
  associatedtype Columns: Sendable
  /// The relationships, as `including` and `loaded` see them.
  associatedtype Relationships: Sendable

  static var modelName: String { get }
  static var description: ModelDescription { get }
  static var columns: Columns { get }
  static var relationships: Relationships { get }

  var primaryKey: PrimaryKey { get }
  /// Where this value comes from. Not for programs to touch; it is not a part of the record.
  var _record: RecordHandle { get set }

  init(_ row: RowReader) throws(StoreError)
  func write(to record: inout RecordWriter)
}

/// A record that is yet to be inserted. A key part that can be minted may be absent.
public protocol TableDraft: Sendable {
  associatedtype Row: Table
  init(_ row: Row)
  func write(to record: inout RecordWriter)
}

/// A primary key: one value, or a `@Selection` of several.
public protocol TableKey: Hashable, Sendable {
  /// A tuple of its parts; of a single value, the value.
  associatedtype Parts
  /// The same, each optional: what a reference to such a key is made of.
  associatedtype OptionalParts
  /// Nil if any part is.
  init?(optionalParts: OptionalParts)
  var parts: Parts { get }
  func write(to record: inout RecordWriter)
}
