import StemmaEvents

/// Every limit of this module. Sizes in bytes.
package enum LogLimits {
  /// Payload of one journal frame: one commit, encoded.
  package static let framePayload = 128 << 20
  /// Files that one file may say to replace.
  package static let replaced = 4096
  /// Footer, and key filter, of one segment.
  package static let footer = 64 << 20
  /// One stored block of a segment. Its streams have limits of their own (`Limits.blockStream`).
  package static let block = 512 << 20
  /// Highest file number: eight digits.
  package static let fileNumber: UInt64 = 99_999_999
  /// Numbers below the highest one of a directory, or of its watermark, whose files are missing: each is told of. Four times as
  /// many as one lost file may have replaced.
  static let missing: UInt64 = 1 << 14
  /// Raw bytes of a block at which it is cut. Each block repeats names and notes, which a history full of hashes has many of;
  /// small partitions share a block, and whoever wants one of them reads the others of it.
  package static let blockTarget = 96 << 10
  /// Blocks of one file that are read at once, before anybody needs an event of them.
  static let selectedBlocks = 16
  /// Footers that a log keeps for those who ask for them again, as they stand in their files.
  static let keptFooters = 2 << 20
  /// Raw bytes of events up to which commits share a frame.
  static let sharedFrame = 64 << 10
  /// A group of up to so many events is small: zeros are written ahead behind it.
  static let smallGroup = 128
  /// How much is written ahead at least and at most; and how long a journal must be to be worth it.
  static let leastAhead: UInt64 = 16 << 10
  static let mostAhead: UInt64 = 1 << 20
  /// Segments that one reader keeps open at once; with more of them it opens each for every block.
  package static let openSegments = 256
  /// Arrivals of one segment: a journal is sealed far below.
  static let arrivals = 1 << 28
  /// Arrivals of one segment for which a place is kept each, whatever it holds: 8 MiB.
  static let fewArrivals = 1 << 20
  /// Arrivals for each event from which on places are kept only for the events.
  static let sparseArrivals = 8
  /// Events of a stored byte of a block: each takes a byte in each of the eight columns of a stream that may be deflated.
  static let eventsOfAByte = Limits.inflationRatio / 8
  /// Bytes read at once when a whole file is scanned: less than what allocators ask the system for anew each time
  /// (mallopt(3), M_MMAP_THRESHOLD), whose pages cost more than the reading.
  static let scanChunk = 120 << 10

  /// Bytes of a journal that are kept at most; a journal is sealed below, unless its last commits are large.
  static let keptJournal = 16 << 20

  /// Throws `.overLimit` unless `found` is at most `limit`.
  static func check(_ subject: String, _ found: Int, _ limit: Int) throws(LogError) {
    if found > limit { throw .overLimit(subject: subject, found: UInt64(found), limit: UInt64(limit)) }
  }
}
