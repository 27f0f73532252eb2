import Synchronization

/// Footers that were read and checked. Who ships reads them twice: first to plan, then for the events; and where there
/// are many partitions a footer is as long as the blocks of one of them.
///
/// They are found by the digest of their file, so one that was written anew is another one. For exchanges only:
/// `verify`, and whoever looks for damage, reads what is there.
final class KeptFooters: Sendable {
  private struct Kept {
    var footers: [SegmentDigest: SegmentFooter] = [:]
    /// How much they take in their files.
    var bytes = 0
  }

  private let kept = Mutex(Kept())

  /// Throws `.damaged`.
  func footer(of segment: Segment) throws(LogError) -> SegmentFooter {
    let digest = segment.trailer.digest
    if let known = kept.withLock({ $0.footers[digest] }) { return known }
    let footer = try segment.footer()
    let length = segment.trailer.footerLength
    if length <= LogLimits.keptFooters {
      kept.withLock { kept in
        if kept.bytes + length > LogLimits.keptFooters { kept = Kept() }
        if kept.footers.updateValue(footer, forKey: digest) == nil { kept.bytes += length }
      }
    }
    return footer
  }

  /// Traps if more is kept than may be, or what is kept is not counted. For tests, on any thread.
  func checkInvariants() {
    kept.withLock { kept in
      precondition(kept.bytes <= LogLimits.keptFooters, "memory is bounded")
      precondition(kept.footers.isEmpty == (kept.bytes == 0), "each footer takes some bytes")
    }
  }
}
