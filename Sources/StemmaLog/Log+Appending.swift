import StemmaEvents

/// Events that are appended together, with their author and message.
package struct Commit: Sendable {
  package var events: [Event]
  package var message: CommitMessage
  /// The digest of each event, if the caller has computed them; otherwise empty.
  package var digests: [StreamHash]

  package init(_ events: [Event], message: CommitMessage = CommitMessage(), digests: [StreamHash] = []) {
    self.events = events
    self.message = message
    self.digests = digests
  }
}

/// All events of one journal, as this process appended them. Its segment can be made from them
/// without reading and decoding the journal.
struct AppendedEvents: Sendable {
  let journal: UInt64
  var contents = NumberedEvents()

  /// Traps unless they are the first events of a journal.
  func checkInvariants() {
    contents.checkInvariants()
    precondition(
      contents.events.last.map { $0.relativePosition + 1 == UInt64(contents.events.count) } ?? true)
  }
}

extension Log {
  /// Appends commits, one frame for each, in one write. They are durable after `sync`. Returns the
  /// position of each commit's first event. A commit without events writes nothing.
  ///
  /// - Parameter sharingFrames: consecutive small commits share a frame. A block of sixteen events
  ///   costs a fraction of sixteen blocks, in time and in bytes.
  ///
  /// Throws `.overLimit` or `.gap` with nothing written, `.readOnly`, `.poisoned` or `.system`.
  /// After `.system`, the log has no event of this call, or is poisoned. `.gap`: an event does not
  /// follow the last one of its stream. The caller checks new streams.
  @discardableResult
  package func append(_ commits: [Commit], sharingFrames: Bool = false) throws(LogError) -> [Position] {
    let first = end
    var count: UInt64 = 0
    var shared = 0
    var positions: [Position] = []
    var frames: [(events: [Event], messages: [(CommitID, CommitMessage)])] = []
    for commit in commits {
      let messages =
        commit.message.isEmpty ? [] : Set(commit.events.map(\.commit)).sorted().map { ($0, commit.message) }
      positions.append(first.advanced(by: count))
      count += UInt64(commit.events.count)
      let raw = commit.events.rawSize
      shared += raw
      if sharingFrames, !frames.isEmpty, shared <= LogLimits.sharedFrame {
        frames[frames.count - 1].events += commit.events
        frames[frames.count - 1].messages += messages
      } else {
        frames.append((commit.events, messages))
        shared = raw
      }
    }
    try append(frames)
    if keepsAppended { keep(commits, from: first) }
    return positions
  }

  /// Keeps the appended events if all earlier ones of the journal are kept.
  private func keep(_ commits: [Commit], from first: Position) {
    guard let journal = journals.last else { return }
    var relativePosition = first.rawValue - journal.base.rawValue
    if kept?.journal != journal.number {
      kept = relativePosition == 0 ? AppendedEvents(journal: journal.number) : nil
    }
    guard kept?.contents.events.count == Int(relativePosition) else { return kept = nil }
    for commit in commits {
      guard commit.digests.count == commit.events.count else { return kept = nil }
      for index in commit.events.indices {
        kept?.contents.events.append(
          BlockEvent(relativePosition: relativePosition, event: commit.events[index]))
        relativePosition += 1
      }
      kept?.contents.digests += commit.digests
      if !commit.message.isEmpty {
        for id in Set(commit.events.map(\.commit)) { kept?.contents.messages[id] = commit.message }
      }
    }
  }

  /// Appends frames.
  func append(_ groups: [(events: [Event], messages: [(CommitID, CommitMessage)])]) throws(LogError) {
    try checkWritable()
    guard !journals.isEmpty else { throw .noLog(path: directory) }
    let moved = try heads(behind: groups)
    var bytes: [UInt8] = []
    var frames: [(events: Int, raw: Int, stored: Int, chain: UInt32)] = []
    // Not a copy of the journal: with a second reference, each commit would copy all `marks`.
    let last = journals.count - 1
    let (number, size, durable) = (journals[last].number, journals[last].size, journals[last].durable)
    var chain = journals[last].chain
    var end = journals[last].end
    for (events, messages) in groups where !events.isEmpty {
      let raw = events.rawSize
      let before = bytes.count
      chain = try JournalFrame.encode(
        payload: try encoded(events, messages, from: end), events: events.count, raw: raw,
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

  /// The last sequence of each stream after these events. Throws `.gap` if a stream has a gap.
  private func heads(
    behind groups: [(events: [Event], messages: [(CommitID, CommitMessage)])]
  ) throws(LogError) -> [(name: StreamID, last: SequenceNumber)] {
    var moved: [(name: StreamID, last: SequenceNumber)] = []
    // The index of each stream in `moved`, if many: comparing a few is faster than hashing.
    var places: [StreamID: Int] = [:]
    for (events, _) in groups {
      for index in events.indices {
        let name = StreamID(events[index])
        let sequence = events[index].id.sequence
        let place =
          moved.count > Self.fewStreams ? places[name] : moved.firstIndex { $0.name == name }
        if let last = place.map({ moved[$0].last }) ?? appended[name], sequence != last.next {
          throw .gap(partition: name.partition, origin: name.origin, expected: last.next, found: sequence)
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

  /// Writes frames at the end of the journal. Behind small groups it writes zeros ahead: half of
  /// the file's size, within limits. Later syncs then find their blocks allocated and need not wait
  /// for the file system's journal. Large groups, such as imports, gain nothing by it.
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
        // The disk may have room for the frames alone.
        try takeBack(file, to: size)
      }
    }
    do throws(LogError) { try file.write(bytes, at: size) } catch {
      try takeBack(file, to: size)
      throw error
    }
  }

  /// Truncates partly written frames, so that appending can continue once there is space.
  private func takeBack(_ file: any File, to size: UInt64) throws(LogError) {
    try poisoning { () throws(LogError) in try file.truncate(to: size) }
    journals[journals.count - 1].allocated = size
  }

  private func encoded(
    _ events: [Event], _ messages: [(CommitID, CommitMessage)], from first: UInt64
  ) throws(LogError) -> [UInt8] {
    // Passes `writer` inout: reading its properties through `self` would copy some forty arrays.
    try Self.encoded(events, messages, from: first, &writer, level: options.level)
  }

  private static func encoded(
    _ events: [Event], _ messages: [(CommitID, CommitMessage)], from first: UInt64,
    _ writer: inout BlockWriter,
    level: Int32
  ) throws(LogError) -> [UInt8] {
    for index in events.indices { writer.append(events[index], relativePosition: first + UInt64(index)) }
    for (commit, message) in messages { writer.setMessage(message, of: commit) }
    guard writer.isWithinLimits else {
      let found = UInt64(writer.rawBytes)
      writer = BlockWriter(level: level)
      throw .overLimit(subject: "commit", found: found, limit: UInt64(Limits.blockStream))
    }
    return writer.finish()
  }

  /// Makes all appended events durable with one fdatasync, then advances the watermark.
  ///
  /// After a failed sync, the log must be opened again before more is appended: the bytes on disk
  /// are unknown, and a repeated sync that succeeds proves nothing.
  package func sync() throws(LogError) {
    try checkWritable()
    guard let open = journals.last, open.durable < open.size else { return }
    try poisoning { () throws(LogError) in try open.file.sync() }
    journals[journals.count - 1].confirm(open.size)
    noteWatermark()
  }
}
