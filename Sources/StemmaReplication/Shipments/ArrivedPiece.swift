import StemmaLog
import Synchronization

/// The bytes of a piece that has come. Other threads put its parts together, take it apart, and open the first blocks of a
/// sealed file, while the piece before it is being stored.
///
/// Memory: the piece twice at most, and the blocks that are open. Copies of it are the same piece, which is taken once.
struct ArrivedPiece: Sendable {
  private typealias Parts = Result<(piece: Piece, blocks: SealedBlocks?), ReplicationError>

  /// As it came.
  let storedSize: Int
  private let parts: MadeAhead<Parts>

  /// `check`: nil where the index of a sealed file is believed.
  init(_ bytes: [ArraySlice<UInt8>], _ check: EventCheck?, isDigested: Bool) {
    storedSize = bytes.reduce(0) { $0 + $1.count }
    let bytes = PartsOfPiece(bytes)
    parts = MadeAhead {
      Parts { () throws(ReplicationError) in
        let piece = try Piece(decoding: bytes.joined(), isDigested: isDigested)
        guard let sealed = piece.sealed, let check else { return (piece, nil) }
        return (piece, SealedBlocks(sealed, check))
      }
    }
  }

  /// Its blocks if it is a sealed file that is to be checked. Throws what `Piece.init` does.
  func take() throws(ReplicationError) -> (piece: Piece, blocks: SealedBlocks?) { try parts.take().get() }
}

/// What a piece has come in, until it is put together: not for as long as the piece is needed.
private final class PartsOfPiece: Sendable {
  private let parts: Mutex<[ArraySlice<UInt8>]>

  init(_ parts: [ArraySlice<UInt8>]) { self.parts = Mutex(parts) }

  /// All bytes. To be called once.
  func joined() -> [UInt8] {
    let parts = parts.withLock { parts in
      defer { parts = [] }
      return parts
    }
    // One that is a whole array is not copied.
    if parts.count == 1 { return Array(parts[0]) }
    var whole: [UInt8] = []
    whole.reserveCapacity(parts.reduce(0) { $0 + $1.count })
    for part in parts { whole += part }
    return whole
  }
}
