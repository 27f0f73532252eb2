import Foundation
import StemmaEvents

/// The current files of a log, to be read record by record, also on another thread.
package struct RecordFiles: Sendable {
  let views: FileViews
  let staysOpen: Bool

  /// Keeps every file open if there are at most `Log.Options.openSegments`. Memory: a block for
  /// each segment, sixteen more, and the journals.
  package func open() throws(LogError) -> RecordMerge { try RecordMerge(self) }
}

/// Returns all events by (partition, model, key), and by position for one key, without constructing
/// any `Event`. Merges blocks in place. A class, because its parts are classes.
///
///     while try merge.nextRecord() {
///       while let source = merge.nextSource() {
///         var cursor = source.cursor
///         repeat { use(cursor) } while try source.nextOfRecord(&cursor)
///       }
///     }
package final class RecordMerge {
  /// The current record of a source.
  private struct Head {
    /// `atEnd`: the source has no record left.
    var run: Int32
    var source: Int32
    /// In place, so that comparing dereferences no object.
    var key: UnsafeRawBufferPointer

    static let atEnd = BlockSource.atEnd
  }

  private let sources: [BlockSource]
  private let ahead: BlocksAhead
  /// The partitions and models of all blocks.
  private let runs: RunNames
  /// Binary heap of all sources by record, those at their end last.
  private let heap: UnsafeMutableBufferPointer<Head>
  /// The places in the heap of the sources that hold the current record, rising.
  private let members: UnsafeMutableBufferPointer<Int>
  private var memberCount = 0
  /// The same sources by number, and how many of them were returned.
  private let order: UnsafeMutableBufferPointer<Int>
  private var given = 0

  fileprivate init(_ files: RecordFiles) throws(LogError) {
    let runs = RunNames()
    var sources: [BlockSource] = []
    let ahead = BlocksAhead()
    func add(_ blocks: any KeyedBlocks) throws(LogError) {
      if let source = try BlockSource(blocks, number: sources.count, runs) { sources.append(source) }
    }
    for view in files.views.files {
      switch view {
      case .corrupt(let corruption, _): throw corruption.error
      case .segment(let entry):
        let segment = try files.views.segment(entry, staysOpen: files.staysOpen)
        try add(try SegmentBlocks(segment: segment, entries: try segment.root().blocks, ahead: ahead))
      case .journal(let journal): try add(JournalBlocks(try journal.contents().events, path: journal.path))
      }
    }
    self.sources = sources
    self.ahead = ahead
    self.runs = runs
    heap = .allocate(capacity: sources.count)
    members = .allocate(capacity: sources.count)
    order = .allocate(capacity: sources.count)
    for source in sources.indices { (heap.baseAddress.map { $0 + source })?.initialize(to: head(of: source)) }
    for place in heap.indices.reversed() { siftDown(place) }
  }

  // Heads and places are plain values: there is nothing to deinitialize.
  deinit {
    heap.deallocate()
    members.deallocate()
    order.deallocate()
  }

  /// Moves to the next record; false behind the last. The caller must have read every source of the
  /// current record to the end of that record.
  package func nextRecord() throws(LogError) -> Bool {
    precondition(given == memberCount, "all events of a record are read before the next")
    // From the last place on: the heap below a place is in order when its turn comes.
    while memberCount > 0 {
      memberCount -= 1
      let place = members[memberCount]
      heap[place] = head(of: Int(heap[place].source))
      siftDown(place)
    }
    given = 0
    guard let first = heap.first, first.run != Head.atEnd else { return false }
    findMembers()
    return true
  }

  /// The run of the record, by which `partition(ofRun:)` and `model(ofRun:)` name it.
  package var run: Int { Int(heap[0].run) }
  /// Its encoded key, in place, until the first of its sources is moved on.
  package var key: UnsafeRawBufferPointer { heap[0].key }

  /// The next source of the record, at its first event there; nil behind the last. The texts of its
  /// cursor are valid until the cursor moves.
  package func nextSource() -> BlockSource? {
    guard given < memberCount else { return nil }
    given += 1
    return sources[order[given - 1]]
  }

  /// Traps if the heap is out of order, or a returned source is not at the record. For tests,
  /// directly after `nextRecord`: reading a source moves it ahead of the heap.
  package func checkInvariants() {
    precondition(Set(heap.map(\.source)).count == sources.count, "the heap contains each source once")
    for place in heap.indices.dropFirst() {
      precondition(compare((place - 1) / 2, place) <= 0, "no record comes before the first one")
    }
    let first = heap.indices.filter { memberCount > 0 && compare($0, 0) == 0 }
    precondition(members.prefix(memberCount).elementsEqual(first), "the members are all that hold the record")
    let numbers = first.map { Int(heap[$0].source) }.sorted()
    precondition(order.prefix(memberCount).elementsEqual(numbers), "they are given by number")
    precondition(given <= memberCount, "only they are given")
    for source in sources { source.checkInvariants() }
    runs.checkInvariants()
    ahead.checkInvariants()
  }

  /// The names of a source's run. A pair of partition and model has one number in all blocks.
  package func partition(ofRun run: Int) -> Partition { runs.names[run].partition }
  package func model(ofRun run: Int) -> String { runs.names[run].model }

  // MARK: Heap

  private func head(of source: Int) -> Head {
    let (run, key) = sources[source].record
    return Head(run: run, source: Int32(source), key: key)
  }

  @inline(__always)
  private func compare(_ a: Int, _ b: Int) -> Int {
    let (a, b) = (heap[a], heap[b])
    if a.run == b.run { return a.key.compare(b.key) }
    if a.run == Head.atEnd || b.run == Head.atEnd { return a.run == Head.atEnd ? 1 : -1 }
    return runs.compare(Int(a.run), Int(b.run))
  }

  private func siftDown(_ start: Int) {
    var parent = start
    while true {
      var least = parent
      let left = 2 * parent + 1
      if left < heap.count, compare(left, least) < 0 { least = left }
      if left + 1 < heap.count, compare(left + 1, least) < 0 { least = left + 1 }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }

  /// Finds the sources at the record of the first one, which are connected at the top of the heap.
  private func findMembers() {
    members[0] = 0
    memberCount = 1
    var next = 0
    while next < memberCount {
      let left = 2 * members[next] + 1
      for child in left..<left + 2 where child < heap.count && compare(child, 0) == 0 {
        members[memberCount] = child
        memberCount += 1
      }
      next += 1
    }
    for index in 0..<memberCount {
      let source = Int(heap[members[index]].source)
      var place = index
      while place > 0, order[place - 1] > source {
        order[place] = order[place - 1]
        place -= 1
      }
      order[place] = source
    }
  }
}

/// Numbers the pairs of partition and model in the order in which they are met.
private final class RunNames {
  private struct Name: Hashable {
    var partition: Partition
    /// Names are ASCII, in which equal characters are equal bytes.
    var model: String
  }

  private var numbers: [Name: Int] = [:]
  private(set) var names: [(partition: Partition, model: String)] = []

  /// The number of each run of a block.
  func numbers(of cursor: BlockCursor) -> [Int] {
    (0..<cursor.runCount).map { run in
      let (partition, model) = cursor.names(ofRun: run)
      let name = Name(partition: partition, model: model)
      if let number = numbers[name] { return number }
      numbers[name] = names.count
      names.append((partition, model))
      return names.count - 1
    }
  }

  func checkInvariants() {
    precondition(numbers.count == names.count, "each pair has one number")
    precondition(
      numbers.allSatisfy { names[$1].partition == $0.partition && names[$1].model == $0.model },
      "a number is found by its pair")
  }

  func compare(_ a: Int, _ b: Int) -> Int {
    let (a, b) = (names[a], names[b])
    let order = a.partition.bytes.withUnsafeBytes { a in
      b.partition.bytes.withUnsafeBytes { b in a.compare(b) }
    }
    if order != 0 { return order }
    return a.model.hasSameBytes(as: b.model) ? 0 : a.model.hasBytes(before: b.model) ? -1 : 1
  }
}

/// Blocks whose keys rise from one to the next.
private protocol KeyedBlocks {
  /// A cursor before the first event of the next block.
  mutating func next() throws(LogError) -> BlockCursor?

  func checkInvariants()
}

/// A segment's blocks in key order, each opened by `ahead`, or when its turn comes.
private final class SegmentBlocks: KeyedBlocks {
  private let segment: Segment
  /// Blocks to come, the next one last.
  private var waiting: [BlockEntry]
  private let ahead: BlocksAhead
  private var following: MadeAhead<Result<BlockCursor, LogError>>?

  init(segment: Segment, entries: [BlockEntry], ahead: BlocksAhead) throws(LogError) {
    self.segment = segment
    waiting = entries.reversed()
    self.ahead = ahead
    try ahead.enter(self)
  }

  /// The first key of the next block; nil behind the last one.
  var nextKey: RecordKey? { waiting.last?.firstKey }
  var isBegun: Bool { following != nil }

  func next() throws(LogError) -> BlockCursor? {
    guard !waiting.isEmpty else { return nil }
    ahead.leave(self)
    if following == nil { try begin() }
    let block = following?.take()
    following = nil
    waiting.removeLast()
    let cursor = try block?.get()
    try ahead.enter(self)
    return cursor
  }

  func checkInvariants() {
    precondition(following == nil || !waiting.isEmpty, "what is unpacked is still to come")
  }

  /// Reads the next block here; another thread unpacks it.
  func begin() throws(LogError) {
    guard let entry = waiting.last else { return }
    let bytes = try segment.bytes(of: entry)
    following = MadeAhead { [path = segment.path] in
      Result { () throws(LogError) in
        let block = try Segment.block(entry, bytes: bytes, path: path)
        return try decoding(path, entry.offset) { () throws(EventsError) in try block.cursor(.key) }
      }
    }
  }
}

/// Unpacks blocks on other threads, while the reader's own thread reads the files. Takes the few
/// whose turn comes first, so that many files do not hold two blocks each.
private final class BlocksAhead {
  /// A file whose next block no thread unpacks yet. It owns `BlocksAhead`, not vice versa.
  private struct Waiting {
    var key: RecordKey
    weak var file: SegmentBlocks?
  }

  private static let limit = 16
  /// The first one by key last.
  private var waiting: [Waiting] = []
  private var begun = 0

  /// Call it when the next block of a file changes.
  func enter(_ file: SegmentBlocks) throws(LogError) {
    if let key = file.nextKey {
      let place = waiting.firstIndex { $0.key < key } ?? waiting.count
      waiting.insert(Waiting(key: key, file: file), at: place)
    }
    while begun < Self.limit, let first = waiting.popLast() {
      guard let file = first.file else { continue }
      try file.begin()
      begun += 1
    }
  }

  /// Call it when a file's next block is due.
  func leave(_ file: SegmentBlocks) {
    if file.isBegun { begun -= 1 } else { waiting.removeAll { $0.file === file } }
  }

  /// Traps if too many blocks are unpacked in advance, or the waiting files are out of order.
  func checkInvariants() {
    precondition((0...Self.limit).contains(begun), "few blocks are made ahead")
    precondition(waiting.isEmpty || begun == Self.limit, "as many as may be")
    precondition(zip(waiting, waiting.dropFirst()).allSatisfy { !($0.key < $1.key) }, "the first is last")
    precondition(waiting.allSatisfy { $0.file?.isBegun == false }, "what waits is not begun")
  }
}

/// A journal's events, sorted and encoded in blocks like those of a segment.
private struct JournalBlocks: KeyedBlocks {
  private var blocks: [[UInt8]] = []
  private let path: String

  init(_ events: [BlockEvent], path: String) throws(LogError) {
    self.path = path
    let sorted = KeyOrder.sorted(events)
    var writer = BlockWriter(level: 0)
    var size = 0
    var start = 0
    for (place, entry) in sorted.enumerated() {
      size += events[entry.index].event.rawSize
      guard size >= LogLimits.blockTarget || place == sorted.count - 1 else { continue }
      // Inside a block, events are in position order.
      for index in sorted[start...place].map(\.index).sorted() {
        writer.append(events[index].event, relativePosition: events[index].relativePosition)
      }
      blocks.append(writer.finish())
      (start, size) = (place + 1, 0)
    }
    blocks.reverse()
  }

  func checkInvariants() { precondition(blocks.allSatisfy { !$0.isEmpty }, "a block has an event") }

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
  /// At an event, unless all were returned.
  package private(set) var cursor: BlockCursor
  /// The current record: the merge's number of its run, its key in place; `atEnd` behind the last.
  fileprivate private(set) var record: (run: Int32, key: UnsafeRawBufferPointer)
  fileprivate static let atEnd = Int32.max
  /// Counts the blocks that were opened.
  package private(set) var blockNumber = 1
  private let names: RunNames
  /// The merge's number of each run of the block.
  private var runs: [Int]

  /// Nil if there is no event.
  fileprivate init?(_ blocks: any KeyedBlocks, number: Int, _ names: RunNames) throws(LogError) {
    self.number = number
    self.names = names
    var blocks = blocks
    guard let first = try blocks.next() else { return nil }
    cursor = first
    runs = names.numbers(of: first)
    self.blocks = blocks
    guard first.advance() else { return nil }
    record = (Int32(runs[first.run]), first.keyBytes)
  }

  func checkInvariants() {
    precondition(runs.count == cursor.runCount, "each run of the block has a number of the merge's")
    cursor.checkInvariants()
    blocks.checkInvariants()
  }

  /// Moves to the next event and returns whether it is of the same record. If not, it is the first
  /// of another record, or there is none. The caller holds `cursor` in a variable, because each
  /// access to the property counts a reference.
  package func nextOfRecord(_ cursor: inout BlockCursor) throws(LogError) -> Bool {
    assert(cursor === self.cursor, "a source is moved on by its own cursor")
    let key = cursor.key
    if cursor.advance() {
      if cursor.key == key { return true }
      record = (Int32(runs[cursor.run]), cursor.keyBytes)
      return false
    }
    let before = cursor
    let run = Int32(runs[before.run])
    repeat {
      guard let following = try blocks.next() else {
        record = (Self.atEnd, UnsafeRawBufferPointer(start: nil, count: 0))
        return false
      }
      cursor = following
      self.cursor = following
      runs = names.numbers(of: following)
      blockNumber += 1
    } while !cursor.advance()
    record = (Int32(runs[cursor.run]), cursor.keyBytes)
    return record.run == run && record.key.compare(before.keyBytes) == 0
  }
}
