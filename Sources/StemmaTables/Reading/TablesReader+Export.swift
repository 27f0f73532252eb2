import StemmaEvents
import StemmaSchema

/// Streams rows as lines of JSON:
///
///     {"model":"Book","key":{"isbn":"…"},"fields":{"title":"…","pages":null}}
///
/// ordered by model name, then by key. `fields` has every field that is not a key part, null ones
/// too, in schema order. A line contains all that the tables show of a record. Values have the JSON
/// type of their field; lists and embedded values are JSON, integers beyond ±(2^53-1) are strings.
package struct ExportCursor {
  private let connection: Connection
  private var layouts: ArraySlice<TableLayout>
  private var current: (layout: TableLayout, statement: Statement)?

  init(_ connection: Connection, _ layouts: [TableLayout]) {
    self.connection = connection
    self.layouts = layouts[...]
  }

  /// Appends the next line with its line feed to `bytes`. False at the end.
  package mutating func next(into bytes: inout [UInt8]) throws(TablesError) -> Bool {
    while true {
      if let (layout, statement) = current {
        if try statement.step() {
          layout.appendJSON(statement, to: &bytes)
          bytes.append(UInt8(ascii: "\n"))
          return true
        }
        current = nil
      }
      guard let layout = layouts.popFirst() else { return false }
      current = (layout, try connection.prepare(layout.selectAll))
    }
  }
}

extension TablesReader {
  /// The rows of these models, or of all, as lines of JSON.
  package func export(_ models: [String]? = nil) throws(TablesError) -> ExportCursor {
    var layouts = tableSet.layoutsByName
    if let models {
      for name in models { _ = try tableSet.layout(named: name) }
      layouts.removeAll { !models.contains($0.model.name) }
    }
    return ExportCursor(connection, layouts)
  }

  /// Appends a row in export format, with its revision.
  package func appendJSON(_ row: Row, to bytes: inout [UInt8]) throws(TablesError) {
    let layout = try tableSet.layout(named: row.model)
    layout.appendJSON(row.key.parts.map(\.value), row.fields.map(\.value), row.revision, to: &bytes)
  }
}

extension TableLayout {
  fileprivate func appendJSON(_ statement: Statement, to bytes: inout [UInt8]) {
    appendJSON(
      key.indices.lazy.map { self.value(statement, Int32($0), self.key[$0].kind) },
      columns.indices.lazy.map {
        self.value(statement, Int32(self.key.count + $0), self.columns[$0].kind)
      }, nil, to: &bytes)
  }

  fileprivate func appendJSON(
    _ keyValues: some Sequence<Value>, _ values: some Sequence<Value>, _ revision: String?,
    to bytes: inout [UInt8]
  ) {
    bytes.append(contentsOf: #"{"model":"#.utf8)
    JSON.append(model.name, to: &bytes)
    bytes.append(contentsOf: #","key":"#.utf8)
    appendObject(zip(key, keyValues), to: &bytes)
    bytes.append(contentsOf: #","fields":"#.utf8)
    appendObject(zip(columns, values), to: &bytes)
    if let revision {
      bytes.append(contentsOf: #","revision":"#.utf8)
      JSON.append(revision, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  private func appendObject(
    _ members: some Sequence<(Column, Value)>, to bytes: inout [UInt8]
  ) {
    var separator = UInt8(ascii: "{")
    for (column, value) in members {
      bytes.append(separator)
      JSON.append(column.field.name, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      value.appendJSON(to: &bytes)
      separator = UInt8(ascii: ",")
    }
    if separator == UInt8(ascii: "{") { bytes.append(separator) }
    bytes.append(UInt8(ascii: "}"))
  }
}
