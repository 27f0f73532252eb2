/// A way from a record to related ones, for `including` and `loaded`: `$0.members.team`.
///
/// `Value` is what the last step of the way gives: an array, or an optional record.
@dynamicMemberLookup
public struct RelationshipPath<Root: Table, Target, Value>: RelationshipPaths {
  /// The relationships from `Root` on, one for each step of the way.
  public let names: [String]

  /// A way of one step. `@Table` makes one for each relationship.
  public init(_ name: String) { names = [name] }
  private init(_ names: [String]) { self.names = names }

  /// One step further.
  public subscript<Next: Table, NextValue>(
    dynamicMember member: KeyPath<Target.Relationships, RelationshipPath<Target, Next, NextValue>>
  ) -> RelationshipPath<Root, Next, NextValue> where Target: Table {
    RelationshipPath<Root, Next, NextValue>(names + Target.relationships[keyPath: member].names)
  }
}

/// Any way that begins at a type.
public protocol RelationshipPaths<Root>: Sendable {
  /// Where the way begins.
  associatedtype Root: Table
  /// The relationships of the way, step by step.
  var names: [String] { get }
}
