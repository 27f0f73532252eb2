import StemmaEvents

/// A file of the log, for listings.
package struct LogFile: Hashable, Sendable {
  package enum Kind: Sendable { case segment, journal, corrupt }

  package var number: UInt64
  package var kind: Kind
  package var path: String
  package var events: UInt64
  /// The positions of its events; more than `events` after a purge.
  package var positions: Range<Position>
  /// `Event.rawSize` of all events.
  package var rawBytes: UInt64
  package var storedBytes: UInt64
  package var digest: SegmentDigest?
}

extension Log {
  /// All events of the log, for `RecordMerge`. Reading corruption throws it.
  package var recordFiles: RecordFiles {
    RecordFiles(views: fileViews, staysOpen: views.count <= options.openSegments)
  }

  /// Events from `from` up to but not including `to` (nil: the end), oldest first, of partitions
  /// that pass the filter (nil: all). Blocks without such events are not read. Throws corruption,
  /// or skips it and collects it in `omissions`.
  package func events(
    from: Position = .first, to: Position? = nil,
    partitions filter: PartitionFilter? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    let range = from..<max(from, to ?? readEnd)
    return EventReader(
      PositionSource(
        fileViews, range: range, filter: filter, direction: .oldestFirst, around: omissions,
        footers: filter == nil ? nil : footers))
  }

  /// Like `events`, newest first.
  package func eventsNewestFirst(
    from: Position = .first, to: Position? = nil,
    partitions filter: PartitionFilter? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    let range = from..<max(from, to ?? readEnd)
    return EventReader(
      PositionSource(
        fileViews, range: range, filter: filter, direction: .newestFirst, around: omissions))
  }

  /// Like `events` or `eventsNewestFirst`, without constructing the events, for callers that need
  /// few of them or parts of each. With `times`, blocks without an event of these times are
  /// skipped; the other blocks return all of their events.
  package func scan(
    from: Position = .first, to: Position? = nil,
    partitions filter: PartitionFilter? = nil, times: ClosedRange<Timestamp>? = nil,
    newestFirst: Bool = false, around omissions: Omissions? = nil
  ) -> EventScan {
    let range = from..<max(from, to ?? readEnd)
    return EventScan(
      source: PositionSource(
        fileViews, range: range, filter: filter, direction: newestFirst ? .newestFirst : .oldestFirst,
        around: omissions, times: times))
  }

  /// Events before `to` by (partition, model, key), and by position for one key. Keeps every file
  /// open if there are at most `Options.openSegments`. Memory: a block of each segment, and
  /// journals.
  package func eventsByKey(
    to: Position? = nil, partitions filter: PartitionFilter? = nil, around omissions: Omissions? = nil
  ) throws(LogError) -> EventReader {
    EventReader(
      try KeySource(
        fileViews, upTo: to ?? readEnd, filter: filter, around: omissions,
        staysOpen: views.count <= options.openSegments))
  }

  /// Events of one record before `to`, in position order. Reads the key filter and the footer's
  /// root of each segment, and the blocks that may contain the record.
  package func events(
    of record: RecordKey, to: Position? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    events(of: [record], to: to, around: omissions)
  }

  /// Events of several records before `to`, each record's in position order. A block that may
  /// contain any of them is read once. Memory: one block.
  package func events(
    of records: [RecordKey], to: Position? = nil, around omissions: Omissions? = nil
  ) -> EventReader {
    EventReader(
      RecordSource(fileViews, records: records, upTo: to ?? readEnd, around: omissions))
  }

  /// Events behind `durableEnd` up to a position. A crash can remove them.
  package func unsyncedEvents(to end: Position, around omissions: Omissions) -> EventReader {
    var views = fileViews
    views.files = journals.last.map { [.journal($0)] } ?? []
    return EventReader(
      PositionSource(
        views, range: durableEnd..<max(durableEnd, end), filter: nil, direction: .oldestFirst,
        around: omissions))
  }

  /// The files in the order of the log. Reads the trailer of each segment. A file with a corrupt
  /// trailer or header is `.corrupt`, without a count of events; a missing one has size 0.
  package func files() throws(LogError) -> [LogFile] {
    var files: [LogFile] = []
    for view in views {
      switch view {
      case .segment(let entry):
        var file = LogFile(
          number: entry.number, kind: .corrupt, path: path(.segment(entry.number)), events: 0,
          positions: entry.base..<entry.past, rawBytes: 0, storedBytes: 0)
        do throws(LogError) {
          let segment = try segment(entry)
          file.kind = .segment
          (file.events, file.rawBytes) = (segment.trailer.events, segment.trailer.rawBytes)
          (file.storedBytes, file.digest) = (segment.fileSize, segment.trailer.digest)
        } catch {
          guard error.corruption != nil else { throw error }
          file.storedBytes = try sizeIfThere(file.path)
        }
        files.append(file)
      case .journal(let journal):
        files.append(
          LogFile(
            number: journal.number, kind: .journal, path: journal.path, events: journal.eventCount,
            positions: journal.base..<journal.endPosition, rawBytes: journal.rawBytes,
            storedBytes: journal.size))
      case .corrupt(let corruption, let base):
        files.append(
          LogFile(
            number: LogFileName(corruption.path.fileName).number ?? 0, kind: .corrupt, path: corruption.path,
            events: 0, positions: base..<base, rawBytes: 0, storedBytes: try sizeIfThere(corruption.path)))
      }
    }
    return files
  }

  private func sizeIfThere(_ path: String) throws(LogError) -> UInt64 {
    do throws(LogError) { return try fileSystem.open(path, .read).size() } catch {
      if error.isNoFile { return 0 }
      throw error
    }
  }

  /// The sealed file at a position, to ship it unchanged; nil for a journal. Memory: the file.
  package func sealedFile(at base: Position) throws(LogError) -> SealedFile? {
    for case .segment(let entry) in views where entry.base == base { return try segment(entry).sealedFile() }
    return nil
  }

  /// Some partitions in the footer of the file at `base`; nil for a journal. Throws `.corrupt`.
  package func partitions(
    ofFileAt base: Position, in named: Set<Partition>
  ) throws(LogError) -> [PartitionRun]? {
    for view in views where view.base == base {
      switch view {
      case .segment(let entry):
        return try segment(entry).footer(of: named, footers).partitions.filter {
          named.contains($0.partition)
        }
      case .journal: return nil
      case .corrupt(let corruption, _): throw corruption.error
      }
    }
    return []
  }

  /// The version vector of the log, from footers, the events of short runs, and the journals. It
  /// rebuilds the tables' copy, which other callers use. `isWanted`: only these partitions. Throws
  /// `.corrupt` for a gap, a first sequence above 1, or a duplicate event id.
  package func streams(
    in isWanted: (Partition) -> Bool = { _ in true }
  ) throws(LogError) -> VersionVector {
    var versionVector = VersionVector()
    for view in views {
      let path: String
      let runs: [PartitionRun]
      switch view {
      case .segment(let entry):
        path = self.path(.segment(entry.number))
        runs = try segment(entry).hashedPartitions(isWanted)
      case .journal(let journal):
        path = journal.path
        var collector = RunCollector(path: path)
        try journal.collect(into: &collector)
        runs = collector.partitions
      case .corrupt(let corruption, _): throw corruption.error
      }
      for run in runs where isWanted(run.partition) {
        for stream in run.streams {
          let head = versionVector[run.partition, stream.origin]
          guard stream.from == head.sequence.next else {
            if stream.from <= head.sequence {
              let id = EventID(stream.origin, stream.from)
              throw .corrupt(path: path, offset: 0, .duplicate(run.partition, id))
            }
            let what = "\(run.partition) of \(stream.origin): \(stream.from) after \(head.sequence)"
            throw .corrupt(path: path, offset: 0, .disagreement(what))
          }
          versionVector[run.partition, stream.origin] = StreamHead(
            sequence: stream.to, hash: head.hash + stream.hash)
        }
      }
    }
    return versionVector
  }

  // MARK: Tokens

  /// Identifies the content of the log up to `end`.
  package var token: LogToken {
    guard let open = journals.last else { return manifest.start }
    return open.token(frames: showsUnsynced ? open.marks.count : open.durableFrames)
  }

  /// Identifies the content of the log up to `durableEnd`.
  package var syncedToken: LogToken {
    guard let open = journals.last else { return manifest.start }
    return open.token(frames: open.durableFrames)
  }

  /// Whether the token is of this log, which may have grown since. Reads a trailer at most. Also
  /// false for a token from the middle of a journal that was sealed since: before a seal, the
  /// writer brings the tables up to the end.
  package func matches(_ token: LogToken) throws(LogError) -> Bool {
    if token == .start || token == manifest.start { return true }
    for journal in journals where journal.token(at: token.position) == token { return true }
    guard let entry = manifest.segments.first(where: { $0.past == token.position }) else { return false }
    return try segment(entry).trailer.chain == token.chain
  }
}
