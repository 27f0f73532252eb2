import StemmaEvents
import StemmaLog

/// Encodes the batches of a planned shipment in order. Another thread encodes the next batch while
/// the caller uses the last one, so memory holds two batches for any size of log.
///
/// Reads the planned files in position order. Ends a batch at a commit boundary after `batchTarget`
/// bytes of events. A batch may span several small files. A segment of which the receiver lacks
/// everything is a batch unchanged, unless it is small. Other large batches are laid out as a
/// segment too, which the receiver checks in place and adopts unchanged.
package struct ShipmentWriter<Source: ShipmentSource> {
  private let source: Source
  private let plan: ShipmentPlan
  private let sender: LogID
  private let batchTarget: Int
  /// Whether batches have digests, as all that leave the process do.
  private let isDigesting: Bool
  private let bytesReadBefore: UInt64

  private var nextFile = 0
  private var pull: EventPull?
  /// The events of the files after the current one, in order.
  private var upcoming: [EventPull] = []
  /// Enough to keep two processors busy. The selected events of these files may be in memory.
  private static var filesAhead: Int { 2 }
  /// How far the receiver will hold each stream, except the current one.
  private var heads: VersionVector
  /// The stream of the last event, because the next event usually has the same.
  private var current: OpenStream?
  private var pending: DigestedEvent?
  private var batch = BatchDraft()
  /// A segment that is the next batch, unchanged.
  private var sealed: (file: SealedFile, planned: ShipmentPlan.PlannedFile)?
  /// The batch after the last returned one, or the reason for its absence.
  private var coming: Result<EncodedBatch?, ReplicationError>?
  /// Raw size of events above which they are worth a segment of their own.
  private var sealedSize: Int { batchTarget / 8 }

  /// Batches, events and bytes so far.
  package private(set) var batchCount: UInt64 = 0
  package private(set) var eventCount: UInt64 = 0
  package private(set) var bytesShipped: UInt64 = 0

  /// `bytesReadBefore`: the source's count before planning, so that the plan's reads count too.
  package init(
    source: Source, plan: ShipmentPlan, sender: LogID, bytesReadBefore: UInt64,
    batchTarget: Int = ReplicationLimits.batchTarget, isDigesting: Bool = true
  ) {
    self.source = source
    self.plan = plan
    heads = plan.receiver
    self.sender = sender
    self.batchTarget = batchTarget
    self.isDigesting = isDigesting
    self.bytesReadBefore = bytesReadBefore
  }

  /// Bytes read from the source since planning began.
  package var bytesRead: UInt64 { source.bytesRead - bytesReadBefore }

  /// The final message to the receiver.
  package var end: TransferEnd {
    TransferEnd(batches: batchCount, events: eventCount, bytesRead: bytesRead)
  }

  /// The next batch, or nil after the last. Throws `failed` if the log is unreadable or contradicts
  /// its own footers or the plan. Reads ahead.
  package mutating func next() throws(ReplicationError) -> [UInt8]? {
    if coming == nil { coming = begun() }
    guard let batch = try coming?.get() else { return nil }
    // The batch after a segment needs the hashes of its streams, which its encoding yields.
    if !batch.isSealed { coming = begun() }
    let bytes: [UInt8]
    do throws(ReplicationError) {
      let streams: [ShippedStream]
      (bytes, streams) = try batch.made.take().get()
      for stream in streams {
        heads[stream.range.partition, stream.range.origin] = stream.head
        try compare(stream.head, stream.range.stream)
      }
    } catch {
      // No batch is sent after a failed one.
      coming = .failure(error)
      throw error
    }
    if batch.isSealed { coming = begun() }
    guard bytes.count <= ReplicationLimits.batch else {
      throw .failed("a commit takes \(bytes.count) bytes, more than a batch of a shipment can hold")
    }
    batchCount += 1
    eventCount += UInt64(batch.events)
    bytesShipped += UInt64(bytes.count)
    assert(holds(checkInvariants))
    return bytes
  }

  /// Traps if events would be omitted or repeated. Debug builds call it at each batch.
  package func checkInvariants() {
    precondition(nextFile <= plan.files.count, "files are read once")
    precondition(pull == nil || nextFile < plan.files.count, "what is read is of a file")
    precondition(pull == nil || sealed == nil, "a file travels as it is, or by its events")
    precondition(upcoming.count <= Self.filesAhead, "memory is bounded")
    precondition(batchCount <= eventCount, "a batch has an event")
    if let current {
      let head = heads[current.partition, current.origin]
      precondition(current.head.sequence >= head.sequence, "a stream is read forwards")
    }
    batch.checkInvariants()
  }

  private mutating func begun() -> Result<EncodedBatch?, ReplicationError> {
    do throws(ReplicationError) { return .success(try begin()) } catch { return .failure(error) }
  }

  /// Reads the events of the next batch.
  private mutating func begin() throws(ReplicationError) -> EncodedBatch? {
    if let sealed {
      self.sealed = nil
      return encoded(sealed.file, sealed.planned)
    }
    while let item = try nextEvent() {
      if batch.size >= batchTarget, item.event.commit != batch.lastCommit {
        pending = item
        break
      }
      try take(item)
    }
    guard batch.events.isEmpty else { return encodedEvents() }
    return sealed == nil ? nil : try begin()
  }

  private mutating func nextEvent() throws(ReplicationError) -> DigestedEvent? {
    if let item = pending {
      pending = nil
      return item
    }
    while true {
      if let pull {
        if let item = try pull() { return item }
        try closeFile()
      }
      guard sealed == nil, nextFile < plan.files.count else { return nil }
      let planned = plan.files[nextFile]
      if planned.isWhole, let file = try source.sealed(planned.file, atLeast: sealedSize),
        file.end <= UInt64(ReplicationLimits.batchEvents)
      {
        sealed = (file, planned)
        nextFile += 1
        return nil
      }
      pull = opened()
    }
  }

  /// The events of the next file. Also opens the files after it, so that other threads decode them,
  /// up to the first one that may be shipped unchanged.
  private mutating func opened() -> EventPull {
    if upcoming.isEmpty { open(plan.files[nextFile]) }
    while upcoming.count <= Self.filesAhead, nextFile + upcoming.count < plan.files.count,
      case let planned = plan.files[nextFile + upcoming.count], !planned.isWhole
    {
      open(planned)
    }
    return upcoming.removeFirst()
  }

  private mutating func open(_ planned: ShipmentPlan.PlannedFile) {
    upcoming.append(source.events(of: planned.file, in: planned.partitions))
  }

  /// Checks that the file had the events of its footer: wrong hashes would be sent otherwise.
  private mutating func closeFile() throws(ReplicationError) {
    leaveStream()
    for (stream, end) in plan.files[nextFile].ends {
      let head = heads[stream.partition, stream.origin]
      guard head.sequence == end else { throw contradiction(stream) }
      try compare(head, stream)
    }
    pull = nil
    nextFile += 1
  }

  /// Throws if a completely read stream differs from the one that the tables have applied.
  private func compare(_ head: StreamHead, _ stream: StreamID) throws(ReplicationError) {
    let known = plan.versionVector[stream.partition, stream.origin]
    guard head.sequence < known.sequence || head == known else { throw contradiction(stream) }
  }

  private func contradiction(_ stream: StreamID) -> ReplicationError {
    .inconsistentLog(
      "\(stream.partition), \(stream.origin) is not what the footers of the log and the tables say")
  }

  private mutating func take(_ item: DigestedEvent) throws(ReplicationError) {
    let event = item.event
    var stream = stream(of: event)
    let before = stream.head
    guard event.id.sequence > stream.known, event.id.sequence <= stream.end else { return }
    guard event.id.sequence == before.sequence.next else {
      throw .inconsistentLog("the log has \(event.id) of \(event.partition) after \(before.sequence)")
    }
    stream.head = StreamHead(sequence: event.id.sequence, hash: before.hash + item.digest)
    current = stream
    if batch.events.count == ReplicationLimits.batchEvents {
      throw .failed("commit \(event.commit) has more events than a batch of a shipment can hold")
    }
    batch.append(item, hashBefore: before.hash)
  }

  private mutating func stream(of event: Event) -> OpenStream {
    let (partition, origin) = (event.partition, event.id.origin)
    if let current, current.origin == origin, current.partition == partition { return current }
    leaveStream()
    return OpenStream(
      partition: partition, origin: origin, head: heads[partition, origin],
      known: plan.receiver[partition, origin].sequence, end: plan.versionVector[partition, origin].sequence)
  }

  private mutating func leaveStream() {
    guard let left = current else { return }
    heads[left.partition, left.origin] = left.head
    current = nil
  }

  private mutating func encodedEvents() -> EncodedBatch {
    assert(holds(checkInvariants))
    defer { batch = BatchDraft() }
    return EncodedBatch(events: batch.events.count, isSealed: false) {
      [batch, sender, isDigesting, isSealed = batch.size >= sealedSize] () throws(ReplicationError) in
      do throws(LogError) {
        return (try batch.encoded(sender: sender, isSealed: isSealed, isDigested: isDigesting), [])
      } catch { throw .failed(error.description) }
    }
  }

  /// Encodes a segment with its index. Another thread checks its digest.
  private func encoded(_ sealed: SealedFile, _ planned: ShipmentPlan.PlannedFile) -> EncodedBatch {
    EncodedBatch(events: Int(clamping: sealed.events), isSealed: true) {
      [sender, heads, isDigesting] () throws(ReplicationError) in
      let contents: SealedContents
      let partitions: [PartitionRun]
      do throws(LogError) { (contents, partitions) = try sealed.contents() } catch {
        throw ReplicationError(error)
      }
      let streams = partitions.flatMap { run in
        run.streams.map { stream in
          ShippedStream(
            range: StreamRange(
              partition: run.partition, origin: stream.origin, from: stream.from, to: stream.to,
              hash: stream.hash),
            hashBefore: heads[run.partition, stream.origin].hash)
        }
      }
      let isPlanned = streams.map(\.range).allSatisfy { range in
        planned.ends[range.stream] == range.to
          && heads[range.partition, range.origin].sequence.next == range.from
      }
      guard isPlanned, streams.count == planned.ends.count, contents.events == sealed.events else {
        throw .inconsistentLog(
          "the file at @\(planned.file.start) of the log contradicts itself, or has changed")
      }
      let bytes = Batch.encode(sender: sender, streams: streams, sealed: contents, isDigested: isDigesting)
      return (bytes, streams)
    }
  }
}

/// A batch that is being encoded.
private struct EncodedBatch: Sendable {
  typealias Made = (bytes: [UInt8], streams: [ShippedStream])

  let events: Int
  /// Whether it is an unchanged segment, whose streams come with the bytes.
  let isSealed: Bool
  let made: MadeAhead<Result<Made, ReplicationError>>

  init(
    events: Int, isSealed: Bool, _ encode: @escaping @Sendable () throws(ReplicationError) -> Made
  ) {
    self.events = events
    self.isSealed = isSealed
    made = MadeAhead { Result { () throws(ReplicationError) in try encode() } }
  }
}

/// The stream that is being read.
private struct OpenStream {
  let partition: Partition
  let origin: Origin
  /// The head of the events read so far.
  var head: StreamHead
  /// The receiver's last sequence before and after the shipment.
  let known: SequenceNumber
  let end: SequenceNumber
}

/// Gathers the events of one batch.
private struct BatchDraft: Sendable {
  /// In batch order.
  private(set) var events: [BlockEvent] = []
  /// The digests of the events, at the same indexes.
  private var digests: [StreamHash] = []
  private var messages: [CommitID: CommitMessage] = [:]
  /// The last entry of `notes`: the events of a commit are adjacent.
  private var lastNoted: CommitID?
  private(set) var size = 0
  private var streams: [Partition: [Origin: ShippedStream]] = [:]
  /// The stream of the last event, which `streams` lacks.
  private var current: ShippedStream?

  var lastCommit: CommitID? { events.last?.event.commit }

  mutating func append(_ item: DigestedEvent, hashBefore: StreamHash) {
    let event = item.event
    let sequence = event.id.sequence
    if current?.range.origin != event.id.origin || current?.range.partition != event.partition {
      leaveStream()
      let fresh = ShippedStream(
        range: StreamRange(
          partition: event.partition, origin: event.id.origin, from: sequence, to: sequence, hash: .zero),
        hashBefore: hashBefore)
      current = streams[event.partition]?[event.id.origin] ?? fresh
    }
    current?.range.to = sequence
    current?.range.hash += item.digest
    size += event.rawSize
    if let message = item.message, !message.isEmpty, event.commit != lastNoted {
      messages[event.commit] = message
      lastNoted = event.commit
    }
    events.append(BlockEvent(relativePosition: UInt64(events.count), event: event))
    digests.append(item.digest)
  }

  private mutating func leaveStream() {
    guard let stream = current else { return }
    streams[stream.range.partition, default: [:]][stream.range.origin] = stream
    current = nil
  }

  /// Traps if the streams are not those of the events.
  func checkInvariants() {
    precondition(digests.count == events.count, "each event has its digest")
    precondition(events.isEmpty == (size == 0), "each event has some bytes")
    precondition(events.isEmpty == (current == nil), "the last event is of a stream")
    var all = streams
    if let current { all[current.range.partition, default: [:]][current.range.origin] = current }
    var count: UInt64 = 0
    for (partition, streams) in all {
      for (origin, stream) in streams {
        precondition(
          stream.range.partition == partition && stream.range.origin == origin,
          "a stream is found by its name")
        count += stream.range.to.rawValue - stream.range.from.rawValue + 1
      }
    }
    precondition(count == events.count, "each event is of a stream")
    let commits = Set(events.map(\.event.commit))
    precondition(
      messages.keys.allSatisfy(commits.contains), "a message is of a commit of which an event is here")
  }

  /// Throws `.overLimit` if one event is larger than a block may be.
  func encoded(sender: LogID, isSealed: Bool, isDigested: Bool) throws(LogError) -> [UInt8] {
    var streams = streams
    if let current { streams[current.range.partition, default: [:]][current.range.origin] = current }
    let sorted = streams.values.flatMap(\.values).sorted {
      ($0.range.partition, $0.range.origin) < ($1.range.partition, $1.range.origin)
    }
    guard isSealed else {
      return Batch.encode(
        sender: sender, streams: sorted, events: events.map(\.event), messages: messages,
        isDigested: isDigested)
    }
    let (bytes, sizes) = try SealedContents.encoded(events, messages: messages, digests: digests)
    return Batch.encode(
      sender: sender, streams: sorted, sealed: bytes, sizes, eventCount: events.count, isDigested: isDigested)
  }
}
