import Crypto
import StemmaEvents
import StemmaMerge
import StemmaSchema

/// All tables of a schema: the layout of each model, the indexes, and Stemma's own tables.
package final class TableSet: Sendable {
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

  /// The index into `layouts` of the model with this stored name; nil if the schema has none.
  func index(ofStoredName name: String) -> Int? { byStoredName[name] }

  /// How records of a model merge; created once for all of them.
  package func rules(of model: Model) -> MergeRules {
    byName[model.name].map { layouts[$0].rules } ?? MergeRules(model)
  }

  func layout(named name: String) throws(TablesError) -> TableLayout {
    guard let index = byName[name] else { throw .unknownModel(name) }
    return layouts[index]
  }

  /// In byte order of the names, which is the order of every listing.
  var layoutsByName: [TableLayout] { layouts.sorted { $0.model.name.hasBytes(before: $1.model.name) } }

  // MARK: DDL

  /// The layout of Stemma's own tables and of `_state`. With another format, nodes rebuild their
  /// tables.
  static let format: Int64 = 9

  static let ownTables = [
    // This table has all that every commit changes besides its rows: SQLite writes whole pages.
    // Names: `format`, `schema` (digest), `roots` (root pages of the tables), `position` (applied
    // log position and `HeadChecksum`), `clock`. A file of a past state has `as_of`. The names
    // `stream` and `commit` are those of the views below. `hash` ends with a CRC over the row: new
    // events never continue a corrupt number.
    """
    CREATE TABLE _stemma_meta (
      name TEXT NOT NULL, partition TEXT NOT NULL DEFAULT '', origin TEXT NOT NULL DEFAULT '', value, hash TEXT,
      PRIMARY KEY (name, partition, origin)
    ) WITHOUT ROWID
    """,
    // How far each stream was applied. `origin` and `hash` are hexadecimal.
    """
    CREATE VIEW _stemma_streams AS
      SELECT partition, origin, value AS sequence, substr(hash, 1, 32) AS hash, substr(hash, 33) AS crc
      FROM _stemma_meta WHERE name = 'stream'
    """,
    // The highest commit number of each origin with applied events.
    """
    CREATE VIEW _stemma_commits AS
      SELECT origin, value AS number, hash AS crc FROM _stemma_meta WHERE name = 'commit'
    """,
    // Deleted records with a history. `key` is the encoded key, `model` the stored name.
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
    // The events that peers have confirmed to hold. The `peer` is its log id or name. The `crc`
    // covers the row: with a changed byte, a purge could remove the only copy of an event.
    """
    CREATE TABLE _stemma_acknowledged (
      peer TEXT NOT NULL, partition TEXT NOT NULL, origin TEXT NOT NULL, sequence INTEGER NOT NULL, crc TEXT NOT NULL,
      PRIMARY KEY (peer, partition, origin)
    ) WITHOUT ROWID
    """,
  ]

  /// Every `@index` of the schema, and one index for each reference that no index or key begins
  /// with. Without it, deleting a parent would read every child.
  var createIndexes: [String] {
    var statements: [String] = []
    var taken: Set<String> = []
    for layout in layouts {
      func create(_ name: String, _ fields: [String]) {
        var name = "\(layout.model.name).\(name)"
        // SQLite ignores case, and two models may differ only in case.
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

  /// SHA-256, in hexadecimal, over every part of the schema that decides the contents of the
  /// tables. Schemas that differ only in other parts (the cases of an enum, for example) share it.
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

  static func text(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    append(Array(bytes), to: &text)
    return String(decoding: text, as: UTF8.self)
  }
}
