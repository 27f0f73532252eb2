import StemmaEvents

/// Every limit of this module. Sizes in bytes.
package enum LogLimits {
  /// The deflate level unless options name another.
  package static let usualLevel: Int32 = 6
  /// Payload of one journal frame.
  package static let framePayload = 128 << 20
  /// Journals that wait to be sealed. Bounds the search for journals that a watermark implies.
  static let journals: UInt64 = 4096
  /// Segments of one log.
  package static let segments = 100_000
  /// Footer, and key filter, of one segment.
  package static let footer = 64 << 20
  /// A segment outside of a log.
  static let looseSegment = 1 << 30
  /// One stored block of a segment. Its streams have limits of their own (`Limits.blockStream`).
  package static let block = 512 << 20
  /// Highest file number: eight digits.
  package static let fileNumber: UInt64 = 99_999_999
  /// Positions that are skipped if the end of a journal is lost: more than a journal has events.
  static let gap: UInt64 = 1_000_000
  /// Raw bytes at which a block is cut. Smaller blocks repeat names, authors and messages more
  /// often. Small partitions share a block, so larger blocks make reads of one partition slower.
  package static let blockTarget = 96 << 10
  /// Blocks of one file that `selectedEvents` reads at most.
  static let selectedBlocks = 16
  /// Partitions of a footer's page at least: it ends with the next block.
  package static let pagedPartitions = 64
  /// Events of a stream in one file from which on the footer has their hash.
  package static let hashedRun: UInt64 = 64
  /// Bytes of footers that a log caches, as stored in their files.
  static let keptFooters = 2 << 20
  /// Raw bytes of events up to which commits share a frame.
  static let sharedFrame = 64 << 10
  /// A group of up to so many events is small: zeros are written ahead behind it.
  static let smallGroup = 128
  /// Bytes that are written ahead at least and at most; none in journals below `leastAhead`.
  static let leastAhead: UInt64 = 16 << 10
  static let mostAhead: UInt64 = 1 << 20
  /// Segments that one reader keeps open. With more, it opens the file for each block.
  package static let openSegments = 256
  /// Arrivals of one segment. A journal is sealed far below.
  static let positions = 1 << 28
  /// Arrivals of one segment for which its table is always dense: 8 MiB.
  static let fewPositions = 1 << 20
  /// Arrivals for each event from which on the table is sparse.
  static let sparsePositions = 8
  /// Events for each stored byte of a block: each takes a byte in eight deflatable columns.
  static let eventsOfAByte = Limits.inflationRatio / 8
  /// Bytes read at once in a scan: below the size from which allocators map new pages for each
  /// request (mallopt(3), M_MMAP_THRESHOLD), because these pages cost more than the read.
  static let scanChunk = 120 << 10

  /// Bytes of a journal kept in memory. Journals are sealed below it, unless commits are large.
  static let keptJournal = 16 << 20

  /// Throws `.overLimit` unless `found` is at most `limit`.
  static func check(_ subject: String, _ found: Int, _ limit: Int) throws(LogError) {
    if found > limit { throw .overLimit(subject: subject, found: UInt64(found), limit: UInt64(limit)) }
  }
}
