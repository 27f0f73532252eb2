import StemmaEvents

/// The partitions that a reader returns.
package struct PartitionFilter: Sendable {
  /// Their names, if they are known. A reader then searches only the places of these partitions.
  let named: Set<Partition>?
  private let isWanted: @Sendable (Partition) -> Bool

  package init(_ isWanted: @escaping @Sendable (Partition) -> Bool) {
    named = nil
    self.isWanted = isWanted
  }

  package init(named: Set<Partition>) {
    self.named = named
    isWanted = { named.contains($0) }
  }

  package func callAsFunction(_ partition: Partition) -> Bool { isWanted(partition) }
}
