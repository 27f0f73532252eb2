import StemmaEvents

/// Events that are appended together, and who made them and why.
package struct Commit: Sendable {
  package var events: [Event]
  package var note: CommitNote

  package init(_ events: [Event], note: CommitNote = CommitNote()) {
    self.events = events
    self.note = note
  }
}

extension Log {
  /// Appends commits, one frame for each, all in one write. Not durable before `sync`. Returns the position of
  /// each one's first event; its others follow. A commit without events leaves nothing behind.
  ///
  /// - Parameter sharingFrames: small commits that follow each other share a frame: one block of sixteen events costs
  ///   a fraction of sixteen of one, in time and in bytes.
  ///
  /// Throws `.overLimit` or `.hole` with nothing written, `.readOnly`, `.poisoned`, `.damaged`, or `.system`; after the
  /// last, nothing of this call is in the log: if that cannot be made sure, the log is poisoned. `.hole`: an event does
  /// not follow the last one of its stream. Of streams that this instance has not appended to yet, the caller knows.
  @discardableResult
  package func append(_ commits: [Commit], sharingFrames: Bool = false) throws(LogError) -> [Position] {
    let first = end
    var count: UInt64 = 0
    var shared = 0
    var positions: [Position] = []
    var frames: [(events: [Event], notes: [(CommitID, CommitNote)])] = []
    for commit in commits {
      let notes =
        commit.note.isEmpty ? [] : Set(commit.events.map(\.commit)).sorted().map { ($0, commit.note) }
      positions.append(Position(file: first.file, index: first.index + count))
      count += UInt64(commit.events.count)
      let raw = commit.events.rawSize
      shared += raw
      if sharingFrames, !frames.isEmpty, shared <= LogLimits.sharedFrame {
        frames[frames.count - 1].events += commit.events
        frames[frames.count - 1].notes += notes
      } else {
        frames.append((commit.events, notes))
        shared = raw
      }
    }
    try append(frames)
    return positions
  }

  /// Appends frames.
  func append(_ groups: [(events: [Event], notes: [(CommitID, CommitNote)])]) throws(LogError) {
    try checkWritable()
    guard !journals.isEmpty else { throw .noLog(path: directory) }
    let moved = try heads(behind: groups)
    var bytes: [UInt8] = []
    var frames: [(events: Int, raw: Int, stored: Int, chain: UInt32)] = []
    // Numbers instead of a copy of the journal: where one is held, its marks are copied before the next is added, all of
    // them at each commit.
    let last = journals.count - 1
    let (number, size, durable) = (journals[last].number, journals[last].size, journals[last].durable)
    var chain = journals[last].chain
    var end = journals[last].end
    for (events, notes) in groups where !events.isEmpty {
      let raw = events.rawSize
      let before = bytes.count
      chain = try JournalFrame.encode(
        payload: try encoded(events, notes, from: end), events: events.count, raw: raw,
        synced: durable, previous: chain, log: id, number: number, offset: size + UInt64(before), into: &bytes
      )
      frames.append((events.count, raw, bytes.count - before, chain))
      end += UInt64(events.count)
    }
    if bytes.isEmpty { return }
    try write(bytes, events: Int(end - journals[last].end))
    for frame in frames {
      journals[last].append(
        events: frame.events, raw: frame.raw, stored: frame.stored, chain: frame.chain)
    }
    for stream in moved { appended[stream.name] = stream.last }
  }

  /// Where each stream stands behind these events. Throws `.hole` if one does not follow the last of its stream.
  private func heads(
    behind groups: [(events: [Event], notes: [(CommitID, CommitNote)])]
  ) throws(LogError) -> [(name: StreamName, last: Sequence)] {
    var moved: [(name: StreamName, last: Sequence)] = []
    // Where each stream stands in `moved`, if they are many: a few are compared faster than hashed.
    var places: [StreamName: Int] = [:]
    for (events, _) in groups {
      for index in events.indices {
        let name = StreamName(events[index])
        let sequence = events[index].dot.sequence
        let place =
          moved.count > Self.fewStreams ? places[name] : moved.firstIndex { $0.name == name }
        if let last = place.map({ moved[$0].last }) ?? appended[name], sequence != last.next {
          throw .hole(partition: name.partition, origin: name.origin, expected: last.next, found: sequence)
        }
        if let place {
          moved[place].last = sequence
          continue
        }
        moved.append((name, sequence))
        if moved.count == Self.fewStreams + 1 {
          for (place, stream) in moved.enumerated() { places[stream.name] = place }
        } else if moved.count > Self.fewStreams {
          places[name] = moved.count - 1
        }
      }
    }
    return moved
  }

  private static let fewStreams = 16

  /// Writes frames at the end of the journal. Behind small ones it writes zeros ahead, up to half of what the
  /// file holds: syncs that follow then find their blocks in place, and need not wait for the file system's own
  /// journal. Groups of many events, such as those of an import, gain nothing by it, and their log would be longer.
  private func write(_ bytes: [UInt8], events: Int) throws(LogError) {
    let last = journals.count - 1
    let (file, size) = (journals[last].file, journals[last].size)
    let end = size + UInt64(bytes.count)
    if end > journals[last].allocated, events <= LogLimits.smallGroup, size >= LogLimits.leastAhead {
      let ahead = min(max(size / 2, LogLimits.leastAhead), LogLimits.mostAhead)
      do throws(LogError) {
        try file.write(bytes + [UInt8](repeating: 0, count: Int(ahead)), at: size)
        journals[last].allocated = end + ahead
        return
      } catch {
        // The disk may have room for the frames, if not for what comes after them.
        try takeBack(file, to: size)
      }
    }
    do throws(LogError) { try file.write(bytes, at: size) } catch {
      try takeBack(file, to: size)
      throw error
    }
  }

  /// Space may come back: what was written of the frames goes, and appending can go on.
  private func takeBack(_ file: any File, to size: UInt64) throws(LogError) {
    try poisoning { () throws(LogError) in try file.truncate(to: size) }
    journals[journals.count - 1].allocated = size
  }

  private func encoded(
    _ events: [Event], _ notes: [(CommitID, CommitNote)], from first: UInt64
  ) throws(LogError) -> [UInt8] {
    // In one access: a question to a property is a question to a copy, of some forty arrays.
    try Self.encoded(events, notes, from: first, &writer, level: options.level)
  }

  private static func encoded(
    _ events: [Event], _ notes: [(CommitID, CommitNote)], from first: UInt64, _ writer: inout BlockWriter,
    level: Int32
  ) throws(LogError) -> [UInt8] {
    for index in events.indices { writer.append(events[index], arrival: first + UInt64(index)) }
    for (commit, note) in notes { writer.setNote(note, of: commit) }
    guard writer.isWithinLimits else {
      let found = UInt64(writer.rawBytes)
      writer = BlockWriter(level: level)
      throw .overLimit(subject: "commit", found: found, limit: UInt64(Limits.blockStream))
    }
    return writer.finish()
  }

  /// Makes everything that was appended durable, with one fdatasync, and then moves the watermark.
  ///
  /// After an error of the sync nothing more can be appended before the log is opened again: what is on disk
  /// is unknown, and another sync that succeeds proves nothing.
  package func sync() throws(LogError) {
    try checkWritable()
    guard let open = journals.last, open.durable < open.size else { return }
    try poisoning { () throws(LogError) in try open.file.sync() }
    journals[journals.count - 1].confirm(open.size)
    noteWatermark()
  }
}
