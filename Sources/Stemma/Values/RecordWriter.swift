import StemmaEvents

/// Takes the values of a record or a draft, in the order of the table's description: key parts, then the other
/// columns.
public struct RecordWriter {
  /// Nil for a part that is to be minted.
  var key: [KeyPart?] = []
  var values: [Value] = []

  init() {}

  public mutating func key(_ value: (some KeyValue)?) {
    key.append(value.flatMap { KeyPart($0.datum.value) })
  }

  public mutating func value(_ value: some ColumnValue) { values.append(value.datum.value) }

  /// Takes a value that is stored as a representation of it; nil is null.
  public mutating func represented<Representation: ColumnRepresentation>(
    _ value: Representation.Represented?, as type: Representation.Type
  ) {
    values.append(value.map { Representation(representing: $0).datum.value } ?? .null)
  }
}
