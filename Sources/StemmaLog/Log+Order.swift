import StemmaEvents

/// Events of a partition that stand in the log before what they build on, or without it: the events before them in their
/// streams, and those that they have seen. Whoever has none of them cannot take them in.
package struct Disorder: Sendable {
  /// The first of them.
  package var first: StoredEvent
  /// What it builds on, and does not stand before it.
  package var cause: Dot
  package var count: Int
}

extension Log {
  /// The disorder of each partition, by the positions of its first events. Reads all events of those that pass the filter
  /// (nil: all); memory: an entry for each stream.
  package func disorder(in filter: PartitionFilter? = nil) throws(LogError) -> [Disorder] {
    var heads: [StreamName: Sequence] = [:]
    var found: [Partition: Disorder] = [:]
    var reader = events(partitions: filter)
    while let stored = try reader.next() {
      let event = stored.event
      let name = StreamName(event)
      let head = heads[name] ?? .zero
      heads[name] = max(head, event.dot.sequence)
      var cause: Dot?
      if event.dot.sequence > head.next {
        cause = Dot(event.dot.origin, head.next)
      } else if let seen = event.context.entries.first(where: { entry in
        entry.sequence > heads[StreamName(partition: event.partition, origin: entry.origin)] ?? .zero
      }) {
        cause = Dot(seen.origin, seen.sequence)
      }
      guard let cause else { continue }
      found[event.partition, default: Disorder(first: stored, cause: cause, count: 0)].count += 1
    }
    return found.values.sorted { $0.first.position < $1.first.position }
  }
}
