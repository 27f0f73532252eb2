import StemmaEvents
import StemmaLog

/// Creates events like a node: sequences without gaps, contexts that cover the record's events.
package struct EventMaker: Sendable {
  private var random: SplitMix64
  /// The names of the partitions of new events.
  package var partitions = ["a", "b", "c"]
  package var keysPerPartition = 5
  private var sequences: [QualifiedEventID: UInt64] = [:]
  private var contexts: [RecordKey: (Context, Version)] = [:]
  private var commits: [Origin: UInt64] = [:]
  private var time: UInt64 = 1_700_000_000_000

  package init(seed: UInt64) { random = SplitMix64(seed: seed) }

  /// One commit of `count` events. `filling`: the number of constant letters that end each text.
  package mutating func commit(
    _ count: Int, origin: Origin = Origin(7), textLength: Int = 12, filling: Int = 0
  ) -> [Event] {
    commits[origin, default: 0] += 1
    let id = CommitID(origin, commits[origin, default: 0])
    let end = String(repeating: "x", count: filling)
    return (0..<count).map { _ in event(origin, id, textLength, end) }
  }

  private mutating func event(
    _ origin: Origin, _ commit: CommitID, _ textLength: Int, _ end: String
  ) -> Event {
    let name = partitions[random.below(partitions.count)]
    let partition = Partition("tenant=" + name)
    let model = ["Book", "Author"][random.below(2)]
    let key = Key(.string(name), .string("record \(random.below(keysPerPartition))"))
    let stream = QualifiedEventID(partition: partition, id: EventID(origin, .zero))
    sequences[stream, default: 0] += 1
    let id = EventID(origin, SequenceNumber(sequences[stream, default: 0]))
    let record = RecordKey(partition: partition, model: model, key: key)
    let (context, version) = contexts[record] ?? (.empty, .zero)
    time += UInt64(random.below(50))
    let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8)
    let text = String(decoding: (0..<textLength).map { _ in letters[random.below(26)] }, as: UTF8.self) + end
    let event = Event(
      partition: partition, model: model, key: key, operation: version == .zero ? .create : .update,
      assignments: [
        Assignment("count", .int(Int64(random.below(1000)))), Assignment("title", .string(text)),
      ],
      id: id, context: context, version: version.next, timestamp: Timestamp(milliseconds: time),
      commit: commit)
    var after = context
    after.insert(id)
    contexts[record] = (after, version.next)
    return event
  }
}

extension EventReader {
  /// All remaining events.
  package mutating func rest() throws(LogError) -> [StoredEvent] {
    var events: [StoredEvent] = []
    try forEach { events.append($0) }
    return events
  }

  /// Passes all remaining events to `body`. Checks the invariants several times, also at the end.
  package mutating func forEach(_ body: (StoredEvent) -> Void) throws(LogError) {
    checkInvariants()
    var count = 0
    while let event = try next() {
      body(event)
      count += 1
      // Each check examines all remaining events, so n events get log n checks.
      if count & (count - 1) == 0 { checkInvariants() }
    }
    checkInvariants()
  }
}

extension Log {
  package func allEvents() throws(LogError) -> [Event] {
    var reader = events()
    return try reader.rest().map(\.event)
  }

  /// The violations when a log is read by record, as for a rebuild. It must have exactly these
  /// events, each once; with `mayLack`, some may be missing. Throws an error of the log.
  package func violationsByRecord(
    _ expected: some Sequence<Event>, mayLack: Bool = false
  ) throws(LogError) -> [String] {
    var left: [QualifiedEventID: Event] = [:]
    for event in expected { left[event.name] = event }
    let merge = try recordFiles.open()
    while try merge.nextRecord() {
      merge.checkInvariants()
      while let source = merge.nextSource() {
        var cursor = source.cursor
        repeat {
          let event = cursor.event
          guard left.removeValue(forKey: event.name) == event else {
            return ["by record, an event is another one, or there twice"]
          }
        } while try source.nextOfRecord(&cursor)
      }
    }
    return left.isEmpty || mayLack ? [] : ["by record, \(left.count) events are missing"]
  }
}

extension Event {
  fileprivate var name: QualifiedEventID { QualifiedEventID(partition: partition, id: id) }
}
