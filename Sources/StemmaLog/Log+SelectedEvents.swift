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

extension Log {
  /// The events of some partitions in a sealed file, in position order, if few blocks contain them.
  /// The caller's thread reads these blocks, and another one decodes them in advance.
  ///
  /// Returns nil for a journal, more than `LogLimits.selectedBlocks` blocks, or a failed read. The
  /// output is nil if a block is corrupt. `events` returns the same events, or throws. Memory: the
  /// events.
  package func selectedEvents(
    ofFileAt base: Position, in partitions: Set<Partition>
  ) -> MadeAhead<[DigestedEvent]?>? {
    for case .segment(let entry) in views where entry.base == base {
      let path = LogFileName.segment(entry.number).path(in: directory)
      let read = Result { () throws(LogError) -> [ReadBlock]? in
        let segment = try segment(entry)
        let entries = try segment.selection(PartitionFilter(named: partitions), footers).blocks
        guard entries.count <= LogLimits.selectedBlocks else { return nil }
        var blocks: [ReadBlock] = []
        for entry in entries {
          blocks.append(ReadBlock(entry: entry, bytes: try segment.bytes(of: entry)))
        }
        return blocks
      }
      guard case .success(let blocks?) = read else { return nil }
      return MadeAhead {
        let events = Result { () throws(LogError) in try ReadBlock.events(of: blocks, path, in: partitions) }
        return if case .success(let events) = events { events } else { nil }
      }
    }
    return nil
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
