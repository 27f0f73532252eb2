import StemmaEvents
import StemmaHistory
import StemmaNode

/// Concurrent changes that do not fit together. The record shows one of them; the conflict stays
/// listed until a decision, or a new write of the field.
public struct Conflict: Sendable, Identifiable {
  /// The kinds of conflicts.
  public enum Kind: String, Sendable {
    /// A field, or several that are written together, has differing values.
    case value
    /// The record was deleted, and changed or created again.
    case delete
    /// Several records refer to one whose `@HasOne` shows one. Link or delete the others.
    case cardinality
    /// A reference leads to no record: it was deleted, is not received yet, or never existed.
    /// References to partitions that this store does not hold are not listed.
    case dangling
  }

  /// One of the changes.
  public struct Candidate: Sendable, Identifiable {
    /// The event that made it.
    public var id: String { event }
    /// The place from 1, which is the candidate that is shown.
    public let number: Int
    /// The event that made it, in the tool's spelling.
    public let event: String
    /// The length of the history that it builds on; the longest history is shown.
    public let version: UInt64
    /// When it was made, in milliseconds, by its writer's clock. It decides only between equal
    /// versions, or between values under the policy `.latest`.
    public let time: Date
    /// The node that made it, by name.
    public let origin: String
    /// The author of the commit, if it names one.
    public let author: String?
    /// Whether it is a decision about an earlier conflict.
    public let isResolution: Bool
    let json: JSON
    let eventID: EventID
    /// The field of the conflict, if it is about one.
    let field: String?

    /// The candidate's value for a property's column: `candidate.value(\.title, of: Task.self)`.
    /// Nil if the conflict is not about that column.
    ///
    /// - Throws: `unreadable` if the value does not fit the property's type.
    public func value<Row: Table, Value: ColumnValue>(
      _ column: KeyPath<Row.Columns, TableColumn<Row, Value>>, of type: Row.Type = Row.self
    ) throws(StoreError) -> Value? {
      let name = Row.columns[keyPath: column].name
      return field == name ? try value(as: Value.self) : try value(of: name, as: Value.self)
    }

    /// As above, for a property that is stored as a representation of it.
    public func value<Row: Table, Representation: ColumnRepresentation>(
      _ column: KeyPath<Row.Columns, TableColumn<Row, Representation>>, of type: Row.Type = Row.self
    ) throws(StoreError) -> Representation.Represented? {
      let name = Row.columns[keyPath: column].name
      return field == name
        ? try value(as: Representation.self).represented
        : try value(of: name, as: Representation.self)?.represented
    }

    /// The candidate's value for the field.
    ///
    /// - Throws: `unreadable` if it does not fit this type.
    public func value<Value: ColumnValue>(as type: Value.Type) throws(StoreError) -> Value {
      try Value(datum: Datum(json.value(as: type.columnType)))
    }

    /// The value of a field in a conflict about a reference or a whole record; nil if none.
    public func value<Value: ColumnValue>(
      of field: String, as type: Value.Type
    ) throws(StoreError) -> Value? {
      guard case .object(let members) = json, let member = members.first(where: { $0.name == field }) else {
        return nil
      }
      return try Value(datum: Datum(member.value.value(as: type.columnType)))
    }

    /// For a `delete` conflict: whether the record exists after this change.
    public var exists: Bool { if case .bool(false) = json { false } else { true } }
  }

  /// The kind, which limits the decisions: `keep` and `delete` are for deletions only.
  public let kind: Kind
  /// The model's name in the schema.
  public let model: String
  /// The key in the tool's spelling.
  public let key: String
  /// The field, or the relationship of the reference fields in conflict; nil for `delete`, and for
  /// a whole record under the policy `.optimistic`.
  public let field: String?
  /// The conflicting changes; the first one is shown.
  public let candidates: [Candidate]
  let keyJSON: JSON

  /// Identifies a conflict among all open ones, independent of its candidates.
  public struct ID: Hashable, Sendable {
    let model: String
    let key: String
    let kind: Kind
    let field: String?
  }

  /// Equal for a conflict that is listed again, also with another candidate.
  public var id: ID { ID(model: model, key: key, kind: kind, field: field) }

  /// The key of the record.
  ///
  /// - Throws: `models` for another model's record, `unreadable` if the key does not fit the type.
  public func key<Row: Table>(of type: Row.Type) throws(StoreError) -> Row.PrimaryKey {
    try Row.key(of: model) { columns in
      if columns.count == 1, let column = columns.first { return [keyJSON.value(as: column.type)] }
      guard case .object(let members) = keyJSON else { return [] }
      return columns.compactMap { column in
        members.first { $0.name == column.name }?.value.value(as: column.type)
      }
    }
  }

  /// Identifies the conflict with its current candidates.
  var identity: [String] { [model, key, kind.rawValue, field ?? ""] + candidates.map(\.event) }

  init(_ conflict: ConflictDescription) {
    kind =
      switch conflict.kind {
      case .value: .value
      case .delete: .delete
      case .cardinality: .cardinality
      case .dangling: .dangling
      }
    model = conflict.model
    key = conflict.keyText
    field = conflict.field
    keyJSON = conflict.key
    // In conflicts about a reference or a whole record, the candidates name their fields.
    let field = conflict.fields.first { $0 == conflict.field }
    candidates = conflict.candidates.map {
      Candidate(
        number: $0.number, event: $0.event, version: $0.version,
        time: Date(timeIntervalSince1970: Double($0.timestamp.milliseconds) / 1000), origin: $0.origin,
        author: $0.author, isResolution: $0.isResolution, json: $0.value, eventID: $0.id, field: field)
    }
  }
}

extension Conflict: Hashable {
  /// Whether they are one conflict with the same candidates.
  public static func == (a: Conflict, b: Conflict) -> Bool { a.id == b.id && a.candidates == b.candidates }
  /// By what is in conflict.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension Conflict.Candidate: Hashable {
  /// Whether they are one change, at the same place of the order.
  public static func == (a: Self, b: Self) -> Bool {
    (a.number, a.event, a.eventID, a.isResolution) == (b.number, b.event, b.eventID, b.isResolution)
      && a.json.text == b.json.text
  }
  /// By its event.
  public func hash(into hasher: inout Hasher) { hasher.combine(eventID) }
}

extension Table {
  /// The key of a record of the model `name`, from the parts that `values` returns.
  static func key(
    of name: String, _ values: (ArraySlice<ModelDescription.Column>) -> [Value]
  ) throws(StoreError) -> PrimaryKey {
    guard name == modelName else { throw .models("a record of \(name) has no key of \(modelName)") }
    let values = values(description.key)
    guard values.count == description.keyCount else {
      throw .models("the node's \(name) has another key than the type \(Self.self)")
    }
    let source = RowSource(nil)
    source.show(values, .empty)
    return try withExtendedLifetime(source) { () throws(StoreError) in
      try PrimaryKey.readKey(RowReader(source, nil))
    }
  }
}

/// A decision about a conflict.
public struct Resolution: Sendable {
  let decision: StemmaNode.Resolution

  /// The candidate's value or state.
  public static func take(_ candidate: Conflict.Candidate) -> Resolution {
    Resolution(decision: .takeEvent(candidate.eventID))
  }
  /// Another value.
  public static func set(_ value: some ColumnValue) -> Resolution {
    Resolution(decision: .set(value.datum.value.json))
  }
  /// The candidate that is shown.
  public static let shown = Resolution(decision: .shown)
  /// The candidate with the latest time.
  public static let newest = Resolution(decision: .newest)
  /// The record stays, although it was deleted.
  public static let keep = Resolution(decision: .keep)
  /// The record is deleted.
  public static let delete = Resolution(decision: .delete)
}
