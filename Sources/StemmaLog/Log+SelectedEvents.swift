import StemmaEvents

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
