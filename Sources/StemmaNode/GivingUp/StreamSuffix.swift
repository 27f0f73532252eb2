import StemmaEvents

/// The events of one stream from a sequence on, as a mark keeps them.
struct StreamSuffix: Sendable, Equatable, Encodable {
  var partition: String
  var origin: UInt64
  var from: UInt64
}

extension [StreamSuffix] {
  /// Sorted. The names of the streams have sequence 0.
  init(_ streams: [EventName: Sequence]) {
    self = streams.map {
      StreamSuffix(
        partition: $0.key.partition.description, origin: $0.key.dot.origin.rawValue, from: $0.value.rawValue)
    }.sorted { ($0.partition, $0.origin) < ($1.partition, $1.origin) }
  }

  /// The first sequence of each stream.
  var starts: [EventName: Sequence] {
    Dictionary(
      map { (EventName(stream: Partition($0.partition), Origin($0.origin)), Sequence($0.from)) },
      uniquingKeysWith: { Swift.min($0, $1) })
  }
}

extension EventName {
  /// The name of a stream.
  init(stream partition: Partition, _ origin: Origin) {
    self.init(partition: partition, dot: Dot(origin, .zero))
  }

  /// The stream of an event.
  init(streamOf event: Event) { self.init(stream: event.partition, event.dot.origin) }
}

extension [EventName: Sequence] {
  /// Whether an event belongs to one of these suffixes.
  func contains(_ event: Event) -> Bool { covers(event.partition, event.dot.origin, event.dot.sequence) }

  func covers(_ partition: Partition, _ origin: Origin, _ sequence: Sequence) -> Bool {
    self[EventName(stream: partition, origin)].map { $0 <= sequence } ?? false
  }
}

extension MarkReader {
  func streams(_ name: String) throws(NodeError) -> [StreamSuffix] {
    try members(name).map { stream throws(NodeError) in
      StreamSuffix(
        partition: try stream.text("partition"), origin: try stream.number("origin"),
        from: try stream.number("from"))
    }
  }
}
