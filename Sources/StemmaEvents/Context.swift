/// The causal context of an event: what its writer had read of the record. For each origin, the
/// highest sequence of the record's events. Every node has a prefix of each stream, so `origin → n`
/// covers all of the origin's events of the record up to `n`.
package struct Context: Hashable, Sendable {
  package struct Entry: Hashable, Sendable {
    package let origin: Origin
    package var sequence: SequenceNumber

    package init(origin: Origin, sequence: SequenceNumber) {
      self.origin = origin
      self.sequence = sequence
    }
  }

  /// Sorted by origin, one entry for each, none with sequence 0.
  package private(set) var entries: [Entry]

  package static let empty = Context()

  package init() { entries = [] }

  /// nil unless the entries are sorted by origin, without repetition or sequence 0.
  package init?(canonical entries: [Entry]) {
    for (index, entry) in entries.enumerated() {
      if entry.sequence == .zero { return nil }
      if index > 0 && entries[index - 1].origin >= entry.origin { return nil }
    }
    self.entries = entries
  }

  /// Accepts entries that were verified when they were read.
  package init(trusted entries: [Entry]) { self.entries = entries }

  package init(_ ids: EventID...) {
    self.init()
    for id in ids { insert(id) }
  }

  package var isEmpty: Bool { entries.isEmpty }

  package subscript(origin: Origin) -> SequenceNumber {
    for entry in entries where entry.origin == origin { return entry.sequence }
    return .zero
  }

  package func covers(_ id: EventID) -> Bool { self[id.origin] >= id.sequence }

  package func covers(_ other: Context) -> Bool {
    other.entries.allSatisfy { self[$0.origin] >= $0.sequence }
  }

  /// Raises the entry of the event id's origin to its sequence, if it is lower.
  package mutating func insert(_ id: EventID) {
    var index = 0
    while index < entries.count, entries[index].origin < id.origin { index += 1 }
    if index < entries.count, entries[index].origin == id.origin {
      if entries[index].sequence < id.sequence { entries[index].sequence = id.sequence }
    } else {
      entries.insert(Entry(origin: id.origin, sequence: id.sequence), at: index)
    }
  }

  /// Traps if the entries are not in their canonical form. For tests and the suites.
  package func checkInvariants() {
    precondition(entries.allSatisfy { $0.sequence > .zero }, "what is covered was written")
    for (a, b) in zip(entries, entries.dropFirst()) {
      precondition(a.origin < b.origin, "each origin has one entry, in their order")
    }
  }

  package mutating func formUnion(_ other: Context) {
    for entry in other.entries { insert(EventID(entry.origin, entry.sequence)) }
  }
}
