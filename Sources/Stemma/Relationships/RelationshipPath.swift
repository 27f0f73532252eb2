/// A way from a record to related ones, for `including` and `loaded`: `$0.members.team`.
///
/// `Value` is what the last step of the way gives: an array, or an optional record.
@dynamicMemberLookup
public struct RelationshipPath<Root: Table, Target: Table, Value>: RelationshipPaths {
  public let names: [String]

  public init(_ name: String) { names = [name] }
  private init(_ names: [String]) { self.names = names }

  public subscript<Next: Table, NextValue>(
    dynamicMember member: KeyPath<Target.Relationships, RelationshipPath<Target, Next, NextValue>>
  ) -> RelationshipPath<Root, Next, NextValue> {
    RelationshipPath<Root, Next, NextValue>(names + Target.relationships[keyPath: member].names)
  }
}

/// Any way that begins at a type.
public protocol RelationshipPaths<Root>: Sendable {
  associatedtype Root: Table
  var names: [String] { get }
}
