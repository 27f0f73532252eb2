import StemmaEvents
import StemmaLog
import StemmaSchema
import Testing

@testable import StemmaReplication

/// A node without a disk: files of events, and what is known from them.
struct MemoryNode {
  struct Record: Hashable {
    var partition: Partition
    var key: Key
  }

  let logID: LogID
  var name: String
  var origin: Origin
  var pastOrigins: [Origin] = []
  var scope = Scope.everything
  var schema = Schema()
  /// Stands in every value.
  var padding = ""
  var sdl = ""
  var readable = Scope.everything
  var writable = Scope.everything
  /// Closed ones, and the one that grows.
  var files: [[(event: Event, note: CommitNote?)]] = [[]]
  private(set) var knowledge = Knowledge()
  private var records: [Record: (context: Context, version: Version)] = [:]
  private var commitNumber: UInt64 = 0
  private(set) var adoptions = 0
  /// Whether a piece is adopted only when another one waits behind it, or none comes.
  var adoptsLate = false
  /// Handed out by the session, not adopted yet.
  var accepted: VerifiedPiece?

  init(_ name: String, id: UInt64) {
    logID = LogID(id)
    self.name = name
    origin = Origin(id << 8)
  }

  var events: [Event] { files.flatMap { $0.map(\.event) } }
  var source: MemorySource { MemorySource(files: files) }

  var greeting: Greeting {
    Greeting(
      logID: logID, nodeName: name,
      origins: (pastOrigins + [origin]).map { NamedOrigin($0, nodeName: name, isOwn: true) }, schema: sdl,
      scope: scope)
  }

  var asSessionNode: Session.Node {
    Session.Node(greeting: greeting, schema: schema, readable: readable, writable: writable)
  }

  /// One commit of one event for each of these records.
  mutating func write(_ keys: [(partition: String, key: Int64)], note: CommitNote? = nil) {
    commitNumber += 1
    for (name, key) in keys {
      let partition = Partition(name)
      let record = Record(partition: partition, key: Key(.string(name), .int(key)))
      let state = records[record]
      let sequence = knowledge[partition, origin].sequence.next
      append(
        Event(
          partition: partition, model: "Thing", key: record.key, operation: state == nil ? .create : .update,
          assignments: [Assignment("value", .string("\(self.name) \(commitNumber)\(padding)"))],
          dot: Dot(origin, sequence), context: state?.context ?? .empty,
          version: (state?.version ?? .zero).next,
          timestamp: Timestamp(milliseconds: 1_700_000_000_000 + commitNumber),
          commit: CommitID(origin, commitNumber)), note)
    }
  }

  mutating func write(_ partition: String, _ key: Int64 = 1) { write([(partition, key)]) }

  mutating func seal() { if !(files.last?.isEmpty ?? true) { files.append([]) } }

  mutating func takeNewOrigin() {
    pastOrigins.append(origin)
    origin = Origin(origin.rawValue + 1)
  }

  /// Drops what is out of the new scope.
  mutating func changeScope(to new: Scope) {
    scope = new
    files = files.map { $0.filter { new.contains($0.event.partition) } }
    knowledge = knowledge.restricted { new.contains($0) }
    records = records.filter { new.contains($0.key.partition) }
  }

  mutating func adopt(_ piece: VerifiedPiece) throws {
    guard let adopted = try piece.remaining(above: knowledge) else { return }
    adoptions += 1
    if adopted.events.count > 8 { seal() }
    for event in adopted.events { append(event, adopted.notes[event.commit]) }
    if adopted.events.count > 8 { seal() }
  }

  /// Fails the test if an event comes twice, early, or before its causes.
  private mutating func append(_ event: Event, _ note: CommitNote?) {
    let head = knowledge[event.partition, event.dot.origin]
    #expect(event.dot.sequence == head.sequence.next, "applied once, in order")
    for entry in event.context.entries {
      #expect(
        entry.sequence <= knowledge[event.partition, entry.origin].sequence, "causes come before effects")
    }
    files[files.count - 1].append((event, note))
    knowledge[event.partition, event.dot.origin] = StreamHead(
      sequence: event.dot.sequence, hash: head.hash + event.digest.hash)
    var state = records[Record(partition: event.partition, key: event.key)] ?? (.empty, .zero)
    state.context.insert(event.dot)
    state.version = max(state.version, event.version)
    records[Record(partition: event.partition, key: event.key)] = state
  }

  /// All that must agree between two nodes of one scope: the events, by name and content.
  func contents(of scope: Scope = .everything) -> [String] {
    events.filter { scope.contains($0.partition) }.map { "\($0.partition) \($0.dot) \($0.digest)" }.sorted()
  }

  func notes() -> [CommitID: CommitNote] {
    Dictionary(
      files.joined().compactMap { item in item.note.map { (item.event.commit, $0) } },
      uniquingKeysWith: { first, _ in first })
  }
}

/// Counts an event's raw size as read; skips events of other partitions as a log skips blocks.
final class MemorySource: ShipmentSource {
  private let files: [[(event: Event, note: CommitNote?)]]
  private(set) var bytesRead: UInt64 = 0
  private(set) var filesRead: [UInt64] = []

  init(files: [[(event: Event, note: CommitNote?)]]) { self.files = files }

  func shipmentFiles() -> [SourceFile] {
    files.enumerated().map { index, events in
      var ranges: [Partition: [Origin: StreamRange]] = [:]
      for event in events.map(\.event) {
        let (partition, origin, sequence) = (event.partition, event.dot.origin, event.dot.sequence)
        let fresh = StreamRange(
          partition: partition, origin: origin, from: sequence, to: sequence, hash: .zero)
        var range = ranges[partition]?[origin] ?? fresh
        range.to = sequence
        range.hash += event.digest.hash
        ranges[partition, default: [:]][origin] = range
      }
      return SourceFile(
        number: UInt64(index), end: Position(file: UInt64(index), index: UInt64(events.count)),
        streams: ranges.values.flatMap(\.values))
    }
  }

  func sealed(_ file: SourceFile, atLeast least: Int) -> SealedFile? { nil }

  func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull {
    filesRead.append(file.number)
    var rest = files[Int(file.number)][...]
    return { () throws(ReplicationError) in
      while let item = rest.popFirst() {
        if partitions.contains(item.event.partition) {
          self.bytesRead += UInt64(item.event.rawSize)
          return DigestedEvent(event: item.event, note: item.note, digest: item.event.digest.hash)
        }
      }
      return nil
    }
  }
}
