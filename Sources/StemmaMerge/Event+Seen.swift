import StemmaEvents

extension Event {
  /// Whether the writer of this event had seen another event of the record: its context covers it.
  package func hasSeen(_ id: EventID) -> Bool { context.covers(id) }

  /// As `hasSeen` of its event id.
  package func hasSeen(_ other: Event) -> Bool { hasSeen(other.id) }
}
