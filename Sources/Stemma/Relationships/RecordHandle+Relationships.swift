import StemmaEvents
import StemmaNode

/// Entry points of the macros' accessors. They read the current state. Only `loaded` returns
/// records that were read along, so an accessor never shows stale data.
extension RecordHandle {
  /// The record that a reference of `owner` leads to; nil if it is null or leads nowhere. `fields`
  /// returns the reference fields.
  public func parent<Owner: Table, Target: Table>(
    _ type: Target.Type, _ name: String, of owner: Owner,
    _ fields: (ReferenceFields<Owner>) -> Target.PrimaryKey.OptionalParts
  ) async throws -> Target? {
    let store = try store(of: Owner.modelName)
    guard let key = Target.PrimaryKey(optionalParts: fields(ReferenceFields(owner))) else { return nil }
    return try await store.get(type, byIdentifier: key)
  }

  /// Unwraps the target of a required reference of `owner`.
  ///
  /// - Throws: `dangling` if nothing is there.
  public func required<Owner: Table, Target>(
    _ found: Target?, _ name: String, of owner: Owner
  ) throws -> Target {
    if let found { return found }
    throw try dangling(name, of: owner)
  }

  /// The error for a reference of `owner` that leads nowhere.
  func dangling<Owner: Table>(_ name: String, of owner: Owner) throws(StoreError) -> StoreError {
    let relationship = try Owner.description.route(name).relationship
    let key = owner.values(of: relationship.fields).compactMap { KeyPart($0) }
    guard let loaded else { throw .notFromStore(model: Owner.modelName) }
    let target = try loaded.store.model(of: relationship.target())
    return .dangling(
      model: Owner.modelName, relationship: name,
      target: "\(target.name) \(KeyWords.text(Key(key), of: target))")
  }

  /// The record whose reference leads to `owner`. `reference` is never called: it lets the compiler
  /// check that the reference fields match the owner's key.
  public func child<Owner: Table, Target: Table>(
    _ type: Target.Type, _ name: String, of owner: Owner,
    _ reference: (ReferenceFields<Target>) -> Owner.PrimaryKey.OptionalParts
  ) async throws -> Target? {
    let store = try store(of: Owner.modelName)
    let fields = try Owner.description.route(name).relationship.fields
    let key = owner.keyValues
    return try await store.read { connection in
      try connection.snapshot { try connection.child(type, fields, of: key, store) }
    }
  }
}
