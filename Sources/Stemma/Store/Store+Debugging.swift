import StemmaNode

extension Store {
  /// Traps if what the store believes contradicts itself, and throws if its node does. For tests, also while the store
  /// is used; reads everything.
  func checkInvariants() async throws {
    readers.checkInvariants()
    changes.checkInvariants()
    rows.checkInvariants()
    resolvers.checkInvariants()
    try await writer.checkInvariants()
  }
}
