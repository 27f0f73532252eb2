import StemmaEvents

// Where no checksum of a block is left, a wrong byte of it may be one of an origin: then the block tells events of a stream
// that never was, under numbers and with contents that are in order. Nothing in the file shows it. Who holds the real ones
// holds events that are alike in all but their names.

/// What an event says without its name, and without what refers to names.
package struct EventLikeness: Hashable, Sendable {
  private let model: String
  private let key: Key
  private let operation: Operation
  private let relationship: String?
  private let assignments: [Assignment]
  private let version: Version
  private let timestamp: Timestamp

  package init(_ event: Event) {
    (model, key, operation, relationship) = (event.model, event.key, event.operation, event.relationship)
    (assignments, version, timestamp) = (event.assignments, event.version, event.timestamp)
  }
}

extension Survey {
  /// By stream: events of which nobody knows but blocks without checksums.
  private func unwitnessed(_ salvage: Salvage) -> [StreamName: [Event]] {
    var known = Set(readable.keys)
    for file in files.values { known.formUnion(file.claims.keys) }
    known.formUnion(salvage.placed.values.flatMap { $0.events.map { StreamName($0.event) } })
    let events = files.keys.flatMap { salvage.unprovenEvents(at: $0) }
    return Dictionary(grouping: events) { StreamName($0) }.filter { name, _ in
      !known.contains(name) && held?[name.partition, name.origin].sequence ?? .zero == .zero
    }
  }

  /// What others must be asked for to tell misread events.
  package func unwitnessedLikenesses(_ salvage: Salvage) -> Set<EventLikeness> {
    Set(unwitnessed(salvage).values.joined().map(EventLikeness.init))
  }

  /// Without the losses of streams that nobody knows, if `others` are like all events that are told of them, and have other
  /// names: those were misread.
  package func withoutMisread(_ salvage: Salvage, knowing others: [Event]) -> Survey {
    let streams = unwitnessed(salvage)
    if streams.isEmpty || others.isEmpty { return self }
    let alike = Set(others.map(EventLikeness.init))
    let names = Set(others.map { StreamName($0) })
    var survey = self
    survey.lost.removeAll { range in
      guard let told = streams[range.stream], !names.contains(range.stream) else { return false }
      return told.allSatisfy { alike.contains(EventLikeness($0)) }
    }
    return survey
  }
}
