import StemmaEvents

extension Log {
  /// Reads every byte of the log. Compares all checksums and digests, and the indexes with the
  /// events. Returns the corruption by path and offset, and never throws it. Memory: the events of
  /// a segment. `progress` gets the stored bytes of each file that is done.
  ///
  /// Duplicate event ids are not corrupt bytes: `streams` throws them.
  package func verify(progress: (UInt64) -> Void = { _ in }) throws(LogError) -> [Corruption] {
    let omissions = Omissions()
    for corruption in recovery.corruption + (try metadataCorruption()) { omissions.note(corruption) }
    for view in views {
      try Omissions?.some(omissions).reading { () throws(LogError) in
        switch view {
        case .corrupt: break
        case .journal(let journal):
          _ = try journal.contents(around: omissions)
          progress(journal.size)
        case .segment(let entry):
          let segment = try segment(entry)
          if try segment.digestOfBytes() == entry.digest {
            try segment.compareIndex()
          } else {
            try segment.noteCorruption(in: id, omissions)
          }
          progress(segment.fileSize)
        }
      }
    }
    return omissions.corruption
  }

  /// The corruption of the manifests and of the watermark, which the next write replaces.
  private func metadataCorruption() throws(LogError) -> [Corruption] {
    var found = recovery.watermarkCorruption
    if let watermarkFile {
      found = try Watermark.read(watermarkFile, path: LogFileName.watermark(in: directory), log: id).1
    }
    // Between the two renames of a replacement, the manifest is missing.
    if let manifestFlaw, manifestFlaw.flaw != .missing { found.append(manifestFlaw) }
    do throws(LogError) {
      _ = try Manifest.read(directory + "/" + Manifest.previousName, log: id, fileSystem)
    } catch {
      guard error.isNotFound || error.corruption != nil else { throw error }
      if let corruption = error.corruption { found.append(corruption) }
    }
    return found
  }

  /// Whether this is the name of a listed segment or of a live journal.
  package func lists(_ name: String) -> Bool {
    switch LogFileName(name) {
    case .segment(let number): manifest.segments.contains { $0.number == number }
    case .journal(let number): number >= manifest.firstJournal
    default: false
    }
  }

  /// Whether only the watermark or a manifest is corrupt: these are rewritten without a loss.
  package func isHarmless(_ corruption: [Corruption]) -> Bool {
    corruption.allSatisfy { corruption in
      switch LogFileName(corruption.path.fileName) {
      case .watermark, .manifest: true
      default: false
      }
    }
  }
}

extension Segment {
  /// Throws `.corrupt` unless the index matches the events: readers skip blocks and files by it.
  fileprivate func compareIndex() throws(LogError) {
    let (footer, filter) = (try footer(), try filter())
    var events: [BlockEvent] = []
    // The blocks that contain events of each partition.
    var ranges = [Range<Int>?](repeating: nil, count: footer.partitions.count)
    for (index, entry) in footer.blocks.enumerated() {
      let block = try block(entry)
      let found = try decoding(path, entry.offset) { () throws(EventsError) in try block.events() }
      try locating(path, trailer.footerOffset) { () throws(Flaw) in
        let next = index + 1 < footer.blocks.count ? footer.blocks[index + 1].firstKey : nil
        guard RecordKey(block.record(0)) == entry.firstKey,
          next.map({ RecordKey(block.record(block.keyCount - 1)) <= $0 }) ?? true
        else { throw .disagreement("keys in the footer and in a block") }
        guard found.map(\.relativePosition).min() == entry.firstRelativePosition,
          found.map(\.relativePosition).max() == entry.lastRelativePosition,
          found.map(\.event.timestamp).min() == entry.lowestTimestamp,
          found.map(\.event.timestamp).max() == entry.highestTimestamp
        else { throw .disagreement("times in the footer and in a block") }
        for place in try footer.partitions(of: block, index, filter) {
          ranges[place] = (ranges[place]?.lowerBound ?? index)..<index + 1
        }
      }
      events += found
    }
    guard footer.partitions.map(\.blocks) == ranges else {
      throw .corrupt(
        path: path, offset: trailer.footerOffset, .disagreement("blocks of partitions in the footer"))
    }
    guard events.reduce(0, { $0 + UInt64($1.event.rawSize) }) == trailer.rawBytes else {
      throw .corrupt(path: path, offset: filterOffset, .disagreement("raw bytes in the trailer"))
    }
    var runs = RunCollector(path: path)
    for event in events.sorted(by: { $0.event.id.sequence < $1.event.id.sequence }) {
      try runs.add(event.event, offset: trailer.footerOffset)
    }
    let told = footer.partitions.map {
      PartitionRun(partition: $0.partition, blocks: 0..<0, events: $0.events, streams: $0.streams)
    }
    var found = runs.partitions
    for index in found.indices {
      for place in found[index].streams.indices where !found[index].streams[place].isHashed {
        found[index].streams[place].hash = .zero
      }
    }
    guard told == found else {
      throw .corrupt(
        path: path, offset: trailer.footerOffset, .disagreement("streams in the footer and in the blocks"))
    }
  }

  /// Notes the parts that fail their checksums, or the whole file if none does.
  fileprivate func noteCorruption(in log: LogID, _ omissions: Omissions) throws(LogError) {
    let count = omissions.corruption.count
    let collector = Omissions?.some(omissions)
    _ = try collector.reading { () throws(LogError) in
      try SegmentHeader(of: file, path: path, log: log, number: header.number)
    }
    _ = try collector.reading { () throws(LogError) in try filter() }
    if let root = try collector.reading({ () throws(LogError) in try root() }) {
      for index in root.pages.indices {
        _ = try collector.reading { () throws(LogError) in try partitions(of: index, root) }
      }
      for entry in root.blocks {
        _ = try collector.reading { () throws(LogError) in try bytes(of: entry) }
      }
    }
    if omissions.corruption.count == count {
      omissions.note(Corruption(path: path, offset: 0, flaw: .digest))
    }
  }
}
