import StemmaEvents

/// Collects the values of a record or a draft, in the order of the table's description: key parts,
/// then the other columns.
public struct RecordWriter {
  /// Nil for a part to mint.
  var key: [KeyPart?] = []
  var values: [Value] = []

  init() {}

  /// Adds the next key part; nil for one to mint, which only a part named `id` can be.
  public mutating func key(_ value: (some KeyValue)?) {
    key.append(value.flatMap { KeyPart($0.keyDatum.value) })
  }

  /// Adds the next column that is no key part.
  public mutating func value(_ value: some ColumnValue) { values.append(value.datum.value) }

  /// Adds a value that is stored as a representation of it.
  public mutating func represented<Representation: ColumnRepresentation>(
    _ value: Representation.Represented, as type: Representation.Type
  ) { values.append(Representation(representing: value).datum.value) }

  /// As above, for a property that is never set.
  public mutating func constant<Representation: ColumnRepresentation>(
    _ value: Representation.Represented, as type: Representation.Type
  ) { represented(value, as: type) }
}
