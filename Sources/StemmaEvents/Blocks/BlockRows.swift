// MARK: Writing

/// Stream M: what each event has besides its key and its values, as columns in arrival order.
struct BlockRowsWriter {
  /// What the next event of a key has for its context and version if it saw all before it.
  private struct Head {
    var version: UInt64
    /// Its place in `entries`, and how many there is room for.
    var start: Int
    var count: Int
    var room: Int
  }

  private struct Cause {
    var row: Int
    /// Number of the partition as it came in; nil for the event's own.
    var partition: Int?
    var origin: Int
    var sequence: UInt64
  }

  private struct Note {
    var id: CommitID
    var note: CommitNote
  }

  private(set) var count = 0
  private(set) var implicitEntries = 0
  /// The number of each event's key, in the order in which the keys came.
  private var keys: [UInt32] = []
  private var shapes: [UInt8] = []
  private var origins: [UInt8] = []
  private var sequences: [UInt8] = []
  private var milliseconds: [UInt8] = []
  private var counters: [UInt8] = []
  private var commits: [UInt8] = []
  private var arrivals: [UInt8] = []

  private var exceptions = ContextExceptions()
  private var foreignCommits = Sparse()
  private var causes: [Cause] = []
  private var notes: [Note] = []

  private var heads: [Head] = []
  private var entries: [Context.Entry] = []
  private var lastSequences: [StreamIndex: UInt64] = [:]
  private var lastStream: (index: StreamIndex, sequence: UInt64)?
  private var lastCommits: [UInt64] = []
  private var lastMilliseconds: Int64 = 0
  private var nextArrival: UInt64 = 0

  /// About how many bytes the stream takes.
  var byteCount: Int {
    keys.count + shapes.count + origins.count + sequences.count + milliseconds.count + counters.count
      + commits.count + arrivals.count + exceptions.byteCount + foreignCommits.bytes.count
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
    arrivals.removeAll(keepingCapacity: true)
    exceptions.removeAll()
    foreignCommits.removeAll()
    causes.removeAll(keepingCapacity: true)
    notes.removeAll(keepingCapacity: true)
    heads.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    lastSequences.removeAll(keepingCapacity: true)
    lastStream = nil
    lastCommits.removeAll(keepingCapacity: true)
    lastMilliseconds = 0
    nextArrival = 0
  }

  mutating func append(
    _ event: Event, arrival: UInt64, key: Int, shape: Int, partition: Int, names: inout BlockNamesWriter
  ) {
    precondition(arrival >= nextArrival, "events are appended in arrival order")
    let origin = names.index(of: event.dot.origin)
    keys.append(UInt32(key))
    shapes.appendVarint(shape)
    origins.appendVarint(origin)
    appendSequence(event.dot.sequence.rawValue, StreamIndex(partition: partition, origin: origin))
    let time = Int64(event.timestamp.milliseconds)
    milliseconds.appendZigzag(time - lastMilliseconds)
    lastMilliseconds = time
    counters.appendVarint(Int(event.timestamp.counter))
    appendCommit(event.commit, origin: origin, of: event, names: &names)
    arrivals.appendVarint(arrival - nextArrival)
    nextArrival = arrival + 1
    appendContext(event, key: key, names: &names)
    if let cause = event.cause {
      causes.append(
        Cause(
          row: count,
          partition: cause.partition == event.partition ? nil : names.index(of: cause.partition),
          origin: names.index(of: cause.dot.origin), sequence: cause.dot.sequence.rawValue))
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
    if commit.origin == event.dot.origin {
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
    insert(event.dot, into: &head)
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

  private mutating func insert(_ dot: Dot, into head: inout Head) {
    var place = 0
    while place < head.count, entries[head.start + place].origin < dot.origin { place += 1 }
    if place < head.count, entries[head.start + place].origin == dot.origin {
      entries[head.start + place].sequence = max(entries[head.start + place].sequence, dot.sequence)
      return
    }
    if head.room == head.count { reserve(head.count + max(1, head.count / 2), for: &head) }
    for index in stride(from: head.count, to: place, by: -1) {
      entries[head.start + index] = entries[head.start + index - 1]
    }
    entries[head.start + place] = Context.Entry(origin: dot.origin, sequence: dot.sequence)
    head.count += 1
  }

  mutating func setNote(_ note: CommitNote, of commit: CommitID) {
    notes.removeAll { $0.id == commit }
    if !note.isEmpty { notes.append(Note(id: commit, note: note)) }
  }

  /// Appends the stream. `places`: where each key stands in the order of keys; `ranks`: each partition.
  func write(to output: inout [UInt8], places: [Int], ranks: [Int], origins originIndexes: [Origin: Int]) {
    var previous = -1
    for key in keys {
      let place = places[Int(key)]
      output.appendZigzag(Int64(place - previous - 1))
      previous = place
    }
    output.reserveCapacity(output.count + byteCount + 8)
    for column in [shapes, origins, sequences, milliseconds, counters, commits, arrivals] {
      output.append(contentsOf: column)
    }
    exceptions.write(to: &output)
    foreignCommits.write(to: &output)
    writeCauses(to: &output, ranks: ranks)
    writeNotes(to: &output, originIndexes)
  }

  /// Partitions get their places when all are known, so the rows are made at the end.
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

  /// Traps on an origin that no event has named.
  private func writeNotes(to output: inout [UInt8], _ originIndexes: [Origin: Int]) {
    output.appendVarint(notes.count)
    for note in notes.sorted(by: { $0.id < $1.id }) {
      guard let origin = originIndexes[note.id.origin] else {
        preconditionFailure("a note is of a commit of which an event is in the block")
      }
      output.appendVarint(origin)
      output.appendVarint(note.id.number)
      let texts = [note.note.by, note.note.note, note.note.source]
      var flags: UInt8 = 0
      for (bit, text) in texts.enumerated() where text != nil { flags |= 1 << UInt8(bit) }
      output.append(flags)
      for case let text? in texts { output.appendCounted(text) }
    }
  }
}

/// Names a stream inside of a block.
private struct StreamIndex: Hashable {
  var partition: Int
  var origin: Int
}

/// Rows that few events have: each begins with how many events lie between it and the one before.
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
}

/// The contexts and versions that do not follow from the event before.
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
}

// MARK: Reading

/// What a block has of an event besides its values: indexes into the block's tables, checked.
struct BlockRow: Sendable {
  var arrival: UInt64 = 0
  var sequence: UInt64 = 0
  var timestamp: UInt64 = 0
  var version: UInt64 = 0
  var commitNumber: UInt64 = 0
  var commitOrigin: UInt32 = 0
  var key: UInt32 = 0
  var shape: UInt32 = 0
  var origin: UInt32 = 0
  /// The context's place in `BlockRows.contexts`.
  var contextStart: UInt32 = 0
  var contextCount: UInt32 = 0
  /// Index in `BlockRows.causes`, -1 for none.
  var cause: Int32 = -1
  var isImplicit = true
}

/// Stream M, checked.
struct BlockRows: Sendable {
  private(set) var rows: [BlockRow]
  /// The contexts of all events one behind another.
  private(set) var contexts: [Context.Entry] = []
  private(set) var causes: [EventName] = []
  private(set) var notes: [(commit: CommitID, note: CommitNote)] = []
  /// How many values all events assign.
  private(set) var assignmentCount = 0
  /// How many events have each shape.
  private(set) var shapeCounts: [Int]

  /// `assignmentLimit`: of all events together; nulls have no bytes of their own to bound them.
  init(
    _ reader: inout ByteReader, count: Int, _ names: BlockNames, _ keys: BlockKeys, assignmentLimit: Int
  ) throws(EventsError) {
    guard count <= reader.remaining / 8 else {
      throw .malformed("events", "\(count) in \(reader.remaining) bytes")
    }
    rows = [BlockRow](repeating: BlockRow(), count: count)
    shapeCounts = [Int](repeating: 0, count: names.shapes.count)
    try readKeys(&reader, keys)
    try readShapes(&reader, names, limit: assignmentLimit)
    for index in rows.indices {
      rows[index].origin = UInt32(try reader.index("origin of an event", below: names.origins.count))
    }
    try readSequences(&reader, names, keys)
    try readTimestamps(&reader)
    try readCommits(&reader, names)
    try readArrivals(&reader)
    try readContexts(&reader, names, keys)
    try readForeignCommits(&reader, names)
    try readCauses(&reader, names, keys)
    try readNotes(&reader, names)
    try reader.finish("events")
  }

  private mutating func readKeys(_ reader: inout ByteReader, _ keys: BlockKeys) throws(EventsError) {
    var previous = -1
    var isUsed = [Bool](repeating: false, count: keys.count)
    var used = 0
    for index in rows.indices {
      let stored = try reader.zigzag("key of an event")
      guard abs(stored.clamped(to: Int64(keys.count))) <= keys.count else {
        throw .malformed("key of an event", "out of range")
      }
      previous += 1 + Int(stored)
      guard previous >= 0, previous < keys.count else {
        throw .malformed("key of an event", "index \(previous) of \(keys.count)")
      }
      rows[index].key = UInt32(previous)
      if !isUsed[previous] {
        isUsed[previous] = true
        used += 1
      }
    }
    guard used == keys.count else { throw .malformed("keys", "\(keys.count - used) without an event") }
  }

  private mutating func readShapes(
    _ reader: inout ByteReader, _ names: BlockNames, limit: Int
  ) throws(EventsError) {
    for index in rows.indices {
      let shape = try reader.index("shape of an event", below: names.shapes.count)
      rows[index].shape = UInt32(shape)
      shapeCounts[shape] += 1
      assignmentCount += names.shapes[shape].fields.count
      guard assignmentCount <= limit else {
        throw .overLimit("assignments", found: UInt64(assignmentCount), limit: UInt64(limit))
      }
    }
    guard !shapeCounts.contains(0) else { throw .malformed("shapes", "one without an event") }
  }

  private mutating func readSequences(
    _ reader: inout ByteReader, _ names: BlockNames, _ keys: BlockKeys
  ) throws(EventsError) {
    var others: [StreamIndex: UInt64] = [:]
    var stream = StreamIndex(partition: -1, origin: -1)
    var last: UInt64 = 0
    for index in rows.indices {
      let run = keys.runs[Int(keys.runOfKey[Int(rows[index].key)])]
      let next = StreamIndex(partition: run.partition, origin: Int(rows[index].origin))
      if next != stream {
        others[stream] = last
        stream = next
        last = others[stream] ?? 0
      }
      let gap = try reader.number("sequence", limit: Limits.highestNumber)
      last += gap + 1
      guard last <= Limits.highestNumber else {
        throw .overLimit("sequence", found: last, limit: Limits.highestNumber)
      }
      rows[index].sequence = last
    }
  }

  private mutating func readTimestamps(_ reader: inout ByteReader) throws(EventsError) {
    var time: Int64 = 0
    for index in rows.indices {
      let (sum, overflow) = time.addingReportingOverflow(try reader.zigzag("time"))
      guard !overflow, sum >= 0, sum < 1 << 48 else { throw .malformed("time", "beyond 48 bits") }
      time = sum
      rows[index].timestamp = UInt64(sum) << 16
    }
    for index in rows.indices {
      rows[index].timestamp |= try reader.number("counter of a timestamp", limit: UInt64(UInt16.max))
    }
  }

  private mutating func readCommits(_ reader: inout ByteReader, _ names: BlockNames) throws(EventsError) {
    var last = [UInt64](repeating: 0, count: names.origins.count)
    for index in rows.indices {
      let origin = Int(rows[index].origin)
      let number = last[origin] &+ UInt64(bitPattern: try reader.zigzag("commit"))
      guard number <= Limits.highestNumber else {
        throw .overLimit("commit", found: number, limit: Limits.highestNumber)
      }
      last[origin] = number
      rows[index].commitNumber = number
      rows[index].commitOrigin = UInt32(origin)
    }
  }

  private mutating func readArrivals(_ reader: inout ByteReader) throws(EventsError) {
    var next: UInt64 = 0
    for index in rows.indices {
      let gap = try reader.number("arrival", limit: Limits.highestNumber)
      guard next + gap <= Limits.highestNumber else {
        throw .overLimit("arrival", found: next + gap, limit: Limits.highestNumber)
      }
      rows[index].arrival = next + gap
      next += gap + 1
    }
  }

  private struct Exception {
    var row: Int
    var version: UInt64
    var count: Int
  }

  private mutating func readContexts(
    _ reader: inout ByteReader, _ names: BlockNames, _ keys: BlockKeys
  ) throws(EventsError) {
    var exceptions = try readExceptions(&reader)
    var explicit = try Self.readEntries(&reader, names, count: exceptions.reduce(0) { $0 + $1.count })[...]
    contexts.reserveCapacity(rows.count + explicit.count)
    var lastOfKey = [Int32](repeating: -1, count: keys.count)
    var implicitEntries = 0
    exceptions.reverse()
    for index in rows.indices {
      let start = contexts.count
      let key = Int(rows[index].key)
      if let exception = exceptions.last, exception.row == index {
        exceptions.removeLast()
        rows[index].version = exception.version
        rows[index].isImplicit = false
        let own = explicit.prefix(exception.count)
        for (entry, next) in zip(own, own.dropFirst()) where entry.origin >= next.origin {
          throw .malformed("context", "not in order")
        }
        contexts.append(contentsOf: own)
        explicit = explicit.dropFirst(exception.count)
      } else {
        try appendImplicit(after: Int(lastOfKey[key]), at: index, names)
        implicitEntries += contexts.count - start
        guard implicitEntries <= Limits.blockImplicitEntries else {
          throw .overLimit(
            "implicit contexts", found: UInt64(implicitEntries), limit: UInt64(Limits.blockImplicitEntries))
        }
      }
      rows[index].contextStart = UInt32(start)
      rows[index].contextCount = UInt32(contexts.count - start)
      lastOfKey[key] = Int32(index)
      let origin = names.origins[Int(rows[index].origin)]
      for place in start..<contexts.count where contexts[place].origin == origin {
        guard contexts[place].sequence.rawValue < rows[index].sequence else {
          throw .malformed("context", "covers its own event")
        }
      }
    }
  }

  /// The context of the key's event before and its dot; none before: empty.
  private mutating func appendImplicit(
    after previous: Int, at index: Int, _ names: BlockNames
  ) throws(EventsError) {
    guard previous >= 0 else {
      rows[index].version = 1
      return
    }
    let before = rows[previous]
    guard before.version < Limits.highestNumber else {
      throw .overLimit("version", found: before.version + 1, limit: Limits.highestNumber)
    }
    rows[index].version = before.version + 1
    let dot = Context.Entry(
      origin: names.origins[Int(before.origin)], sequence: Sequence(before.sequence))
    var isDone = false
    for place in Int(before.contextStart)..<Int(before.contextStart + before.contextCount) {
      let entry = contexts[place]
      if !isDone, entry.origin >= dot.origin {
        contexts.append(dot)
        isDone = true
        if entry.origin == dot.origin { continue }
      }
      contexts.append(entry)
    }
    if !isDone { contexts.append(dot) }
  }

  private func readExceptions(_ reader: inout ByteReader) throws(EventsError) -> [Exception] {
    let count = try reader.count("contexts", limit: rows.count)
    guard count <= reader.remaining / 3 else {
      throw .malformed("contexts", "\(count) in \(reader.remaining) bytes")
    }
    var exceptions: [Exception] = []
    exceptions.reserveCapacity(count)
    var row = 0
    for _ in 0..<count {
      row += try reader.count("event of a context", limit: rows.count)
      guard row < rows.count else { throw .malformed("event of a context", "out of range") }
      exceptions.append(Exception(row: row, version: 0, count: 0))
      row += 1
    }
    for index in exceptions.indices {
      exceptions[index].version = try reader.number("version", limit: Limits.highestNumber)
      guard exceptions[index].version > 0 else { throw .malformed("version", "0") }
    }
    for index in exceptions.indices {
      exceptions[index].count = try reader.count("context", limit: Limits.contextEntries)
    }
    return exceptions
  }

  private static func readEntries(
    _ reader: inout ByteReader, _ names: BlockNames, count: Int
  ) throws(EventsError) -> [Context.Entry] {
    guard count <= reader.remaining / 2 else {
      throw .malformed("contexts", "\(count) entries in \(reader.remaining) bytes")
    }
    var entries: [Context.Entry] = []
    entries.reserveCapacity(count)
    for _ in 0..<count {
      let origin = try reader.index("origin of a context", below: names.origins.count)
      entries.append(.init(origin: names.origins[origin], sequence: .zero))
    }
    for index in entries.indices {
      let sequence = try reader.number("sequence of a context", limit: Limits.highestNumber)
      guard sequence > 0 else { throw .malformed("sequence of a context", "0") }
      entries[index].sequence = Sequence(sequence)
    }
    return entries
  }

  private mutating func readForeignCommits(
    _ reader: inout ByteReader, _ names: BlockNames
  ) throws(EventsError) {
    let count = try reader.count("commits of others", limit: rows.count)
    var row = 0
    for _ in 0..<count {
      row += try reader.count("event of a commit", limit: rows.count)
      guard row < rows.count else { throw .malformed("event of a commit", "out of range") }
      rows[row].commitOrigin = UInt32(try reader.index("origin of a commit", below: names.origins.count))
      rows[row].commitNumber = try reader.number("commit", limit: Limits.highestNumber)
      row += 1
    }
  }

  private mutating func readCauses(
    _ reader: inout ByteReader, _ names: BlockNames, _ keys: BlockKeys
  ) throws(EventsError) {
    let count = try reader.count("causes", limit: rows.count)
    var row = 0
    for _ in 0..<count {
      row += try reader.count("event of a cause", limit: rows.count)
      guard row < rows.count else { throw .malformed("event of a cause", "out of range") }
      let other = try reader.index("partition of a cause", below: names.partitions.count + 1)
      let own = keys.runs[Int(keys.runOfKey[Int(rows[row].key)])].partition
      let origin = try reader.index("origin of a cause", below: names.origins.count)
      let sequence = try reader.number("sequence of a cause", limit: Limits.highestNumber)
      guard sequence > 0 else { throw .malformed("sequence of a cause", "0") }
      rows[row].cause = Int32(causes.count)
      causes.append(
        EventName(
          partition: names.partitions[other == 0 ? own : other - 1],
          dot: Dot(names.origins[origin], Sequence(sequence))))
      row += 1
    }
  }

  private mutating func readNotes(_ reader: inout ByteReader, _ names: BlockNames) throws(EventsError) {
    let count = try reader.count("notes", each: 3)
    guard count > 0 else { return }
    var unseen: Set<CommitID> = []
    for _ in 0..<count {
      let origin = try reader.index("origin of a note", below: names.origins.count)
      let commit = CommitID(
        names.origins[origin], try reader.number("commit of a note", limit: Limits.highestNumber))
      if let last = notes.last, last.commit >= commit { throw .malformed("notes", "not in order") }
      let flags = try reader.byte("note")
      guard (1...7).contains(flags) else { throw .malformed("note", "flags \(flags)") }
      var note = CommitNote()
      if flags & 1 != 0 { note.by = try reader.text("by", limit: Limits.note) }
      if flags & 2 != 0 { note.note = try reader.text("note", limit: Limits.note) }
      if flags & 4 != 0 { note.source = try reader.text("source", limit: Limits.note) }
      notes.append((commit, note))
      unseen.insert(commit)
    }
    var last: CommitID?
    for row in rows where !unseen.isEmpty {
      let commit = CommitID(names.origins[Int(row.commitOrigin)], row.commitNumber)
      if commit != last { unseen.remove(commit) }
      last = commit
    }
    guard unseen.isEmpty else { throw .malformed("notes", "of a commit without an event") }
  }
}

extension Int64 {
  /// Cut to the range from `-limit - 1` to `limit + 1`, so that `abs` of it cannot overflow.
  fileprivate func clamped(to limit: Int64) -> Int64 { Swift.min(Swift.max(self, -limit - 1), limit + 1) }
}
