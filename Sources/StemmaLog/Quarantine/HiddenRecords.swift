import StemmaEvents

/// The records of which damage at one place may have taken events.
package enum HiddenRecords: Sendable {
  /// What is damaged there held no events: a key filter.
  case nothing
  /// From the first key of a block to that of the next one; nil: to the last of all.
  case between(RecordKey, RecordKey?)
  case partition(Partition)

  package func contains(_ record: RecordKey) -> Bool {
    switch self {
    case .nothing: false
    case .between(let first, let last): first <= record && last.map { record <= $0 } ?? true
    case .partition(let partition): record.partition == partition
    }
  }
}

extension Log {
  /// Whose events may have stood at a damaged place; nil where that cannot be told: then of all. Reads a footer.
  package func records(hiddenBy damage: Damage) throws(LogError) -> HiddenRecords? {
    for view in views {
      guard case .segment(let header, let path) = view, path == damage.path else { continue }
      let segment: Segment
      let footer: SegmentFooter
      do throws(LogError) {
        segment = try self.segment(header)
        footer = try segment.footer()
      } catch {
        guard error.damage != nil else { throw error }
        return nil
      }
      if damage.offset == segment.filterOffset { return .nothing }
      guard let index = footer.blocks.firstIndex(where: { $0.offset == damage.offset }) else { return nil }
      if footer.blocks[index].isGap { return .partition(footer.blocks[index].firstKey.partition) }
      let following = index + 1 < footer.blocks.count ? footer.blocks[index + 1].firstKey : nil
      return .between(footer.blocks[index].firstKey, following)
    }
    return nil
  }
}
