import GRDBSQLite

extension Tables {
  /// The current owner of the name of new tables that a caller wants to keep.
  package enum Occupant: Sendable {
    case nothing
    /// Stemma tables of any node, schema or format.
    case tables
    case otherFile
    /// A directory, a pipe or a dangling link.
    case noFile
  }

  /// Examines the path without changing it: no file appears beside it.
  package static func occupant(of path: String) -> Occupant {
    if !FileIdentity.isTaken(path) { return .nothing }
    if FileIdentity.isNoFile(path) { return .noFile }
    return content(of: path)
  }

  private static func content(of path: String) -> Occupant {
    var handle: OpaquePointer?
    // SQLite returns a handle even if it cannot open the file.
    defer { sqlite3_close_v2(handle) }
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
    let code = sqlite3_open_v2(immutableURI(path), &handle, flags, nil)
    guard code == SQLITE_OK, let opened = handle else { return .otherFile }
    // An unreadable file is not tables.
    do {
      let connection = Connection(handle: opened, path: path)
      // An empty file, as `mktemp` makes it.
      let pages = try connection.prepare("PRAGMA page_count")
      while try pages.step() { if pages.int(0) == 0 { return .nothing } }
      return try Meta.isThere(in: connection) ? .tables : .otherFile
    } catch { return .otherFile }
  }
}
