import StemmaEvents

/// Events of a partition that precede their causes in the log, or lack them. The causes are the
/// preceding event of the stream, and the causal context. A node cannot adopt an event without
/// them.
package struct OrderViolation: Sendable {
  package var first: StoredEvent
  /// The cause that does not precede it.
  package var cause: EventID
  package var count: Int
}

extension Log {
  /// The order violation of each partition, by the position of its first event. Reads all events
  /// that pass the filter (nil: all). Memory: an entry for each stream.
  package func orderViolations(in filter: PartitionFilter? = nil) throws(LogError) -> [OrderViolation] {
    var heads: [StreamID: SequenceNumber] = [:]
    var found: [Partition: OrderViolation] = [:]
    var reader = events(partitions: filter)
    while let stored = try reader.next() {
      let event = stored.event
      let name = StreamID(event)
      let head = heads[name] ?? .zero
      heads[name] = max(head, event.id.sequence)
      var cause: EventID?
      if event.id.sequence > head.next {
        cause = EventID(event.id.origin, head.next)
      } else if let seen = event.context.entries.first(where: { entry in
        entry.sequence > heads[StreamID(partition: event.partition, origin: entry.origin)] ?? .zero
      }) {
        cause = EventID(seen.origin, seen.sequence)
      }
      guard let cause else { continue }
      found[event.partition, default: OrderViolation(first: stored, cause: cause, count: 0)].count += 1
    }
    return found.values.sorted { $0.first.position < $1.first.position }
  }
}
