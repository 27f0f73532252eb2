import StemmaEvents

/// Blocks that no footer lists. A block states its length, and bytes are a block if they decode.
package final class BlockScan {
  private let source: InspectedFile
  private var allowance: UInt64

  package init(_ source: InspectedFile) {
    self.source = source
    allowance = source.allowance
  }

  /// The length of the block that seems to begin at `offset`; nil if it would end behind `end`.
  package func size(at offset: UInt64, before end: UInt64) throws(LogError) -> Int? {
    guard offset < end else { return nil }
    let head = try source.bytes(at: offset, count: Int(min(UInt64(BlockReader.headSize), end - offset)))
    do throws(EventsError) {
      let size = try BlockReader.storedSize(head[...], limit: InspectionLimits.blockStream)
      return UInt64(size) <= end - offset && size <= InspectionLimits.part ? size : nil
    } catch {
      return nil
    }
  }

  /// The next block that decodes and does not end behind `end`, without a number; or nil.
  package func next(from start: UInt64, before end: UInt64) throws(LogError) -> InspectedPart? {
    // Most blocks follow each other: then nothing is searched.
    if let block = try block(at: start, before: end) { return block }
    guard start < end else { return nil }
    var found: InspectedPart?
    _ = try source.first(BlockReader.beginning, in: start + 1..<end) { (place) throws(LogError) in
      found = try block(at: place, before: end)
      return found != nil
    }
    return found
  }

  private func block(at offset: UInt64, before end: UInt64) throws(LogError) -> InspectedPart? {
    guard let size = try size(at: offset, before: end), UInt64(size) <= allowance else { return nil }
    allowance -= UInt64(size)
    var part = InspectedPart(.block, at: offset, UInt64(size))
    part.decode(try source.bytes(at: offset, count: size))
    return part.block == nil ? nil : part
  }

  /// Reports the blocks of `range`, and the bytes between them as unknown.
  func report(
    _ range: Range<UInt64>, base: Position? = nil, _ body: (InspectedPart) -> Void
  ) throws(LogError) {
    var offset = range.lowerBound
    var number = 1
    while offset < range.upperBound {
      let next = try next(from: offset, before: range.upperBound)
      let end = next?.offset ?? range.upperBound
      if end > offset {
        var gap = InspectedPart(.unknown, at: offset, end - offset)
        gap.complain(.disagreement("no block here decodes"))
        body(gap)
      }
      guard var next else { return }
      (next.number, next.base) = (number, base)
      body(next)
      number += 1
      offset = next.end
    }
  }
}
