import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// A node in memory: files of events, and the version vector derived from them.
package struct MemoryNode {
  private struct Record: Hashable {
    var partition: Partition
    var key: Key
  }

  package let logID: LogID
  package var name: String
  package var origin: Origin
  package var pastOrigins: [Origin] = []
  package var scope = Scope.everything
  package var schema = Schema()
  /// Part of every value.
  package var padding = ""
  package var sdl = ""
  package var readable = Scope.everything
  package var writable = Scope.everything
  /// Closed files, and the growing one.
  package var files: [[(event: Event, message: CommitMessage?)]] = [[]]
  package private(set) var versionVector = VersionVector()
  private var records: [Record: (context: Context, version: Version)] = [:]
  private var commitNumber: UInt64 = 0
  package private(set) var adoptions = 0
  /// Whether a batch is adopted only when another one waits after it, or none follows.
  package var adoptsLate = false
  /// Returned by the session but not adopted yet.
  package var accepted: VerifiedBatch?

  package init(_ name: String, id: UInt64) {
    logID = LogID(id)
    self.name = name
    origin = Origin(id << 8)
  }

  package var events: [Event] { files.flatMap { $0.map(\.event) } }
  package var source: MemorySource { MemorySource(files: files, versionVector: versionVector) }

  package var greeting: Greeting {
    Greeting(
      logID: logID, nodeName: name,
      origins: (pastOrigins + [origin]).map { NamedOrigin($0, nodeName: name, isOwn: true) }, schema: sdl,
      scope: scope)
  }

  package var asSessionNode: Session.Node {
    Session.Node(greeting: greeting, schema: schema, readable: readable, writable: writable)
  }

  /// One commit with one event for each of these records.
  package mutating func write(_ keys: [(partition: String, key: Int64)], message: CommitMessage? = nil) {
    commitNumber += 1
    for (name, key) in keys {
      let partition = Partition(name)
      let record = Record(partition: partition, key: Key(.string(name), .int(key)))
      let state = records[record]
      let sequence = versionVector[partition, origin].sequence.next
      append(
        Event(
          partition: partition, model: "Thing", key: record.key, operation: state == nil ? .create : .update,
          assignments: [Assignment("value", .string("\(self.name) \(commitNumber)\(padding)"))],
          id: EventID(origin, sequence), context: state?.context ?? .empty,
          version: (state?.version ?? .zero).next,
          timestamp: Timestamp(milliseconds: 1_700_000_000_000 + commitNumber),
          commit: CommitID(origin, commitNumber)), message)
    }
  }

  package mutating func write(_ partition: String, _ key: Int64 = 1) { write([(partition, key)]) }

  package mutating func seal() { if !(files.last?.isEmpty ?? true) { files.append([]) } }

  package mutating func takeNewOrigin() {
    pastOrigins.append(origin)
    origin = Origin(origin.rawValue + 1)
  }

  /// Removes events outside of the new scope.
  package mutating func changeScope(to new: Scope) {
    scope = new
    files = files.map { $0.filter { new.contains($0.event.partition) } }
    versionVector = versionVector.restricted { new.contains($0) }
    records = records.filter { new.contains($0.key.partition) }
  }

  package mutating func adopt(_ batch: VerifiedBatch) throws {
    guard let adopted = try batch.remaining(above: versionVector) else { return }
    adoptions += 1
    if adopted.events.count > 8 { seal() }
    for event in adopted.events { append(event, adopted.messages[event.commit]) }
    if adopted.events.count > 8 { seal() }
  }

  /// Traps if an event comes twice, early, or before its causes.
  private mutating func append(_ event: Event, _ message: CommitMessage?) {
    let head = versionVector[event.partition, event.id.origin]
    precondition(event.id.sequence == head.sequence.next, "applied once, in order")
    for entry in event.context.entries {
      precondition(
        entry.sequence <= versionVector[event.partition, entry.origin].sequence, "causes come before effects")
    }
    files[files.count - 1].append((event, message))
    versionVector[event.partition, event.id.origin] = StreamHead(
      sequence: event.id.sequence, hash: head.hash + event.digest.hash)
    var state = records[Record(partition: event.partition, key: event.key)] ?? (.empty, .zero)
    state.context.insert(event.id)
    state.version = max(state.version, event.version)
    records[Record(partition: event.partition, key: event.key)] = state
  }

  /// The part that must be equal on two nodes of one scope: the events, by id and content.
  package func contents(of scope: Scope = .everything) -> [String] {
    events.filter { scope.contains($0.partition) }.map { "\($0.partition) \($0.id) \($0.digest)" }.sorted()
  }

  package func notes() -> [CommitID: CommitMessage] {
    Dictionary(
      files.joined().compactMap { item in item.message.map { (item.event.commit, $0) } },
      uniquingKeysWith: { first, _ in first })
  }
}

/// Counts an event's raw size as read. Skips events of other partitions, as a log skips blocks.
package final class MemorySource: ShipmentSource {
  private let files: [[(event: Event, message: CommitMessage?)]]
  package private(set) var bytesRead: UInt64 = 0
  package private(set) var filesRead: [UInt64] = []

  package let versionVector: VersionVector

  package init(files: [[(event: Event, message: CommitMessage?)]], versionVector: VersionVector) {
    self.files = files
    self.versionVector = versionVector
  }

  package func shipmentFiles() -> [SourceFile] {
    files.enumerated().map { index, events in
      SourceFile(
        start: Position(UInt64(index)), end: Position(UInt64(index) + 1), events: UInt64(events.count))
    }
  }

  package func streams(of file: SourceFile, in partitions: Set<Partition>) -> [StreamRange] {
    var ranges: [StreamID: StreamRange] = [:]
    for event in files[Int(file.start.rawValue)].map(\.event) where partitions.contains(event.partition) {
      let sequence = event.id.sequence
      let fresh = StreamRange(
        partition: event.partition, origin: event.id.origin, from: sequence, to: sequence, hash: .zero)
      ranges[StreamID(event), default: fresh].to = sequence
    }
    return Array(ranges.values)
  }

  package func streamHashes(_ ends: [QualifiedEventID]) -> [QualifiedEventID: StreamHash] {
    var hashes: [QualifiedEventID: StreamHash] = [:]
    for end in ends {
      for event in files.joined().map(\.event)
      where StreamID(event) == StreamID(end) && event.id.sequence <= end.id.sequence {
        hashes[end, default: .zero] += event.digest.hash
      }
    }
    return hashes
  }

  package func sealed(_ file: SourceFile, atLeast least: Int) -> SealedFile? { nil }

  package func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull {
    filesRead.append(file.start.rawValue)
    var rest = files[Int(file.start.rawValue)][...]
    return { () throws(ReplicationError) in
      while let item = rest.popFirst() {
        if partitions.contains(item.event.partition) {
          self.bytesRead += UInt64(item.event.rawSize)
          return DigestedEvent(event: item.event, message: item.message, digest: item.event.digest.hash)
        }
      }
      return nil
    }
  }
}
