import StemmaEvents
import StemmaHistory
import StemmaNode

/// One change of one record, from the log.
public struct RecordEvent: Sendable, Hashable, Identifiable {
  /// The kind of change that an event makes to its record.
  ///
  /// The cases `link` and `unlink` write the fields of a reference, `resolve` decides a conflict.
  /// Each record deleted by a cascade has its own event.
  public enum Operation: String, Sendable {
    case create, update, delete, link, unlink, resolve
  }

  /// `node:number`; with the partition, it identifies the event on every node.
  public let name: String
  /// The record's partition, the unit of filters and transfers: `folder=f`, or the model's name.
  public let partition: String
  /// The model's name in the schema; the event's own name if this node's schema has no such model.
  public let model: String
  /// The key in the tool's spelling.
  public let key: String
  /// The change that it makes to the record.
  public let operation: Operation
  /// For `link` and `unlink`: the relationship whose reference fields are written.
  public let relationship: String?
  /// When it was made, in milliseconds, by its writer's clock, which is never behind times that the
  /// node has seen; for an import, the imported time. Events need not be in time order.
  public let time: Date
  /// The node that made it, by name.
  public let origin: String
  /// Identifies the events that were written together.
  public let commit: String
  /// The author of the commit, if it names one.
  public let author: String?
  /// The message of the commit, if it has one.
  public let message: String?
  /// The values that it writes, by field.
  public let fields: [String: Datum]
  let position: Position
  private let keyValues: [Value]

  /// Identifies an event on every node.
  public struct ID: Hashable, Sendable {
    let partition: String
    let name: String
  }

  /// Its name with its partition.
  public var id: ID { ID(partition: partition, name: name) }

  init(_ stored: StoredEvent, _ message: CommitMessage, _ description: EventDescription) {
    let event = stored.event
    name = description.name(event.id)
    partition = event.partition.description
    model = description.modelName(event)
    key = description.keyText(event)
    operation = Operation(rawValue: event.operation.name) ?? .update
    relationship = event.relationship
    time = Date(timeIntervalSince1970: Double(event.timestamp.milliseconds) / 1000)
    origin = description.originName(event.id.origin)
    commit = description.name(event.commit)
    author = message.author
    self.message = message.text
    let model = description.model(of: event)
    fields = Dictionary(
      event.assignments.map { (description.fieldName($0.field, model), Datum($0.value)) },
      uniquingKeysWith: { first, _ in first })
    position = stored.position
    keyValues = event.key.parts.map(\.value)
  }

  /// The key of the record.
  ///
  /// - Throws: `models` for another model's record, `unreadable` if the key does not fit the type.
  public func key<Row: Table>(of type: Row.Type) throws(StoreError) -> Row.PrimaryKey {
    try Row.key(of: model) { _ in keyValues }
  }

  /// The value that it writes to a property's column: `event.value(\.title, of: Task.self)`. Nil if
  /// it does not write that column, or is of another model.
  ///
  /// - Throws: `unreadable` if the value does not fit the property's type.
  public func value<Row: Table, Value: ColumnValue>(
    _ column: KeyPath<Row.Columns, TableColumn<Row, Value>>, of type: Row.Type = Row.self
  ) throws(StoreError) -> Value? {
    model == Row.modelName ? try value(of: Row.columns[keyPath: column].name, as: Value.self) : nil
  }

  /// As above, for a property that is stored as a representation of it.
  public func value<Row: Table, Representation: ColumnRepresentation>(
    _ column: KeyPath<Row.Columns, TableColumn<Row, Representation>>, of type: Row.Type = Row.self
  ) throws(StoreError) -> Representation.Represented? {
    guard model == Row.modelName else { return nil }
    return try value(of: Row.columns[keyPath: column].name, as: Representation.self)?.represented
  }

  /// The value that it writes to a field; nil if it does not write it.
  public func value<Value: ColumnValue>(of field: String, as type: Value.Type) throws(StoreError) -> Value? {
    guard let datum = fields[field] else { return nil }
    return try Value(datum: datum)
  }
}

/// A point in a store's history.
public enum PointInTime: Sendable {
  /// The state after all events with times up to this one; nodes with the same events agree on it.
  case time(Date)
  /// The state of this node when the event was its newest.
  case event(RecordEvent)

  var position: StemmaHistory.PointInTime {
    switch self {
    case .time(let date):
      .time(Timestamp(milliseconds: Self.milliseconds(of: date), counter: .max))
    case .event(let event): .position(event.position)
    }
  }

  /// Limits a date to the range of event times.
  private static func milliseconds(of date: Date) -> UInt64 {
    let milliseconds = date.timeIntervalSince1970 * 1000
    return milliseconds > 0 ? UInt64(min(milliseconds, Double(Timestamp.latestMilliseconds))) : 0
  }
}
