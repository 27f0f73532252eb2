import Synchronization

/// Footers that were read and checked. Who ships asks for them twice: first to plan, then for the events; and where there
/// are many partitions a footer is as long as the blocks of one of them. They are kept as they stand in their files, which
/// takes a fraction of what they are in memory.
///
/// They are found by the digest of their file, so one that was written anew is another one. For exchanges only:
/// `verify`, and whoever looks for damage, reads what is there.
final class KeptFooters: Sendable {
  private struct Kept {
    var footers: [SegmentDigest: [UInt8]] = [:]
    /// How long they are together.
    var bytes = 0
  }

  private let kept = Mutex(Kept())

  /// Throws `.damaged`.
  func footer(of segment: Segment) throws(LogError) -> SegmentFooter {
    let digest = segment.trailer.digest
    if let known = kept.withLock({ $0.footers[digest] }) {
      return try segment.footer(decoding: known)
    }
    let bytes = try segment.footerBytes()
    let footer = try segment.footer(decoding: bytes)
    if bytes.count <= LogLimits.keptFooters {
      kept.withLock { kept in
        if kept.bytes + bytes.count > LogLimits.keptFooters { kept = Kept() }
        if kept.footers.updateValue(bytes, forKey: digest) == nil { kept.bytes += bytes.count }
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
