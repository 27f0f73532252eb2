import StemmaEvents
import StemmaTables

/// A statement or a part of one: SQL, and the values of its `?` parameters, in order.
public struct StatementText: Sendable {
  package private(set) var sql: String
  package private(set) var values: [Value]
  /// Relationships for `referenceRank` parameters, by index in `values`, which has null there.
  private(set) var ranked: [Int: ModelDescription.Relationship] = [:]
  /// Whether it has one value for many rows.
  private(set) var isAggregate = false

  package init(_ sql: String, _ values: [Value] = []) {
    self.sql = sql
    self.values = values
  }

  /// A value, as a parameter.
  init(value: some ColumnValue) { self.init("?", [value.datum.value]) }

  /// A relationship to one child, as a parameter of `SQLFunction.referenceRank`.
  init(ranking relationship: ModelDescription.Relationship) {
    self.init("?", [.null])
    ranked[0] = relationship
  }

  /// A name between quotation marks.
  init(name: String) { self.init(Self.quoted(name)) }

  static func quoted(_ name: String) -> String {
    "\"\(name.contains("\"") ? name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") : name)\""
  }

  mutating func append(_ other: StatementText) {
    sql += other.sql
    for (place, relationship) in other.ranked { ranked[values.count + place] = relationship }
    values += other.values
    if other.isAggregate { isAggregate = true }
  }

  mutating func append(_ sql: String) { self.sql += sql }

  /// Appends the parts, with `start` before the first. Appends nothing if there are none.
  mutating func append(_ parts: [StatementText], _ start: String, separator: String) {
    for (index, part) in parts.enumerated() {
      append(index == 0 ? start : separator)
      append(part)
    }
  }

  /// `operation(a, b, …)`.
  static func call(
    _ operation: String, _ arguments: StatementText..., isAggregate: Bool = false
  ) -> StatementText {
    var text = StatementText(operation)
    text.append(arguments, "(", separator: ", ")
    text.append(")")
    if isAggregate { text.isAggregate = true }
    return text
  }

  /// `(text COLLATE name)`.
  func collated(_ collation: Collation) -> StatementText {
    var text = StatementText("(")
    text.append(self)
    text.append(" COLLATE \(collation.rawValue))")
    return text
  }

  /// `(a operation b)`.
  static func combination(_ a: StatementText, _ operation: String, _ b: StatementText) -> StatementText {
    var text = StatementText("(")
    text.append(a)
    text.append(operation)
    text.append(b)
    text.append(")")
    return text
  }
}
