import StemmaEvents

/// A stream: a partition and an origin.
struct StreamName: Hashable, Comparable, Sendable {
  var partition: Partition
  var origin: Origin

  init(partition: Partition, origin: Origin) {
    self.partition = partition
    self.origin = origin
  }

  init(_ event: Event) { self.init(partition: event.partition, origin: event.dot.origin) }

  init(_ name: EventName) { self.init(partition: name.partition, origin: name.dot.origin) }

  static func < (a: StreamName, b: StreamName) -> Bool {
    a.partition == b.partition ? a.origin < b.origin : a.partition < b.partition
  }
}
