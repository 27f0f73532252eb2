import StemmaNode

/// The rights of a caller of the server.
package struct Grant: Sendable, Equatable {
  /// The name of the token, for the access log; nil: no token was needed.
  package var name: String?
  package var rights: Rights

  package static let everything = Grant(name: nil, rights: .everything)
}
