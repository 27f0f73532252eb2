import Dispatch
import StemmaEvents
import StemmaLog
import StemmaNode

/// Reads and parses a source on its own thread, up to eight pieces ahead.
final class ReadAhead: MutationSource {
  private struct Piece: Sendable {
    var items: [SourceItem]
    /// The header, notices and size of the part of the source that was read.
    var header: [UInt8]
    var notices: [String]
    var bytesRead: Int
    /// The end after the last item: the number of lines, or the error that ends the source.
    var end: Result<Int, SourceError>?
  }

  private static let most = 256
  /// The initial capacity for items; `batch` may be far larger than the input.
  private static let room = 4096
  /// The time after which a silent stream is reported as not ready.
  private static let patience = DispatchTimeInterval.milliseconds(50)

  private(set) var header: [UInt8] = []
  private(set) var notices: [String] = []
  private(set) var bytesRead = 0
  private(set) var lineNumber = 0
  private let pieces = Handoff<Piece>(ahead: 8)
  private let isStream: Bool
  /// A piece that `isReady` took from the queue, not yet in use.
  private var peeked: Piece?
  /// The remaining items of the current piece in reverse order.
  private var items: [SourceItem] = []
  private var end: Result<Int, SourceError>?

  /// - Parameter batch: the number of items in a commit. The source belongs to the background
  ///   thread from here on, which makes the unsafe transfer valid.
  init(_ source: any MutationSource, batch: Int, isStream: Bool) {
    self.isStream = isStream
    nonisolated(unsafe) let source = source
    // A stream hands over whole batches, so that a started commit never waits for items.
    let atOnce = isStream ? batch : min(Self.most, batch)
    DispatchQueue(label: "stemma.read").async { [pieces] in
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
      items.reverse()
      let piece = Piece(
        items: items, header: source.header, notices: source.notices, bytesRead: source.bytesRead, end: end)
      if !pieces.put(piece) { return }
      items = []
      items.reserveCapacity(min(atOnce, room))
    }
  }

  /// Traps if an item could be lost or repeated. Does not access the source of the other thread.
  func checkInvariants() {
    precondition(peeked == nil || items.isEmpty && end == nil, "the next piece follows this one")
    pieces.checkInvariants()
  }

  var isReady: Bool {
    guard isStream, items.isEmpty, end == nil, peeked == nil else { return true }
    peeked = pieces.take(within: Self.patience)
    return peeked != nil
  }

  func next() throws(SourceError) -> SourceItem? {
    while true {
      if let item = items.popLast() {
        lineNumber = item.lastLine
        assert(holds(checkInvariants))
        return item
      }
      if let end {
        lineNumber = try end.get()
        return nil
      }
      let piece = peeked ?? pieces.take()
      peeked = nil
      (items, header, end) = (piece.items, piece.header, piece.end)
      (notices, bytesRead) = (piece.notices, piece.bytesRead)
    }
  }
}
