import StemmaEvents

extension Log {
  /// The hashes of streams up to earlier sequences, which `ends` names. `heads`: the last sequences
  /// and hashes in the log. Streams that cannot be read that far back are left out.
  ///
  /// Searches from the newest file back until all are found. Of a segment it reads the footer. It
  /// reads events of a partition only if an end is inside its run, or if the footer has no hash of
  /// the run. Throws corruption, or collects it in `omissions`.
  package func streamHashes(
    _ ends: [QualifiedEventID], of heads: VersionVector, around omissions: Omissions?
  ) throws(LogError) -> [QualifiedEventID: StreamHash] {
    var search = HashSearch(ends, heads)
    for view in views.reversed() where !search.isDone {
      try omissions.reading { () throws(LogError) in
        switch view {
        case .corrupt(let corruption, _): throw corruption.error
        case .journal(let journal):
          for part in journal.parts(in: 0..<UInt64.max).reversed() where !search.isDone {
            search.take(try journal.read(part).events)
          }
        case .segment(let entry):
          let segment = try segment(entry)
          let cut = search.take(try segment.footer(of: search.partitions, footers))
          if !cut.isEmpty {
            search.take(try segment.contents(of: cut).events, ofSegment: true)
            search.endSegment()
          }
        }
      }
    }
    return search.found
  }
}

/// Subtracts newer events from the hashes of streams.
private struct HashSearch {
  private struct Stream {
    var end: SequenceNumber
    var head: SequenceNumber
    var hash: StreamHash
    /// Events that remain to be subtracted.
    var left: UInt64
    /// Whether events of this segment are subtracted one by one.
    var isCut = false
  }

  private var streams: [StreamID: Stream] = [:]
  private var digester = EventDigester()

  init(_ ends: [QualifiedEventID], _ heads: VersionVector) {
    for end in ends {
      let head = heads[end.partition, end.id.origin]
      guard end.id.sequence <= head.sequence else { continue }
      streams[StreamID(end)] = Stream(
        end: end.id.sequence, head: head.sequence, hash: head.hash,
        left: head.sequence.rawValue - end.id.sequence.rawValue)
    }
  }

  /// Partitions with events that remain to be subtracted.
  var partitions: Set<Partition> { Set(streams.filter { $0.value.left > 0 }.map(\.key.partition)) }

  var isDone: Bool { streams.values.allSatisfy { $0.left == 0 } }

  /// Traps if too many events of a stream were subtracted. In debug builds at the end.
  func checkInvariants() {
    for stream in streams.values {
      precondition(stream.left <= stream.head.rawValue - stream.end.rawValue, "an event is taken off once")
      precondition(!stream.isCut, "a segment has an end")
    }
  }

  var found: [QualifiedEventID: StreamHash] {
    assert(holds(checkInvariants))
    var found: [QualifiedEventID: StreamHash] = [:]
    for (name, stream) in streams where stream.left == 0 {
      found[QualifiedEventID(partition: name.partition, id: EventID(name.origin, stream.end))] = stream.hash
    }
    return found
  }

  /// Returns the partitions whose events must be read. Drops a stream with events in two files.
  mutating func take(_ footer: SegmentFooter) -> Set<Partition> {
    var cut: Set<Partition> = []
    for run in footer.partitions {
      for part in run.streams {
        let name = StreamID(partition: run.partition, origin: part.origin)
        guard var stream = streams[name], part.to > stream.end, part.from <= stream.head else { continue }
        if part.from > stream.end, part.to <= stream.head, part.isHashed {
          let count = part.to.rawValue - part.from.rawValue + 1
          guard count <= stream.left else {
            streams[name] = nil
            continue
          }
          stream.hash = stream.hash - part.hash
          stream.left -= count
        } else {
          stream.isCut = true
          cut.insert(run.partition)
        }
        streams[name] = stream
      }
    }
    return cut
  }

  /// Subtracts events of a journal, or those of cut partitions of a segment.
  mutating func take(_ events: [BlockEvent], ofSegment: Bool = false) {
    for event in events.map(\.event) {
      let name = StreamID(event)
      guard var stream = streams[name], event.id.sequence > stream.end, event.id.sequence <= stream.head,
        !ofSegment || stream.isCut
      else { continue }
      guard stream.left > 0 else {
        streams[name] = nil
        continue
      }
      stream.hash = stream.hash - digester.digest(of: event).hash
      stream.left -= 1
      streams[name] = stream
    }
  }

  mutating func endSegment() { for name in streams.keys { streams[name]?.isCut = false } }
}
