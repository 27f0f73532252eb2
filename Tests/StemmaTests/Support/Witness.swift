import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaSchema
import Testing

@testable import Stemma

/// A store whose statements are checked by the events that they append and the resulting rows.
///
///     let witness = try await Witness(Reminder.self)
///     try await witness.expect {
///       try await Reminder.insert(Reminder.Draft(title: "Rest")).execute(witness.store)
///     } appends: {
///       """
///       create Reminder #1 isDone=false title="Rest"
///       """
///     } rows: {
///       """
///       reminders id=#1 title="Rest" isDone=0
///       """
///     }
///
/// Events have the order of the log, their fields are sorted by name. Rows have the order of the
/// schema and of their keys, their columns the order of declaration; nulls are omitted. Minted ids
/// are `#1`, `#2` … in the order of their first occurrence. `number(of:)` returns the number of a
/// value.
final class Witness: Sendable {
  let store: Store
  private let names = Mutex<[String: Int]>([:])

  init(_ store: Store) { self.store = store }

  convenience init(_ first: any Table.Type, _ others: any Table.Type...) async throws {
    self.init(try await Store.temporary(models: [first] + others))
  }

  /// Runs `body` and compares. Without `rows`, rows are not compared.
  @discardableResult
  func expect<Result>(
    _ location: Testing.SourceLocation = #_sourceLocation, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result, appends events: () -> String, rows: (() -> String)? = nil
  ) async throws -> Result {
    let before = try await storedEvents().count
    let result = try await body()
    let appended = try await storedEvents().dropFirst(before).map(named).joined(separator: "\n")
    #expect(appended == events(), "events", sourceLocation: location)
    if let rows { try await expectRows(rows(), location) }
    return result
  }

  /// Compares the rows of all models.
  func expectRows(
    _ rows: String, _ location: Testing.SourceLocation = #_sourceLocation
  ) async throws {
    let found = try await storedRows().map(named).joined(separator: "\n")
    #expect(found == rows, "rows", sourceLocation: location)
  }

  /// Rebuilds the tables from the log. They must hold the same rows.
  func rebuild(_ location: Testing.SourceLocation = #_sourceLocation) async throws {
    let before = try await storedRows()
    _ = try await store.writer.access { node in try node.rebuild { _, _ in } }
    let after = try await storedRows()
    #expect(before == after, "rows after a rebuild", sourceLocation: location)
  }

  private func storedEvents() async throws -> [String] {
    // A separate node, which also sees the events of a peer's sync.
    try await store.inspect { node in
      let describer = node.description
      var lines: [String] = []
      try node.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
        let event = stored.event
        var words = [event.operation.name, describer.modelName(event), describer.keyText(event)]
        if let relationship = event.relationship { words.append("\(relationship):") }
        if case .object(let fields) = describer.fields(event) {
          words += fields.map { "\($0.name)=\($0.value.text)" }
        }
        lines.append(words.joined(separator: " "))
        return true
      }
      return lines
    }
  }

  private func storedRows() async throws -> [String] {
    try await store.writer.access { node in
      var lines: [String] = []
      for model in node.schema.models {
        let names = model.keyFields.map { model.fields[$0].name }
        let columns = (names + model.fields.map(\.name).filter { !names.contains($0) }).map { "\"\($0)\"" }
        let order = names.map { "\"\($0)\"" }.joined(separator: ", ")
        try node.query(
          "SELECT \(columns.joined(separator: ", ")) FROM \"\(model.tableName)\" ORDER BY \(order)"
        ) { columns, row in
          let values = zip(columns, row).filter { !$1.isNull }.map { "\($0)=\($1.json.text)" }
          lines.append(([model.tableName] + values).joined(separator: " "))
        }
      }
      return lines
    }
  }

  /// The line with numbers in place of minted ids.
  private func named(_ line: String) -> String {
    line.replacing(/([ =])"?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{12,19})"?/) { match in
      "\(match.output.1)#\(number(of: String(match.output.2)))"
    }
  }

  func number(of id: some CustomStringConvertible) -> Int {
    names.withLock { names in
      let text = id.description.lowercased()
      let number = names[text] ?? names.count + 1
      names[text] = number
      return number
    }
  }
}
