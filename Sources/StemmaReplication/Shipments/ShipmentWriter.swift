import StemmaEvents
import StemmaLog

/// Makes the pieces of a planned shipment, one at a time, so memory holds two pieces whatever the log's size: another
/// thread encodes the next one while somebody uses the one that was given.
///
/// Reads the planned files in arrival order and cuts where a commit ends once `pieceTarget` bytes of events
/// are gathered. A piece may span several small files; a sealed file of which the receiver lacks all is a piece as
/// it is, unless it is small. What is not small is laid out as a sealed file, too: who gets it checks it in place,
/// and adopts it as it is.
package struct ShipmentWriter<Source: ShipmentSource> {
  private let source: Source
  private let plan: ShipmentPlan
  private let sender: LogID
  private let pieceTarget: Int
  /// Whether pieces have digests: those that leave the process.
  private let isDigesting: Bool
  private let bytesReadBefore: UInt64

  private var nextFile = 0
  private var pull: EventPull?
  /// The events of the files behind that one, the next one first.
  private var upcoming: [EventPull] = []
  /// As many as keep two processors busy: what is wanted of them may be in memory, as far as few blocks have it.
  private static var filesAhead: Int { 2 }
  /// How far each stream of the open file was read, but for the one that is being read.
  private var heads = Knowledge()
  /// The stream of the last event: most events are of the same as the one before.
  private var current: OpenStream?
  private var pending: DigestedEvent?
  private var piece = PieceDraft()
  /// A file that travels as it is, as the next piece; `heads` is what the receiver holds before it.
  private var sealed: (file: SealedFile, planned: SourceFile)?
  /// The piece behind the last one that was given, or why there is none.
  private var coming: Result<EncodedPiece?, ReplicationError>?
  /// Raw size of events from which they are worth a file of their own.
  private var sealedSize: Int { pieceTarget / 8 }

  /// Pieces, events and bytes so far.
  package private(set) var pieceCount: UInt64 = 0
  package private(set) var eventCount: UInt64 = 0
  package private(set) var bytesShipped: UInt64 = 0

  /// `bytesReadBefore`: the source's count when planning began, so that footers read by the plan count too.
  package init(
    source: Source, plan: ShipmentPlan, sender: LogID, bytesReadBefore: UInt64,
    pieceTarget: Int = ReplicationLimits.pieceTarget, isDigesting: Bool = true
  ) {
    self.source = source
    self.plan = plan
    self.sender = sender
    self.pieceTarget = pieceTarget
    self.isDigesting = isDigesting
    self.bytesReadBefore = bytesReadBefore
  }

  /// Bytes read from the source since planning began.
  package var bytesRead: UInt64 { source.bytesRead - bytesReadBefore }

  /// What to say to the receiver after the last piece.
  package var end: TransferEnd {
    TransferEnd(pieces: pieceCount, events: eventCount, bytesRead: bytesRead, knowledge: plan.knowledge)
  }

  /// The next piece, or nil after the last. Throws `fork` where the receiver holds other events of a stream
  /// than we do, as soon as the place is reached; `failed` if the log cannot be read or contradicts its own
  /// footers. What lies behind it is read, too.
  package mutating func next() throws(ReplicationError) -> [UInt8]? {
    if coming == nil { coming = begun() }
    guard let piece = try coming?.get() else { return nil }
    coming = begun()
    let bytes: [UInt8]
    do throws(ReplicationError) { bytes = try piece.bytes.take().get() } catch {
      // Nothing goes out behind what does not.
      coming = .failure(error)
      throw error
    }
    guard bytes.count <= ReplicationLimits.piece else {
      throw .failed("a commit takes \(bytes.count) bytes, more than a piece of a shipment can hold")
    }
    pieceCount += 1
    eventCount += UInt64(piece.events)
    bytesShipped += UInt64(bytes.count)
    assert(holds(checkInvariants))
    return bytes
  }

  /// Traps if events would be left out, or come twice. In debug builds at each piece.
  package func checkInvariants() {
    precondition(nextFile <= plan.files.count, "files are read once")
    precondition(pull == nil || nextFile < plan.files.count, "what is read is of a file")
    precondition(pull == nil || sealed == nil, "a file travels as it is, or by its events")
    precondition(upcoming.count <= Self.filesAhead, "memory is bounded")
    precondition(pieceCount <= eventCount, "a piece has an event")
    if let current {
      let head = heads[current.partition, current.origin]
      precondition(current.head.sequence >= head.sequence, "a stream is read forwards")
    }
    piece.checkInvariants()
  }

  private mutating func begun() -> Result<EncodedPiece?, ReplicationError> {
    do throws(ReplicationError) { return .success(try begin()) } catch { return .failure(error) }
  }

  /// Reads what the next piece is made of.
  private mutating func begin() throws(ReplicationError) -> EncodedPiece? {
    if let sealed {
      self.sealed = nil
      return encoded(sealed.file, sealed.planned)
    }
    while let item = try nextEvent() {
      if piece.size >= pieceTarget, item.event.commit != piece.lastCommit {
        pending = item
        break
      }
      try take(item)
    }
    guard piece.events.isEmpty else { return encodedEvents() }
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
      heads = planned.before
      for partition in planned.partitions.sorted() {
        for (origin, head) in heads.streams(of: partition) { try compare(head, partition, origin) }
      }
      if planned.isWhole, let file = try source.sealed(planned.file, atLeast: sealedSize),
        file.end <= UInt64(ReplicationLimits.pieceEvents)
      {
        sealed = (file, planned.file)
        nextFile += 1
        return nil
      }
      pull = opened()
    }
  }

  /// The events of the next file. The files behind it are opened, too, so that other threads take apart what is read of
  /// them; but none that may travel as it is.
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

  /// The file must have given what its footer stated, else hashes that go out would be wrong.
  private mutating func closeFile() throws(ReplicationError) {
    leaveStream()
    let planned = plan.files[nextFile]
    let held = planned.before
    for range in planned.file.streams where planned.partitions.contains(range.partition) {
      let before = held[range.partition, range.origin]
      let head = heads[range.partition, range.origin]
      guard head == StreamHead(sequence: range.to, hash: before.hash + range.hash) else {
        throw .failed(
          "file \(planned.file.number) of the log: \(range.partition), \(range.origin) "
            + "is not what its footer says; run `stemma verify`")
      }
    }
    pull = nil
    nextFile += 1
  }

  private mutating func take(_ item: DigestedEvent) throws(ReplicationError) {
    let event = item.event
    var stream = stream(of: event)
    let before = stream.head
    guard event.dot.sequence == before.sequence.next else {
      throw .failed(
        "the log has \(event.dot) of \(event.partition) after \(before.sequence); run `stemma verify` on that node"
      )
    }
    stream.head = StreamHead(sequence: event.dot.sequence, hash: before.hash + item.digest)
    current = stream
    guard event.dot.sequence > stream.known else {
      try compare(stream.head, event.partition, event.dot.origin)
      return
    }
    if piece.events.count == ReplicationLimits.pieceEvents {
      throw .failed("commit \(event.commit) has more events than a piece of a shipment can hold")
    }
    piece.append(item, hashBefore: before.hash)
  }

  private mutating func stream(of event: Event) -> OpenStream {
    let (partition, origin) = (event.partition, event.dot.origin)
    if let current, current.origin == origin, current.partition == partition { return current }
    leaveStream()
    return OpenStream(
      partition: partition, origin: origin, head: heads[partition, origin],
      known: plan.receiver[partition, origin].sequence)
  }

  private mutating func leaveStream() {
    guard let left = current else { return }
    heads[left.partition, left.origin] = left.head
    current = nil
  }

  /// Where our stream is as long as the receiver's, both must have the same events.
  private func compare(_ head: StreamHead, _ partition: Partition, _ origin: Origin) throws(ReplicationError)
  {
    let theirs = plan.receiver[partition, origin]
    guard head.sequence == theirs.sequence, head.hash != theirs.hash else { return }
    throw .fork(
      Fork(
        partition: partition, origin: origin, sequence: head.sequence,
        finder: Fork.Side(node: plan.names.own, hash: head.hash),
        peer: Fork.Side(node: plan.names.peer, hash: theirs.hash)))
  }

  private mutating func encodedEvents() -> EncodedPiece {
    assert(holds(checkInvariants))
    defer { piece = PieceDraft() }
    return EncodedPiece(events: piece.events.count) {
      [piece, sender, isDigesting, isSealed = piece.size >= sealedSize] () throws(ReplicationError) in
      do throws(LogError) {
        return try piece.encoded(sender: sender, isSealed: isSealed, isDigested: isDigesting)
      } catch { throw .failed(error.description) }
    }
  }

  /// The index of a sealed file is what goes out, if its digest holds, which another thread computes.
  private func encoded(_ sealed: SealedFile, _ planned: SourceFile) -> EncodedPiece {
    EncodedPiece(events: Int(clamping: sealed.events)) {
      [sender, heads, isDigesting] () throws(ReplicationError) in
      let contents: SealedContents
      do throws(LogError) { contents = try sealed.contents() } catch { throw ReplicationError(error) }
      let streams = contents.footer.partitions.flatMap { run in
        run.streams.map { stream in
          ShippedStream(
            range: StreamRange(
              partition: run.partition, origin: stream.origin, from: stream.from, to: stream.to,
              hash: stream.hash),
            hashBefore: heads[run.partition, stream.origin].hash)
        }
      }
      guard streams.map(\.range) == planned.streams, contents.events == sealed.events else {
        throw .failed(
          "file \(planned.number) of the log contradicts itself, or has changed; run `stemma verify`")
      }
      return Piece.encode(sender: sender, streams: streams, sealed: contents, isDigested: isDigesting)
    }
  }
}

/// A piece that is being encoded.
private struct EncodedPiece: Sendable {
  let events: Int
  let bytes: MadeAhead<Result<[UInt8], ReplicationError>>

  init(events: Int, _ encode: @escaping @Sendable () throws(ReplicationError) -> [UInt8]) {
    self.events = events
    bytes = MadeAhead { Result { () throws(ReplicationError) in try encode() } }
  }
}

/// A stream of which events are being taken.
private struct OpenStream {
  let partition: Partition
  let origin: Origin
  /// As far as it was read.
  var head: StreamHead
  /// What the receiver holds of it.
  let known: Sequence
}

/// Gathers the events of one piece.
private struct PieceDraft: Sendable {
  /// By their places in the piece.
  private(set) var events: [BlockEvent] = []
  /// Of the events, at the same indices.
  private var digests: [StreamHash] = []
  private var notes: [CommitID: CommitNote] = [:]
  /// The last one of them: events of a commit follow each other.
  private var lastNoted: CommitID?
  private(set) var size = 0
  private var streams: [Partition: [Origin: ShippedStream]] = [:]
  /// The stream of the last event, not among `streams`.
  private var current: ShippedStream?

  var lastCommit: CommitID? { events.last?.event.commit }

  mutating func append(_ item: DigestedEvent, hashBefore: StreamHash) {
    let event = item.event
    let sequence = event.dot.sequence
    if current?.range.origin != event.dot.origin || current?.range.partition != event.partition {
      leaveStream()
      let fresh = ShippedStream(
        range: StreamRange(
          partition: event.partition, origin: event.dot.origin, from: sequence, to: sequence, hash: .zero),
        hashBefore: hashBefore)
      current = streams[event.partition]?[event.dot.origin] ?? fresh
    }
    current?.range.to = sequence
    current?.range.hash += item.digest
    size += event.rawSize
    if let note = item.note, !note.isEmpty, event.commit != lastNoted {
      notes[event.commit] = note
      lastNoted = event.commit
    }
    events.append(BlockEvent(arrival: UInt64(events.count), event: event))
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
    precondition(notes.keys.allSatisfy(commits.contains), "a note is of a commit of which an event is here")
  }

  /// Throws `.overLimit` where one event is larger than a block may be.
  func encoded(sender: LogID, isSealed: Bool, isDigested: Bool) throws(LogError) -> [UInt8] {
    var streams = streams
    if let current { streams[current.range.partition, default: [:]][current.range.origin] = current }
    let sorted = streams.values.flatMap(\.values).sorted {
      ($0.range.partition, $0.range.origin) < ($1.range.partition, $1.range.origin)
    }
    guard isSealed else {
      return Piece.encode(
        sender: sender, streams: sorted, events: events.map(\.event), notes: notes, isDigested: isDigested)
    }
    let (bytes, sizes) = try SealedContents.encoded(events, notes: notes, digests: digests)
    return Piece.encode(
      sender: sender, streams: sorted, sealed: bytes, sizes, eventCount: events.count, isDigested: isDigested)
  }
}
