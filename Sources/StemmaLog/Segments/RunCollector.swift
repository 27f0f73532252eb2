import StemmaEvents

/// Collects the stream runs of a file.
struct RunCollector {
  let path: String
  /// Whether duplicate event ids are accepted. They do not extend their run.
  private let acceptsDuplicates: Bool
  private var runs: [StreamID: StreamRun] = [:]
  private var events: [Partition: UInt64] = [:]
  private var digester = EventDigester()
  private var blockDigester = BlockDigester()

  init(path: String, acceptsDuplicates: Bool = false) {
    self.path = path
    self.acceptsDuplicates = acceptsDuplicates
  }

  mutating func add(_ event: Event, offset: UInt64) throws(LogError) {
    events[event.partition, default: 0] += 1
    try add(event.id, of: event.partition, digester.digest(of: event).hash, offset)
  }

  /// All events of a block, in place.
  mutating func add(_ cursor: BlockCursor, offset: UInt64) throws(LogError) {
    blockDigester.begin(cursor)
    while cursor.advance() {
      let partition = cursor.partition
      events[partition, default: 0] += 1
      try add(cursor.id, of: partition, blockDigester.digest(of: cursor), offset)
    }
  }

  private mutating func add(
    _ id: EventID, of partition: Partition, _ hash: StreamHash, _ offset: UInt64
  ) throws(LogError) {
    let fresh = StreamRun(
      origin: id.origin, from: id.sequence, to: SequenceNumber(id.sequence.rawValue - 1), hash: .zero)
    let stream = StreamID(partition: partition, origin: id.origin)
    var run = runs[stream] ?? fresh
    if acceptsDuplicates, id.sequence <= run.to { return }
    guard id.sequence == run.to.next else {
      if id.sequence <= run.to { throw .corrupt(path: path, offset: offset, .duplicate(partition, id)) }
      let what = "\(partition) of \(id.origin): \(id.sequence) after \(run.to)"
      throw .corrupt(path: path, offset: offset, .disagreement(what))
    }
    run.to = id.sequence
    run.hash += hash
    runs[stream] = run
  }

  /// Traps if an event has a partition without its stream. In debug builds in `partitions`.
  func checkInvariants() {
    var ofStreams: [Partition: UInt64] = [:]
    for (stream, run) in runs {
      precondition(stream.origin == run.origin, "a run is found by its stream")
      ofStreams[stream.partition, default: 0] += run.to.rawValue - run.from.rawValue + 1
    }
    precondition(acceptsDuplicates || ofStreams == events, "each event is one of its stream")
  }

  /// Sorted by partition; without blocks.
  var partitions: [PartitionRun] {
    assert(holds(checkInvariants))
    var found: [Partition: [StreamRun]] = [:]
    for (stream, run) in runs { found[stream.partition, default: []].append(run) }
    return found.keys.sorted().map { partition in
      let streams = found[partition, default: []].sorted { $0.origin < $1.origin }
      return PartitionRun(
        partition: partition, blocks: 0..<0, events: events[partition, default: 0], streams: streams)
    }
  }
}
