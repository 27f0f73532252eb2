import StemmaEvents
import StemmaNode
import StemmaSchema

/// Debezium change events in the JSON converter's form: the envelope alone, or `payload` beside
/// `schema`. Table and column names match models and fields by letters and digits only.
///
/// See
/// https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events
struct DebeziumRecords: RecordForm {
  let arrayOpening = ["["]
  private let only: Model?
  private let schema: Schema
  private let columns: ColumnNames
  private var progress: FeedProgress?
  private var covered = 0
  /// Nil for an ignored table.
  private var tables: [String: Table?] = [:]

  private struct Table {
    let model: Model
    var rows: RowObjects
  }

  init(_ only: Model?, _ schema: Schema, _ columns: ColumnNames, _ progress: FeedProgress?) {
    self.only = only
    self.schema = schema
    var columns = columns
    columns.folds = true
    self.columns = columns
    self.progress = progress
  }

  var notices: [String] {
    var notices: [String] = []
    for (name, table) in tables.sorted(by: { $0.key < $1.key }) {
      if let table {
        if !table.rows.ignored.isEmpty { notices.append(ColumnNames.notice(table.rows.ignored)) }
      } else {
        notices.append("table \(name) belongs to no model and is left out")
      }
    }
    if covered > 0 { notices.append(FeedProgress.notice(covered)) }
    return notices
  }

  // MARK: Envelopes

  mutating func change(_ text: UnsafeRawBufferPointer) throws(MutationError) -> SourceChange? {
    guard let envelope = try Self.envelope(text) else { return nil }
    guard case .string(let operation)? = envelope["op"] else {
      throw .wrongShape("not a Debezium envelope: `op` is missing. Import flat rows as NDJSON with --model.")
    }
    let source = envelope["source"] ?? .null
    let position = Self.position(source)
    if let progress {
      guard let position else {
        throw .wrongShape("`source` has no position that --offset could keep. Import without --offset.")
      }
      if progress.covers(position) {
        covered += 1
        return nil
      }
      self.progress?.note(position)
    }
    // A message that an application wrote to the log of its database.
    if operation == "m" { return nil }
    let name = try Self.tableName(source)
    guard var table = try self.table(name) else { return nil }
    defer { tables[name] = .some(table) }
    var mutation: Mutation
    switch operation {
    case "c", "r", "u": mutation = try Self.upsert(envelope, &table, schema)
    case "d": mutation = try Self.deletion(envelope, table, schema)
    case "t":
      throw .wrongShape(
        "`op` t empties the table \(name). Delete its records, and import the rest of the feed.")
    default: throw .wrongShape("unknown `op` \(operation); known are c, r, u, d, m and t")
    }
    if let time = source["ts_ms"] { mutation.milliseconds = try Mutation.milliseconds(time) }
    return SourceChange(mutation: mutation, position: position)
  }

  /// Returns nil for a tombstone.
  private static func envelope(_ text: UnsafeRawBufferPointer) throws(MutationError) -> JSON? {
    if text.elementsEqual("null".utf8) { return nil }
    let json = JSON.object(try JSON.members(of: text))
    guard json["op"] == nil, let payload = json["payload"] else { return json }
    return payload.isNull ? nil : payload
  }

  private static func tableName(_ source: JSON) throws(MutationError) -> String {
    guard case .string(let name)? = source["table"] ?? source["collection"] else {
      throw .wrongShape("`source` names no table")
    }
    return name
  }

  private mutating func table(_ name: String) throws(MutationError) -> Table? {
    if let known = tables[name] { return known }
    let folded = ColumnNames.folded(name)
    let model: Model?
    if let only {
      if let other = tables.keys.first {
        throw .wrongShape(
          "the feed has the tables \(other) and \(name), and --model names one model. Import without --model."
        )
      }
      model = only
    } else {
      model =
        schema.models.first { $0.tableName == name }
        ?? schema.models.first {
          [$0.tableName, $0.name].contains { ColumnNames.folded($0) == folded }
        }
    }
    let table = model.map { Table(model: $0, rows: RowObjects($0, schema, columns)) }
    tables[name] = .some(table)
    return table
  }

  // MARK: Rows

  private static func upsert(
    _ envelope: JSON, _ table: inout Table, _ schema: Schema
  ) throws(MutationError) -> Mutation {
    guard case .object(let after)? = envelope["after"] else { throw .wrongShape("`after` is not an object") }
    // An unchanged large value that the database did not write to its log.
    let present = after.filter { $0.value != .string("__debezium_unavailable_value") }
    let model = table.model
    var mutation = try table.rows.mutation(present) { value, field throws(MutationError) in
      try ColumnValue.value(value, field, of: model, schema)
    }
    if let key = try previousKey(envelope, table, schema), key != mutation.key { mutation.previousKey = key }
    return mutation
  }

  /// Nil if the envelope lacks a part of the key.
  private static func previousKey(
    _ envelope: JSON, _ table: Table, _ schema: Schema
  ) throws(MutationError) -> JSON? {
    guard case .object(let before)? = envelope["before"] else { return nil }
    return try table.rows.key(of: before) { value, field throws(MutationError) in
      try ColumnValue.value(value, field, of: table.model, schema)
    }
  }

  private static func deletion(
    _ envelope: JSON, _ table: Table, _ schema: Schema
  ) throws(MutationError) -> Mutation {
    guard let key = try previousKey(envelope, table, schema) else {
      throw .wrongShape(
        "`before` lacks a part of the key of \(table.model.name). Give the table REPLICA IDENTITY FULL.")
    }
    var mutation = Mutation(.delete, model: table.model.name, key: key)
    mutation.toleratesAbsence = true
    return mutation
  }

  // MARK: Positions

  /// Nil if the source has no ordered position. Each table has its own: only topics are ordered.
  static func position(_ source: JSON) -> FeedPosition? {
    var names = ["connector", "name", "db", "schema", "table"].compactMap { name in
      if case .string(let text)? = source[name] { text } else { nil }
    }
    let place: [JSON]
    if case .string(let sequence)? = source["sequence"], let pair = pair(sequence) {
      place = pair
    } else if case .string(let file)? = source["file"], case .int? = source["pos"],
      let id = file.lastIndex(of: "."), let number = Int64(file[file.index(after: id)...])
    {
      names.append(String(file[..<id]))
      place = [.int(number), source["pos"] ?? .int(0), Self.number(source["row"])]
    } else if case .string(let commit)? = source["commit_lsn"] {
      let change: JSON =
        if case .string(let text)? = source["change_lsn"] { .string(text) } else { .string("") }
      place = [.string(commit), change, Self.number(source["event_serial_no"])]
    } else if case .int? = source["ts_ms"] {
      place = [source["ts_ms"] ?? .int(0)]
    } else {
      return nil
    }
    return .place(source: names.joined(separator: " "), place)
  }

  private static func number(_ json: JSON?) -> JSON {
    if case .int? = json, let json { json } else { .int(0) }
  }

  /// PostgreSQL: the last commit and the change. Transactions come in commit order, so change
  /// numbers alone are not ordered. Before the first commit, the change number serves as both.
  private static func pair(_ sequence: String) -> [JSON]? {
    let json: JSON
    do { json = try JSON.parse(sequence) } catch { return nil }
    guard case .array(let parts) = json, parts.count == 2 else { return nil }
    func number(_ part: JSON) -> Int64? {
      switch part {
      case .int(let number): number
      case .string(let text): Int64(text)
      default: nil
      }
    }
    guard let change = number(parts[1]) else { return nil }
    return [.int(number(parts[0]) ?? change), .int(change)]
  }
}
