import StemmaReplication

/// The partitions that a peer may use at this node.
package struct Rights: Sendable, Equatable {
  /// The partitions that the peer may read, and write.
  package var readable: Scope
  package var writable: Scope

  package init(readable: Scope, writable: Scope) {
    self.readable = readable
    self.writable = writable
  }

  package static let everything = Rights(readable: .everything, writable: .everything)

  /// Whether some partitions are hidden from the peer, or read-only for it.
  package var isLimited: Bool { !(readable.isEverything && writable.isEverything) }
}
