import StemmaEvents
import StemmaSchema

import struct Foundation.Date

// Null equals null, and is neither less nor greater than anything. A comparison is false or true,
// as in Swift: SQL's third truth value counts as false, and its negation as true.

extension ExpressionProtocol {
  fileprivate func compared(_ operation: String, with value: Value) -> ColumnExpression<Bool> {
    let (bound, datum) = (StatementText(value: value), value.datum)
    let time = value.unstorableTime
    // SQLite takes it for null.
    if datum.isNaN || time?.isNaN ?? false {
      return ColumnExpression(StatementText(operation == " IS NOT " ? "TRUE" : "FALSE"))
    }
    if let time { return ColumnExpression(.combination(comparedText, operation, Value.unstorable(time))) }
    // The stored form suffices to distinguish null from a value.
    if datum.isNull { return ColumnExpression(.combination(text, operation, bound)) }
    return ColumnExpression(.combination(comparedText, operation, Self.compared(bound)))
  }

  fileprivate func compared(_ operation: String, with other: some ExpressionProtocol) -> ColumnExpression<
    Bool
  > {
    ColumnExpression(.combination(comparedText, operation, other.comparedText))
  }
}

extension ColumnValue {
  /// The operand for a time that the column type cannot store: it is outside all storable times.
  fileprivate static func unstorable(_ milliseconds: Double) -> StatementText {
    // Days are text that begins with a digit; other times are compared as numbers.
    let isText = columnType.scalar == .awsDate
    return StatementText("?", [isText ? .string(milliseconds < 0 ? "" : ":") : .double(milliseconds)])
  }

  /// A time that its column cannot store, in milliseconds since 1970, or NaN.
  fileprivate var unstorableTime: Double? {
    guard let date = self as? Date ?? (self as? Date.DayRepresentation)?.represented else {
      // Seconds have the widest range: only those beyond 64 bits cannot be stored.
      guard let second = self as? Date.UnixTimeRepresentation, case .string = second.datum.value else {
        return nil
      }
      return second.represented.timeIntervalSince1970 * 1000
    }
    guard case .string(let text) = date.datum.value, DateText(dateTime: text) == nil else { return nil }
    return date.timeIntervalSince1970 * 1000
  }
}

// MARK: With values

/// Null equals null, and nil means null. Times are equal as points in time, whatever their zone.
public func == <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Bool> {
  a.compared(" IS ", with: b)
}

/// The opposite of `==`: null differs from every value, and not from null.
public func != <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Bool> {
  a.compared(" IS NOT ", with: b)
}

/// Never holds for null, which is neither less nor greater. Times compare as points in time.
public func < <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Bool> {
  a.compared(" < ", with: b)
}

/// Never holds for null, which is neither less nor greater. Times compare as points in time.
public func <= <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Bool> {
  a.compared(" <= ", with: b)
}

/// Never holds for null, which is neither less nor greater. Times compare as points in time.
public func > <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Bool> {
  a.compared(" > ", with: b)
}

/// Never holds for null, which is neither less nor greater. Times compare as points in time.
public func >= <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> ColumnExpression<Bool> {
  a.compared(" >= ", with: b)
}

// MARK: With other expressions; one of them may be optional

/// Whether both have the same value, or both have none.
public func == <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" IS ", with: b) }

/// Whether both have the same value; null equals no value of an expression that is never null.
public func == <Value: ColumnValue>(
  a: some ExpressionProtocol<Value?>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" IS ", with: b) }

/// Whether both have the same value; null equals no value of an expression that is never null.
public func == <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value?>
) -> ColumnExpression<Bool> { a.compared(" IS ", with: b) }

/// Whether the values differ; null differs from every value, and not from null.
public func != <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" IS NOT ", with: b) }

/// Whether the values differ; null differs from every value.
public func != <Value: ColumnValue>(
  a: some ExpressionProtocol<Value?>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" IS NOT ", with: b) }

/// Whether the values differ; null differs from every value.
public func != <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value?>
) -> ColumnExpression<Bool> { a.compared(" IS NOT ", with: b) }

/// Never holds where one of them is null.
public func < <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" < ", with: b) }

/// Never holds where one of them is null.
public func <= <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" <= ", with: b) }

/// Never holds where one of them is null.
public func > <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" > ", with: b) }

/// Never holds where one of them is null.
public func >= <Value: ColumnValue>(
  a: some ExpressionProtocol<Value>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Bool> { a.compared(" >= ", with: b) }

// MARK: Logic

/// Holds where both sides do; SQL's `AND`.
public func && (a: some ExpressionProtocol<Bool>, b: some ExpressionProtocol<Bool>) -> ColumnExpression<Bool>
{
  ColumnExpression(.combination(a.text, " AND ", b.text))
}

/// Holds where at least one side does, whatever null the other compares with; SQL's `OR`.
public func || (a: some ExpressionProtocol<Bool>, b: some ExpressionProtocol<Bool>) -> ColumnExpression<Bool>
{
  ColumnExpression(.combination(a.text, " OR ", b.text))
}

/// Holds wherever the expression does not, also where it has no truth value because of null.
public prefix func ! (a: some ExpressionProtocol<Bool>) -> ColumnExpression<Bool> {
  ColumnExpression(.combination(a.text, " IS NOT ", StatementText("TRUE")))
}

// MARK: Among values

extension ExpressionProtocol {
  /// Whether the value is among these, nil for null; times as points in time. Always one statement.
  public func `in`(_ values: some Sequence<Value>) -> ColumnExpression<Bool> {
    // The values are one parameter, so that the statement's text does not depend on their count.
    let values = values.map(\.datum).filter { !$0.isNaN }.map(\.value)
    let listed = ValueList(values.map { [$0] }).text(Self.compared)
    let isListed = ColumnExpression<Bool>(.combination(comparedText, " IN ", listed))
    // As with `==`, null equals null here; in SQL, `IN` never matches null.
    guard values.contains(where: \.isNull) else { return isListed }
    return isListed || ColumnExpression<Bool>(.combination(text, " IS ", StatementText("NULL")))
  }

  /// Whether the value is among those that a statement reads.
  public func `in`<Columns>(_ query: Query<Columns, Value>) -> ColumnExpression<Bool> { among(query.text) }

  /// Whether the value is among those that a statement reads; null is among none.
  public func `in`<Columns, Wrapped>(_ query: Query<Columns, Wrapped>) -> ColumnExpression<Bool>
  where Value == Wrapped? { among(query.text) }

  /// Whether the value is among those that a statement reads, some of which may be null.
  public func `in`<Columns>(_ query: Query<Columns, Value?>) -> ColumnExpression<Bool> { among(query.text) }

  private func among(_ query: StatementText) -> ColumnExpression<Bool> {
    let compared = Self.compared(StatementText("value"))
    var listed = StatementText("(WITH listed(value) AS (")
    listed.append(query)
    listed.append(") SELECT ")
    listed.append(compared)
    listed.append(" FROM listed)")
    return ColumnExpression(.combination(comparedText, " IN ", listed))
  }

  /// From `lower` up to and including `upper`.
  public func between(_ lower: Value, and upper: Value) -> ColumnExpression<Bool> {
    self >= lower && self <= upper
  }
}

extension Sequence where Element: ColumnValue {
  /// Whether an expression's value is among these.
  public func contains(_ expression: some ExpressionProtocol<Element>) -> ColumnExpression<Bool> {
    expression.in(self)
  }
}

extension ClosedRange where Bound: ColumnValue {
  /// Whether an expression's value lies in the range, both bounds included. Null does not.
  public func contains(_ expression: some ExpressionProtocol<Bound>) -> ColumnExpression<Bool> {
    expression.between(lowerBound, and: upperBound)
  }

  /// Whether an expression's value lies in the range, both bounds included. Null does not.
  public func contains(_ expression: some ExpressionProtocol<Bound?>) -> ColumnExpression<Bool> {
    expression.between(lowerBound, and: upperBound)
  }
}

extension Range where Bound: ColumnValue {
  /// Whether an expression's value lies in the range, its upper bound left out. Null does not.
  public func contains(_ expression: some ExpressionProtocol<Bound>) -> ColumnExpression<Bool> {
    expression >= lowerBound && expression < upperBound
  }

  /// Whether an expression's value lies in the range, its upper bound left out. Null does not.
  public func contains(_ expression: some ExpressionProtocol<Bound?>) -> ColumnExpression<Bool> {
    expression >= lowerBound && expression < upperBound
  }
}

// MARK: In the place of null

/// The second value where the first is null. An unstorable time can be compared, not selected.
public func ?? <Value: ColumnValue>(
  a: some ExpressionProtocol<Value?>, b: Value
) -> ColumnExpression<Value> {
  let bound = b.unstorableTime.map(Value.unstorable) ?? StatementText(value: b)
  return ColumnExpression(.call("ifnull", a.text, bound))
}

/// The second expression's value where the first is null.
public func ?? <Value: ColumnValue>(
  a: some ExpressionProtocol<Value?>, b: some ExpressionProtocol<Value>
) -> ColumnExpression<Value> { ColumnExpression(.call("ifnull", a.text, b.text)) }
