import StemmaEvents

extension Log {
  /// The hashes of streams as they were some time ago: of their events up to the sequences that `ends` name. `heads`:
  /// how far the log holds these streams. Streams that cannot be read that far back are left out.
  ///
  /// Goes back from the newest file until all is found; reads files and frames that hold the first event behind an end,
  /// and of sealed files that are newer, the footers.
  package func streamHashes(_ ends: [EventName], of heads: Knowledge) throws(LogError) -> [EventName:
    StreamHash]
  {
    var search = HashSearch(ends, heads)
    for view in views.reversed() where !search.isDone {
      // What is damaged is nobody's to compare.
      try Omissions?.some(Omissions()).reading { () throws(LogError) in
        switch view {
        case .damaged(let damage, _): throw damage.error
        case .journal(let journal):
          for part in journal.parts(in: 0..<UInt64.max).reversed() where !search.isDone {
            search.take(try journal.read(part).events)
          }
        case .segment(let header, _):
          let segment = try segment(header)
          let cut = search.take(try footers.footer(of: segment))
          if !cut.isEmpty {
            search.take(try segment.contents { cut.contains($0) }.events, ofSegment: true)
            search.endSegment()
          }
        }
      }
    }
    return search.found
  }
}

/// Takes newer events off the hashes of streams.
private struct HashSearch {
  private struct Stream {
    var end: Sequence
    var head: Sequence
    var hash: StreamHash
    /// Events that are still to be taken off.
    var left: UInt64
    /// Whether some are to be taken off one by one.
    var isCut = false
  }

  private var streams: [StreamName: Stream] = [:]
  private var digester = EventDigester()

  init(_ ends: [EventName], _ heads: Knowledge) {
    for end in ends {
      let head = heads[end.partition, end.dot.origin]
      guard end.dot.sequence <= head.sequence else { continue }
      streams[StreamName(end)] = Stream(
        end: end.dot.sequence, head: head.sequence, hash: head.hash,
        left: head.sequence.rawValue - end.dot.sequence.rawValue)
    }
  }

  var isDone: Bool { streams.values.allSatisfy { $0.left == 0 } }

  /// Traps if more was taken off a stream than it had behind its end. In debug builds at the end.
  func checkInvariants() {
    for stream in streams.values {
      precondition(stream.left <= stream.head.rawValue - stream.end.rawValue, "an event is taken off once")
      precondition(!stream.isCut, "a segment has an end")
    }
  }

  var found: [EventName: StreamHash] {
    assert(holds(checkInvariants))
    var found: [EventName: StreamHash] = [:]
    for (name, stream) in streams where stream.left == 0 {
      found[EventName(partition: name.partition, dot: Dot(name.origin, stream.end))] = stream.hash
    }
    return found
  }

  /// Returns the partitions of which events must be read. A stream of which two files say to have the same events is left
  /// out.
  mutating func take(_ footer: SegmentFooter) -> Set<Partition> {
    var cut: Set<Partition> = []
    for run in footer.partitions {
      for part in run.streams {
        let name = StreamName(partition: run.partition, origin: part.origin)
        guard var stream = streams[name], part.to > stream.end, part.from <= stream.head else { continue }
        if part.from > stream.end, part.to <= stream.head {
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

  /// Of a journal, or of the partitions of a segment that are cut.
  mutating func take(_ events: [BlockEvent], ofSegment: Bool = false) {
    for event in events.map(\.event) {
      let name = StreamName(event)
      guard var stream = streams[name], event.dot.sequence > stream.end, event.dot.sequence <= stream.head,
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
