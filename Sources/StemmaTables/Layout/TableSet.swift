import Crypto
import StemmaEvents
import StemmaMerge
import StemmaSchema

/// All tables of a schema: the layout of each model, the indexes, and the tables that are Stemma's own.
package struct TableSet: Sendable {
  package let schema: Schema
  /// In the order of the schema.
  let layouts: [TableLayout]
  let references: [StoredReference]
  private let byStoredName: [String: Int]
  private let byName: [String: Int]

  package init(_ schema: Schema) {
    self.schema = schema
    layouts = schema.models.map { TableLayout($0) }
    references = StoredReference.all(of: schema)
    byStoredName = Dictionary(
      layouts.enumerated().map { ($1.model.storedName, $0) }, uniquingKeysWith: { first, _ in first })
    byName = Dictionary(
      layouts.enumerated().map { ($1.model.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The index into `layouts` of the model that events name so; nil if the schema does not know it.
  func index(ofStoredName name: String) -> Int? { byStoredName[name] }

  /// How records of a model merge; made once for all of them.
  package func rules(of model: Model) -> MergeRules {
    byName[model.name].map { layouts[$0].rules } ?? MergeRules(model)
  }

  func layout(named name: String) throws(TablesError) -> TableLayout {
    guard let index = byName[name] else { throw .unknownModel(name) }
    return layouts[index]
  }

  /// In the order of their names' bytes, which is the order of every listing.
  var layoutsByName: [TableLayout] { layouts.sorted { $0.model.name.hasBytes(before: $1.model.name) } }

  // MARK: DDL

  /// The layout of Stemma's own tables and of `_state`. A change makes every node rebuild its tables.
  static let format: Int64 = 9

  static let ownTables = [
    // All that every commit changes beside its rows, in one table, because SQLite writes whole pages: `format`,
    // `schema` (digest), `roots` (the pages at which tables begin), `position` (what of the log was applied, and
    // `HeadSum`), `clock`, `as_of` in a file that shows the past; the rows `stream` and `commit` are what the views
    // below show. Numbers that new events continue are not taken from a changed byte: `hash` ends with a CRC over the
    // row, also of the clock.
    """
    CREATE TABLE _stemma_meta (
      name TEXT NOT NULL, partition TEXT NOT NULL DEFAULT '', origin TEXT NOT NULL DEFAULT '', value, hash TEXT,
      PRIMARY KEY (name, partition, origin)
    ) WITHOUT ROWID
    """,
    // How far each stream was applied. `origin` and `hash` in hexadecimal.
    """
    CREATE VIEW _stemma_streams AS
      SELECT partition, origin, value AS sequence, substr(hash, 1, 32) AS hash, substr(hash, 33) AS crc
      FROM _stemma_meta WHERE name = 'stream'
    """,
    // The highest commit number of each origin whose events were applied.
    """
    CREATE VIEW _stemma_commits AS
      SELECT origin, value AS number, hash AS crc FROM _stemma_meta WHERE name = 'commit'
    """,
    // Records that do not exist but have a history. `key` is the encoded key, `model` the stored name.
    """
    CREATE TABLE _stemma_tombstones (
      model TEXT NOT NULL, key BLOB NOT NULL, partition TEXT NOT NULL, version INTEGER NOT NULL,
      state BLOB NOT NULL, PRIMARY KEY (model, key)
    ) WITHOUT ROWID
    """,
    // Records, shown or deleted, that have a register with differing siblings.
    """
    CREATE TABLE _stemma_conflicts (
      model TEXT NOT NULL, key BLOB NOT NULL, partition TEXT NOT NULL, PRIMARY KEY (model, key)
    ) WITHOUT ROWID
    """,
    // What peers have confirmed to hold of each stream; `peer` is the peer's log id or name. `crc` is over the row: by a
    // changed byte a purge would take away what nobody else has.
    """
    CREATE TABLE _stemma_acknowledged (
      peer TEXT NOT NULL, partition TEXT NOT NULL, origin TEXT NOT NULL, sequence INTEGER NOT NULL, crc TEXT NOT NULL,
      PRIMARY KEY (peer, partition, origin)
    ) WITHOUT ROWID
    """,
  ]

  /// `@index` of the schema, and one for each reference that no index or key begins with: without it,
  /// deleting a parent would read every child.
  var createIndexes: [String] {
    var statements: [String] = []
    var taken: Set<String> = []
    for layout in layouts {
      func create(_ name: String, _ fields: [String]) {
        var name = "\(layout.model.name).\(name)"
        // SQLite folds case, and two models may differ in nothing else.
        while !taken.insert(name.lowercased()).inserted { name += "_" }
        let columns = fields.map(TableLayout.quoted).joined(separator: ", ")
        statements.append("CREATE INDEX \(TableLayout.quoted(name)) ON \(layout.table) (\(columns))")
      }
      var prefixes = [layout.key.map(\.field.name)] + layout.model.indexes.map(\.fields)
      for index in layout.model.indexes { create(index.name, index.fields) }
      for reference in references where reference.child.name == layout.model.name {
        let fields = reference.fields
        guard !prefixes.contains(where: { Set($0.prefix(fields.count)) == Set(fields) }) else { continue }
        prefixes.append(fields)
        create("reference." + fields.joined(separator: "."), fields)
      }
    }
    return statements
  }

  /// SHA-256, in hexadecimal, over everything of the schema that decides what stands in the tables. Two
  /// schemas that differ only in what bears on no row (the cases of an enum, for example) share it.
  var digest: String {
    var text = layouts.map(\.createTable) + createIndexes
    for layout in layouts {
      let model = layout.model
      text.append(
        "\(model.name) \(model.storedName) \(model.partitionDepth) \(model.conflictPolicy.rawValue) "
          + "\(model.deletePolicy.rawValue) \(model.createdAt ?? "-") \(model.updatedAt ?? "-") "
          + model.fields.map(\.storedName).joined(separator: " "))
      text += model.fields.compactMap { field in
        field.defaultValue.map { "\(field.storedName) \(field.isRequired) \($0)" }
      }
    }
    for reference in references {
      text.append(
        "\(reference.child.name) \(reference.fields.joined(separator: " ")) \(reference.parent.name) "
          + (reference.hasOne ?? "-"))
    }
    return Hexadecimal.text(SHA256.hash(data: Array(text.joined(separator: "\n").utf8)))
  }
}

enum Hexadecimal {
  private static let digits = Array("0123456789abcdef".utf8)

  static func upperDigit(_ digit: UInt8) -> UInt8 {
    digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "A") + digit - 10
  }

  static func append(_ bytes: some Collection<UInt8>, to text: inout [UInt8]) {
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
  }

  static func text(_ bytes: some Swift.Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    append(Array(bytes), to: &text)
    return String(decoding: text, as: UTF8.self)
  }
}
