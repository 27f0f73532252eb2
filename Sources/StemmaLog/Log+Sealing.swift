import StemmaEvents

extension Log {
  /// Closes the open journal if it has events, and makes segments of all closed journals. Appending
  /// continues in a new journal, and every event keeps its position.
  ///
  /// Throws `.corrupt` with nothing changed in a corrupt log. After another error, sealing can be
  /// repeated, unless a failed sync has poisoned the log. Memory: the events of a journal.
  package func seal() throws(LogError) {
    while let sealing = try beginSealing(takingOver: true) {
      let trailer = try sealing.write()
      try finish(sealing, trailer)
    }
  }

  /// The first part of sealing. Closes the open journal if no closed one waits. Returns nil if
  /// there is nothing to seal, or if another process is sealing. The caller holds the writer lock
  /// here and for `finish`, but not during `Sealing.write`, which may run on another thread.
  ///
  /// `takingOver`: discards the unfinished segment of another process.
  package func beginSealing(takingOver: Bool = false) throws(LogError) -> Sealing? {
    try checkWritable()
    try checkWhole()
    if journals.count == 1, let open = journals.last, open.end > 0 {
      try sync()
      try makeJournal(number: open.number + 1, after: open.token(frames: open.marks.count))
    }
    guard journals.count > 1 else { return nil }
    let header = SegmentHeader(log: id, number: manifest.nextSegment, base: journals[0].base)
    let aside = path(.segment(header.number)) + LogFileName.partialSuffix
    if !takingOver, try isBeingWritten(aside) { return nil }
    try removeIfThere(aside)
    let file = try fileSystem.open(aside, .create)
    // The file is new, so its lock is free.
    _ = try file.tryLock()
    var contents: NumberedEvents?
    if let kept, kept.journal == journals[0].number {
      assert(holds(kept.checkInvariants))
      if kept.contents.events.count == Int(journals[0].end) { contents = kept.contents }
      self.kept = nil
    }
    return Sealing(
      journal: journals[0], contents: contents, header: header, aside: aside, file: file, level: options.level
    )
  }

  /// Whether a live process is writing this file and so holds its lock.
  func isBeingWritten(_ aside: String) throws(LogError) -> Bool {
    do throws(LogError) {
      let file = try fileSystem.open(aside, .write)
      defer { file.close() }
      return try !file.tryLock()
    } catch {
      // A file that another user's process left may be inaccessible.
      if case .system(_, _, System.noAccess) = error { return false }
      guard error.isNotFound else { throw error }
      return false
    }
  }

  /// The last part of sealing: names the segment, lists it, and removes the journal. Does nothing
  /// if the journal is gone, another segment has the number, or another process has taken over. The
  /// segment is then useless.
  package func finish(_ sealing: Sealing, _ sealed: SealedSegment) throws(LogError) {
    try checkWritable()
    let header = sealing.header
    guard journals.count > 1, journals[0].number == sealing.journal.number,
      manifest.nextSegment == header.number, try isInPlace(sealing)
    else { return }
    try fileSystem.rename(sealing.aside, to: path(.segment(header.number)))
    let next = journals[1]
    try replaceManifest { manifest in
      manifest.list(sealed.entry)
      (manifest.firstJournal, manifest.start) = (next.number, next.header.start)
      manifest.obsolete = [ObsoleteFile(name: .journal(sealing.journal.number))]
    }
    journals.removeFirst()
  }

  /// Whether the `.partial` file is the one that was written.
  private func isInPlace(_ sealing: Sealing) throws(LogError) -> Bool {
    do throws(LogError) {
      return try fileSystem.open(sealing.aside, .read).identity() == sealing.file.identity()
    } catch {
      guard error.isNotFound else { throw error }
      return false
    }
  }
}

/// A closed journal on its way to become a segment.
package struct Sealing: Sendable {
  let journal: Journal
  /// The events of the journal, if they are in memory.
  let contents: NumberedEvents?
  let header: SegmentHeader
  /// The path of the `.partial` file. It is locked while `file` is open.
  let aside: String
  let file: any File
  let level: Int32

  /// Writes and syncs the segment under its `.partial` name. Reads the journal unless its events
  /// are in memory. Call it once. Throws `.corrupt` if the journal is corrupt, and `.system`.
  package func write() throws(LogError) -> SealedSegment {
    let contents = if let contents { contents } else { try journal.contents() }
    let trailer = try SegmentWriter.write(
      contents, header: header, end: journal.end, chain: journal.chain, level: level, to: file)
    return SealedSegment(entry: SegmentEntry(header, trailer))
  }
}

/// Proof that a segment was written completely.
package struct SealedSegment: Sendable {
  let entry: SegmentEntry
}

extension SegmentEntry {
  /// The entry of a file that was written.
  init(_ header: SegmentHeader, _ trailer: SegmentTrailer) {
    let size =
      trailer.footerOffset + UInt64(trailer.footerLength + trailer.filterLength + SegmentTrailer.size)
    self.init(
      number: header.number, size: size, base: header.base, past: header.base.advanced(by: trailer.end),
      digest: trailer.digest)
  }
}

extension Manifest {
  mutating func list(_ entry: SegmentEntry) {
    segments.insert(entry, at: segments.partitioningIndex { $0.base >= entry.base })
    nextSegment = max(nextSegment, entry.number + 1)
  }
}
