import Foundation
import StemmaLog

/// Reads and parses a source on a thread of its own, some hundred items ahead.
final class ReadAhead: MutationSource {
  private enum Piece: Sendable {
    case items([SourceItem])
    /// How many lines there are.
    case end(Int)
    case failure([SourceItem], SourceError)
  }

  private static let most = 256

  let header: [UInt8]
  private(set) var lineNumber = 0
  private let pieces = Handoff<Piece>(ahead: 8)
  private var items: [SourceItem] = []
  private var place = 0
  private var last: Piece?

  /// `atOnce`: how many items are worth waiting for together. The source belongs to the other thread from here on:
  /// that is why it can be handed over, which the compiler cannot see.
  init(_ source: any MutationSource, atOnce: Int) {
    header = source.header
    nonisolated(unsafe) let source = source
    Thread.detachNewThread { [pieces] in
      Self.read(source, into: pieces, atOnce: max(1, min(Self.most, atOnce)))
    }
  }

  deinit { pieces.cancel() }

  private static func read(_ source: any MutationSource, into pieces: Handoff<Piece>, atOnce: Int) {
    var items: [SourceItem] = []
    do throws(SourceError) {
      while let item = try source.next() {
        items.append(item)
        guard items.count >= atOnce else { continue }
        if !pieces.put(.items(items)) { return }
        items = []
        items.reserveCapacity(atOnce)
      }
    } catch {
      _ = pieces.put(.failure(items, error))
      return
    }
    if items.isEmpty || pieces.put(.items(items)) { _ = pieces.put(.end(source.lineNumber)) }
  }

  func next() throws(SourceError) -> SourceItem? {
    while place == items.count {
      switch last ?? pieces.take() {
      case .items(let taken): (items, place) = (taken, 0)
      case .end(let lines):
        last = .end(lines)
        lineNumber = lines
        return nil
      case .failure(let taken, let error):
        last = .failure([], error)
        if taken.isEmpty { throw error }
        (items, place) = (taken, 0)
      }
    }
    place += 1
    lineNumber = items[place - 1].lastLine
    return items[place - 1]
  }
}
