import StemmaEvents

// A log directory:
//
//     00000001.segment   sealed files
//     00000002.journal   the file that is appended to; for a while also one that is being sealed
//     watermark          how far the open journal is known durable
//     ….partial          something that was being written when a process ended; removed at the next open
//     00000002.cut…      a torn tail that recovery cut off, kept for whoever wants to look at it
//
// Numbers rise and none is left out: a missing number is damage, unless a file says that it replaces it. What a
// sealed file holds never changes under its number; rewriting (purge) makes a file of a new number that replaces
// the old one and keeps its *place*: the file number in the positions of its events, and its turn in the order.
// Where a segment and a journal have the same number, the segment wins if its digest holds.

/// The log of a node: every event that it holds, in the order in which it came to hold them.
///
/// Not thread safe, and not safe against other processes by itself: whoever opens for writing, appends, syncs,
/// refreshes, seals, adopts or purges holds the node's `WriterLock` meanwhile, and calls `refresh` after taking
/// it. Read-only logs need no lock and write nothing.
package final class Log {
  package enum Mode: Sendable {
    /// Never writes, and shows only what is known durable.
    case readOnly
    case readWrite
  }

  package struct Options: Sendable {
    package var mode: Mode
    /// Raw bytes of events (`Event.rawSize`) at which a journal should be sealed.
    package var segmentSize: Int
    /// Deflate level, 1 … 9.
    package var level: Int32
    /// Segments that one reader keeps open at once; with more of them it opens each for every block.
    package var openSegments = LogLimits.openSegments
    /// Whether journals stay in memory as they were scanned, and are not read again: for a log that is read whole.
    package var keepsJournals = false

    package init(mode: Mode = .readWrite, segmentSize: Int = 8 << 20, level: Int32 = 6) {
      self.mode = mode
      self.segmentSize = segmentSize
      self.level = level
    }
  }

  package let directory: String
  package let id: LogID
  package internal(set) var options: Options
  let fileSystem: MeteredFileSystem

  /// What opening, and `refresh` since, found and did.
  package internal(set) var recovery = Recovery()

  /// The directory as it was read last, journals of `journals` apart.
  var listing = LogDirectory()
  /// By number: closed ones that wait to be sealed, then the open one (none in a read-only log whose writer
  /// died before making it).
  var journals: [Journal] = []
  var watermark: Watermark?
  var watermarkFile: (any File)?
  package internal(set) var isPoisoned = false
  var writer: BlockWriter
  let footers = KeptFooters()
  /// How far this instance has appended to each stream, since anything else could last have moved it.
  var appended: [StreamName: Sequence] = [:]

  init(_ directory: String, _ id: LogID, _ fileSystem: any FileSystem, _ options: Options) {
    self.directory = directory
    self.id = id
    self.options = options
    self.fileSystem = MeteredFileSystem(fileSystem)
    writer = BlockWriter(level: options.level)
  }

  /// Bytes that were read from files of this log since it was opened.
  package var bytesRead: UInt64 { fileSystem.bytesRead }

  /// Whether frames count that are not known durable: those of who is about to sync them. After a sync that failed they may
  /// be gone from the file, or go later.
  var showsUnsynced: Bool { options.mode == .readWrite && !isPoisoned }

  /// Where the next event goes; in a read-only log, and after a sync that failed, the end of what is known durable.
  package var end: Position {
    guard let open = journals.last else { return Position(file: listing.highestNumber + 1, index: 0) }
    return Position(file: open.number, index: showsUnsynced ? open.end : open.durableEnd)
  }

  /// Where the open journal goes on with bytes that are no frame, and that nothing says to be durable.
  package var tornTail: Damage? {
    journals.last.flatMap { journal in
      journal.flaw.map { Damage(path: journal.path, offset: journal.size, flaw: $0) }
    }
  }

  /// Events behind `durableEnd` that a writer has appended: it is about to sync them, or died before.
  package var unconfirmedEvents: UInt64 { journals.last.map { $0.end - $0.durableEnd } ?? 0 }

  /// Whether there are frames of which nothing tells whether they are durable: the watermark is gone.
  package var lacksWatermark: Bool { watermark == nil && unconfirmedEvents > 0 }

  /// The position behind the last event that is known durable: nothing beyond it is shown to a peer.
  package var durableEnd: Position {
    guard let open = journals.last else { return end }
    return Position(file: open.number, index: open.durableEnd)
  }

  /// Whether there is enough for a segment, or a closed journal that waits to be sealed. A damaged log waits
  /// until it is mended: the new file would have to name digests that cannot be read.
  package var wantsSealing: Bool { hasEnoughToSeal && recovery.damage.isEmpty }

  /// Whether sealing waits for a damaged log to be mended.
  package var isSealingHeldUp: Bool { hasEnoughToSeal && !recovery.damage.isEmpty }

  private var hasEnoughToSeal: Bool { journals.count > 1 || isOpenJournalFull }

  /// Whether the open journal alone is enough for a segment.
  package var isOpenJournalFull: Bool { (journals.last?.rawBytes ?? 0) >= UInt64(options.segmentSize) }

  /// All files in the order of their places; damage follows what can be read of its place. In a read-only
  /// log, and after a sync that failed, without the frames that are not known durable.
  var views: [FileView] {
    var views = listing.views(in: directory)
    views += journals.map { .journal(showsUnsynced ? $0 : $0.durablePart) }
    return views.sorted { ($0.place, $0.isDamaged ? 1 : 0) < ($1.place, $1.isDamaged ? 1 : 0) }
  }

  /// Where reading ends if the caller does not say. With damage it must not end before the damage.
  var readEnd: Position { recovery.damage.isEmpty ? end : Position(file: .max, index: .max) }

  /// Raw bytes of events at which a journal should be sealed.
  package var segmentSize: Int {
    get { options.segmentSize }
    set { options.segmentSize = newValue }
  }

  /// Releases the files. Readers that were made before go on.
  package func close() {
    journals = []
    watermarkFile = nil
    isPoisoned = true
  }

  /// Throws unless the log may be written to.
  func checkWritable() throws(LogError) {
    if options.mode == .readOnly { throw .readOnly(path: directory) }
    if isPoisoned { throw .poisoned(path: directory) }
  }

  /// Throws if any file is known to be damaged: what rewrites files waits until they are mended.
  func checkWhole() throws(LogError) {
    if let damage = recovery.damage.first { throw damage.error }
  }

  /// After a sync that failed nobody knows what is on disk.
  func poisoning<Result>(_ body: () throws(LogError) -> Result) throws(LogError) -> Result {
    do throws(LogError) { return try body() } catch {
      isPoisoned = true
      throw error
    }
  }
}

/// What opening a log found, and did about it.
package struct Recovery: Sendable {
  /// A torn tail that was cut off.
  package struct Cut: Hashable, Sendable {
    package var path: String
    /// Where the journal ends now.
    package var offset: UInt64
    package var bytes: UInt64
    /// Where the bytes are kept.
    package var keptAt: String
  }

  /// What this open, or a `refresh` since, has cut.
  package var cuts: [Cut] = []
  /// Names of all kept tails in the directory, of earlier opens too: whoever must act on a cut compares them
  /// with those that it has acted on, and so misses none if it died in between.
  package var keptTails: [String] = []
  /// Paths of journals that had the names of others, and got their own.
  package var renamed: [(from: String, to: String)] = []
  /// Files that are damaged or missing, as far as opening sees it: damage inside of a segment is found when it
  /// is read. The log can be read up to there and around it, and appended to; `Survey` says what is lost.
  package var damage: [Damage] = []
  /// Slots of the watermark that are not as they were written: ordinary after a crash.
  package var watermarkDamage: [Damage] = []
  /// Why the watermark could not be written the last time. Nothing depends on it at once: the next frame says the
  /// same, and the next sync writes it again.
  package var watermarkError: LogError?
  /// What tells this directory from a copy of it. nil in a read-only log without a watermark.
  package var watermarkIdentity: FileIdentity?

  package init() {}
}
