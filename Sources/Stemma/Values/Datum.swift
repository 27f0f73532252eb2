import StemmaEvents

/// A value in the form that events and tables store.
public struct Datum: Sendable, Hashable {
  package var value: Value

  package init(_ value: Value) { self.value = value }

  /// No value; SQL's NULL.
  public static let null = Datum(.null)
  /// A Boolean; 0 or 1 in the table.
  public static func boolean(_ flag: Bool) -> Datum { Datum(.bool(flag)) }
  /// A whole number of 64 bits.
  public static func integer(_ number: Int64) -> Datum { Datum(.int(number)) }
  /// -0 becomes 0; a write refuses NaN and infinities.
  public static func real(_ number: Double) -> Datum { Datum(.double(number == 0 ? 0 : number)) }
  /// Text, with its exact bytes; up to 16 MiB of UTF-8 in a column.
  public static func text(_ text: String) -> Datum { Datum(.string(text)) }
  /// Text that is JSON.
  static func json(_ json: JSON) -> Datum { Datum(.json(json.canonicalText)) }

  /// Whether it is SQL's NULL. The JSON text `null` is not.
  public var isNull: Bool { value.isNull }

  /// Whether it is NaN, which equals nothing.
  var isNaN: Bool { if case .double(let number) = value { number.isNaN } else { false } }

  /// False for NaN and infinities, which JSON and some columns cannot represent.
  var isStorable: Bool { if case .double(let number) = value { number.isFinite } else { true } }
}
