import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// A temporary node with the partitions that lost events in another node: the events before the
/// first lost one, then events of peers. Repair appends the latter to the log.
final class PartitionCopy {
  let partitions: Set<Partition>
  /// Lost events that no peer supplied.
  private(set) var missing: [LostRange]
  /// Partitions in which a peer holds a different event under the id of a readable one.
  private(set) var refused: Set<Partition> = []

  private let node: Node
  private let copy: Node
  private let losses: Losses
  private let author: String?
  private let folder: TemporaryFolder
  /// The position in the copy where the fetched events begin.
  private let start: Position
  /// Readable events that depend on missing events.
  private var unplaced: [Event] = []

  /// - Parameter author: the author of the events that replace lost ones.
  init(of node: Node, _ losses: Losses, author: String?) throws(NodeError) {
    self.author = author
    self.node = node
    self.losses = losses
    missing = losses.ranges
    let partitions = losses.partitions
    self.partitions = partitions
    folder = try TemporaryFolder()
    let scope: Scope
    do throws(ReplicationError) { scope = try Scope(patterns: partitions.map(\.description).sorted()) } catch
    {
      throw .replication(error)
    }
    var options = Node.OpeningOptions(mode: .write)
    options.ports = node.ports
    copy = try Node.create(
      at: folder.path + "/node", schema: SDL.print(node.schema), name: node.metadata.name, scope: scope,
      options: options)
    copy.metadata.retired = node.metadata.retired
    try copy.saveMetadata()
    let log = node.log
    var reader = log.events(
      to: losses.start, partitions: PartitionFilter(named: partitions), around: Omissions())
    start = try copy.take { () throws(LogError) in try reader.next().map { ($0.event, reader.message) } }
  }

  /// Whether nothing is missing.
  var isComplete: Bool { missing.isEmpty && unplaced.isEmpty }

  /// Returns the number of events that were pulled.
  func pull(
    from remote: RemotePeer, _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> UInt64 {
    _ = try node.peerForReading(remote)
    let report = try copy.exchange(
      with: remote, pulls: true, pushes: false, partitions: [], progress: progress)
    return report.pulled?.events ?? 0
  }

  /// Adds readable events that no peer supplied, if the copy has everything they depend on.
  func addReadableEvents() throws(NodeError) {
    var digests: [QualifiedEventID: StreamHash] = [:]
    var digester = EventDigester()
    var held = try copy.reading { try $0.versionVector() }
    let partitions = partitions
    try Node.wrapping {
      var fetched = copy.log.events(from: start)
      while let event = try fetched.next()?.event { digests[event.name] = digester.digest(of: event).hash }
    }
    var reader = node.log.events(
      from: losses.start, partitions: PartitionFilter(named: partitions), around: Omissions())
    _ = try copy.take { [self] () throws(LogError) in
      while let event = try reader.next()?.event {
        let hash = digester.digest(of: event).hash
        let head = held[event.partition, event.id.origin]
        if event.id.sequence <= head.sequence {
          if let other = digests[event.name], other != hash { refused.insert(event.partition) }
          continue
        }
        let isCovered = event.context.entries.allSatisfy {
          held[event.partition, $0.origin].sequence >= $0.sequence
        }
        guard event.id.sequence == head.sequence.next, isCovered else {
          unplaced.append(event)
          continue
        }
        held[event.partition, event.id.origin] = StreamHead(
          sequence: event.id.sequence, hash: head.hash + hash)
        return (event, reader.message)
      }
      return nil
    }
    missing = losses.ranges.compactMap { range in
      let head = held[range.partition, range.origin].sequence
      if head >= range.to { return nil }
      var left = range
      left.from = max(range.from, head.next)
      return left
    }
  }

  /// Writes the rows in which the node's tables differ from the copy's. Returns the event count.
  func writeRows(as origin: Origin) throws(NodeError) -> UInt64 {
    var rows = RowEvents(origin)
    let left = Dictionary(grouping: unplaced) { RecordKey($0) }
    let isPartial = node.areTablesPartial
    try Node.wrapping {
      try node.reading { reader in
        try reader.forEachState(in: { partitions.contains($0) }) {
          (model, key, partition, wanted) throws(TablesError) in
          let record = RecordKey(partition: partition, model: model.storedName, key: key)
          // Tables that were rebuilt around the corruption lack events that depend on lost ones.
          if isPartial, left[record] != nil { return }
          let rules = reader.tableSet.rules(of: model)
          let state = try copy.tables.read { reader throws(TablesError) in
            try reader.state(of: key, in: model)
          }
          rows.show(wanted, instead: state ?? RecordState(), of: record, rules)
        }
      }
      for (record, events) in isPartial ? left.sorted(by: { $0.key < $1.key }) : [] {
        guard let model = node.schema.models.first(where: { $0.storedName == record.model }) else { continue }
        let state = try copy.tables.read { reader throws(TablesError) in
          try reader.state(of: record.key, in: model)
        }
        rows.show(events, behind: state ?? RecordState(), of: record)
      }
    }
    let message = CommitMessage(author: author, text: message)
    var events = rows.events[...]
    let count = UInt64(events.count)
    _ = try copy.take { () throws(LogError) in events.popFirst().map { ($0, message) } }
    return count
  }

  /// The commit message of the events that replace lost ones.
  private var message: String {
    let lost = missing.reduce(0) { $0 + $1.count }
    let names = Set(missing.map(\.origin)).map { node.metadata.displayName(of: $0) }.sorted()
    return "as the tables showed it when \(counted(lost, "event")) of \(names.joined(separator: ", ")) "
      + "\(lost == 1 ? "was" : "were") lost to corruption of the log"
  }

  /// The events that repair appends to the log, in parts of the size of a segment.
  func parts() -> EventParts {
    var reader = copy.log.events(from: start)
    return EventParts(size: node.log.segmentSize) { () throws(LogError) in
      try reader.next().map { ($0.event, reader.message) }
    }
  }
}

/// Groups events into parts of at least `size` bytes, except the last.
struct EventParts {
  typealias Source = () throws(LogError) -> (Event, CommitMessage?)?

  let size: Int
  private let source: Source

  init(size: Int, _ source: @escaping Source) { (self.size, self.source) = (size, source) }

  func next() throws(LogError) -> AdoptedEvents? {
    var part = AdoptedEvents([])
    var raw = 0
    while raw < size, let (event, message) = try source() {
      part.events.append(event)
      if let message { part.messages[event.commit] = message }
      raw += [event].rawSize
    }
    return part.events.isEmpty ? nil : part
  }
}

/// Events that bring records to the state that the tables showed.
private struct RowEvents {
  private(set) var events: [Event] = []
  private let origin: Origin
  private var sequences: [Partition: SequenceNumber] = [:]
  private static let commitSize = 1000

  init(_ origin: Origin) { self.origin = origin }

  /// - Parameter state: the remaining state of the record.
  mutating func show(
    _ wanted: RecordState, instead state: RecordState, of record: RecordKey, _ rules: MergeRules
  ) {
    let exists = wanted.exists(rules)
    let assignments = exists ? state.differences(from: wanted, rules) : []
    if exists == state.exists(rules), assignments.isEmpty { return }
    append(record, exists: exists, assignments, behind: state, at: max(state.latest, wanted.latest))
  }

  /// Restores a record of unknown earlier state from the values that later events wrote.
  mutating func show(_ later: [Event], behind state: RecordState, of record: RecordKey) {
    var values: [String: Value] = [:]
    for event in later { for assignment in event.assignments { values[assignment.field] = assignment.value } }
    let assignments = values.filter { $0.key != Event.existenceField }.map { Assignment($0.key, $0.value) }
      .sorted { $0.field.hasBytes(before: $1.field) }
    let exists = later.last?.operation != .delete
    append(
      record, exists: exists, exists ? assignments : [], behind: state,
      at: later.map(\.timestamp).reduce(state.latest, max))
  }

  private mutating func append(
    _ record: RecordKey, exists: Bool, _ assignments: [Assignment], behind state: RecordState,
    at time: Timestamp
  ) {
    if !exists, state.isEmpty { return }
    let operation: EventOperation = !exists ? .delete : state.isEmpty ? .create : .resolve
    let decision = operation == .resolve ? [Assignment(Event.existenceField, .bool(true))] : []
    let sequence = (sequences[record.partition] ?? .zero).next
    sequences[record.partition] = sequence
    events.append(
      Event(
        partition: record.partition, model: record.model, key: record.key, operation: operation,
        relationship: nil, assignments: decision + assignments, id: EventID(origin, sequence),
        context: state.context, version: state.version.next, timestamp: time,
        commit: CommitID(origin, UInt64(events.count / Self.commitSize) + 1), cause: nil))
  }
}
