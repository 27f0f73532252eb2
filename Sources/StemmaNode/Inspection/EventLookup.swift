import StemmaEvents
import StemmaLog
import StemmaReplication

/// An event with the note of its commit.
package struct NotedEvent: Sendable {
  package var stored: StoredEvent
  package var note: CommitNote

  package init(stored: StoredEvent, note: CommitNote) {
    self.stored = stored
    self.note = note
  }

  package var event: Event { stored.event }
}

extension Node {
  /// Finds an event by what people call it: `@FILE.INDEX`, `NAME:SEQUENCE`, or at least four digits of its
  /// digest; not by four that are a year, which nobody means to be one.
  ///
  /// A position costs one block. A sequence counts within a partition: without `partition` it must be that of one
  /// event only; the file is found by its index. A digest is looked for in the whole log. `takesPartition`: whether who
  /// asks can be told to name a partition.
  package func event(
    named text: String, partition: String? = nil, takesPartition: Bool = false
  ) throws(NodeError) -> NotedEvent {
    if let position = Position(text) { return try event(at: position, named: text) }
    if text.contains(":") { return try event(dot: text, in: partition, takesPartition: takesPartition) }
    let digits = text.utf8
    let isHexadecimal = digits.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
    guard isHexadecimal, digits.count >= 4, !Moment.isYear(text) else { throw .inspection(.notAnEvent(text)) }
    return try event(digest: text)
  }

  private func event(at position: Position, named text: String) throws(NodeError) -> NotedEvent {
    let omissions = Omissions()
    let found = try Self.wrapping { () throws -> [NotedEvent] in
      var reader = log.events(from: position, to: position.next, around: omissions)
      guard let stored = try reader.next() else { return [] }
      return [NotedEvent(stored: stored, note: reader.note ?? CommitNote())]
    }
    return try only(found, text, omissions)
  }

  private func event(
    dot text: String, in partition: String?, takesPartition: Bool
  ) throws(NodeError) -> NotedEvent {
    let dots = description.dots(named: text)
    let scope = try partition.map { text throws(NodeError) in try self.scope([text]) }
    let omissions = Omissions()
    let found = try Self.wrapping { () throws -> [NotedEvent] in
      var found: [NotedEvent] = []
      for file in try log.files() {
        let partitions = try log.content(of: file, around: omissions)?.partitions ?? []
        for run in partitions where scope?.contains(run.partition) ?? true {
          for stream in run.streams {
            for dot in dots where dot.origin == stream.origin {
              guard (stream.from...stream.to).contains(dot.sequence) else { continue }
              let name = EventName(partition: run.partition, dot: dot)
              found += try events(name, in: file, omissions)
            }
          }
        }
        // Enough to say that there are several.
        if found.count > 8 { break }
      }
      return found
    }
    // Where no node is called so, no partition would help.
    return try only(
      found, text, omissions, dots.isEmpty ? nil : partition, isUnique: partition != nil && dots.count == 1,
      takesPartition: takesPartition && partition == nil)
  }

  /// More than one where a machine was set back and wrote again.
  private func events(
    _ name: EventName, in file: LogFile, _ omissions: Omissions
  ) throws(LogError) -> [NotedEvent] {
    var found: [NotedEvent] = []
    var reader = log.events(
      from: Position(file: file.place, index: 0), to: Position(file: file.place, index: file.end),
      partitions: { $0 == name.partition }, around: omissions)
    while let stored = try reader.next() {
      if stored.event.dot == name.dot {
        found.append(NotedEvent(stored: stored, note: reader.note ?? CommitNote()))
        // No segment has a name twice.
        if file.kind == .segment { break }
      }
    }
    return found
  }

  /// What the events are called, and where, that can be read and whose digests begin so.
  func names(ofEventsWithDigest prefix: String) throws(NodeError) -> [String] {
    names(of: try events(digest: prefix, Omissions()))
  }

  private func event(digest prefix: String) throws(NodeError) -> NotedEvent {
    let omissions = Omissions()
    let found = try events(digest: prefix, omissions)
    return try only(found, prefix, omissions, isUnique: prefix.utf8.count >= 8)
  }

  private func events(digest prefix: String, _ omissions: Omissions) throws(NodeError) -> [NotedEvent] {
    try Self.wrapping { () throws -> [NotedEvent] in
      var found: [NotedEvent] = []
      var digester = EventDigester()
      var reader = log.events(around: omissions)
      while let stored = try reader.next() {
        guard digester.digest(of: stored.event).description.hasPrefix(prefix) else { continue }
        found.append(NotedEvent(stored: stored, note: reader.note ?? CommitNote()))
      }
      return found
    }
  }

  /// Each with its partition, and its position where two are called the same.
  private func names(of found: [NotedEvent]) -> [String] {
    let description = description
    let names = found.map { "\(description.name($0.event.dot)) in \($0.event.partition)" }
    if Set(names).count == names.count { return names }
    return zip(names, found).map { "\($0), @\($1.stored.position)" }
  }

  /// The event that was found. `isUnique`: no other one is called so, so that it does not matter what is missing.
  private func only(
    _ found: [NotedEvent], _ text: String, _ omissions: Omissions, _ partition: String? = nil,
    isUnique: Bool = true, takesPartition: Bool = false
  ) throws(NodeError) -> NotedEvent {
    if found.isEmpty || !isUnique, let missing = try missingEvents(omissions) { throw .missing(missing) }
    guard let first = found.first else { throw .inspection(.noSuchEvent(text, partition: partition)) }
    guard found.count == 1 else {
      throw .inspection(.severalEvents(text, names(of: found), takesPartition: takesPartition))
    }
    return first
  }

  /// The events of a commit, which people call `NAME.NUMBER`, in the order of their arrival. Reads the log.
  ///
  /// - Throws: `.missing` if damage may have taken some of them; `.inspection(.severalCommits)` if several are called so.
  package func commit(named text: String) throws(NodeError) -> [NotedEvent] {
    let ids = description.commits(named: text)
    let found = try readingAround { omissions in
      var found: [NotedEvent] = []
      var reader = log.events(around: omissions)
      while let stored = try reader.next() {
        guard ids.contains(stored.event.commit) else { continue }
        found.append(NotedEvent(stored: stored, note: reader.note ?? CommitNote()))
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

  /// The commits that people call `NAME.NUMBER`: of each node of that name one. Reads the log.
  ///
  /// - Throws: `.inspection(.noSuchCommit)` if no event of such a commit is there, or may have been.
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
