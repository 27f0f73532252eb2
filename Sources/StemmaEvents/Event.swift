/// What an event does to its record. The raw values stand in the log.
package enum Operation: UInt8, Sendable, CaseIterable {
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
  package var operation: Operation
  /// For `link` and `unlink`: the relationship's name.
  package var relationship: String?
  /// Only what changed. Sorted by the bytes of the field's name, each field once. A `resolve` of existence
  /// assigns `Event.existenceField`, as true; a `delete` that decides a conflict does so, too, as false.
  package var assignments: [Assignment]
  package var dot: Dot
  package var context: Context
  package var version: Version
  package var timestamp: Timestamp
  package var commit: CommitID
  /// The event that made this one, for example the delete that cascaded: its partition and dot.
  package var cause: EventName?

  /// The pseudo field by which an event decides whether the record exists. No schema can declare it:
  /// names that begin with `_` are refused.
  package static let existenceField = "_exists"

  /// Whether somebody decided a conflict by it. That a record goes is decided by a `delete`, which merges like any other
  /// (`resolve` says that the record exists) and is told from an ordinary one by what it assigns.
  package var isDecision: Bool {
    operation == .resolve
      || operation == .delete
        && assignments.contains { $0.field.hasSameBytes(as: Self.existenceField) }
  }

  package init(
    partition: Partition, model: String, key: Key, operation: Operation, relationship: String? = nil,
    assignments: [Assignment] = [], dot: Dot, context: Context = .empty, version: Version,
    timestamp: Timestamp, commit: CommitID, cause: EventName? = nil
  ) {
    self.partition = partition
    self.model = model
    self.key = key
    self.operation = operation
    self.relationship = relationship
    self.assignments = assignments
    self.dot = dot
    self.context = context
    self.version = version
    self.timestamp = timestamp
    self.commit = commit
    self.cause = cause
  }

  package var name: EventName { EventName(partition: partition, dot: dot) }

  /// Of the name alone: events of one name are hardly ever different, and values may be long.
  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The name of an event anywhere: a dot and the partition in which it counts.
package struct EventName: Hashable, Sendable {
  package var partition: Partition
  package var dot: Dot

  package init(partition: Partition, dot: Dot) {
    self.partition = partition
    self.dot = dot
  }

  package init(_ event: Event) { self.init(partition: event.partition, dot: event.dot) }
}

/// An event and when this node came to hold it.
package struct StoredEvent: Hashable, Sendable {
  package var event: Event
  package var position: Position

  package init(_ event: Event, at position: Position) {
    self.event = event
    self.position = position
  }
}
