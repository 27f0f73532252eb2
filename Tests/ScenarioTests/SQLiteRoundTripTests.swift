import Foundation
import GRDB
import StemmaEvents
import StemmaImport
import StemmaNode
import StemmaSimulation
import Testing

/// For any SQLite file, the inferred schema makes a node, and an import reads all rows with
/// unchanged values. Models have the order of the tables, fields the order of the columns.
@Suite struct SQLiteRoundTripTests {
  @Test(
    "rows of a random file come back from a node of its schema", arguments: 0..<Trials.count(60, long: 1500))
  func randomFile(seed: Int) throws {
    let work = try Workplace()
    let path = work.file("source.sqlite")
    var random = SplitMix64(seed: UInt64(seed))
    let file = try RandomSQLiteFile(at: path, &random)
    let script = Comment(rawValue: file.script.joined(separator: ";\n"))

    let inferred = try SchemaInference.schema(ofFile: path)
    let node = try Node.create(at: work.file("node"), schema: inferred.text, name: "a")
    var notices: [String] = []
    var source = Import(into: node, options: Import.Options())
    source.notice = { notices.append($0) }
    _ = try source.run(path: path)
    var exported = try Self.export(node)

    var models = node.schema.models[...]
    for table in file.tables.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
      if inferred.warnings.contains(where: { $0.hasPrefix("\(table.name) ") && $0.hasSuffix("left out") }) {
        #expect(table.rowNumber == nil, "\(table.name) is left out\n\(script)")
        #expect(notices.contains { $0.contains("table \(table.name) ") }, script)
        continue
      }
      let model = try #require(models.first, script)
      models.removeFirst()
      let rows = try table.rows(in: path)
      let kept = table.columns.indices.filter { column in
        !rows.contains { $0.values[column].isBytes }
          && !(table.columns[column].type == "BLOB" && rows.allSatisfy { $0.values[column] == .null })
      }
      for column in table.columns.indices where !kept.contains(column) {
        let name = "\(table.columns[column].name)"
        #expect(inferred.warnings.contains { $0.hasPrefix("\(table.name).\(name) ") }, script)
        #expect(notices.contains { $0.contains("column \(name) of table \(table.name) ") }, script)
      }
      let numbers = model.fields.count - kept.count
      try #require(numbers == 0 || numbers == 1 && table.rowNumber != nil, script)
      let expected = rows.map { row in
        let cells = zip(kept, model.fields.dropFirst(numbers)).map { column, field in
          row.values[column].text(as: field.type.scalar?.rawValue ?? "")
        }
        return ((numbers == 1 ? ["\(row.number)"] : []) + cells).joined(separator: "|")
      }
      let found = (exported.removeValue(forKey: model.name) ?? []).map { row in
        model.fields.map { Self.text(row[$0.name] ?? .null, as: $0.type.scalar?.rawValue ?? "") }
          .joined(separator: "|")
      }
      #expect(found.sorted() == expected.sorted(), "\(model.name)\n\(script)")
      for reference in table.references {
        let place = "\(table.name)(\(reference.joined(separator: ", ")))"
        let fields = reference.map { name in
          kept.firstIndex { table.columns[$0].name == name }.map { model.fields[$0 + numbers].name }
        }
        #expect(
          model.relationships.contains {
            $0.kind == .belongsTo && Set($0.referenceFields) == Set(fields.compactMap { $0 })
          }
            || inferred.warnings.contains { $0.contains(place) && $0.contains("left out") }, script)
      }
    }
    #expect(models.isEmpty && exported.isEmpty, script)
    #expect(try Import(into: node, options: Import.Options()).run(path: path).events == 0, script)
  }

  /// The rows of each model, key and fields together.
  private static func export(_ node: Node) throws -> [String: [JSON]] {
    var bytes: [UInt8] = []
    try node.export([]) { bytes += $0 }
    var rows: [String: [JSON]] = [:]
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let json = try JSON.parse(String(decoding: line, as: UTF8.self))
      guard case .string(let model) = json["model"], case .object(let key) = json["key"],
        case .object(let fields) = json["fields"]
      else { throw JSONError(.expected("a line of an export"), at: 0) }
      rows[model, default: []].append(.object(key + fields))
    }
    return rows
  }

  private static func text(_ value: JSON, as type: String) -> String {
    switch value {
    case .null: "null"
    case .bool(let flag): flag ? "1" : "0"
    case .int(let number): type == "Float" ? "\(Double(number))" : "\(number)"
    case .number(let text): Double(text).map { "\($0)" } ?? text
    // Integers that a JSON reader could round are strings.
    case .string(let text) where type == "Int": text
    case .string(let text): "'\(Data(text.utf8).map { String($0, radix: 16) }.joined(separator: " "))"
    default: "\(value)"
    }
  }
}

/// Tables with every kind of name, type, key and value.
struct RandomSQLiteFile {
  struct Column {
    var name: String
    var type: String
    var isGenerated = false
  }

  enum Value: Equatable {
    case null
    case int(Int64)
    case double(Double)
    case text([UInt8])
    case blob

    var isBytes: Bool {
      switch self {
      case .blob: true
      case .text(let bytes): String(validating: bytes, as: UTF8.self) == nil
      default: false
      }
    }

    /// The expected text in a field of a type.
    func text(as type: String) -> String {
      func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        "'\(bytes.map { String($0, radix: 16) }.joined(separator: " "))"
      }
      switch (self, type) {
      case (.null, _): return "null"
      case (.int(let number), "Int"): return "\(number)"
      case (.int(let number), "Boolean") where number == 0 || number == 1: return "\(number)"
      case (.int(let number), "Float") where Int64(exactly: Double(number)) == number:
        return "\(Double(number))"
      case (.int(let number), "String"): return hexadecimal("\(number)".utf8)
      case (.double(let number), "Float") where number.isFinite: return "\(number + 0)"
      case (.double(let number), "String"):
        return hexadecimal((number.isFinite ? "\(number)" : number < 0 ? "-Infinity" : "Infinity").utf8)
      case (.text(let bytes), "String"), (.text(let bytes), "AWSDate"), (.text(let bytes), "AWSDateTime"):
        return hexadecimal(bytes)
      default: return "no \(type) holds \(self)"
      }
    }
  }

  struct Row {
    /// SQLite's row number; 0 if there is none.
    var number: Int64
    var values: [Value]
  }

  struct Table {
    var name: String
    var columns: [Column] = []
    var key: [String] = []
    var isWithoutRowNumber = false
    /// The columns of each foreign key.
    var references: [[String]] = []

    /// The name by which the row number is read.
    var rowNumber: String? {
      ["rowid", "_rowid_", "oid"].first { name in
        !isWithoutRowNumber && !columns.contains { $0.name.lowercased() == name }
      }
    }

    func rows(in path: String) throws -> [Row] {
      let queue = try DatabaseQueue(path: path)
      let list = columns.map { quoted($0.name) }.map { "typeof(\($0)), \($0), hex(\($0))" }
      return try queue.read { database in
        try GRDB.Row.fetchAll(
          database,
          sql: "SELECT \(rowNumber ?? "0"), \(list.joined(separator: ", ")) FROM \(quoted(name))"
        ).map { row in
          Row(
            number: row[0],
            values: columns.indices.map { column in
              switch row[3 * column + 1] as String {
              case "null": .null
              case "integer": .int(row[3 * column + 2])
              case "real": .double(row[3 * column + 2])
              case "text": .text(bytes(row[3 * column + 3]))
              default: .blob
              }
            })
        }
      }
    }

    private func bytes(_ hexadecimal: String) -> [UInt8] {
      let digits = hexadecimal.utf8.map { $0 < 0x41 ? $0 - 0x30 : $0 - 0x37 }
      return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
  }

  private(set) var tables: [Table] = []
  private(set) var script: [String] = []

  private static let tableNames = [
    "log", "logs", "Log", "String", "a b", "a_b", "a-b", "_PostToTag", "PostToTags", "postToTag",
    "order items",
    "2nd", "größe", "Query", "events", "it's", "say \"hi\"", "_sqlite_x", "_stemma_x", "id", "_meta",
  ]
  private static let columnNames = [
    "id", "_id", "a b", "a_b", "a-b", "a_b_2", "rowid", "oid", "_rowid_", "createdAt", "updatedAt", "größe",
    "größe2",
    "select", "1st", "_", "__typename", "_version", "log", "logs", "say \"hi\"", "it's", "parent_id",
    "parent",
  ]
  private static let types = [
    "", "INTEGER", "INT", "TEXT", "REAL", "NUMERIC", "DECIMAL(10,2)", "NUMBER(10)", "BLOB", "BOOLEAN", "DATE",
    "DATETIME", "VARCHAR(20)", "TIMESTAMP", "JSON",
  ]
  private static let integers = [
    "0", "1", "-1", "7", "9007199254740992", "9007199254740993", "9223372036854775807",
    "-9223372036854775808",
  ]
  private static let fractions = ["0.5", "-2.25", "1e300", "3.0", "-0.0", "1e-320", "9007199254740994.0"]
  private static let texts = [
    "''", "'a'", "'A'", "'7'", "'007'", "' x '", "'it''s'", "'a'||char(0)||'b'", "char(0)", "'\u{E9}'",
    "'e\u{301}'", "'\u{1F600}'", "char(10)||char(13)", "'{\"b\":1, \"a\":2}'", "'null'", "'true'",
    "'7F6B0A62-0000-4000-8000-0000000000AA'", "replace(hex(zeroblob(150)), '0', 'é')", "hex(zeroblob(600))",
  ]
  private static let dates = ["'2024-02-29'", "'0001-01-01'", "'2024-12-31Z'"]
  private static let times = [
    "'2024-01-01T00:00:00Z'", "'2024-01-01T01:00:00+01:00'", "'2024-01-01T00:00:00.000Z'",
    "'1999-12-31T23:59:59.5Z'",
  ]
  /// Kinds of column contents.
  private static let kinds = [
    [], ["0", "1"], integers, fractions, integers + fractions, fractions + ["9e999", "-9e999"], texts, texts,
    dates,
    times, dates + times + ["'2024-01-01 10:00:00'"], integers + texts, integers + fractions + texts,
    texts + ["x''", "x'FF00'"], ["'a'", "CAST(x'FF' AS TEXT)"],
  ]

  init(at path: String, _ random: inout SplitMix64) throws {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    for _ in 0...random.below(4) { addTable(&random) }
    try queue.write { database in
      for statement in script { try database.execute(sql: statement) }
    }
    let declared = script.count
    for table in tables { addRows(to: table, &random) }
    for statement in script[declared...] {
      // A row may violate a constraint.
      do { try queue.write { try $0.execute(sql: statement) } } catch is DatabaseError {}
    }
    try queue.close()
  }

  private mutating func addTable(_ random: inout SplitMix64) {
    let names = Self.tableNames.filter { name in
      !tables.contains { $0.name.lowercased() == name.lowercased() }
    }
    var table = Table(name: random.element(names))
    var lines: [String] = []
    for _ in 0...random.below(6) {
      let free = Self.columnNames.filter { name in !table.columns.contains { $0.name == name } }
      var column = Column(name: random.element(free), type: random.element(Self.types))
      var line = "\(quoted(column.name)) \(column.type)"
      if random.chance(15) { line += " NOT NULL" }
      if random.chance(10) { line += " UNIQUE" }
      if random.chance(10) { line += " CHECK (1)" }
      if random.chance(10), let other = table.columns.first {
        column.isGenerated = true
        line += " GENERATED ALWAYS AS (\(quoted(other.name))) \(random.chance(50) ? "STORED" : "VIRTUAL")"
      }
      if !column.isGenerated, random.chance(10) { line += " DEFAULT (1 + 1)" }
      table.columns.append(column)
      lines.append(line)
    }
    let plain = table.columns.filter { !$0.isGenerated }.map(\.name)
    if random.chance(75) {
      table.key = Array(plain.shuffled(using: &random).prefix(1 + random.below(3)))
      lines.append("PRIMARY KEY (\(list(table.key)))")
    }
    // The first table always gets a model, whatever its key.
    table.isWithoutRowNumber = !tables.isEmpty && !table.key.isEmpty && random.chance(30)
    tables.append(table)
    for _ in 0..<random.below(3) { addReference(&random, &lines) }
    script.append(
      "CREATE TABLE \(quoted(table.name)) (\(lines.joined(separator: ", ")))\(table.isWithoutRowNumber ? " WITHOUT ROWID" : "")"
    )
    if random.chance(10) {
      script.append("CREATE VIEW v\(tables.count) AS SELECT * FROM \(quoted(table.name))")
    }
  }

  /// Adds a foreign key of the last table to any table with a key.
  private mutating func addReference(_ random: inout SplitMix64, _ lines: inout [String]) {
    let child = tables.count - 1
    let parent = random.element(tables)
    guard !parent.key.isEmpty, parent.key.count <= tables[child].columns.count else { return }
    let columns = Array(tables[child].columns.map(\.name).shuffled(using: &random).prefix(parent.key.count))
    guard !tables[child].references.contains(where: { Set($0) == Set(columns) }) else { return }
    let targets = random.chance(30) ? "" : " (\(list(parent.key.shuffled(using: &random))))"
    lines.append(
      "FOREIGN KEY (\(list(columns))) REFERENCES \(quoted(parent.name))\(targets)"
        + (random.chance(30) ? " ON DELETE CASCADE" : ""))
    tables[child].references.append(columns)
  }

  private mutating func addRows(to table: Table, _ random: inout SplitMix64) {
    let kinds = table.columns.map { _ in random.element(Self.kinds) }
    for _ in 0..<random.below(9) {
      var names: [String] = []
      var values: [String] = []
      for (column, kind) in zip(table.columns, kinds) where !column.isGenerated {
        names.append(column.name)
        values.append(kind.isEmpty || random.chance(10) ? "NULL" : random.element(kind))
      }
      script.append(
        "INSERT OR IGNORE INTO \(quoted(table.name)) (\(list(names))) VALUES (\(values.joined(separator: ", ")))"
      )
    }
  }

  private func list(_ names: [String]) -> String { names.map(quoted).joined(separator: ", ") }
}

private func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
