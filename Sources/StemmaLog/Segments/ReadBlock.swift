import StemmaEvents

/// An event to ship, with its author and message, and its digest.
package struct DigestedEvent: Sendable {
  package var event: Event
  package var message: CommitMessage?
  package var digest: StreamHash

  package init(event: Event, message: CommitMessage?, digest: StreamHash) {
    self.event = event
    self.message = message
    self.digest = digest
  }
}

/// The stored bytes of a block.
struct ReadBlock: Sendable {
  let entry: BlockEntry
  let bytes: [UInt8]

  private func contents(_ path: String) throws(LogError) -> BlockContents {
    let block = try Segment.block(entry, bytes: bytes, path: path)
    let contents = try decoding(path, entry.offset) { () throws(EventsError) in try BlockContents(block) }
    guard contents.relativePosition(0) == entry.firstRelativePosition,
      contents.relativePosition(contents.count - 1) == entry.lastRelativePosition
    else { throw .corrupt(path: path, offset: entry.offset, .disagreement("positions in the footer")) }
    return contents
  }

  /// The events of some partitions in these blocks of one segment, in position order.
  static func events(
    of blocks: [ReadBlock], _ path: String, in partitions: Set<Partition>
  ) throws(LogError) -> [DigestedEvent] {
    var places: [(relativePosition: UInt64, block: BlockContents, index: Int)] = []
    for block in blocks {
      let read = try block.contents(path)
      let isWanted = (0..<read.reader.keyCount).map { partitions.contains(read.reader.partition(ofKey: $0)) }
      for index in 0..<read.count where isWanted[read.key(index)] {
        places.append((read.relativePosition(index), read, index))
      }
    }
    places.sort { $0.relativePosition < $1.relativePosition }
    guard zip(places, places.dropFirst()).allSatisfy({ $0.relativePosition < $1.relativePosition }) else {
      throw .corrupt(path: path, offset: 0, .disagreement("two events of one position"))
    }
    var events: [DigestedEvent] = []
    events.reserveCapacity(places.count)
    var digester = EventDigester()
    for (_, block, index) in places {
      let event = block.event(index)
      let digest = digester.digest(of: event).hash
      events.append(DigestedEvent(event: event, message: block.note(index), digest: digest))
    }
    return events
  }
}
