import StemmaEvents
import StemmaNode

/// What the accessors that the macros write call. They read what is there now; what was read along with a record is for
/// `loaded` alone, so that an accessor never shows what was true once.
extension RecordHandle {
  /// The record that a reference of `owner` leads to; nil if the reference is null, or nothing is there. `fields` gives the
  /// reference fields.
  public func parent<Owner: Table, Target: Table>(
    _ type: Target.Type, _ name: String, of owner: Owner,
    _ fields: (ReferenceFields<Owner>) -> Target.PrimaryKey.OptionalParts
  ) async throws -> Target? {
    let store = try store(of: Owner.modelName)
    guard let key = Target.PrimaryKey(optionalParts: fields(ReferenceFields(owner))) else { return nil }
    return try await store.get(type, byIdentifier: key)
  }

  /// What a required reference of `owner` leads to.
  ///
  /// - Throws: `dangling` if nothing is there.
  public func required<Owner: Table, Target>(
    _ found: Target?, _ name: String, of owner: Owner
  ) throws -> Target {
    if let found { return found }
    throw try dangling(name, of: owner)
  }

  /// That a reference of `owner` leads to nothing.
  func dangling<Owner: Table>(_ name: String, of owner: Owner) throws(StoreError) -> StoreError {
    let relationship = try Owner.description.route(name).relationship
    let key = owner.values(of: relationship.fields).compactMap { KeyPart($0) }
    guard let loaded else { throw .notFromStore(model: Owner.modelName) }
    let target = try loaded.store.model(of: relationship.target())
    return .dangling(
      model: Owner.modelName, relationship: name,
      target: "\(target.name) \(KeyWords.text(Key(key), of: target))")
  }

  /// The record whose reference leads to `owner`. Nobody calls `reference`, which gives the reference fields of that
  /// record: it is there for the compiler to check that they are what the owner's key consists of.
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
