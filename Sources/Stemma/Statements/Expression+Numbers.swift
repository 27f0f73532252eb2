import StemmaTables

/// A number, or an optional one: the operand of arithmetic expressions.
///
/// Integers that overflow become floating-point in SQLite; reading such a value as `Int` throws.
public protocol NumberValue: ColumnValue {
  /// The type of a sum; null if no row has a value. A sum beyond 64 bits makes the read throw.
  associatedtype Sum: ColumnValue = Int?
}
extension Int: NumberValue {}
extension Int64: NumberValue {
  /// Of 64 bits on every machine.
  public typealias Sum = Int64?
}
extension Int32: NumberValue {}
extension Int16: NumberValue {}
extension Int8: NumberValue {}
extension UInt32: NumberValue {}
extension UInt16: NumberValue {}
extension UInt8: NumberValue {}
extension Float: NumberValue {
  /// Of 64 bits; null if no row has a value.
  public typealias Sum = Double?
}
extension Double: NumberValue {
  /// Null if no row has a value.
  public typealias Sum = Double?
}
extension Optional: NumberValue where Wrapped: NumberValue {
  /// That of the wrapped type: rows without a value are skipped.
  public typealias Sum = Wrapped.Sum
}

extension ExpressionProtocol {
  fileprivate func calculated(_ operation: String, _ other: StatementText) -> ColumnExpression<Value> {
    ColumnExpression(.combination(text, operation, other))
  }
}

/// The sum; null for null.
public func + <Value: NumberValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Value> {
  a.calculated(" + ", StatementText(value: b))
}
/// The difference; null for null.
public func - <Value: NumberValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Value> {
  a.calculated(" - ", StatementText(value: b))
}
/// The product; null for null.
public func * <Value: NumberValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Value> {
  a.calculated(" * ", StatementText(value: b))
}
/// The sum; null where one of them is.
public func + <Value: NumberValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Value> { a.calculated(" + ", b.text) }
/// The difference; null where one of them is.
public func - <Value: NumberValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Value> { a.calculated(" - ", b.text) }
/// The product; null where one of them is.
public func * <Value: NumberValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Value> { a.calculated(" * ", b.text) }

/// Null where the divisor is 0.
public func / <Value: NumberValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Value?> {
  ColumnExpression(.combination(a.text, " / ", StatementText(value: b)))
}

// MARK: Over many rows

extension ExpressionProtocol {
  /// The number of rows with a value, or of different values.
  public func count(distinct: Bool = false) -> ColumnExpression<Int> {
    guard distinct else { return ColumnExpression(.call("count", text, isAggregate: true)) }
    var different = StatementText("DISTINCT ")
    different.append(groupedText)
    return ColumnExpression(.call("count", different, isAggregate: true))
  }
}

extension ExpressionProtocol where Value: NumberValue {
  /// Null if there is no value.
  public func sum() -> ColumnExpression<Value.Sum> { ColumnExpression(.call("sum", text, isAggregate: true)) }
  /// The mean; null if there is no value.
  public func avg() -> ColumnExpression<Double?> { ColumnExpression(.call("avg", text, isAggregate: true)) }
}

extension ExpressionProtocol {
  fileprivate func extreme<Result>(_ operation: String) -> ColumnExpression<Result> {
    let type = Value.columnType
    guard type.scalar == .awsDateTime, !type.isList else {
      return ColumnExpression<Result>(.call(operation, comparedText, isAggregate: true))
    }
    return ColumnExpression<Result>(
      .call(
        SQLFunction.dateTime.rawValue, .call(operation, comparedText, isAggregate: true)))
  }

  /// The lowest value; null if there is none.
  public func min<Wrapped>() -> ColumnExpression<Value> where Value == Wrapped? { extreme("min") }
  /// The highest value; null if there is none. A point in time comes in UTC, with milliseconds.
  public func max<Wrapped>() -> ColumnExpression<Value> where Value == Wrapped? { extreme("max") }
  /// The lowest value; null if there is no row. A point in time comes in UTC, with milliseconds.
  @_disfavoredOverload
  public func min() -> ColumnExpression<Value?> { extreme("min") }
  /// The highest value; null if there is no row. A point in time comes in UTC, with milliseconds.
  @_disfavoredOverload
  public func max() -> ColumnExpression<Value?> { extreme("max") }
}
