import StemmaEvents

/// Takes the values of a record or a draft, in the order of the table's description: key parts, then the other
/// columns.
public struct RecordWriter {
  /// Nil for a part that is to be minted.
  var key: [KeyPart?] = []
  var values: [Value] = []

  init() {}

  /// Takes the next part of the key; nil for one that is to be minted, which only a part named `id` can be.
  public mutating func key(_ value: (some KeyValue)?) {
    key.append(value.flatMap { KeyPart($0.keyDatum.value) })
  }

  /// Takes the next column that is no part of the key.
  public mutating func value(_ value: some ColumnValue) { values.append(value.datum.value) }

  /// Takes a value that is stored as a representation of it.
  public mutating func represented<Representation: ColumnRepresentation>(
    _ value: Representation.Represented, as type: Representation.Type
  ) { values.append(Representation(representing: value).datum.value) }

  /// As above, of a property that is never set.
  public mutating func constant<Representation: ColumnRepresentation>(
    _ value: Representation.Represented, as type: Representation.Type
  ) { represented(value, as: type) }
}
