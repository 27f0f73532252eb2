import StemmaEvents
import StemmaSimulation

/// Events of every kind, in a possible position order of a log.
struct RandomEvents {
  private var random: SplitMix64
  private let origins: [Origin]
  private var sequences: [QualifiedEventID: UInt64] = [:]
  private var known: [String: Context] = [:]
  private var versions: [String: UInt64] = [:]
  private var relativePosition: UInt64 = 0
  private var milliseconds: UInt64 = 1_700_000_000_000

  init(seed: UInt64) {
    random = SplitMix64(seed: seed)
    var origins: [Origin] = []
    for _ in 0..<3 { origins.append(Origin(random.next())) }
    self.origins = origins
  }

  mutating func events(_ count: Int) -> [BlockEvent] { (0..<count).map { _ in event() } }

  mutating func event() -> BlockEvent {
    let (partition, model, key) = record()
    let id = id(in: partition)
    let name = "\(partition) \(model) \(key.bytes)"
    var context = known[name] ?? .empty
    var version = (versions[name] ?? 0) + 1
    switch Int.random(in: 0..<10, using: &random) {
    case 0:
      context = .empty
      version = 1
    case 1: version = UInt64.random(in: 1...Limits.highestNumber, using: &random)
    default: break
    }
    var after = context
    after.insert(id)
    known[name] = after
    versions[name] = min(version, 1 << 40)
    milliseconds =
      Int.random(in: 0..<8, using: &random) == 0
      ? UInt64.random(in: 0..<1 << 48, using: &random) : (milliseconds + 3) % (1 << 48)
    relativePosition +=
      Int.random(in: 0..<3, using: &random) == 0 ? UInt64.random(in: 1..<1000, using: &random) : 1
    let operation = EventOperation.allCases.randomElement(using: &random) ?? .create
    let event = Event(
      partition: partition, model: model, key: key, operation: operation,
      relationship: operation == .link || operation == .unlink ? "team" : nil, assignments: assignments(),
      id: id, context: context, version: Version(version),
      timestamp: Timestamp(
        milliseconds: milliseconds, counter: UInt16(truncatingIfNeeded: relativePosition % 5)),
      commit: commit(id.origin), cause: cause(partition))
    return BlockEvent(relativePosition: relativePosition, event: event)
  }

  private mutating func record() -> (Partition, String, Key) {
    let number = Int64.random(in: 0..<6, using: &random)
    switch Int.random(in: 0..<9, using: &random) {
    case 0: return (Partition("Book"), "Book", Key(.string(text())))
    case 1: return (Partition("Track"), "Track", Key(.int(integer())))
    case 2: return (Partition("tenant=\(number)"), "Task", Key(.int(number), .string("t\(number % 2)")))
    case 3: return (Partition("tenant=\(number)"), "Note", Key(.string("\(number)"), .double(0.5)))
    case 4: return (Partition("tenant=a%2Cb%25"), "Task", Key(.string("a,b%"), .string(text())))
    case 5: return (Partition("flag=true"), "Flag", Key(.bool(true), .string(uuid())))
    case 6: return (Partition("Commit"), "Commit", Key(.string(hex())))
    case 7: return (Partition("a=1,b=2"), "Deep", Key(.int(1), .int(2), .int(number)))
    default: return (Partition("Session"), "Session", Key(.string(uuid())))
    }
  }

  private mutating func id(in partition: Partition) -> EventID {
    let origin = origins[Int.random(in: 0..<3, using: &random)]
    let stream = QualifiedEventID(partition: partition, id: EventID(origin, .zero))
    let gap = Int.random(in: 0..<5, using: &random) == 0 ? UInt64.random(in: 1..<300, using: &random) : 1
    sequences[stream, default: 0] += gap
    return EventID(origin, SequenceNumber(sequences[stream, default: 0]))
  }

  private mutating func commit(_ origin: Origin) -> CommitID {
    let isOther = Int.random(in: 0..<10, using: &random) == 0
    return CommitID(isOther ? Origin(7) : origin, relativePosition / 10)
  }

  private mutating func cause(_ partition: Partition) -> QualifiedEventID? {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: QualifiedEventID(partition: partition, id: EventID(origins[0], SequenceNumber(1)))
    case 1: QualifiedEventID(partition: Partition("elsewhere=é"), id: EventID(Origin(9), SequenceNumber(5)))
    default: nil
    }
  }

  private mutating func assignments() -> [Assignment] {
    var assignments: [Assignment] = []
    for name in ["Upper", "_exists", "blob", "count", "createdAt", "day", "name", "owner", "price", "tags"] {
      guard Bool.random(using: &random) else { continue }
      assignments.append(Assignment(name, value(name)))
    }
    return assignments
  }

  private mutating func value(_ name: String) -> Value {
    if Int.random(in: 0..<8, using: &random) == 0 { return .null }
    switch name {
    case "_exists": return .bool(Bool.random(using: &random))
    case "blob": return .string(hex())
    case "count": return .int(integer())
    case "createdAt": return .string("2025-11-08T0\(relativePosition % 10):00:00Z")
    case "day": return .string("2024-02-2\(relativePosition % 10)")
    case "owner": return .string(uuid())
    case "price": return .double(Double(Int.random(in: -999...999, using: &random)) / 100)
    case "tags": return .json("[\"\(relativePosition)\"]")
    case "Upper": return .double(Double.random(in: -1e300...1e300, using: &random))
    default: return .string(text())
    }
  }

  private mutating func integer() -> Int64 {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: Int64.max
    case 1: Int64.min
    case 2: Int64(bitPattern: random.next())
    default: Int64.random(in: -300...300, using: &random)
    }
  }

  private mutating func text() -> String {
    let texts = [
      "", "\0", "a\0b\0", "é", "e\u{301}", "日本語", "🏴‍☠️", "plain", "plainer",
      String(repeating: "long ", count: 40), "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}",
    ]
    return texts[Int.random(in: 0..<texts.count, using: &random)]
  }

  private mutating func hex() -> String { Origin(random.next()).description }

  private mutating func uuid() -> String {
    let digits = hex() + hex()
    let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { range in
      String(digits.dropFirst(range.lowerBound).prefix(range.count))
    }
    return parts.joined(separator: "-")
  }
}

/// The block of these events.
func block(_ events: [BlockEvent], messages: [(CommitID, CommitMessage)] = [], level: Int32 = 6) -> [UInt8] {
  var writer = BlockWriter(level: level)
  for event in events { writer.append(event.event, relativePosition: event.relativePosition) }
  for (commit, message) in messages { writer.setMessage(message, of: commit) }
  return writer.finish()
}

func order(_ a: BlockEvent, _ b: BlockEvent) -> Bool {
  if a.event.partition != b.event.partition { return a.event.partition < b.event.partition }
  if a.event.model != b.event.model { return a.event.model.hasBytes(before: b.event.model) }
  if a.event.key != b.event.key { return a.event.key < b.event.key }
  return a.relativePosition < b.relativePosition
}
