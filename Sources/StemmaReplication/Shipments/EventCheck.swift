import StemmaEvents
import StemmaSchema

/// Rules that every event from elsewhere must obey, whatever signed or sealed it.
///
/// What needs the record's state, that the version is exactly one above the highest in the context, is
/// checked where the state is: when the event is applied. Here the version is bounded by what the context
/// allows.
struct EventCheck: Sendable {
  /// By stored name.
  private let models: [String: Model]

  init(schema: Schema) {
    models = Dictionary(schema.models.map { ($0.storedName, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Throws `hostileEvent`, or `gap` if the context names events that are neither held nor came before.
  /// `held`: what is held of the event's partition before it.
  func check(_ event: Event, held: Knowledge) throws(ReplicationError) {
    try checkKey(event)
    let streams = held.partitions[event.partition] ?? [:]
    var depth: UInt64 = 0
    for entry in event.context.entries {
      if entry.origin == event.dot.origin, entry.sequence >= event.dot.sequence {
        throw hostile(event, "its context covers itself")
      }
      let head = (streams[entry.origin] ?? .none).sequence
      guard entry.sequence <= head else {
        throw .gap(event.partition, entry.origin, expected: head.next, found: entry.sequence)
      }
      // Held sequences are at most 2^53 - 1 and entries at most 65536, so only an absurd sum overflows.
      let (sum, overflow) = depth.addingReportingOverflow(entry.sequence.rawValue)
      depth = overflow ? .max : sum
    }
    let version = event.version.rawValue
    guard (1...Limits.highestNumber).contains(version), version - 1 <= depth,
      (version == 1) == event.context.isEmpty
    else { throw hostile(event, "version \(event.version) does not fit its context") }
    guard event.commit.origin == event.dot.origin else {
      throw hostile(event, "its commit \(event.commit) is another origin's")
    }
  }

  /// Where the schema knows the model, the key must have its shape and give the event's partition.
  private func checkKey(_ event: Event) throws(ReplicationError) {
    guard let model = models[event.model] else { return }
    var parts: [KeyPart] = []
    do throws(EventsError) {
      var index = 0
      while index < event.key.bytes.count { parts.append(try Key.decodePart(event.key.bytes, &index)) }
    } catch {
      throw hostile(event, "its key cannot be read")
    }
    guard parts.count == model.keyFields.count else {
      throw hostile(event, "its key has \(parts.count) parts, \(model.name) has \(model.keyFields.count)")
    }
    for (part, index) in zip(parts, model.keyFields) where !model.fields[index].type.admits(part) {
      throw hostile(event, "its key's \(model.fields[index].name) has the wrong type")
    }
    let partition = Partition(model: model, key: event.key)
    guard partition == event.partition else {
      throw hostile(event, "its key belongs to partition \(partition)")
    }
  }

  private func hostile(_ event: Event, _ why: String) -> ReplicationError { .hostileEvent(event.name, why) }
}

extension FieldType {
  /// Whether a key part has the type that values of this field have in keys.
  fileprivate func admits(_ part: KeyPart) -> Bool {
    switch (scalar, part) {
    case (.int, .int), (.awsTimestamp, .int), (.float, .double), (.boolean, .bool): true
    case (.int, _), (.awsTimestamp, _), (.float, _), (.boolean, _): false
    case (_, .string): true
    default: false
    }
  }
}
