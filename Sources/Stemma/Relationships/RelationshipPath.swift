/// A path from a record to related ones, for `including` and `loaded`: `$0.members.team`.
///
/// `Value` is the output of the last step: an array, or an optional record.
@dynamicMemberLookup
public struct RelationshipPath<Root: Table, Target, Value>: RelationshipPaths {
  /// The relationships from `Root` on, one for each step.
  public let names: [String]

  /// A path of one step. `@Table` creates one for each relationship.
  public init(_ name: String) { names = [name] }
  private init(_ names: [String]) { self.names = names }

  /// One step further.
  public subscript<Next: Table, NextValue>(
    dynamicMember member: KeyPath<Target.Relationships, RelationshipPath<Target, Next, NextValue>>
  ) -> RelationshipPath<Root, Next, NextValue> where Target: Table {
    RelationshipPath<Root, Next, NextValue>(names + Target.relationships[keyPath: member].names)
  }
}

/// Any path that begins at a type.
public protocol RelationshipPaths<Root>: Sendable {
  /// The type at the start of the path.
  associatedtype Root: Table
  /// The relationships of the path, step by step.
  var names: [String] { get }
}
