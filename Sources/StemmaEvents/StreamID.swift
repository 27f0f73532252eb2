/// The events that one origin wrote to one partition.
package struct StreamID: Hashable, Comparable, Sendable {
  package var partition: Partition
  package var origin: Origin

  package init(partition: Partition, origin: Origin) {
    self.partition = partition
    self.origin = origin
  }

  package init(_ event: Event) { self.init(partition: event.partition, origin: event.id.origin) }

  package init(_ name: QualifiedEventID) { self.init(partition: name.partition, origin: name.id.origin) }

  package static func < (a: StreamID, b: StreamID) -> Bool {
    a.partition == b.partition ? a.origin < b.origin : a.partition < b.partition
  }
}
