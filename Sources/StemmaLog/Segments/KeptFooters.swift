import StemmaEvents

/// Cache of footer roots and pages that were read and checked. A shipment reads them twice: to
/// plan, and for the events. Their stored form takes a fraction of the decoded form.
///
/// The digest of the file is the key, so a rewritten file is another one. Only exchanges use the
/// cache: `verify` and other searches for corruption read the files.
final class KeptFooters: Sendable {
  private struct Place: Hashable {
    var file: SegmentDigest
    var offset: UInt64
  }

  private struct Kept {
    var parts: [Place: [UInt8]] = [:]
    /// Total length of the parts.
    var bytes = 0
  }

  private let kept = Mutex(Kept())

  /// The part of the footer at `offset`. `read` reads and checks it.
  func part(
    of file: SegmentDigest, at offset: UInt64, _ read: () throws(LogError) -> [UInt8]
  ) throws(LogError) -> [UInt8] {
    let place = Place(file: file, offset: offset)
    if let known = kept.withLock({ $0.parts[place] }) { return known }
    let bytes = try read()
    if bytes.count <= LogLimits.keptFooters {
      kept.withLock { kept in
        if kept.bytes + bytes.count > LogLimits.keptFooters { kept = Kept() }
        if kept.parts.updateValue(bytes, forKey: place) == nil { kept.bytes += bytes.count }
      }
    }
    return bytes
  }

  /// Traps if the cache is over its limit, or its bytes are miscounted. For tests, on any thread.
  func checkInvariants() {
    kept.withLock { kept in
      precondition(kept.bytes <= LogLimits.keptFooters, "memory is bounded")
      precondition(kept.parts.isEmpty == (kept.bytes == 0), "each part takes some bytes")
    }
  }
}
