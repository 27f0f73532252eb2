import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaTables

/// An event with the note of its commit.
package struct LoggedEvent: Sendable {
  package var stored: StoredEvent
  package var message: CommitMessage

  package init(stored: StoredEvent, message: CommitMessage) {
    self.stored = stored
    self.message = message
  }

  package var event: Event { stored.event }
}

extension Node {
  /// Finds an event by `@POSITION`, by `NAME:SEQUENCE`, or by at least four digits of its digest.
  /// Fewer than eight decimal digits are not a digest, but a year or a position without its `@`.
  ///
  /// A position reads one block. A sequence is unique in a partition only, so without `partition`
  /// it must match one event; an index finds the file. A digest reads the whole log.
  /// `takesPartition`: whether errors may suggest to name a partition.
  package func event(
    named text: String, partition: String? = nil, takesPartition: Bool = false
  ) throws(NodeError) -> LoggedEvent {
    if let position = Position(text) { return try event(at: position, named: text) }
    if text.contains(":") { return try event(id: text, in: partition, takesPartition: takesPartition) }
    let digits = text.utf8
    let isHexadecimal = digits.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
    let isNumber = digits.count < 8 && UInt64(text) != nil
    guard isHexadecimal, digits.count >= 4, !isNumber else { throw .inspection(.notAnEvent(text)) }
    return try event(digest: text)
  }

  private func event(at position: Position, named text: String) throws(NodeError) -> LoggedEvent {
    let omissions = Omissions()
    let found = try Self.wrapping { () throws -> [LoggedEvent] in
      var reader = log.events(from: position, to: position.next, around: omissions)
      guard let stored = try reader.next() else { return [] }
      return [LoggedEvent(stored: stored, message: reader.message ?? CommitMessage())]
    }
    return try only(found, text, omissions)
  }

  private func event(
    id text: String, in partition: String?, takesPartition: Bool
  ) throws(NodeError) -> LoggedEvent {
    let ids = description.ids(named: text)
    let scope = try partition.map { text throws(NodeError) in try self.scope([text]) }
    let omissions = Omissions()
    let found = try Self.wrapping { () throws -> [LoggedEvent] in
      var found: [LoggedEvent] = []
      for file in try log.files() {
        let partitions = try log.content(of: file, around: omissions)?.partitions ?? []
        for run in partitions where scope?.contains(run.partition) ?? true {
          for stream in run.streams {
            for id in ids where id.origin == stream.origin {
              guard (stream.from...stream.to).contains(id.sequence) else { continue }
              let name = QualifiedEventID(partition: run.partition, id: id)
              found += try events(name, in: file, omissions)
            }
          }
        }
        // A few are enough to report an ambiguous name.
        if found.count > 8 { break }
      }
      return found
    }
    // If no node has the name, a partition would not help.
    return try only(
      found, text, omissions, ids.isEmpty ? nil : partition, isUnique: partition != nil && ids.count == 1,
      takesPartition: takesPartition && partition == nil)
  }

  /// Several if a node was restored from an older copy and wrote again.
  private func events(
    _ name: QualifiedEventID, in file: LogFile, _ omissions: Omissions
  ) throws(LogError) -> [LoggedEvent] {
    var found: [LoggedEvent] = []
    var reader = log.events(
      from: file.positions.lowerBound, to: file.positions.upperBound,
      partitions: PartitionFilter(named: [name.partition]), around: omissions)
    while let stored = try reader.next() {
      if stored.event.id == name.id {
        found.append(LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
        // A segment holds each event id once.
        if file.kind == .segment { break }
      }
    }
    return found
  }

  /// The names and partitions of the readable events with this prefix of their digest.
  func names(ofEventsWithDigest prefix: String) throws(NodeError) -> [String] {
    names(of: try events(digest: prefix, Omissions()))
  }

  private func event(digest prefix: String) throws(NodeError) -> LoggedEvent {
    let omissions = Omissions()
    let found = try events(digest: prefix, omissions)
    return try only(found, prefix, omissions, isUnique: prefix.utf8.count >= 8)
  }

  private func events(digest prefix: String, _ omissions: Omissions) throws(NodeError) -> [LoggedEvent] {
    try Self.wrapping { () throws -> [LoggedEvent] in
      var found: [LoggedEvent] = []
      var digester = EventDigester()
      var reader = log.events(around: omissions)
      while let stored = try reader.next() {
        guard digester.digest(of: stored.event).description.hasPrefix(prefix) else { continue }
        found.append(LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
      }
      return found
    }
  }

  /// Each name with its partition, and with its position if two names are equal.
  private func names(of found: [LoggedEvent]) -> [String] {
    let description = description
    let names = found.map { "\(description.name($0.event.id)) in \($0.event.partition)" }
    if Set(names).count == names.count { return names }
    return zip(names, found).map { "\($0), @\($1.stored.position)" }
  }

  /// The only event found. If the name is unique (`isUnique`), missing events do not matter.
  private func only(
    _ found: [LoggedEvent], _ text: String, _ omissions: Omissions, _ partition: String? = nil,
    isUnique: Bool = true, takesPartition: Bool = false
  ) throws(NodeError) -> LoggedEvent {
    if found.isEmpty || !isUnique, let missing = try missingEvents(omissions) { throw .missing(missing) }
    guard let first = found.first else { throw .inspection(.noSuchEvent(text, partition: partition)) }
    guard found.count == 1 else {
      throw .inspection(.severalEvents(text, names(of: found), takesPartition: takesPartition))
    }
    return first
  }

  /// The events of a commit, named `NAME.NUMBER`, in position order. Reads the log.
  ///
  /// - Throws: `.missing` if some may be lost; `.inspection(.severalCommits)` for several commits.
  package func commit(named text: String) throws(NodeError) -> [LoggedEvent] {
    let ids = description.commits(named: text)
    let found = try readingAround { omissions in
      var found: [LoggedEvent] = []
      var reader = log.events(around: omissions)
      while let stored = try reader.next() {
        guard ids.contains(stored.event.commit) else { continue }
        found.append(LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
      }
      return found
    }
    if found.isEmpty { throw .inspection(.noSuchCommit(text)) }
    let commits = Set(found.map(\.event.commit))
    if commits.count > 1 {
      throw .inspection(.severalCommits(text, commits.map(description.name).sorted()))
    }
    return found
  }

  /// The commits named `NAME.NUMBER`, one for each node of that name. Reads the log.
  ///
  /// - Throws: `.inspection(.noSuchCommit)` if no event of such a commit exists or may be lost.
  package func commits(named text: String) throws(NodeError) -> Set<CommitID> {
    let commits = description.commits(named: text)
    do throws(NodeError) { _ = try commit(named: text) } catch {
      switch error {
      case .inspection(.severalCommits): break
      case .missing where !commits.isEmpty: break
      default: throw error
      }
    }
    return commits
  }
}

extension Node {
  /// Reads a point in history: a time, `@POSITION`, or an event, which means its log position here.
  /// With `toTheEnd`, a day, month or year means its last point in time. An event id counts in the
  /// partition that matches `partition`. With `takesPartition`, errors may suggest to name one.
  package func pointInTime(
    _ text: String, toTheEnd: Bool = false, in partition: String? = nil, takesPartition: Bool = false
  ) throws(NodeError) -> PointInTime {
    if let pointInTime = PointInTime(time: text, wall: ports.clock.milliseconds(), toTheEnd: toTheEnd) {
      guard PointInTime.resemblesDigest(text) else { return pointInTime }
      let events = try names(ofEventsWithDigest: text)
      guard events.isEmpty else { throw .inspection(.daysOrEvent(text, events)) }
      return pointInTime
    }
    if let position = Position(text) {
      if position >= log.end { throw .inspection(.beyondTheEnd(text, last: try lastPosition())) }
      return .position(position)
    }
    do throws(NodeError) {
      return .position(
        try event(named: text, partition: partition, takesPartition: takesPartition).stored.position)
    } catch {
      switch error {
      case .inspection(.notAnEvent): throw .inspection(.notAPointInTime(text))
      case .inspection(.noSuchEvent) where PointInTime.resemblesTime(text):
        throw .inspection(.notAPointInTime(text))
      default: throw error
      }
    }
  }

  /// The position of the newest event.
  private func lastPosition() throws(NodeError) -> String? {
    var last: Position?
    do throws(NodeError) {
      try forEachEvent(LogFilter(), newestFirst: true) { stored, _ in
        last = stored.position
        return false
      }
    } catch {
      guard case .missing = error else { throw error }
    }
    return last?.description
  }
}
