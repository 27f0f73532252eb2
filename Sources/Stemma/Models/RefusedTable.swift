/// A declaration that `@Table` rejects. The conformance makes it a model for the compiler, which
/// then reports no further errors at its uses. No program that compiles has one.
public protocol RefusedTable: Table {}

/// The columns and relationships of a refused declaration: none.
public struct RefusedMembers: Sendable {}

extension RefusedTable where Columns == RefusedMembers, Relationships == RefusedMembers {
  /// None.
  public static var columns: RefusedMembers { RefusedMembers() }
  /// None.
  public static var relationships: RefusedMembers { RefusedMembers() }
}

extension RefusedTable {
  /// The type's name.
  public static var modelName: String { "\(Self.self)" }
  /// That of a model without columns.
  public static var description: ModelDescription { ModelDescription(modelName, key: []) }

  /// There is none; nothing that compiles asks for it.
  public var primaryKey: PrimaryKey { preconditionFailure("\(Self.self) was refused by @Table") }
  /// - Throws: `models`, always.
  public init(_ row: RowReader) throws(StoreError) { throw .models("\(Self.self) was refused by @Table") }
  /// Writes nothing.
  public func write(to record: inout RecordWriter) {}
}
