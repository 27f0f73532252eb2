import StemmaEvents
import StemmaSchema

/// Rules for every event from another node, regardless of signatures and checksums.
///
/// The upper bound of the version, one above the record's, needs the record's state and is checked
/// when the event is applied. Here the context bounds the version.
struct EventCheck: Sendable {
  /// By stored name.
  private let models: [String: Model]

  init(schema: Schema) {
    models = Dictionary(schema.models.map { ($0.storedName, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Throws `hostileEvent`, or `gap` if the context names events that are neither held nor received
  /// earlier. `held`: the events before this one.
  func check(_ event: Event, held: VersionVector) throws(ReplicationError) {
    try checkKey(event)
    let streams = held.partitions[event.partition] ?? [:]
    var depth: UInt64 = 0
    for entry in event.context.entries {
      if entry.origin == event.id.origin, entry.sequence >= event.id.sequence {
        throw hostile(event, "its context covers itself")
      }
      let head = (streams[entry.origin] ?? .none).sequence
      guard entry.sequence <= head else {
        throw .gap(event.partition, entry.origin, expected: head.next, found: entry.sequence)
      }
      // Sequences are at most 2^53 - 1 and entries at most 65536, so only an absurd sum overflows.
      let (sum, overflow) = depth.addingReportingOverflow(entry.sequence.rawValue)
      depth = overflow ? .max : sum
    }
    guard Self.fits(event.version, depth: depth, isContextEmpty: event.context.isEmpty) else {
      throw hostile(event, "version \(event.version) does not fit its context")
    }
    guard event.commit.origin == event.id.origin else {
      throw hostile(event, "its commit \(event.commit) is another origin's")
    }
  }

  /// `depth`: the sum of the context's sequences, which a version exceeds by at most one.
  static func fits(_ version: Version, depth: UInt64, isContextEmpty: Bool) -> Bool {
    let number = version.rawValue
    return (1...Limits.highestNumber).contains(number) && number - 1 <= depth
      && (number == 1) == isContextEmpty
  }

  private func checkKey(_ event: Event) throws(ReplicationError) {
    guard var model = model(event.model, in: event.partition) else { return }
    if let objection = event.key.bytes.withUnsafeBytes({ model.objection(to: $0) }) {
      throw hostile(event, objection)
    }
  }

  /// The check for a model's records in a partition; nil if the schema lacks the model.
  func model(_ name: String, in partition: Partition) -> ModelCheck? {
    models[name].map { ModelCheck($0, partition) }
  }

  /// Checks that record keys have their model's shape and belong to their events' partition.
  struct ModelCheck {
    private let model: Model
    private let partition: Partition
    private let types: [FieldType]
    /// The leading parts of the last valid key, whose partition also applies to the next key.
    private var leading: [UInt8]?

    fileprivate init(_ model: Model, _ partition: Partition) {
      self.model = model
      self.partition = partition
      types = model.keyFields.map { model.fields[$0].type }
    }

    /// The defect of a key; nil if there is none.
    mutating func objection(to bytes: UnsafeRawBufferPointer) -> String? {
      var (index, count, leadingEnd) = (0, 0, 0)
      while index < bytes.count {
        guard let type = Key.partType(bytes, &index) else { return "its key cannot be read" }
        if count < types.count, !types[count].admits(type) {
          return "its key's \(model.fields[model.keyFields[count]].name) has the wrong type"
        }
        count += 1
        if count == model.partitionDepth { leadingEnd = index }
      }
      guard count == types.count else {
        return "its key has \(count) parts, \(model.name) has \(types.count)"
      }
      let start = UnsafeRawBufferPointer(rebasing: bytes[..<leadingEnd])
      if let leading, leading.elementsEqual(start) { return nil }
      let expected = Partition(model: model, key: Key(trusted: Array(bytes)))
      guard expected == partition else { return "its key belongs to partition \(expected)" }
      leading = Array(start)
      return nil
    }
  }

  private func hostile(_ event: Event, _ why: String) -> ReplicationError { .hostileEvent(event.name, why) }
}

extension FieldType {
  /// Whether keys store values of this field as parts of a type.
  fileprivate func admits(_ part: Key.PartType) -> Bool {
    switch scalar {
    case .int, .awsTimestamp: part == .int
    case .float: part == .double
    case .boolean: part == .bool
    default: part == .string
    }
  }
}
