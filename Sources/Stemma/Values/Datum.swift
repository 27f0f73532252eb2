import StemmaEvents

/// A value in the form in which events and tables hold it.
public struct Datum: Sendable, Hashable {
  package var value: Value

  package init(_ value: Value) { self.value = value }

  public static let null = Datum(.null)
  public static func boolean(_ flag: Bool) -> Datum { Datum(.bool(flag)) }
  public static func integer(_ number: Int64) -> Datum { Datum(.int(number)) }
  /// NaN and infinities are refused when they are written; -0 is 0.
  public static func real(_ number: Double) -> Datum { Datum(.double(number == 0 ? 0 : number)) }
  public static func text(_ text: String) -> Datum { Datum(.string(text)) }
  /// Text that is JSON.
  static func json(_ json: JSON) -> Datum { Datum(.json(json.canonicalText)) }

  public var isNull: Bool { value.isNull }
}
