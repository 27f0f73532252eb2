import CStemma

/// The facts of an event besides its values: indexes into the block's tables, verified.
struct BlockRow: Sendable {
  var relativePosition: UInt64 = 0
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
  /// The index of its first assignment among those of all events.
  var firstAssignment: UInt32 = 0
  /// Index in `BlockRows.causes`, -1 for none.
  var cause: Int32 = -1
  var isImplicit = true
}

/// Author, message and source of a commit in a block.
struct BlockMessage: Sendable {
  var commit: CommitID
  /// The texts that exist, and their ranges in `BlockRows.noteTexts`.
  var flags: UInt8
  var texts: (Range<Int>, Range<Int>, Range<Int>)
}

/// Stream M, decoded and verified: the output of `BlockRowsWriter`.
struct BlockRows: Sendable {
  /// In position order.
  let table: FixedTable<BlockRow>
  /// The contexts of all events, one behind the other.
  let contexts: FixedTable<Context.Entry>
  private(set) var causes: [QualifiedEventID] = []
  /// By commit.
  private(set) var messages: [BlockMessage] = []
  private var messageTexts: [UInt8] = []
  /// The number of values that all events assign.
  private(set) var assignmentCount = 0
  /// The number of events of each shape.
  private(set) var shapeCounts: [Int]

  var count: Int { table.count }
  subscript(index: Int) -> BlockRow {
    @inline(__always) get { table[index] }
  }

  @inline(__always)
  func prefetch(_ index: Int) { stemma_prefetch(table.elements.baseAddress.map { $0 + index }) }

  /// `assignmentLimit`: of all events together. Nulls have no bytes that would bound them.
  init(
    _ source: inout ByteReader<EventsError>, count: Int, _ names: BlockNames, _ keys: BlockKeys,
    assignmentLimit: Int
  ) throws(EventsError) {
    guard count <= source.remaining / 8 else {
      throw .malformed("events", "\(count) in \(source.remaining) bytes")
    }
    table = FixedTable(repeating: BlockRow(), count: count)
    var columns = RowColumns(rows: table.elements, reader: source)
    try columns.readKeys(keys)
    (shapeCounts, assignmentCount) = try columns.readShapes(names, limit: assignmentLimit)
    try columns.readOrigins(names)
    try columns.readSequences(names, keys)
    try columns.readTimestamps()
    try columns.readCommits(names)
    try columns.readPositions()
    contexts = FixedTable(try columns.readContexts(names, keyCount: keys.count))
    try columns.readForeignCommits(names)
    source = columns.reader
    try readCauses(&source, names, keys)
    try readMessages(&source, names)
    try source.finish("events")
    assert(holds(checkInvariants))
  }

  /// Traps if the columns do not match. In debug builds after each decoding.
  func checkInvariants() {
    precondition(shapeCounts.reduce(0, +) == count, "each event has a shape")
    for index in 0..<count {
      let row = self[index]
      precondition(row.cause < 0 || causes.indices.contains(Int(row.cause)), "what names a cause has one")
    }
    for message in messages {
      for text in [message.texts.0, message.texts.1, message.texts.2] {
        precondition(text.upperBound <= messageTexts.count, "a message stands among the texts")
      }
    }
  }

  private mutating func readCauses(
    _ reader: inout ByteReader<EventsError>, _ names: BlockNames, _ keys: BlockKeys
  ) throws(EventsError) {
    let rows = table.elements
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
        QualifiedEventID(
          partition: names.partitions[other == 0 ? own : other - 1],
          id: EventID(names.origins[origin], SequenceNumber(sequence))))
      row += 1
    }
  }

  // MARK: Notes

  private mutating func readMessages(_ reader: inout ByteReader<EventsError>, _ names: BlockNames)
    throws(EventsError)
  {
    let count = try reader.count("notes", each: 3)
    guard count > 0 else { return }
    for _ in 0..<count {
      let origin = try reader.index("origin of a message", below: names.origins.count)
      let commit = CommitID(
        names.origins[origin], try reader.number("commit of a message", limit: Limits.highestNumber))
      if let last = messages.last, last.commit >= commit { throw .malformed("notes", "not in order") }
      let flags = try reader.byte("message")
      guard (1...7).contains(flags) else { throw .malformed("message", "flags \(flags)") }
      var message = BlockMessage(commit: commit, flags: flags, texts: (0..<0, 0..<0, 0..<0))
      if flags & 1 != 0 { message.texts.0 = try readMessages(&reader, "author") }
      if flags & 2 != 0 { message.texts.1 = try readMessages(&reader, "message") }
      if flags & 4 != 0 { message.texts.2 = try readMessages(&reader, "source") }
      messages.append(message)
    }
    var isUsed = [Bool](repeating: false, count: messages.count)
    var unused = messages.count
    var last: CommitID?
    for row in table.elements where unused > 0 {
      let commit = CommitID(names.origins[Int(row.commitOrigin)], row.commitNumber)
      guard commit != last else { continue }
      last = commit
      guard let place = place(ofMessage: commit), !isUsed[place] else { continue }
      isUsed[place] = true
      unused -= 1
    }
    guard unused == 0 else { throw .malformed("notes", "of a commit without an event") }
  }

  private mutating func readMessages(
    _ reader: inout ByteReader<EventsError>, _ subject: String
  ) throws(EventsError) -> Range<Int> {
    let text = try reader.counted(subject, limit: Limits.message)
    guard text.isUTF8 else { throw .malformed(subject, "not UTF-8") }
    let start = messageTexts.count
    messageTexts.append(contentsOf: text)
    return start..<messageTexts.count
  }

  private func place(ofMessage commit: CommitID) -> Int? {
    let place = messages.partitioningIndex { !($0.commit < commit) }
    return place < messages.count && messages[place].commit == commit ? place : nil
  }

  func message(of commit: CommitID) -> CommitMessage? { place(ofMessage: commit).map { note(messages[$0]) } }

  /// Constructs its texts.
  func note(_ stored: BlockMessage) -> CommitMessage {
    func text(_ flag: UInt8, _ range: Range<Int>) -> String? {
      stored.flags & flag == 0 ? nil : String(decoding: messageTexts[range], as: UTF8.self)
    }
    var message = CommitMessage()
    message.author = text(1, stored.texts.0)
    message.text = text(2, stored.texts.1)
    message.source = text(4, stored.texts.2)
    return message
  }
}

/// Unpacks the columns of stream M into rows, which `BlockRows` owns.
private struct RowColumns {
  let rows: UnsafeMutableBufferPointer<BlockRow>
  var reader: ByteReader<EventsError>

  mutating func readKeys(_ keys: BlockKeys) throws(EventsError) {
    var reader = reader
    let count = keys.count
    let isUsed = FixedTable(repeating: false, count: count)
    var previous = -1
    var used = 0
    for index in rows.indices {
      let stored = try reader.zigzag("key of an event")
      guard stored >= -Int64(count), stored < Int64(count) else {
        throw .malformed("key of an event", "out of range")
      }
      previous += 1 + Int(stored)
      guard previous >= 0, previous < count else {
        throw .malformed("key of an event", "index \(previous) of \(count)")
      }
      rows[index].key = UInt32(truncatingIfNeeded: previous)
      if !isUsed.elements[previous] {
        isUsed.elements[previous] = true
        used += 1
      }
    }
    guard used == count else { throw .malformed("keys", "\(count - used) without an event") }
    self.reader = reader
  }

  /// The number of events of each shape, and of assignments of all events.
  mutating func readShapes(
    _ names: BlockNames, limit: Int
  ) throws(EventsError) -> (counts: [Int], assignments: Int) {
    var reader = reader
    let widths = FixedTable(names.shapes.map { UInt32($0.fields.count) })
    let counts = FixedTable(repeating: 0, count: widths.count)
    var assignments = 0
    for index in rows.indices {
      let shape = try reader.index("shape of an event", below: widths.count)
      rows[index].shape = UInt32(truncatingIfNeeded: shape)
      rows[index].firstAssignment = UInt32(truncatingIfNeeded: assignments)
      counts.elements[shape] += 1
      assignments += Int(widths.elements[shape])
      guard assignments <= limit else {
        throw .overLimit("assignments", found: UInt64(assignments), limit: UInt64(limit))
      }
    }
    guard !counts.elements.contains(0) else { throw .malformed("shapes", "one without an event") }
    self.reader = reader
    return (Array(counts.elements), assignments)
  }

  mutating func readOrigins(_ names: BlockNames) throws(EventsError) {
    var reader = reader
    let count = names.origins.count
    for index in rows.indices {
      rows[index].origin = UInt32(
        truncatingIfNeeded: try reader.index("origin of an event", below: count))
    }
    self.reader = reader
  }

  mutating func readSequences(_ names: BlockNames, _ keys: BlockKeys) throws(EventsError) {
    var reader = reader
    var last = LastSequences(partitions: names.partitions.count, origins: names.origins.count, rows.count)
    let partitions = FixedTable(keys.runs.map(\.partition))
    for index in rows.indices {
      let partition = partitions[Int(keys.runOfKey[Int(rows[index].key)])]
      let gap = try reader.number("sequence", limit: Limits.highestNumber)
      let sequence = last.advance(partition, Int(rows[index].origin), by: gap + 1)
      guard sequence <= Limits.highestNumber else {
        throw .overLimit("sequence", found: sequence, limit: Limits.highestNumber)
      }
      rows[index].sequence = sequence
    }
    self.reader = reader
  }

  mutating func readTimestamps() throws(EventsError) {
    var reader = reader
    var time: Int64 = 0
    for index in rows.indices {
      let (sum, overflow) = time.addingReportingOverflow(try reader.zigzag("time"))
      guard !overflow, sum >= 0, sum < 1 << 48 else { throw .malformed("time", "beyond 48 bits") }
      time = sum
      rows[index].timestamp = UInt64(truncatingIfNeeded: sum) << 16
    }
    for index in rows.indices {
      rows[index].timestamp |= try reader.number("counter of a timestamp", limit: UInt64(UInt16.max))
    }
    self.reader = reader
  }

  mutating func readCommits(_ names: BlockNames) throws(EventsError) {
    var reader = reader
    let last = FixedTable(repeating: UInt64(0), count: names.origins.count)
    for index in rows.indices {
      let origin = Int(rows[index].origin)
      let number = last.elements[origin] &+ UInt64(bitPattern: try reader.zigzag("commit"))
      guard number <= Limits.highestNumber else {
        throw .overLimit("commit", found: number, limit: Limits.highestNumber)
      }
      last.elements[origin] = number
      rows[index].commitNumber = number
      rows[index].commitOrigin = rows[index].origin
    }
    self.reader = reader
  }

  mutating func readPositions() throws(EventsError) {
    var reader = reader
    var next: UInt64 = 0
    for index in rows.indices {
      let gap = try reader.number("relativePosition", limit: Limits.highestNumber)
      guard next + gap <= Limits.highestNumber else {
        throw .overLimit("relativePosition", found: next + gap, limit: Limits.highestNumber)
      }
      rows[index].relativePosition = next + gap
      next += gap + 1
    }
    self.reader = reader
  }

  // MARK: Contexts

  private struct Exception {
    var row: Int
    var version: UInt64
    var count: Int
  }

  /// The entries of all contexts.
  mutating func readContexts(_ names: BlockNames, keyCount: Int) throws(EventsError) -> [Context.Entry] {
    let exceptions = try readExceptions()
    let explicit = try readEntries(names, count: exceptions.reduce(0) { $0 + $1.count })
    var contexts: [Context.Entry] = []
    contexts.reserveCapacity(rows.count + explicit.count)
    let origins = FixedTable(names.origins)
    let lastOfKey = FixedTable(repeating: Int32(-1), count: keyCount)
    var implicitEntries = 0
    var nextException = 0
    var nextEntry = 0
    for index in rows.indices {
      let start = contexts.count
      let key = Int(rows[index].key)
      if nextException < exceptions.count, exceptions[nextException].row == index {
        let exception = exceptions[nextException]
        nextException += 1
        rows[index].version = exception.version
        rows[index].isImplicit = false
        for place in nextEntry..<nextEntry + exception.count {
          if place > nextEntry, explicit[place - 1].origin >= explicit[place].origin {
            throw .malformed("context", "not in order")
          }
          contexts.append(explicit[place])
        }
        nextEntry += exception.count
      } else {
        try appendImplicit(after: Int(lastOfKey.elements[key]), at: index, origins, to: &contexts)
        implicitEntries += contexts.count - start
        guard implicitEntries <= Limits.blockImplicitEntries else {
          throw .overLimit(
            "implicit contexts", found: UInt64(implicitEntries), limit: UInt64(Limits.blockImplicitEntries))
        }
      }
      rows[index].contextStart = UInt32(start)
      rows[index].contextCount = UInt32(contexts.count - start)
      lastOfKey.elements[key] = Int32(index)
      let origin = origins[Int(rows[index].origin)]
      for place in start..<contexts.count where contexts[place].origin == origin {
        guard contexts[place].sequence.rawValue < rows[index].sequence else {
          throw .malformed("context", "covers its own event")
        }
      }
    }
    return contexts
  }

  /// The context of the key's previous event and the id of that event; without one, empty.
  @inline(__always)
  private func appendImplicit(
    after previous: Int, at index: Int, _ origins: FixedTable<Origin>, to contexts: inout [Context.Entry]
  ) throws(EventsError) {
    guard previous >= 0 else {
      rows[index].version = 1
      return
    }
    let version = rows[previous].version
    guard version < Limits.highestNumber else {
      throw .overLimit("version", found: version + 1, limit: Limits.highestNumber)
    }
    rows[index].version = version + 1
    let id = Context.Entry(
      origin: origins[Int(rows[previous].origin)], sequence: SequenceNumber(rows[previous].sequence))
    let start = Int(rows[previous].contextStart)
    var isDone = false
    for place in start..<start + Int(rows[previous].contextCount) {
      let entry = contexts[place]
      if !isDone, entry.origin >= id.origin {
        contexts.append(id)
        isDone = true
        if entry.origin == id.origin { continue }
      }
      contexts.append(entry)
    }
    if !isDone { contexts.append(id) }
  }

  private mutating func readExceptions() throws(EventsError) -> [Exception] {
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

  private mutating func readEntries(
    _ names: BlockNames, count: Int
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
      entries[index].sequence = SequenceNumber(sequence)
    }
    return entries
  }

  mutating func readForeignCommits(_ names: BlockNames) throws(EventsError) {
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
}

/// The last sequence of each stream of a block. A table if there are few partitions and origins for
/// the events, as in real blocks. Otherwise the table could be large without any byte of the block.
private struct LastSequences {
  private let origins: Int
  private let table: FixedTable<UInt64>?
  private var others: [Int: UInt64] = [:]

  init(partitions: Int, origins: Int, _ events: Int) {
    self.origins = origins
    let (streams, overflow) = partitions.multipliedReportingOverflow(by: origins)
    table = overflow || streams > 4 * events + 64 ? nil : FixedTable(repeating: 0, count: streams)
  }

  @inline(__always)
  mutating func advance(_ partition: Int, _ origin: Int, by gap: UInt64) -> UInt64 {
    let stream = partition * origins + origin
    guard let table else {
      others[stream, default: 0] += gap
      return others[stream, default: 0]
    }
    let sequence = table[stream] + gap
    table.elements[stream] = sequence
    return sequence
  }
}
