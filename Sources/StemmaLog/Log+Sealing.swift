import StemmaEvents

extension Log {
  /// Closes the open journal, if it holds anything, and makes segments of all closed journals. Appending goes
  /// on in a new journal, with the same positions as before.
  ///
  /// Throws `.damaged`, with nothing changed, if a file is known to be.
  /// After an error the log is as usable as before, and sealing can be tried again (`.system` of a directory
  /// that cannot be synced poisons it). Memory: all events of one journal.
  ///
  /// `isDropped`: of events that are left out, as if they were purged then.
  package func seal(without isDropped: (StoredEvent) -> Bool = { _ in false }) throws(LogError) {
    while let sealing = try beginSealing(takingOver: true) {
      let trailer = try sealing.write(without: isDropped)
      try finish(sealing, trailer)
    }
  }

  /// The first part of sealing: closes the open journal if no closed one waits. nil if there is nothing to
  /// seal, or if somebody else is at it. The caller holds the writer lock here and for `finish`, but not while
  /// `Sealing.write` runs, which may be on another thread.
  ///
  /// `takingOver`: what somebody else is writing of the same journal comes to nothing.
  package func beginSealing(takingOver: Bool = false) throws(LogError) -> Sealing? {
    try checkWritable()
    try checkWhole()
    if journals.count == 1, let open = journals.last, open.end > 0 {
      try sync()
      try makeJournal(after: open.token(frames: open.marks.count))
    }
    guard journals.count > 1 else { return nil }
    let header = try header(at: journals[0].number)
    let path = LogFileName.segment(header.number, in: directory)
    let aside = path + LogFileName.partialSuffix
    if !takingOver, try isBeingWritten(aside) { return nil }
    do throws(LogError) { try fileSystem.remove(aside) } catch {
      guard error.isNotFound else { throw error }
    }
    let file = try fileSystem.open(aside, .create)
    // Nobody else has seen it yet.
    _ = try file.tryLock()
    return Sealing(
      journal: journals[0], header: header, path: path, aside: aside, file: file, level: options.level)
  }

  /// Whether somebody who lives is writing this file, which then is locked.
  func isBeingWritten(_ aside: String) throws(LogError) -> Bool {
    do throws(LogError) {
      let file = try fileSystem.open(aside, .write)
      defer { file.close() }
      return try !file.tryLock()
    } catch {
      // What somebody else's process has left may not be open to this one.
      if case .system(_, _, System.noAccess) = error { return false }
      guard error.isNotFound else { throw error }
      return false
    }
  }

  /// The last part of sealing: gives the segment its name and removes the journal. Nothing happens if the journal is gone, if
  /// its segment would have another header by now, as one whose predecessor was made anew, or if somebody has taken over: then
  /// it must be made again.
  package func finish(_ sealing: Sealing, _ trailer: SealedSegment) throws(LogError) {
    try checkWritable()
    let number = sealing.header.number
    guard journals.count > 1, journals[0].number == sealing.header.place,
      try header(at: journals[0].number) == sealing.header, try isInPlace(sealing)
    else { return }
    try moveAside(sealing.path)
    try fileSystem.rename(sealing.aside, to: sealing.path)
    try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
    listing.headers[number] = sealing.header
    listing.highestNumber = max(listing.highestNumber, number)
    let journal = journals.removeFirst()
    try fileSystem.remove(journal.path)
    try relist()
  }

  /// Whether what has its name aside is what was written.
  private func isInPlace(_ sealing: Sealing) throws(LogError) -> Bool {
    do throws(LogError) {
      return try fileSystem.open(sealing.aside, .read).identity() == sealing.file.identity()
    } catch {
      guard error.isNotFound else { throw error }
      return false
    }
  }

  /// The digest of the last sealed file.
  func lastDigest() throws(LogError) -> SegmentDigest {
    try lastSegment()?.trailer.digest ?? .none
  }

  /// The end of the sealed files.
  func sealedToken() throws(LogError) -> LogToken {
    guard let segment = try lastSegment() else { return .start }
    return LogToken(
      position: Position(file: segment.header.place, index: segment.trailer.end),
      chain: segment.trailer.chain)
  }

  private func lastSegment() throws(LogError) -> Segment? {
    guard let header = listing.headers.values.max(by: { $0.place < $1.place }) else { return nil }
    return try segment(header)
  }

  func segment(_ header: SegmentHeader) throws(LogError) -> Segment {
    try Segment(
      path: LogFileName.segment(header.number, in: directory), header: header, fileSystem: fileSystem)
  }
}

/// A closed journal on its way to become a segment.
package struct Sealing: Sendable {
  let journal: Journal
  let header: SegmentHeader
  let path: String
  /// Where the segment is written, in a file that is locked as long as this is there.
  let aside: String
  let file: any File
  let level: Int32

  /// Reads the journal and writes the segment aside, synced. To be called once. Throws `.damaged` if the journal is, `.system`.
  package func write(
    without isDropped: (StoredEvent) -> Bool = { _ in false }
  ) throws(LogError) -> SealedSegment {
    var contents = try journal.contents()
    contents.removeEvents(inPlace: header.place, where: isDropped)
    let trailer = try SegmentWriter.write(
      contents, header: header, end: journal.end, chain: journal.chain, level: level, to: file)
    return SealedSegment(trailer: trailer)
  }
}

/// That a segment was written as a whole.
package struct SealedSegment: Sendable {
  let trailer: SegmentTrailer
}
