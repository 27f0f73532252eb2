import Foundation
import StemmaEvents

/// The files of a log as they are now, to be read record by record, also on another thread.
package struct RecordFiles: Sendable {
  fileprivate let views: [FileView]
  fileprivate let fileSystem: any FileSystem

  /// Opens every file, if these are not more than `LogLimits.openSegments`. Memory: one block for each segment, and the journals.
  package func open() throws(LogError) -> RecordMerge { try RecordMerge(views, fileSystem) }
}

extension Log {
  /// All events of the log, for `RecordMerge`. With damage, reading it throws.
  package var recordFiles: RecordFiles { RecordFiles(views: views, fileSystem: fileSystem) }
}

/// Gives all events by (partition, model, key), those of one key in arrival order, without making any `Event`: a
/// merge of the files' blocks, read in place. A class, because its parts are classes and copies would share them.
///
///     while try merge.nextRecord() {
///       while let source = merge.nextSource() { repeat { use(source.cursor) } while try source.nextOfRecord() }
///     }
package final class RecordMerge {
  private var sources: [BlockSource] = []
  /// Binary heap over `sources`: by record, then by place.
  private var heap: [Int] = []
  /// The sources that hold the current record, by place, and how many of them were given out.
  private var members: [BlockSource] = []
  private var given = 0

  fileprivate init(_ views: [FileView], _ fileSystem: any FileSystem) throws(LogError) {
    for view in views {
      switch view {
      case .damaged(let damage, _): throw damage.error
      case .segment(let header, let path):
        let segment = try Segment(
          path: path, header: header, fileSystem: fileSystem, staysOpen: views.count <= LogLimits.openSegments
        )
        try add(SegmentBlocks(segment: segment, entries: try segment.footer().blocks))
      case .journal(let journal): try add(JournalBlocks(try journal.contents().events, path: journal.path))
      }
    }
    for source in sources.indices { insert(source) }
  }

  private func add(_ blocks: any KeyedBlocks) throws(LogError) {
    if let source = try BlockSource(blocks, number: sources.count) { sources.append(source) }
  }

  /// Moves to the next record; false behind the last. Every source of the record before must have been read to the
  /// end of that.
  package func nextRecord() throws(LogError) -> Bool {
    precondition(given == members.count, "all events of a record are read before the next")
    for source in members where !source.isAtEnd { insert(source.number) }
    members.removeAll(keepingCapacity: true)
    given = 0
    guard !heap.isEmpty else { return false }
    let head = sources[removeFirst()]
    members.append(head)
    while let next = heap.first, sources[next].compare(head) == 0 { members.append(sources[removeFirst()]) }
    return true
  }

  /// The next of the sources of the record, at its first event there; nil behind the last. The texts that its cursor
  /// gives are valid until it is moved on.
  package func nextSource() -> BlockSource? {
    guard given < members.count else { return nil }
    given += 1
    return members[given - 1]
  }

  // MARK: Heap

  private func isBefore(_ a: Int, _ b: Int) -> Bool {
    let order = sources[a].compare(sources[b])
    // Sources stand in the order of their places.
    return order == 0 ? a < b : order < 0
  }

  private func insert(_ source: Int) {
    heap.append(source)
    var child = heap.count - 1
    while child > 0, isBefore(heap[child], heap[(child - 1) / 2]) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private func removeFirst() -> Int {
    let first = heap[0]
    let last = heap.removeLast()
    if heap.isEmpty { return first }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heap.count && isBefore(heap[child], heap[least]) {
        least = child
      }
      if least == parent { return first }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}

/// Blocks whose keys rise from one to the next.
private protocol KeyedBlocks {
  /// A cursor before the first event of the next block.
  mutating func next() throws(LogError) -> BlockCursor?
}

private struct SegmentBlocks: KeyedBlocks {
  let segment: Segment
  let entries: [BlockEntry]
  private var index = 0

  init(segment: Segment, entries: [BlockEntry]) {
    self.segment = segment
    self.entries = entries
  }

  mutating func next() throws(LogError) -> BlockCursor? {
    guard index < entries.count else { return nil }
    let block = try segment.block(entries[index])
    index += 1
    return try decoding(segment.path, entries[index - 1].offset) { () throws(EventsError) in
      try block.cursor(.key)
    }
  }
}

/// A journal's events, sorted and laid out in blocks as a segment's would be.
private struct JournalBlocks: KeyedBlocks {
  private var blocks: [[UInt8]] = []
  private let path: String

  init(_ events: [BlockEvent], path: String) throws(LogError) {
    self.path = path
    let sorted = events.indices.sorted { a, b in
      let (keyA, keyB) = (RecordKey(events[a].event), RecordKey(events[b].event))
      return keyA == keyB ? a < b : keyA < keyB
    }
    var writer = BlockWriter(level: 0)
    var size = 0
    var start = 0
    for (place, index) in sorted.enumerated() {
      size += events[index].event.rawSize
      guard size >= LogLimits.blockTarget || place == sorted.count - 1 else { continue }
      // Inside of a block events stand in arrival order.
      for index in sorted[start...place].sorted() {
        writer.append(events[index].event, arrival: events[index].arrival)
      }
      blocks.append(writer.finish())
      (start, size) = (place + 1, 0)
    }
    blocks.reverse()
  }

  mutating func next() throws(LogError) -> BlockCursor? {
    guard let block = blocks.popLast() else { return nil }
    return try decoding(path, 0) { () throws(EventsError) in try BlockReader(block).cursor(.key) }
  }
}

/// One file in key order. A class, so that its cursor is used in place.
package final class BlockSource {
  /// Counts the sources from 0.
  package let number: Int
  private var blocks: any KeyedBlocks
  /// Stands at an event, unless `isAtEnd`.
  package private(set) var cursor: BlockCursor
  fileprivate private(set) var isAtEnd = false
  /// Counts the blocks that were opened.
  package private(set) var blockNumber = 1

  /// Nil if there is no event.
  fileprivate init?(_ blocks: any KeyedBlocks, number: Int) throws(LogError) {
    self.number = number
    var blocks = blocks
    guard let first = try blocks.next() else { return nil }
    cursor = first
    self.blocks = blocks
    guard cursor.advance() else { return nil }
  }

  /// Moves to the next event, and says whether it is one of the same record. If not, it is the first of another one,
  /// or there is none.
  package func nextOfRecord() throws(LogError) -> Bool {
    let key = cursor.key
    if cursor.advance() { return cursor.key == key }
    let before = cursor
    repeat {
      guard let following = try blocks.next() else {
        isAtEnd = true
        return false
      }
      cursor = following
      blockNumber += 1
    } while !cursor.advance()
    return Self.compare(before, cursor) == 0
  }

  /// Below, equal to or above 0, as the record at hand stands before, is, or stands behind the other's.
  fileprivate func compare(_ other: BlockSource) -> Int { Self.compare(cursor, other.cursor) }

  private static func compare(_ a: BlockCursor, _ b: BlockCursor) -> Int {
    let partitions = a.partition.bytes.withUnsafeBytes { a in
      b.partition.bytes.withUnsafeBytes { b in a.compare(b) }
    }
    if partitions != 0 { return partitions }
    let (modelA, modelB) = (a.model, b.model)
    if !modelA.hasSameBytes(as: modelB) { return modelA.hasBytes(before: modelB) ? -1 : 1 }
    return a.keyBytes.compare(b.keyBytes)
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func compare(_ other: UnsafeRawBufferPointer) -> Int {
    guard let a = baseAddress, let b = other.baseAddress else { return count - other.count }
    let order = Int(memcmp(a, b, Swift.min(count, other.count)))
    return order == 0 ? count - other.count : order
  }
}
