/// Stream M: the events without keys and values, as columns in position order.
struct BlockRowsWriter {
  /// The implicit context and version of the next event of a key.
  private struct Head {
    var version: UInt64
    /// Its place in `entries`, and the number of entries reserved for it.
    var start: Int
    var count: Int
    var room: Int
  }

  private struct Cause {
    var row: Int
    /// Number of the partition in first-use order; nil for the event's own.
    var partition: Int?
    var origin: Int
    var sequence: UInt64
  }

  private struct Message {
    var id: CommitID
    var content: CommitMessage
  }

  private(set) var count = 0
  private(set) var implicitEntries = 0
  /// The number of each event's key, in first-use order of the keys.
  private var keys: [UInt32] = []
  private var shapes: [UInt8] = []
  private var origins: [UInt8] = []
  private var sequences: [UInt8] = []
  private var milliseconds: [UInt8] = []
  private var counters: [UInt8] = []
  private var commits: [UInt8] = []
  private var positions: [UInt8] = []

  private var exceptions = ContextExceptions()
  private var foreignCommits = Sparse()
  private var causes: [Cause] = []
  private var messages: [Message] = []

  private var heads: [Head] = []
  private var entries: [Context.Entry] = []
  private var lastSequences: [StreamIndex: UInt64] = [:]
  private var lastStream: (index: StreamIndex, sequence: UInt64)?
  private var lastCommits: [UInt64] = []
  private var lastMilliseconds: Int64 = 0
  private var nextRelativePosition: UInt64 = 0

  /// The approximate size of the stream in bytes.
  var byteCount: Int {
    keys.count + shapes.count + origins.count + sequences.count + milliseconds.count + counters.count
      + commits.count + positions.count + exceptions.byteCount + foreignCommits.bytes.count
      + causes.count * 5
  }

  mutating func removeAll() {
    count = 0
    implicitEntries = 0
    keys.removeAll(keepingCapacity: true)
    shapes.removeAll(keepingCapacity: true)
    origins.removeAll(keepingCapacity: true)
    sequences.removeAll(keepingCapacity: true)
    milliseconds.removeAll(keepingCapacity: true)
    counters.removeAll(keepingCapacity: true)
    commits.removeAll(keepingCapacity: true)
    positions.removeAll(keepingCapacity: true)
    exceptions.removeAll()
    foreignCommits.removeAll()
    causes.removeAll(keepingCapacity: true)
    messages.removeAll(keepingCapacity: true)
    heads.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    lastSequences.removeAll(keepingCapacity: true)
    lastStream = nil
    lastCommits.removeAll(keepingCapacity: true)
    lastMilliseconds = 0
    nextRelativePosition = 0
  }

  mutating func append(
    _ event: Event, relativePosition: UInt64, key: Int, shape: Int, partition: Int,
    names: inout BlockNamesWriter
  ) {
    precondition(relativePosition >= nextRelativePosition, "events are appended in relativePosition order")
    let origin = names.index(of: event.id.origin)
    keys.append(UInt32(key))
    shapes.appendVarint(shape)
    origins.appendVarint(origin)
    appendSequence(event.id.sequence.rawValue, StreamIndex(partition: partition, origin: origin))
    let time = Int64(event.timestamp.milliseconds)
    milliseconds.appendZigzag(time - lastMilliseconds)
    lastMilliseconds = time
    counters.appendVarint(Int(event.timestamp.counter))
    appendCommit(event.commit, origin: origin, of: event, names: &names)
    positions.appendVarint(relativePosition - nextRelativePosition)
    nextRelativePosition = relativePosition + 1
    appendContext(event, key: key, names: &names)
    if let cause = event.cause {
      causes.append(
        Cause(
          row: count,
          partition: cause.partition == event.partition ? nil : names.index(of: cause.partition),
          origin: names.index(of: cause.id.origin), sequence: cause.id.sequence.rawValue))
    }
    count += 1
  }

  private mutating func appendSequence(_ sequence: UInt64, _ stream: StreamIndex) {
    let last: UInt64
    if let known = lastStream, known.index == stream {
      last = known.sequence
    } else {
      if let known = lastStream { lastSequences[known.index] = known.sequence }
      last = lastSequences[stream] ?? 0
    }
    precondition(sequence > last, "a stream's events are appended in the order of their numbers")
    sequences.appendVarint(sequence - last - 1)
    lastStream = (stream, sequence)
  }

  private mutating func appendCommit(
    _ commit: CommitID, origin: Int, of event: Event, names: inout BlockNamesWriter
  ) {
    while lastCommits.count <= origin { lastCommits.append(0) }
    if commit.origin == event.id.origin {
      commits.appendZigzag(Int64(bitPattern: commit.number &- lastCommits[origin]))
      lastCommits[origin] = commit.number
    } else {
      commits.append(0)
      foreignCommits.next(count)
      foreignCommits.bytes.appendVarint(names.index(of: commit.origin))
      foreignCommits.bytes.appendVarint(commit.number)
    }
  }

  private mutating func appendContext(_ event: Event, key: Int, names: inout BlockNamesWriter) {
    let context = event.context.entries
    if key == heads.count {
      heads.append(Head(version: 0, start: 0, count: 0, room: 0))
    }
    var head = heads[key]
    let isImplicit =
      event.version.rawValue == head.version + 1 && context.count == head.count
      && implicitEntries + head.count <= Limits.blockImplicitEntries
      && (0..<head.count).allSatisfy { entries[head.start + $0] == context[$0] }
    if isImplicit {
      implicitEntries += head.count
    } else {
      exceptions.append(event, at: count, names: &names)
      reserve(context.count, for: &head)
      for (index, entry) in context.enumerated() { entries[head.start + index] = entry }
      head.count = context.count
    }
    head.version = event.version.rawValue
    insert(event.id, into: &head)
    heads[key] = head
  }

  private mutating func reserve(_ count: Int, for head: inout Head) {
    guard head.room < count else { return }
    let start = entries.count
    for index in 0..<head.count { entries.append(entries[head.start + index]) }
    while entries.count < start + count { entries.append(.init(origin: Origin(0), sequence: .zero)) }
    head.start = start
    head.room = count
  }

  private mutating func insert(_ id: EventID, into head: inout Head) {
    var place = 0
    while place < head.count, entries[head.start + place].origin < id.origin { place += 1 }
    if place < head.count, entries[head.start + place].origin == id.origin {
      entries[head.start + place].sequence = max(entries[head.start + place].sequence, id.sequence)
      return
    }
    if head.room == head.count { reserve(head.count + max(1, head.count / 2), for: &head) }
    for index in stride(from: head.count, to: place, by: -1) {
      entries[head.start + index] = entries[head.start + index - 1]
    }
    entries[head.start + place] = Context.Entry(origin: id.origin, sequence: id.sequence)
    head.count += 1
  }

  mutating func setMessage(_ message: CommitMessage, of commit: CommitID) {
    messages.removeAll { $0.id == commit }
    if !message.isEmpty { messages.append(Message(id: commit, content: message)) }
  }

  /// Traps if the columns have different numbers of events, or the state of a key is inconsistent.
  /// `keyCount`: number of keys in the block.
  func checkInvariants(keys keyCount: Int) {
    precondition(keys.count == count, "each event is of a key")
    precondition(heads.count == keyCount, "each key has had an event")
    precondition(keys.allSatisfy { $0 < keyCount }, "each event is of a key that is there")
    for column in [shapes, origins, sequences, milliseconds, counters, commits, positions] {
      precondition(column.count { $0 < 0x80 } == count, "each event has a number in each column")
    }
    precondition(nextRelativePosition >= UInt64(count), "positions rise")
    precondition(implicitEntries <= Limits.blockImplicitEntries, "memory of readers is bounded")
    for head in heads {
      precondition(head.count <= head.room && head.start + head.room <= entries.count, "contexts have room")
      Context(trusted: Array(entries[head.start..<head.start + head.count])).checkInvariants()
    }
    for (a, b) in zip(causes, causes.dropFirst()) { precondition(a.row < b.row, "an event has one cause") }
    precondition(causes.last.map { $0.row < count } ?? true, "causes are those of events")
    precondition(Set(messages.map(\.id)).count == messages.count, "a commit has one message")
    foreignCommits.checkInvariants(below: count)
    exceptions.checkInvariants(below: count)
  }

  /// Appends the stream. `places`: the place of each key in key order. `ranks`: of each partition.
  func write(to output: inout [UInt8], places: [Int], ranks: [Int], origins: [Origin]) {
    output.reserveCapacity(byteCount + 3 * keys.count + 16)
    var previous = -1
    for key in keys {
      let place = places[Int(key)]
      output.appendZigzag(Int64(place - previous - 1))
      previous = place
    }
    output.append(contentsOf: shapes)
    output.append(contentsOf: self.origins)
    output.append(contentsOf: sequences)
    output.append(contentsOf: milliseconds)
    output.append(contentsOf: counters)
    output.append(contentsOf: commits)
    output.append(contentsOf: positions)
    exceptions.write(to: &output)
    foreignCommits.write(to: &output)
    writeCauses(to: &output, ranks: ranks)
    writeMessages(to: &output, origins)
  }

  /// Partitions have ranks only when all are known, so these rows are written at the end.
  private func writeCauses(to output: inout [UInt8], ranks: [Int]) {
    output.appendVarint(causes.count)
    var next = 0
    for cause in causes {
      output.appendVarint(cause.row - next)
      next = cause.row + 1
      output.appendVarint(cause.partition.map { ranks[$0] + 1 } ?? 0)
      output.appendVarint(cause.origin)
      output.appendVarint(cause.sequence)
    }
  }

  /// Traps on an origin that no event names.
  private func writeMessages(to output: inout [UInt8], _ origins: [Origin]) {
    output.appendVarint(messages.count)
    if messages.isEmpty { return }
    let indexes = Dictionary(uniqueKeysWithValues: zip(origins, origins.indices))
    for message in messages.sorted(by: { $0.id < $1.id }) {
      guard let origin = indexes[message.id.origin] else {
        preconditionFailure("a message is of a commit of which an event is in the block")
      }
      output.appendVarint(origin)
      output.appendVarint(message.id.number)
      let texts = [message.content.author, message.content.text, message.content.source]
      var flags: UInt8 = 0
      for (bit, text) in texts.enumerated() where text != nil { flags |= 1 << UInt8(bit) }
      output.append(flags)
      for case let text? in texts { output.appendCounted(text) }
    }
  }
}

/// Identifies a stream inside of a block.
private struct StreamIndex: Hashable {
  var partition: Int
  var origin: Int
}

/// Rows of few events. Each begins with the number of events between it and the row before.
private struct Sparse {
  var bytes: [UInt8] = []
  private var count = 0
  private var nextIndex = 0

  mutating func next(_ index: Int) {
    bytes.appendVarint(index - nextIndex)
    nextIndex = index + 1
    count += 1
  }

  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
    nextIndex = 0
  }

  func write(to output: inout [UInt8]) {
    output.appendVarint(count)
    output.append(contentsOf: bytes)
  }

  /// Traps if there are rows of more events than were appended.
  func checkInvariants(below events: Int) {
    precondition(count <= nextIndex && nextIndex <= events, "an event has one row at most")
    precondition(bytes.isEmpty == (count == 0), "each row has bytes")
  }
}

/// The contexts and versions that are not implicit.
private struct ContextExceptions {
  private var count = 0
  private var nextIndex = 0
  private var gaps: [UInt8] = []
  private var versions: [UInt8] = []
  private var counts: [UInt8] = []
  private var origins: [UInt8] = []
  private var sequences: [UInt8] = []

  var byteCount: Int { gaps.count + versions.count + counts.count + origins.count + sequences.count }

  mutating func removeAll() {
    count = 0
    nextIndex = 0
    gaps.removeAll(keepingCapacity: true)
    versions.removeAll(keepingCapacity: true)
    counts.removeAll(keepingCapacity: true)
    origins.removeAll(keepingCapacity: true)
    sequences.removeAll(keepingCapacity: true)
  }

  mutating func append(_ event: Event, at index: Int, names: inout BlockNamesWriter) {
    gaps.appendVarint(index - nextIndex)
    nextIndex = index + 1
    count += 1
    versions.appendVarint(event.version.rawValue)
    counts.appendVarint(event.context.entries.count)
    for entry in event.context.entries {
      origins.appendVarint(names.index(of: entry.origin))
      sequences.appendVarint(entry.sequence.rawValue)
    }
  }

  func write(to output: inout [UInt8]) {
    output.appendVarint(count)
    for column in [gaps, versions, counts, origins, sequences] { output.append(contentsOf: column) }
  }

  /// Traps if the columns have different numbers of events.
  func checkInvariants(below events: Int) {
    precondition(count <= nextIndex && nextIndex <= events, "an event has one context")
    for column in [gaps, versions, counts] {
      precondition(column.count { $0 < 0x80 } == count, "each context has a number in each column")
    }
    precondition(
      origins.count { $0 < 0x80 } == sequences.count { $0 < 0x80 }, "each entry is an origin and a sequence")
  }
}
