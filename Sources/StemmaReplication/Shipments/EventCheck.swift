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
    guard Self.fits(event.version, depth: depth, isContextEmpty: event.context.isEmpty) else {
      throw hostile(event, "version \(event.version) does not fit its context")
    }
    guard event.commit.origin == event.dot.origin else {
      throw hostile(event, "its commit \(event.commit) is another origin's")
    }
  }

  /// `depth`: the sum of the sequences in the context, which no version can exceed by more than one.
  static func fits(_ version: Version, depth: UInt64, isContextEmpty: Bool) -> Bool {
    let number = version.rawValue
    return (1...Limits.highestNumber).contains(number) && number - 1 <= depth
      && (number == 1) == isContextEmpty
  }

  private func checkKey(_ event: Event) throws(ReplicationError) {
    let objection = event.key.bytes.withUnsafeBytes {
      model(event.model, in: event.partition)?.objection(to: $0)
    }
    if let objection { throw hostile(event, objection) }
  }

  /// For the records of a model in a partition; nil if the schema does not know it.
  func model(_ name: String, in partition: Partition) -> ModelCheck? {
    models[name].map { ModelCheck(model: $0, partition: partition) }
  }

  /// Whether the keys of records have the shape of their model, and give the partition of their events.
  struct ModelCheck {
    fileprivate let model: Model
    fileprivate let partition: Partition

    /// What is wrong with a key; nil: nothing.
    func objection(to bytes: UnsafeRawBufferPointer) -> String? {
      let key = Key(trusted: Array(bytes))
      var parts: [KeyPart] = []
      do throws(EventsError) {
        var index = 0
        while index < key.bytes.count { parts.append(try Key.decodePart(key.bytes, &index)) }
      } catch {
        return "its key cannot be read"
      }
      guard parts.count == model.keyFields.count else {
        return "its key has \(parts.count) parts, \(model.name) has \(model.keyFields.count)"
      }
      for (part, index) in zip(parts, model.keyFields) where !model.fields[index].type.admits(part) {
        return "its key's \(model.fields[index].name) has the wrong type"
      }
      let expected = Partition(model: model, key: key)
      return expected == partition ? nil : "its key belongs to partition \(expected)"
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
