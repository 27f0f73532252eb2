import StemmaEvents

/// The records that may have lost events to corruption at one place.
package enum HiddenRecords: Sendable {
  /// The corrupt bytes are a key filter, which holds no events.
  case nothing
  /// From the first key of a block to that of the next one; nil: to the last record.
  case between(RecordKey, RecordKey?)

  package func contains(_ record: RecordKey) -> Bool {
    switch self {
    case .nothing: false
    case .between(let first, let last): first <= record && last.map { record <= $0 } ?? true
    }
  }
}

extension Log {
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
