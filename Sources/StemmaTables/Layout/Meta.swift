import StemmaEvents
import StemmaLog

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
  }

  /// Throws `needsRebuild` unless the tables have this software's format and were made for this schema.
  /// `isLive`: they must also follow the log, not show a state of the past.
  static func check(
    _ connection: Connection, _ tableSet: TableSet, isLive: Bool
  ) throws(TablesError) {
    let isStemma =
      try connection.integer("SELECT count(*) FROM sqlite_master WHERE name = '_stemma_meta'") == 1
    let format = isStemma ? try integer("format", of: connection) : nil
    let reason: RebuildReason
    if format != TableSet.format {
      reason = .format(found: format)
    } else if try text("schema", of: connection) != tableSet.digest {
      reason = .schema
    } else if isLive, try text("as_of", of: connection) != nil {
      reason = .asOf
    } else if try token(of: connection) == nil {
      reason = .damaged("no position in the log")
    } else {
      return
    }
    throw .needsRebuild(path: connection.path, reason)
  }

  // MARK: Position

  static func write(_ token: LogToken, to connection: Connection) throws(TablesError) {
    let numbers = [token.position.file, token.position.index, UInt64(token.chain)]
    try write("position", .string(numbers.map(\.description).joined(separator: " ")), to: connection)
  }

  static func token(of connection: Connection) throws(TablesError) -> LogToken? {
    let numbers = try text("position", of: connection)?.split(separator: " ").map { UInt64($0) } ?? []
    guard numbers.count == 3, let file = numbers[0], let index = numbers[1],
      let chain = numbers[2].flatMap({ UInt32(exactly: $0) })
    else { return nil }
    return LogToken(position: Position(file: file, index: index), chain: chain)
  }

  // MARK: Clock

  static func write(clock: Timestamp, to connection: Connection) throws(TablesError) {
    try write("clock", .int(Int64(bitPattern: clock.rawValue)), to: connection)
  }

  static func clock(of connection: Connection) throws(TablesError) -> Timestamp {
    Timestamp(rawValue: UInt64(bitPattern: try integer("clock", of: connection) ?? 0))
  }
}

extension TableSet {
  /// Creates all tables, without the indexes.
  func create(in connection: Connection) throws(TablesError) {
    for statement in Self.ownTables { try connection.execute(statement) }
    for layout in layouts { try connection.execute(layout.createTable) }
  }
}
