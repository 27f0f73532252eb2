import StemmaEvents
import StemmaLog

/// The blocks of a received segment, opened in order, with the facts that each block yields.
///
/// Other threads open the next blocks, from the creation of this value on, while the caller
/// processes the earlier ones.
struct SealedBlocks: Sendable {
  /// A block with the facts that it yields by itself.
  ///
  /// Its cursor is a class without a lock. One thread creates it and another uses it, but never two
  /// at a time, which the compiler cannot see.
  struct Opened: @unchecked Sendable {
    let cursor: BlockCursor
    let firstKey: RecordKey
    let lastKey: RecordKey
    /// The partition of each run of keys, as an index into the footer.
    let partitions: [Int]
    /// The digest of each event.
    let digests: [StreamHash]
    let rawBytes: UInt64
  }

  /// How many blocks are open at once: enough for two processors during a write. About 150 KB each.
  private static let openedAtOnce = 32

  let contents: SealedContents
  private let check: EventCheck
  /// All blocks before this one are opened or being opened.
  private var end = 0
  /// The last opened blocks, beginning with the next one to return.
  private var ahead: [MadeAhead<Result<Opened, ReplicationError>>] = []

  init(_ contents: SealedContents, _ check: EventCheck) {
    self.contents = contents
    self.check = check
    openMore()
  }

  private mutating func openMore() {
    while ahead.count < Self.openedAtOnce, end < contents.footer.blocks.count {
      ahead.append(
        MadeAhead { [contents, check, end] in
          Result { () throws(ReplicationError) in try Self.open(block: end, contents, check) }
        })
      end += 1
    }
  }

  /// Traps if a block would be skipped, or too many are open. Debug builds call it at each block.
  func checkInvariants() {
    precondition(ahead.count <= Self.openedAtOnce, "memory is bounded")
    precondition(ahead.count <= end && end <= contents.footer.blocks.count, "each block is opened once")
  }

  /// Nil after the last. Throws `malformed` or `corrupt`. Use only one copy of a value.
  mutating func next() throws(ReplicationError) -> Opened? {
    openMore()
    assert(holds(checkInvariants))
    return ahead.isEmpty ? nil : try ahead.removeFirst().take().get()
  }

  static func lie(_ what: String) -> ReplicationError {
    .corrupt("batch", "\(what) are not what its index says")
  }

  private static func open(
    block index: Int, _ contents: SealedContents, _ check: EventCheck
  ) throws(ReplicationError) -> Opened {
    let block: BlockReader
    let cursor: BlockCursor
    do throws(Flaw) { block = try contents.block(index) } catch {
      throw .corrupt("batch", "block \(index + 1): \(error)")
    }
    do throws(EventsError) { cursor = try block.cursor(.relativePosition) } catch {
      throw .corrupt("batch", "block \(index + 1): \(error)")
    }
    let partitions: [Int]
    do throws(Flaw) { partitions = try contents.partitions(of: block, index) } catch {
      throw .corrupt("batch", "block \(index + 1): \(error)")
    }
    try checkKeys(of: block, check)
    var digester = BlockDigester()
    var digests: [StreamHash] = []
    digests.reserveCapacity(block.count)
    var rawBytes: UInt64 = 0
    digester.begin(cursor)
    while cursor.advance() {
      digests.append(digester.digest(of: cursor))
      rawBytes += UInt64(cursor.rawSize)
    }
    cursor.rewind()
    return Opened(
      cursor: cursor, firstKey: RecordKey(block.record(0)),
      lastKey: RecordKey(block.record(block.keyCount - 1)), partitions: partitions, digests: digests,
      rawBytes: rawBytes)
  }

  private static func checkKeys(of block: BlockReader, _ check: EventCheck) throws(ReplicationError) {
    var run = -1
    var model: EventCheck.ModelCheck?
    for key in 0..<block.keyCount {
      if block.run(ofKey: key) != run {
        run = block.run(ofKey: key)
        model = check.model(block.model(ofKey: key), in: block.partition(ofKey: key))
      }
      if let why = model?.objection(to: block.keyBytes(key)) {
        throw .malformed("record \(block.record(key).key) of \(block.partition(ofKey: key))", why)
      }
    }
  }
}
