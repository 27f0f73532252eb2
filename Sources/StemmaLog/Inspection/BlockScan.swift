import StemmaEvents

/// Finds blocks where no directory of them can be read: each says itself how long it is, and behind one that
/// is damaged the next is where bytes decode again.
package struct BlockScan {
  private let source: InspectedFile

  package init(_ source: InspectedFile) { self.source = source }

  /// How long the block is that seems to begin at `offset` and end at or before `end`. nil: none does.
  package func size(at offset: UInt64, before end: UInt64) throws(LogError) -> Int? {
    let head = try source.bytes(at: offset, count: Int(min(UInt64(BlockReader.headSize), end - offset)))
    do throws(EventsError) {
      let size = try BlockReader.storedSize(head[...], limit: InspectionLimits.blockStream)
      return UInt64(size) <= end - offset && size <= InspectionLimits.part ? size : nil
    } catch {
      return nil
    }
  }

  /// Where the next block begins that decodes; nil if there is none. `limit`: where it begins at last.
  package func next(
    from start: UInt64, before end: UInt64, beginningBefore limit: UInt64 = .max
  ) throws(LogError) -> UInt64? {
    guard start < min(end, limit) else { return nil }
    return try source.first(BlockReader.beginning, in: start..<min(end, limit)) { (place) throws(LogError) in
      guard let size = try size(at: place, before: end) else { return false }
      return BlockReader(inspecting: try source.bytes(at: place, count: size)) != nil
    }
  }

  /// Reports the blocks of `range`, and what stands between them. Returns where the last one ends.
  func report(
    _ range: Range<UInt64>, _ request: InspectionRequest, _ body: (InspectedPart) -> Void
  ) throws(LogError) -> UInt64 {
    var offset = range.lowerBound
    var number = 1
    while offset < range.upperBound {
      if let size = try size(at: offset, before: range.upperBound) {
        var part = InspectedPart(.block, at: offset, UInt64(size), number: number)
        part.decode(try source.bytes(at: offset, count: size))
        let end = offset + UInt64(size)
        // Behind damage the next block, or the end, shows that at least the length is right.
        let following = end < range.upperBound ? try self.size(at: end, before: range.upperBound) : 0
        if part.block != nil || following != nil {
          if request.wants(number) { body(part) }
          number += 1
          offset = end
          continue
        }
      }
      guard let next = try next(from: offset + 1, before: range.upperBound) else { return offset }
      var gap = InspectedPart(.unknown, at: offset, next - offset)
      gap.complain(.disagreement("these bytes are no whole block"))
      body(gap)
      number += 1
      offset = next
    }
    return offset
  }

  /// Reports what can be read of bytes of which nothing is known: blocks anywhere in them, and the rest.
  package func reportFragments(
    _ request: InspectionRequest, _ body: (InspectedPart) -> Void
  ) throws(LogError) {
    var offset: UInt64 = 0
    var number = 1
    while offset < source.size {
      let next = try next(from: offset, before: source.size)
      let end = next ?? source.size
      if end > offset {
        var gap = InspectedPart(.unknown, at: offset, end - offset)
        let size = UInt64(FilePreamble.size)
        gap.complain(source.size < size ? .cutShort(expected: size, found: source.size) : .notThisFormat)
        if request.block == nil { body(gap) }
      }
      guard let next, let size = try size(at: next, before: source.size) else { return }
      if request.wants(number) {
        var part = InspectedPart(.block, at: next, UInt64(size), number: number)
        part.decode(try source.bytes(at: next, count: size))
        body(part)
      }
      number += 1
      offset = next + UInt64(size)
    }
  }
}
