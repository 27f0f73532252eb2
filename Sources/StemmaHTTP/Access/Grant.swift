import StemmaReplication

/// The rights of a caller of the server.
package struct Grant: Sendable, Equatable {
  /// The name of the token, for the access log; nil: no token was needed.
  package var name: String?
  /// The partitions that it may read, and write.
  package var readable: Scope
  package var writable: Scope

  package static let everything = Grant(name: nil, readable: .everything, writable: .everything)

  /// Whether the caller may read every partition.
  var readsEverything: Bool { readable.isEverything }
}
