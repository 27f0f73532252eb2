/// The effect of an event on its record. The raw values are stored in the log.
package enum EventOperation: UInt8, Sendable, CaseIterable {
  case create = 0
  case update = 1
  case delete = 2
  case link = 3
  case unlink = 4
  case resolve = 5

  package var name: String {
    switch self {
    case .create: "create"
    case .update: "update"
    case .delete: "delete"
    case .link: "link"
    case .unlink: "unlink"
    case .resolve: "resolve"
    }
  }
}

/// One change of one record: the unit of the log.
package struct Event: Hashable, Sendable {
  package var partition: Partition
  /// The model's stored name.
  package var model: String
  package var key: Key
  package var operation: EventOperation
  /// For `link` and `unlink`: the relationship's name.
  package var relationship: String?
  /// The changed fields only, each once, sorted by the bytes of their names. To decide about
  /// existence, a `resolve` assigns true to `Event.existenceField`, and a `delete` assigns false.
  package var assignments: [Assignment]
  package var id: EventID
  package var context: Context
  package var version: Version
  package var timestamp: Timestamp
  package var commit: CommitID
  /// The event that caused this one, such as a delete that cascaded: its partition and id.
  package var cause: QualifiedEventID?

  /// The pseudo field by which an event decides whether the record exists. No schema can declare
  /// it, because schemas reject names that begin with `_`.
  package static let existenceField = "_exists"

  /// Whether the event decides a conflict. `resolve` decides that the record exists. A `delete`
  /// that decides the opposite merges like any other; its assignment of existence distinguishes it.
  package var isDecision: Bool {
    operation == .resolve
      || operation == .delete
        && assignments.contains { $0.field.hasSameBytes(as: Self.existenceField) }
  }

  package init(
    partition: Partition, model: String, key: Key, operation: EventOperation, relationship: String? = nil,
    assignments: [Assignment] = [], id: EventID, context: Context = .empty, version: Version,
    timestamp: Timestamp, commit: CommitID, cause: QualifiedEventID? = nil
  ) {
    self.partition = partition
    self.model = model
    self.key = key
    self.operation = operation
    self.relationship = relationship
    self.assignments = assignments
    self.id = id
    self.context = context
    self.version = version
    self.timestamp = timestamp
    self.commit = commit
    self.cause = cause
  }

  package var name: QualifiedEventID { QualifiedEventID(partition: partition, id: id) }

  /// Hashes only the name: different events hardly ever share one, and values may be long.
  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The global name of an event: its partition, and its id in that partition.
package struct QualifiedEventID: Hashable, Sendable {
  package var partition: Partition
  package var id: EventID

  package init(partition: Partition, id: EventID) {
    self.partition = partition
    self.id = id
  }

  package init(_ event: Event) { self.init(partition: event.partition, id: event.id) }
}

/// An event and its log position in this node.
package struct StoredEvent: Hashable, Sendable {
  package var event: Event
  package var position: Position

  package init(_ event: Event, at position: Position) {
    self.event = event
    self.position = position
  }
}
