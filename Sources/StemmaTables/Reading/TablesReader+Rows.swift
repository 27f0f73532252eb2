import StemmaEvents
import StemmaMerge
import StemmaSchema

/// The shown values of one record.
package struct Row: Hashable, Sendable {
  /// The model's declared name.
  package let model: String
  package let key: Key
  /// Every field that is not a key part, null ones too, by declared name, in schema order.
  package let fields: [Assignment]
  package let version: Version
  /// Identifies this exact state of the record.
  package let revision: String
  /// The declared names of the fields whose value is in conflict. `Event.existenceField` comes
  /// first if the record's existence is in conflict.
  package let fieldsInConflict: [String]

  package func value(of field: String) -> Value? { fields.first { $0.field == field }?.value }
}

/// Which rows of a model to list.
package struct Listing: Sendable {
  package enum Comparison: String, Sendable, CaseIterable {
    case equal = "="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case contains = "contains"
    case beginsWith = "beginsWith"
  }

  /// Compares a field, which may be a key part, by the field's `ComparedForm`. Null equals null,
  /// and is neither less nor greater than any value.
  package struct Condition: Sendable {
    package var field: String
    package var comparison: Comparison
    package var value: Value

    package init(_ field: String, _ comparison: Comparison, _ value: Value) {
      self.field = field
      self.comparison = comparison
      self.value = value
    }

    /// Splits `field=value` and its like; nil for other texts.
    package static func parts(
      of text: String
    ) -> (field: String, comparison: Comparison, value: String)? {
      let name = String(text.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
      let rest = text.dropFirst(name.count)
      guard !name.isEmpty, let (sign, comparison) = signs.first(where: { rest.hasPrefix($0.sign) }) else {
        return nil
      }
      return (name, comparison, String(rest.dropFirst(sign.count)))
    }

    /// Longer signs come before their prefixes.
    private static let signs: [(sign: String, comparison: Comparison)] = [
      ("!=", .notEqual), ("<=", .lessOrEqual), (">=", .greaterOrEqual), ("^=", .beginsWith),
      ("~=", .contains), ("=", .equal), ("<", .less), (">", .greater),
    ]
  }

  package struct Order: Sendable {
    package var field: String
    package var isDescending: Bool

    package init(_ field: String, isDescending: Bool = false) {
      self.field = field
      self.isDescending = isDescending
    }
  }

  package var model: String
  /// All of them must hold.
  package var conditions: [Condition]
  /// Null comes first. Equal rows are in key order.
  package var order: [Order]
  package var limit: Int?
  package var offset: Int

  package init(
    _ model: String, where conditions: [Condition] = [], order: [Order] = [], limit: Int? = nil,
    offset: Int = 0
  ) {
    self.model = model
    self.conditions = conditions
    self.order = order
    self.limit = limit
    self.offset = offset
  }
}

/// Streams rows of one model.
package struct RowCursor {
  let layout: TableLayout
  let statement: Statement

  package mutating func next() throws(TablesError) -> Row? {
    try statement.step() ? try layout.row(statement) : nil
  }

  /// The remaining rows, which should be few.
  package mutating func all() throws(TablesError) -> [Row] {
    var rows: [Row] = []
    while let row = try next() { rows.append(row) }
    return rows
  }
}

extension TableLayout {
  func row(_ statement: Statement) throws(TablesError) -> Row {
    let key = try key(statement)
    let state = try state(statement, key)
    return Row(
      model: model.name, key: key, fields: fields(statement),
      version: Version(UInt64(clamping: statement.int(versionColumn))), revision: state.revision,
      fieldsInConflict: state.fieldsInConflict(rules).map(declaredName))
  }

  func fields(_ statement: Statement) -> [Assignment] {
    columns.enumerated().map { index, column in
      Assignment(column.field.name, value(statement, Int32(key.count + index), column.kind))
    }
  }

  /// Binds the parts of a key, starting at parameter `first`.
  func bind(_ key: Key, to statement: Statement, first: Int32 = 1) throws(TablesError) {
    _ = try partition(of: key)
    for (index, part) in key.parts.enumerated() { statement.bind(first + Int32(index), part.value) }
  }
}

extension TablesReader {
  /// The row of a shown record; nil if it does not exist or is deleted.
  package func get(_ model: String, _ key: Key) throws(TablesError) -> Row? {
    let layout = try tableSet.layout(named: model)
    let statement = try connection.prepareOnce(text: layout.selectByKey)
    try layout.bind(key, to: statement)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return try layout.row(statement)
  }

  /// The state of a record, even a deleted one; nil if the tables have no event of it.
  package func state(of key: Key, in model: Model) throws(TablesError) -> RecordState? {
    let layout = try tableSet.layout(named: model.name)
    let statement = try connection.prepareOnce(text: layout.selectByKey)
    try layout.bind(key, to: statement)
    if try statement.step() {
      defer { statement.reset() }
      return try layout.state(statement, key)
    }
    let tombstone = try connection.prepareOnce(
      "SELECT version, state FROM _stemma_tombstones WHERE model = ? AND key = ?")
    tombstone.bind(1, layout.model.storedName)
    tombstone.bind(2, blob: key.bytes)
    guard try tombstone.step() else { return nil }
    defer { tombstone.reset() }
    return try layout.tombstone(tombstone, 0, key)
  }

  /// Passes the state of every record of some partitions to `body`, even of deleted ones.
  package func forEachState(
    in isIncluded: (Partition) -> Bool,
    _ body: (Model, Key, Partition, RecordState) throws(TablesError) -> Void
  ) throws(TablesError) {
    for layout in tableSet.layouts {
      let rows = try connection.prepare(layout.selectAll)
      while try rows.step() {
        let key = try layout.key(rows)
        let partition = Partition(model: layout.model, key: key)
        if isIncluded(partition) { try body(layout.model, key, partition, try layout.state(rows, key)) }
      }
    }
    let tombstones = try connection.prepare(
      "SELECT model, key, partition, version, state FROM _stemma_tombstones")
    while try tombstones.step() {
      let partition = partition(tombstones, 2)
      guard isIncluded(partition), let index = tableSet.index(ofStoredName: tombstones.text(0)) else {
        continue
      }
      let layout = tableSet.layouts[index]
      let key = try layout.storedKey(tombstones, 1)
      try body(layout.model, key, partition, try layout.tombstone(tombstones, 3, key))
    }
  }

  /// All rows of a model, in key order.
  package func rows(of model: String) throws(TablesError) -> RowCursor {
    let layout = try tableSet.layout(named: model)
    return RowCursor(layout: layout, statement: try connection.prepare(layout.selectAll))
  }

  /// - Throws: `unknownModel`, `unknownField`.
  package func list(_ listing: Listing) throws(TablesError) -> RowCursor {
    let layout = try tableSet.layout(named: listing.model)
    func column(_ field: String) throws(TablesError) -> (quoted: String, form: ComparedForm) {
      guard let column = layout.column(named: field) else {
        throw .unknownField(model: listing.model, field: field)
      }
      return (TableLayout.quoted(field), ComparedForm(column.field.type))
    }
    var conditions: [String] = []
    for (index, condition) in listing.conditions.enumerated() {
      var (field, form) = try column(condition.field)
      let place = "?\(index + 1)"
      // Null compares in stored form. Equality with a key part does too, so that an index finds it.
      let isKeyEqual = condition.comparison == .equal && layout.model.holdsKeyPart(condition.field)
      if condition.value.isNull || isKeyEqual { form = .asStored }
      let (left, right) = (form.sql(field), form.sql(place))
      let term =
        switch condition.comparison {
        case .equal: "\(left) IS \(right)"
        case .notEqual: "\(left) IS NOT \(right)"
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
          "\(left) \(condition.comparison.rawValue) \(right)"
        case .contains: "instr(\(field), \(place)) > 0"
        case .beginsWith: "instr(\(field), \(place)) = 1"
        }
      conditions.append(term)
    }
    var order: [String] = []
    for term in listing.order {
      let (field, form) = try column(term.field)
      order.append(form.sql(field) + (term.isDescending ? " DESC" : ""))
    }
    order.append(layout.keyOrder())
    var sql = "\(layout.selection()) FROM \(layout.table)"
    if !conditions.isEmpty { sql += " WHERE " + conditions.joined(separator: " AND ") }
    sql += " ORDER BY " + order.joined(separator: ", ")
    sql += " LIMIT \(max(listing.limit ?? -1, -1)) OFFSET \(max(listing.offset, 0))"
    let statement = try connection.prepare(sql)
    for (index, condition) in listing.conditions.enumerated() {
      statement.bind(Int32(index + 1), condition.value)
    }
    return RowCursor(layout: layout, statement: statement)
  }

  /// Whether a model has a record or a tombstone.
  package func hasEvents(of model: Model) throws(TablesError) -> Bool {
    if try count(of: model.name) > 0 { return true }
    let tombstones = try connection.prepare("SELECT 1 FROM _stemma_tombstones WHERE model = ? LIMIT 1")
    tombstones.bind(1, model.storedName)
    return try tombstones.step()
  }

  /// How many records of a model are shown.
  package func count(of model: String) throws(TablesError) -> UInt64 {
    let layout = try tableSet.layout(named: model)
    return UInt64(try connection.integer("SELECT count(*) FROM \(layout.table)") ?? 0)
  }
}
