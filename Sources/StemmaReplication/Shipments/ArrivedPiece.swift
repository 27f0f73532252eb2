import StemmaLog

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
  init(_ bytes: [ArraySlice<UInt8>], _ check: EventCheck?) {
    let size = bytes.reduce(0) { $0 + $1.count }
    storedSize = size
    parts = MadeAhead {
      Parts { () throws(ReplicationError) in
        var whole: [UInt8] = []
        whole.reserveCapacity(size)
        for part in bytes { whole += part }
        let piece = try Piece(decoding: whole)
        guard let sealed = piece.sealed, let check else { return (piece, nil) }
        return (piece, SealedBlocks(sealed, check))
      }
    }
  }

  /// Its blocks if it is a sealed file that is to be checked. Throws what `Piece.init` does.
  func take() throws(ReplicationError) -> (piece: Piece, blocks: SealedBlocks?) { try parts.take().get() }
}
