import StemmaEvents

/// Consecutive events of one stream that the log lost.
package struct LostRange: Hashable, Sendable {
  package var partition: Partition
  package var origin: Origin
  /// The first and the last, both lost.
  package var from: SequenceNumber
  package var to: SequenceNumber

  package var count: UInt64 { to.rawValue - from.rawValue + 1 }
}

/// The events lost to corruption.
package struct Losses: Sendable {
  /// By partition, origin and sequence.
  package var ranges: [LostRange] = []
  /// Whether more may be lost than `ranges` says.
  package var isVague = false
  /// The lowest position that a lost event may have had.
  package var start = Position.end

  package var partitions: Set<Partition> { Set(ranges.map(\.partition)) }
}

extension Log {
  /// The events lost to the corruption in `found` and to that found by opening. A stream should
  /// have every event up to the last one that a footer, the tables or a causal context names. Reads
  /// the footers of whole files, and all of other files. Reads whole files if `held` is nil.
  ///
  /// - Parameters:
  ///   - held: the version vector of the tables; nil: the tables remember nothing.
  ///   - end: up to here the tables have applied the log. Unindexed content behind it is unknown.
  package func losses(
    of found: [Corruption], held: VersionVector?, upTo end: Position
  ) throws(LogError) -> Losses {
    let paths = Set((found + recovery.corruption).map(\.path))
    var streams: [StreamID: Coverage] = [:]
    var losses = Losses()
    // An event's causal context proves that those events existed.
    func claimCauses(_ event: Event) {
      for entry in event.context.entries {
        let name = StreamID(partition: event.partition, origin: entry.origin)
        streams[name, default: Coverage()].claim(upTo: entry.sequence.rawValue)
      }
    }
    func add(_ events: [BlockEvent]) {
      for event in events {
        streams[StreamID(event.event), default: Coverage()].add(event.event.id.sequence.rawValue)
        claimCauses(event.event)
      }
    }
    for view in views {
      switch view {
      case .corrupt(_, let base):
        losses.start = min(losses.start, base)
        if held == nil || end <= base { losses.isVague = true }
      case .journal(let journal):
        let omissions = Omissions()
        add(try journal.contents(around: omissions).events)
        guard !omissions.isEmpty else { continue }
        losses.start = min(losses.start, journal.firstLost)
        // Tables that end before the lost part of the journal do not show which events it had.
        if held == nil || journal.lacksEnd && end <= journal.endPosition { losses.isVague = true }
      case .segment(let entry):
        let isCorrupt = paths.contains(path(.segment(entry.number)))
        let omissions = Omissions()
        var isRead = false
        let footer = try Omissions?.some(omissions).reading { () throws(LogError) in
          let segment = try segment(entry)
          if isCorrupt {
            add(try segment.contents(around: omissions).events)
            isRead = omissions.isEmpty
          } else if held == nil {
            // Tables remember these contexts; without tables, all events are read for them.
            for event in try segment.contents(around: omissions).events { claimCauses(event.event) }
          }
          return try segment.footer()
        }
        guard let footer else {
          // Every block was read although the footer is corrupt.
          if isRead { continue }
          losses.start = min(losses.start, entry.base)
          if held == nil || end < entry.past { losses.isVague = true }
          continue
        }
        if !omissions.isEmpty { losses.start = min(losses.start, entry.base) }
        for run in footer.partitions {
          for stream in run.streams {
            let name = StreamID(partition: run.partition, origin: stream.origin)
            if isCorrupt {
              streams[name, default: Coverage()].claim(upTo: stream.to.rawValue)
            } else {
              streams[name, default: Coverage()].add(stream.from.rawValue...stream.to.rawValue)
            }
          }
        }
      }
    }
    for (partition, heads) in held?.partitions ?? [:] {
      for (origin, head) in heads where head.sequence > .zero {
        let name = StreamID(partition: partition, origin: origin)
        streams[name, default: Coverage()].claim(upTo: head.sequence.rawValue)
      }
    }
    for (name, coverage) in streams.sorted(by: { $0.key < $1.key }) {
      for gap in coverage.gaps {
        losses.ranges.append(
          LostRange(
            partition: name.partition, origin: name.origin, from: SequenceNumber(gap.lowerBound),
            to: SequenceNumber(gap.upperBound)))
      }
    }
    return losses
  }

  /// The records whose events a corrupt place may have held; nil if unknown: any. Reads a footer.
  package func records(hiddenBy corruption: Corruption) throws(LogError) -> HiddenRecords? {
    for entry in manifest.segments where path(.segment(entry.number)) == corruption.path {
      let segment: Segment
      let blocks: [BlockEntry]
      do throws(LogError) {
        segment = try self.segment(entry)
        blocks = try segment.root().blocks
      } catch {
        guard error.corruption != nil else { throw error }
        return nil
      }
      if corruption.offset == segment.filterOffset { return .nothing }
      guard let index = blocks.firstIndex(where: { $0.offset == corruption.offset }) else { return nil }
      return .between(blocks[index].firstKey, blocks[(index + 1)...].first?.firstKey)
    }
    return nil
  }
}

/// The readable events of a stream, and its highest known sequence.
private struct Coverage {
  private var ranges: [ClosedRange<UInt64>] = []
  private var highest: UInt64 = 0

  mutating func add(_ sequence: UInt64) { add(sequence...sequence) }

  /// Ranges mostly arrive in rising order.
  mutating func add(_ range: ClosedRange<UInt64>) {
    if let last = ranges.last, last.upperBound < range.lowerBound, last.upperBound + 1 == range.lowerBound {
      ranges[ranges.count - 1] = last.lowerBound...range.upperBound
    } else {
      ranges.append(range)
    }
    claim(upTo: range.upperBound)
  }

  mutating func claim(upTo sequence: UInt64) { highest = max(highest, sequence) }

  var gaps: [ClosedRange<UInt64>] {
    var gaps: [ClosedRange<UInt64>] = []
    var next: UInt64 = 1
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if range.lowerBound > next { gaps.append(next...range.lowerBound - 1) }
      next = max(next, range.upperBound + 1)
    }
    if next <= highest { gaps.append(next...highest) }
    return gaps
  }
}
