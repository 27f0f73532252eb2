import StemmaEvents

/// Which files of a source hold events that a receiver lacks. Made from footers alone: no event is read.
package struct ShipmentPlan: Sendable {
  package struct PlannedFile: Sendable {
    package var file: SourceFile
    /// The partitions of which it holds events above the receiver's knowledge.
    package var partitions: Set<Partition>
    /// Whether the receiver wants all of it, and will hold of each stream just what comes before the file.
    var isWhole = true
    /// Of each of the file's streams that are in scope, the hash of the events before it; zero of the others.
    var hashesBefore: [StreamHash] = []

    /// How far the streams of `partitions` that the file continues were held before it. Made each time: there may be
    /// thousands of files.
    var before: Knowledge {
      var before = Knowledge()
      for (range, hash) in zip(file.streams, hashesBefore) where partitions.contains(range.partition) {
        before[range.partition, range.origin] = StreamHead(
          sequence: Sequence(range.from.rawValue - 1), hash: hash)
      }
      return before
    }
  }

  /// Oldest first; files with nothing to ship are left out.
  package let files: [PlannedFile]
  /// What the sender holds in scope: what the receiver holds after the shipment, at least.
  package let knowledge: Knowledge
  /// What the receiver said that it holds.
  package let receiver: Knowledge
  /// How many events will be shipped.
  package let eventCount: UInt64
  let names: (own: String, peer: String)

  /// Throws `fork` where a stream of the receiver's ends at a border of our files, or with ours, and has
  /// another hash (the writer finds those that end inside of a file); `failed` if the files do not continue
  /// each other, or count more events than there can be.
  package init(
    source: some ShipmentSource, scope: NarrowedScope, above receiver: Knowledge,
    names: (own: String, peer: String)
  ) throws(ReplicationError) {
    var held = Knowledge()
    var planned: [PlannedFile] = []
    var count: UInt64 = 0
    for file in try source.shipmentFiles() {
      var entry = PlannedFile(file: file, partitions: [])
      entry.hashesBefore.reserveCapacity(file.streams.count)
      for range in file.streams {
        guard scope.contains(range.partition) else {
          entry.isWhole = false
          entry.hashesBefore.append(.zero)
          continue
        }
        let head = held[range.partition, range.origin]
        let known = receiver[range.partition, range.origin]
        guard range.from == head.sequence.next, range.to >= range.from else {
          throw .failed(
            "file \(file.number) of the log does not continue \(range.partition), \(range.origin); run `stemma verify` on "
              + "that node")
        }
        let next = StreamHead(sequence: range.to, hash: head.hash + range.hash)
        held[range.partition, range.origin] = next
        if known.sequence == next.sequence, known.hash != next.hash {
          throw .fork(
            Fork(
              partition: range.partition, origin: range.origin, sequence: known.sequence,
              finder: Fork.Side(node: names.own, hash: next.hash),
              peer: Fork.Side(node: names.peer, hash: known.hash)))
        }
        if known.sequence > head.sequence { entry.isWhole = false }
        if range.to > known.sequence {
          entry.partitions.insert(range.partition)
          let new = range.to.rawValue - max(known.sequence, head.sequence).rawValue
          let (sum, isTooLarge) = count.addingReportingOverflow(new)
          guard !isTooLarge else {
            throw .failed(
              "file \(file.number) of the log counts more events than there can be; run `stemma verify` on that node"
            )
          }
          count = sum
        }
        entry.hashesBefore.append(head.hash)
      }
      guard !entry.partitions.isEmpty else { continue }
      planned.append(entry)
    }
    files = planned
    knowledge = held
    self.receiver = receiver
    eventCount = count
    self.names = names
  }

  /// The partitions of which something is shipped, sorted.
  package var partitions: [Partition] {
    files.reduce(into: Set<Partition>()) { $0.formUnion($1.partitions) }.sorted()
  }
}
