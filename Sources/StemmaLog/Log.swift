import StemmaEvents

// A log directory:
//
//     manifest, manifest.previous   the list of live files
//     00000001.segment   sealed files
//     00000002.journal   the open file for appending, and closed ones that wait to be sealed
//     watermark          how far the open journal is known durable
//     ….partial          an unfinished file of a crashed writer, which the next one overwrites
//     00000002.cut…      a torn tail that recovery has cut, kept for inspection
//     corrupt/           corrupt files that a repair has replaced
//
// Other files are unrecognized: they are neither read nor changed, and `verify` reports them.

/// The log of a node: every event that it holds, in the order in which it came to hold them.
///
/// Not thread safe. A process holds the node's `WriterLock` while it opens for writing, appends,
/// syncs, refreshes, seals, adopts or purges, and calls `refresh` after taking it. A reader needs
/// no lock.
package final class Log {
  package enum Mode: Sendable {
    /// Never writes, and shows only events that are known durable.
    case readOnly
    case readWrite
  }

  package struct Options: Sendable {
    package var mode: Mode
    /// Raw bytes of events (`Event.rawSize`) at which a journal should be sealed.
    package var segmentSize: Int
    /// Deflate level, 1 … 9.
    package var level: Int32
    /// Segments that one reader keeps open. With more, it opens the file for each block.
    package var openSegments = LogLimits.openSegments
    /// Whether journals stay in memory after their scan, for callers that read the whole log.
    package var keepsJournals = false

    package init(mode: Mode = .readWrite, segmentSize: Int = 8 << 20, level: Int32 = LogLimits.usualLevel) {
      self.mode = mode
      self.segmentSize = segmentSize
      self.level = level
    }
  }

  package let directory: String
  package let id: LogID
  package internal(set) var options: Options
  let fileSystem: MeteredFileSystem

  /// Findings and repairs of opening and of later calls of `refresh`.
  package internal(set) var recovery = Recovery()

  /// The manifest as last read or written.
  var manifest: Manifest
  /// The turn of the last manifest whose name is known durable.
  var durableManifest: UInt64 = 0
  /// The corruption of the current manifest, if the previous one is in use.
  var manifestFlaw: Corruption?
  /// By number: closed journals that wait to be sealed, then the open one. A read-only log lacks
  /// the open one if its writer died before creating it.
  var journals: [Journal] = []
  /// Journals that are missing or have an unreadable header, by number.
  var unreadJournals: [(number: UInt64, corruption: Corruption)] = []
  var watermark: Watermark?
  var watermarkFile: (any File)?
  package internal(set) var isPoisoned = false
  var writer: BlockWriter
  let footers = KeptFooters()
  /// Whether appended events stay in memory until their journal is sealed, for many large commits.
  package var keepsAppended = false {
    didSet { if !keepsAppended { kept = nil } }
  }
  var kept: AppendedEvents?
  /// The last sequence that this instance appended to each stream, since it was last cleared.
  var appended: [StreamID: SequenceNumber] = [:]

  init(_ directory: String, _ id: LogID, _ fileSystem: any FileSystem, _ options: Options) {
    self.directory = directory
    self.id = id
    self.options = options
    self.fileSystem = MeteredFileSystem(fileSystem)
    manifest = Manifest(log: id)
    writer = BlockWriter(level: options.level)
  }

  /// Bytes that were read from files of this log since it was opened.
  package var bytesRead: UInt64 { fileSystem.bytesRead }

  /// Whether frames count that are not known durable. A writer is about to sync them. After a
  /// failed sync they may be missing from the file.
  var showsUnsynced: Bool { options.mode == .readWrite && !isPoisoned }

  /// The position of the next event. For readers, and after a failed sync, the durable end.
  package var end: Position {
    guard let open = journals.last else { return manifest.start.position }
    return showsUnsynced ? open.endPosition : durableEnd
  }

  /// Whether anything was sealed.
  package var hasSegments: Bool { !manifest.segments.isEmpty }

  /// Bytes behind the last frame of the open journal that are no frame and not known durable.
  package var tornTail: Corruption? {
    journals.last.flatMap { journal in
      journal.flaw.map { Corruption(path: journal.path, offset: journal.size, flaw: $0) }
    }
  }

  /// Events behind `durableEnd`. Their writer is about to sync them, or died before.
  package var unconfirmedEvents: UInt64 { journals.last.map { $0.end - $0.durableEnd } ?? 0 }

  /// Whether the watermark is missing, so that some frames are not known durable.
  package var lacksWatermark: Bool { watermark == nil && unconfirmedEvents > 0 }

  /// The position behind the last event that is known durable. Peers see no event behind it.
  package var durableEnd: Position {
    guard let open = journals.last else { return manifest.start.position }
    return open.base.advanced(by: open.durableEnd)
  }

  /// Whether enough events or a closed journal wait to be sealed, and the log is not corrupt.
  package var wantsSealing: Bool { hasEnoughToSeal && recovery.corruption.isEmpty }

  /// Whether sealing waits for a repair.
  package var isSealingHeldUp: Bool { hasEnoughToSeal && !recovery.corruption.isEmpty }

  private var hasEnoughToSeal: Bool { journals.count > 1 || isOpenJournalFull }

  /// Whether the open journal alone is enough for a segment.
  package var isOpenJournalFull: Bool { (journals.last?.rawBytes ?? 0) >= UInt64(options.segmentSize) }

  /// All files in the order of the log. For readers, and after a failed sync, only durable frames.
  var views: [FileView] {
    var views = manifest.segments.map { FileView.segment($0) }
    var unread = unreadJournals[...]
    for journal in journals {
      while let (number, corruption) = unread.first, number < journal.number {
        views.append(.corrupt(corruption, base: views.last?.end ?? manifest.start.position))
        unread.removeFirst()
      }
      views.append(.journal(showsUnsynced ? journal : journal.durablePart))
    }
    for (_, corruption) in unread {
      views.append(.corrupt(corruption, base: views.last?.end ?? manifest.start.position))
    }
    return views
  }

  var fileViews: FileViews {
    FileViews(files: views, directory: directory, log: id, fileSystem: fileSystem)
  }

  func segment(_ entry: SegmentEntry) throws(LogError) -> Segment {
    try Segment(entry, in: directory, log: id, fileSystem: fileSystem)
  }

  func path(_ name: LogFileName) -> String { name.path(in: directory) }

  /// The default end of reading. In a corrupt log, it must not precede the corruption.
  var readEnd: Position { recovery.corruption.isEmpty ? end : .end }

  /// Raw bytes of events at which a journal should be sealed.
  package var segmentSize: Int {
    get { options.segmentSize }
    set { options.segmentSize = newValue }
  }

  /// Releases the files. Existing readers continue to work.
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

  /// Throws if a file is known to be corrupt: rewriting waits for a repair.
  func checkWhole() throws(LogError) {
    if let corruption = recovery.corruption.first { throw corruption.error }
  }

  /// Poisons the log after an error: a failed sync leaves the bytes on disk unknown.
  func poisoning<Result>(_ body: () throws(LogError) -> Result) throws(LogError) -> Result {
    do throws(LogError) { return try body() } catch {
      isPoisoned = true
      throw error
    }
  }
}

/// The findings and repairs of opening a log.
package struct Recovery: Sendable {
  /// A torn tail that was cut off.
  package struct Cut: Hashable, Sendable {
    package var path: String
    /// The end of the journal after the cut.
    package var offset: UInt64
    package var bytes: UInt64
    /// The path of the copied bytes.
    package var keptAt: String
  }

  /// The cuts of this opening and of later calls of `refresh`.
  package var cuts: [Cut] = []
  /// How many tails were ever cut. A caller that must act on cuts compares it with the number on
  /// which it has acted, so it misses none after a crash.
  package var cutCount: UInt32 = 0
  /// Journals that are corrupt or missing. Corruption of a segment is found when it is read. The
  /// log is readable around the corruption, and appendable.
  package var corruption: [Corruption] = []
  /// Corrupt slots of the watermark, which are ordinary after a crash.
  package var watermarkCorruption: [Corruption] = []
  /// The last error of writing the watermark. It is harmless: the next frame states the same, and
  /// the next sync writes the watermark again.
  package var watermarkError: LogError?
  /// Distinguishes this directory from a copy. nil in a read-only log without a watermark.
  package var watermarkIdentity: FileIdentity?

  package init() {}
}
