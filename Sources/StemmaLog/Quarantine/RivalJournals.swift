/// Journals that have the names of others, and all claim the number of one that is not there: that one, and copies of it.
struct RivalJournals {
  private let journals: [Journal]
  /// How many bytes of the right one the watermark calls durable.
  private let durable: UInt64

  /// Reads all of them, and the watermark.
  init(
    _ paths: [String], number: UInt64, in directory: String, log: LogID, _ fileSystem: any FileSystem
  ) throws(LogError) {
    var journals: [Journal] = []
    for path in paths {
      let file = try fileSystem.open(path, .read)
      var journal = try Journal(path: path, number: number, log: log, file: file)
      try journal.scan(isThorough: true)
      // Frames behind damage are events, too. What of them makes no sense is not counted.
      do throws(LogError) { try journal.settle(isClosed: true) } catch {
        guard error.damage != nil else { throw error }
      }
      journals.append(journal)
    }
    self.journals = journals
    let path = LogFileName.watermark(in: directory)
    var watermark: Watermark?
    do throws(LogError) {
      watermark = try Watermark.read(try fileSystem.open(path, .read), path: path, log: log).0
    } catch { guard error.isNoFile else { throw error } }
    durable = watermark.map { $0.journal == number ? $0.durable : 0 } ?? 0
  }

  /// The one that has what the watermark calls durable; of several the one that holds most events, of these the first.
  /// `different`: those that hold what it does not.
  var choice: (path: String, different: [String])? {
    func rank(_ journal: Journal) -> (Int, UInt64) { (journal.size >= durable ? 1 : 0, journal.eventCount) }
    guard var best = journals.first else { return nil }
    for journal in journals.dropFirst() where rank(journal) > rank(best) { best = journal }
    let frames = Set(best.marks)
    return (best.path, journals.filter { !frames.isSuperset(of: $0.marks) }.map(\.path))
  }
}

extension Journal {
  fileprivate var eventCount: UInt64 { marks.reduce(0) { $0 + $1.past - $1.first } }
}
