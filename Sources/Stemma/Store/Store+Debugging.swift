import StemmaNode

extension Store {
  /// Traps if the store's state is inconsistent, and throws if its node's is. For tests, also while
  /// the store is used; reads everything.
  func checkInvariants() async throws {
    readers.checkInvariants()
    changes.checkInvariants()
    rows.checkInvariants()
    resolvers.checkInvariants()
    try await writer.checkInvariants()
  }
}
