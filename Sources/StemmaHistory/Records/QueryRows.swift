import StemmaEvents
import StemmaNode

/// SQL queries as people see their rows.
package enum QueryRows {
  /// The columns that `SELECT *` does not show.
  private static let innerColumns = ["_version", "_state"]

  /// As `Node.query`, without the inner columns that the statement does not name.
  package static func forEach(
    of sql: String, in node: Node, within time: Duration? = nil,
    _ body: (_ columns: [String], _ row: [Value]) throws -> Void
  ) throws(NodeError) {
    let inner = innerColumns.filter { !sql.contains($0) }
    try node.query(sql, within: time) { names, values in
      let shown = names.indices.filter { !inner.contains(names[$0]) }
      try body(shown.map { names[$0] }, shown.map { values[$0] })
    }
  }

  /// Refuses columns of which most JSON readers would keep only one.
  package static func refuseDuplicates(_ columns: [String]) throws(NodeError) {
    var seen: Set<String> = []
    for column in columns where !seen.insert(column).inserted {
      throw .malformedInput(
        source: "the query",
        what: "two columns are called `\(column)`, and JSON would show one of them; name them apart with AS")
    }
  }
}
