import Dispatch
import StemmaEvents
import StemmaLog

/// Reads and parses a source on a thread of its own, up to two thousand items ahead; of a stream whole batches.
final class ReadAhead: MutationSource {
  private struct Piece: Sendable {
    var items: [SourceItem]
    /// The header, notices and size of the part of the source that was read.
    var header: [UInt8]
    var notices: [String]
    var bytesRead: Int
    /// The end behind the last item: the number of lines, or the reason why there are no more.
    var end: Result<Int, SourceError>?
  }

  private static let most = 256
  /// For how many items there is room at once; a batch may be as large as anybody likes, and never come.
  private static let room = 4096
  /// How long a stream may be silent before its reader should no longer hold what others wait for.
  private static let patience = DispatchTimeInterval.milliseconds(50)

  private(set) var header: [UInt8] = []
  private(set) var notices: [String] = []
  private(set) var bytesRead = 0
  private(set) var lineNumber = 0
  private let pieces = Handoff<Piece>(ahead: 8)
  private let isStream: Bool
  /// A piece that was taken and is not begun yet.
  private var peeked: Piece?
  private var items: [SourceItem] = []
  private var place = 0
  private var end: Result<Int, SourceError>?

  /// `path` is where the source comes from, `batch` how many items are committed together. The source belongs to the
  /// other thread from here on: that is why it can be handed over, which the compiler cannot see.
  init(_ source: any MutationSource, from path: String, batch: Int, isStream: Bool) throws(LogError) {
    self.isStream = isStream
    nonisolated(unsafe) let source = source
    // Of a stream no part of a batch is handed over, so that whoever has begun one never waits for the rest of it.
    let atOnce = isStream ? batch : min(Self.most, batch)
    try System.beginThread(for: path) { [pieces] in
      Self.read(source, into: pieces, atOnce: max(1, atOnce))
    }
  }

  deinit { pieces.cancel() }

  private static func read(_ source: any MutationSource, into pieces: Handoff<Piece>, atOnce: Int) {
    var items: [SourceItem] = []
    var end: Result<Int, SourceError>?
    while end == nil {
      do throws(SourceError) {
        if let item = try source.next() { items.append(item) } else { end = .success(source.lineNumber) }
        assert(holds(source.checkInvariants))
      } catch { end = .failure(error) }
      guard end != nil || items.count >= atOnce else { continue }
      let piece = Piece(
        items: items, header: source.header, notices: source.notices, bytesRead: source.bytesRead, end: end)
      if !pieces.put(piece) { return }
      items = []
      items.reserveCapacity(min(atOnce, room))
    }
  }

  /// Traps if an item could be lost or come twice. The source is the other thread's.
  func checkInvariants() {
    precondition(place <= items.count, "an item is given once")
    precondition(peeked == nil || place == items.count && end == nil, "the next piece follows this one")
    pieces.checkInvariants()
  }

  var isReady: Bool {
    guard isStream, place == items.count, end == nil, peeked == nil else { return true }
    peeked = pieces.take(within: Self.patience)
    return peeked != nil
  }

  func next() throws(SourceError) -> SourceItem? {
    while place == items.count {
      if let end {
        lineNumber = try end.get()
        return nil
      }
      let piece = peeked ?? pieces.take()
      peeked = nil
      (items, place, header, end) = (piece.items, 0, piece.header, piece.end)
      (notices, bytesRead) = (piece.notices, piece.bytesRead)
    }
    place += 1
    assert(holds(checkInvariants))
    lineNumber = items[place - 1].lastLine
    return items[place - 1]
  }
}
