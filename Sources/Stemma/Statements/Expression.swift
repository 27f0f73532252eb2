import StemmaEvents

/// A part of a statement: SQL, and the values for its question marks, in order.
struct Fragment: Sendable {
  var sql: String
  var bindings: [Value] = []

  static func + (a: Fragment, b: Fragment) -> Fragment {
    Fragment(sql: a.sql + b.sql, bindings: a.bindings + b.bindings)
  }
}

/// Something that has a value in each row of a statement.
public struct Expression<Value: Sendable>: ExpressionProtocol {
  let fragment: Fragment

  init(_ fragment: Fragment) { self.fragment = fragment }

  public var expression: Expression<Value> { self }
}

/// A column or what is made of columns.
public protocol ExpressionProtocol<Value>: OrderingTerm {
  associatedtype Value: Sendable
  var expression: Expression<Value> { get }
}

/// A column of a table.
public struct TableColumn<Root: Table, Value: ColumnValue>: ExpressionProtocol {
  public let name: String

  public init(_ name: String) { self.name = name }

  public var expression: Expression<Value> {
    Expression(Fragment(sql: "\"\(Root.description.tableName)\".\"\(name)\""))
  }
}

extension ExpressionProtocol {
  var fragment: Fragment { expression.fragment }

  fileprivate func combined<Result>(
    _ operation: String, _ other: Fragment, as type: Result.Type = Result.self
  ) -> Expression<Result> {
    Expression(Fragment(sql: "(") + fragment + Fragment(sql: " \(operation) ") + other + Fragment(sql: ")"))
  }
}

/// The value as a parameter.
private func parameter(_ value: some ColumnValue) -> Fragment {
  Fragment(sql: "?", bindings: [value.datum.value])
}

// MARK: Comparing. Null equals null, and is neither less nor greater than anything.

public func == <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> Expression<Bool> {
  a.combined("IS", parameter(b))
}

public func != <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> Expression<Bool> {
  a.combined("IS NOT", parameter(b))
}

public func < <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> Expression<Bool> {
  a.combined("<", parameter(b))
}

public func <= <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> Expression<Bool> {
  a.combined("<=", parameter(b))
}

public func > <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> Expression<Bool> {
  a.combined(">", parameter(b))
}

public func >= <Value: ColumnValue>(a: some ExpressionProtocol<Value>, b: Value) -> Expression<Bool> {
  a.combined(">=", parameter(b))
}

// MARK: Logic

public func && (a: some ExpressionProtocol<Bool>, b: some ExpressionProtocol<Bool>) -> Expression<Bool> {
  a.combined("AND", b.fragment)
}

public func || (a: some ExpressionProtocol<Bool>, b: some ExpressionProtocol<Bool>) -> Expression<Bool> {
  a.combined("OR", b.fragment)
}

public prefix func ! (a: some ExpressionProtocol<Bool>) -> Expression<Bool> {
  Expression(Fragment(sql: "NOT ") + a.fragment)
}

// MARK: Order

/// What rows can be ordered by: an expression, or one with a direction.
public protocol OrderingTerm: Sendable {
  var ordering: Ordering { get }
}

/// An expression with a direction.
public struct Ordering: OrderingTerm {
  let fragment: Fragment

  public var ordering: Ordering { self }
}

extension ExpressionProtocol {
  public var ordering: Ordering { asc() }
  public func asc() -> Ordering { Ordering(fragment: fragment + Fragment(sql: " ASC")) }
  public func desc() -> Ordering { Ordering(fragment: fragment + Fragment(sql: " DESC")) }
}
