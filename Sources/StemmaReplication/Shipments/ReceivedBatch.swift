import StemmaEvents
import StemmaLog

/// The bytes of a received batch. Other threads join its parts, decode it, and open the first
/// blocks of a segment while the previous batch is being stored.
///
/// Memory: at most twice the batch, and the open blocks. Only one copy may take the batch.
struct ReceivedBatch: Sendable {
  private typealias Parts = Result<(batch: Batch, blocks: SealedBlocks?), ReplicationError>

  /// The size as received.
  let storedSize: Int
  private let parts: MadeAhead<Parts>

  /// `check`: nil if the index of a segment is trusted.
  init(_ bytes: [ArraySlice<UInt8>], _ check: EventCheck?, isDigested: Bool) {
    storedSize = bytes.reduce(0) { $0 + $1.count }
    let bytes = PartsOfBatch(bytes)
    parts = MadeAhead {
      Parts { () throws(ReplicationError) in
        let batch = try Batch(decoding: bytes.joined(), isDigested: isDigested)
        guard let sealed = batch.sealed, let check else { return (batch, nil) }
        return (batch, SealedBlocks(sealed, check))
      }
    }
  }

  /// Returns the batch, with its blocks if it is a segment to check. Throws what `Batch.init` does.
  func take() throws(ReplicationError) -> (batch: Batch, blocks: SealedBlocks?) { try parts.take().get() }
}

/// The received parts of a batch, which are released when they are joined.
private final class PartsOfBatch: Sendable {
  private let parts: Mutex<[ArraySlice<UInt8>]>

  init(_ parts: [ArraySlice<UInt8>]) { self.parts = Mutex(parts) }

  /// All bytes. Call it once.
  func joined() -> [UInt8] {
    let parts = parts.withLock { parts in
      defer { parts = [] }
      return parts
    }
    // A part that is a whole array is not copied.
    if parts.count == 1 { return Array(parts[0]) }
    var whole: [UInt8] = []
    whole.reserveCapacity(parts.reduce(0) { $0 + $1.count })
    for part in parts { whole += part }
    return whole
  }
}
