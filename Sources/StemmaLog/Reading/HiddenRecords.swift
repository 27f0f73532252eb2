import StemmaEvents

/// The records that may have lost events to damage at one place.
package enum HiddenRecords: Sendable {
  /// The damaged bytes are a key filter, which holds no events.
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
  /// The records whose events a damaged place may have held; nil if unknown: any. Reads a footer.
  package func records(hiddenBy damage: Damage) throws(LogError) -> HiddenRecords? {
    for entry in manifest.segments where path(.segment(entry.number)) == damage.path {
      let segment: Segment
      let blocks: [BlockEntry]
      do throws(LogError) {
        segment = try self.segment(entry)
        blocks = try segment.root().blocks
      } catch {
        guard error.damage != nil else { throw error }
        return nil
      }
      if damage.offset == segment.filterOffset { return .nothing }
      guard let index = blocks.firstIndex(where: { $0.offset == damage.offset }) else { return nil }
      return .between(blocks[index].firstKey, blocks[(index + 1)...].first?.firstKey)
    }
    return nil
  }
}
