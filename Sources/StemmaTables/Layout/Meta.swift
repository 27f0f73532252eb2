import GRDBSQLite
import StemmaEvents
import StemmaLog

/// The log position up to which the tables are applied.
package struct AppliedPosition: Hashable, Sendable {
  package var token: LogToken
  /// The durable part: it lags after commits with relaxed durability. If the log loses the events
  /// in between, no peer has seen them.
  package var synced: LogToken

  /// The position in a log that is durable up to there.
  package init(_ token: LogToken) { self.init(token, synced: token) }

  package init(_ token: LogToken, synced: LogToken) { (self.token, self.synced) = (token, synced) }
}

/// Names and values in `_stemma_meta`.
enum Meta {
  static func write(_ name: String, _ value: Value, to connection: Connection) throws(TablesError) {
    let statement = try connection.prepareOnce(
      "INSERT INTO _stemma_meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
    )
    statement.bind(1, name)
    statement.bind(2, value)
    try statement.run()
  }

  private static func value<Result>(
    _ name: String, of connection: Connection, _ read: (Statement) -> Result
  ) throws(TablesError) -> Result? {
    let statement = try connection.prepareOnce("SELECT value FROM _stemma_meta WHERE name = ?")
    statement.bind(1, name)
    defer { statement.reset() }
    return try statement.step() ? read(statement) : nil
  }

  static func integer(_ name: String, of connection: Connection) throws(TablesError) -> Int64? {
    try value(name, of: connection) { $0.int(0) }
  }

  static func text(_ name: String, of connection: Connection) throws(TablesError) -> String? {
    try value(name, of: connection) { $0.text(0) }
  }

  // MARK: Format and schema

  static func write(_ tableSet: TableSet, to connection: Connection) throws(TablesError) {
    try write("format", .int(TableSet.format), to: connection)
    try write("schema", .string(tableSet.digest), to: connection)
    try write("roots", .string(tableSet.inspect(connection).roots), to: connection)
  }

  /// Whether a file holds Stemma tables of any format.
  static func isThere(in connection: Connection) throws(TablesError) -> Bool {
    try connection.integer("SELECT count(*) FROM sqlite_master WHERE name = '_stemma_meta'") == 1
  }

  /// Throws `needsRebuild` unless the tables have this format and were made for this schema.
  /// `isLive`: they must also follow the log, and not show a past state.
  static func check(
    _ connection: Connection, _ tableSet: TableSet, isLive: Bool
  ) throws(TablesError) {
    let format = try isThere(in: connection) ? try integer("format", of: connection) : nil
    let reason: RebuildReason
    if format != TableSet.format {
      reason = .format(found: format)
    } else if try text("schema", of: connection) != tableSet.digest {
      reason = .schema
    } else if isLive, try text("as_of", of: connection) != nil {
      reason = .asOf
    } else if try applied(of: connection) == nil {
      reason = .corrupt("no position in the log")
    } else if let changed = try change(of: tableSet, connection) {
      reason = .corrupt(changed)
    } else {
      return
    }
    throw .needsRebuild(path: connection.path, reason)
  }

  /// How the definitions differ from those that were written; nil if they do not.
  static func change(
    of tableSet: TableSet, _ connection: Connection
  ) throws(TablesError) -> String? {
    let found = try tableSet.inspect(connection)
    if let change = found.change { return change }
    return try text("roots", of: connection) == found.roots ? nil : "a table does not begin where it was made"
  }

  // MARK: Position

  /// In one row: a disk page holds all of it or nothing.
  static func write(
    _ applied: AppliedPosition, _ sum: HeadChecksum, to connection: Connection
  ) throws(TablesError) {
    var words: [UInt8] = []
    words.reserveCapacity(128)
    let (token, synced) = (applied.token, applied.synced)
    for number in [token.position.rawValue, UInt64(token.chain), sum.heads] {
      words.append(decimal: number)
      words.append(UInt8(ascii: " "))
    }
    for (place, count) in [sum.tombstones, sum.rows, sum.conflicts].enumerated() {
      if place > 0 { words.append(UInt8(ascii: " ")) }
      words.append(decimal: count)
    }
    if synced != token {
      for number in [synced.position.rawValue, UInt64(synced.chain)] {
        words.append(UInt8(ascii: " "))
        words.append(decimal: number)
      }
    }
    let statement = try connection.prepareOnce(
      """
      INSERT INTO _stemma_meta (name, value) VALUES ('position', ?)
      ON CONFLICT DO UPDATE SET value = excluded.value
      """)
    try statement.run(words) { statement, words in statement.bind(1, inPlace: words) }
  }

  /// Moves from a position, read if nil, to another one unless nil. Changes the sum by `change`.
  ///
  /// - Returns: the position and sum that are stored then.
  @discardableResult
  static func move(
    _ before: (applied: AppliedPosition, sum: HeadChecksum)?, to applied: AppliedPosition?,
    headsBy change: HeadChecksum,
    _ connection: Connection
  ) throws(TablesError) -> (applied: AppliedPosition, sum: HeadChecksum) {
    var known = before
    if known == nil { known = try position(of: connection) }
    guard let before = known else {
      throw .needsRebuild(path: connection.path, .corrupt("no position in the log"))
    }
    let now = (applied: applied ?? before.applied, sum: before.sum + change)
    try write(now.applied, now.sum, to: connection)
    return now
  }

  private static func position(
    of connection: Connection
  ) throws(TablesError) -> (applied: AppliedPosition, sum: HeadChecksum)? {
    let words = try text("position", of: connection)?.split(separator: " ") ?? []
    guard [6, 8].contains(words.count), let position = UInt64(words[0]), let chain = UInt32(words[1]),
      let heads = UInt64(words[2]), let tombstones = Int64(words[3]), let rows = Int64(words[4]),
      let conflicts = Int64(words[5])
    else { return nil }
    var applied = AppliedPosition(LogToken(position: Position(position), chain: chain))
    if words.count == 8 {
      guard let synced = UInt64(words[6]), let chain = UInt32(words[7]) else { return nil }
      applied.synced = LogToken(position: Position(synced), chain: chain)
    }
    return (
      applied,
      HeadChecksum(heads: heads, tombstones: tombstones, conflicts: conflicts, rows: rows)
    )
  }

  static func applied(of connection: Connection) throws(TablesError) -> AppliedPosition? {
    try position(of: connection)?.applied
  }

  /// As last written; nil if it cannot be read.
  static func headChecksum(of connection: Connection) throws(TablesError) -> HeadChecksum? {
    try position(of: connection)?.sum
  }

  // MARK: Clock

  static func write(clock: Timestamp, to connection: Connection) throws(TablesError) {
    let statement = try connection.prepareOnce(
      """
      INSERT INTO _stemma_meta (name, value, hash) VALUES ('clock', ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value, hash = excluded.hash
      """)
    let number = Int64(bitPattern: clock.rawValue)
    statement.bind(1, number)
    try statement.run(crc(ofClock: number)) { statement, crc in statement.bind(2, inPlace: crc) }
  }

  /// Throws `needsRebuild` if the clock is not the one that was written.
  static func clock(of connection: Connection) throws(TablesError) -> Timestamp {
    let statement = try connection.prepareOnce("SELECT value, hash FROM _stemma_meta WHERE name = 'clock'")
    defer { statement.reset() }
    guard try statement.step() else { return Timestamp(rawValue: 0) }
    let number = statement.int(0)
    guard statement.bytes(1).elementsEqual(crc(ofClock: number)) else {
      throw .needsRebuild(path: connection.path, .corrupt("_stemma_meta: the clock"))
    }
    return Timestamp(rawValue: UInt64(bitPattern: number))
  }

  private static func crc(ofClock number: Int64) -> [UInt8] {
    var bytes = Array("clock ".utf8)
    bytes.append(decimal: number)
    var digits: [UInt8] = []
    digits.append(hex: CRC32C.of(bytes))
    return digits
  }
}

extension TableSet {
  /// The tables, views and indexes in SQLite's catalogue.
  struct Catalogue {
    /// The first missing, changed or added object; nil if there is none. A foreign index rejects
    /// rows or makes every write fail, and a trigger may undo writes.
    var change: String?
    /// The reserved bytes of a page, and the root pages of the tables. SQLite trusts changed
    /// numbers and reads the wrong pages.
    var roots: String
  }

  func inspect(_ connection: Connection) throws(TablesError) -> Catalogue {
    let made = Self.ownTables + layouts.map(\.createTable) + createIndexes
    var missing = Set(made)
    var added: String?
    var tables: Set<String> = []
    var reserved: Int32 = -1
    sqlite3_file_control(connection.handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved)
    var roots = [Int64(reserved)]
    // A table comes before the indexes that SQLite creates for its keys, which have no statement.
    let statement = try connection.prepareOnce(
      "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master ORDER BY type DESC, name")
    defer { statement.reset() }
    while try statement.step() {
      let (type, name, table) = (statement.text(0), statement.text(1), statement.text(2))
      let isMade = missing.remove(statement.text(4)) != nil
      if isMade, type == "table" { tables.insert(name) }
      if isMade || statement.isNull(4) && tables.contains(table) {
        roots.append(statement.int(3))
      } else if !name.hasPrefix("sqlite_"), added == nil {
        // SQLite's own names belong to key indexes and statistics.
        added = "the \(type) \(name) was added"
      }
    }
    let lost = made.first(where: missing.contains).map {
      "what \($0.prefix { $0 != "(" && $0 != "\n" }) made is missing or was changed"
    }
    return Catalogue(change: lost ?? added, roots: roots.map(\.description).joined(separator: " "))
  }

  /// Creates all tables, without the indexes.
  func create(in connection: Connection) throws(TablesError) {
    for statement in Self.ownTables { try connection.execute(statement) }
    for layout in layouts { try connection.execute(layout.createTable) }
  }
}
