/// The placeholder in a draft for an omitted key part, for the types that the node mints.
public enum MintedPart {
  /// None yet.
  public static func absent() -> UUID? { nil }
  /// None yet.
  public static func absent() -> Int? { nil }
  /// None yet.
  public static func absent() -> String? { nil }
  /// None yet.
  public static func absent() -> String.ID? { nil }

  /// Refuses to leave out a part of another type.
  @available(*, unavailable, message: "the node mints no `id` of this type: give the draft one")
  @_disfavoredOverload
  public static func absent<Part>() -> Part { preconditionFailure("cannot be called") }
}

extension UUID {
  /// Minted by the node where a draft leaves it out.
  public typealias DraftPart = UUID?
}
extension Int {
  /// Minted by the node where a draft leaves it out.
  public typealias DraftPart = Int?
}
extension String {
  /// Minted by the node where a draft leaves it out.
  public typealias DraftPart = String?
}
