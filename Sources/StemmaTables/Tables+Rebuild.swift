import CStemma
import Foundation
import GRDB
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

extension Tables {
  /// Builds tables from all events of a log and replaces the file at `path`.
  ///
  /// `next` returns the events by (partition, model, key), those of one key with causes before
  /// effects (position order has this property). Each record is folded once and inserted, in key
  /// order inside of each partition; indexes come last. Memory: one record, SQLite's page cache,
  /// and one head per stream. The file is built beside the target (`….building`), synced, and then
  /// renamed. A crash or an error leaves the old tables unchanged. Peers' acknowledgements are
  /// copied from readable old tables.
  ///
  /// The caller holds the node's writer lock, and then closes its connections to the old file.
  ///
  /// - Parameters:
  ///   - versionVector: the streams' heads, if the log has them; otherwise the events determine
  ///     them. Pass nil with a filter.
  ///   - token: the log position up to which events are read.
  ///   - ownOrigins: the origins of this node, whose events do not advance the clock.
  ///   - progress: called every few thousand events; may throw to stop the rebuild.
  /// - Throws: what `next` and `progress` throw; `TablesError` otherwise.
  @discardableResult
  package static func rebuild(
    at path: String, schema: Schema, versionVector: VersionVector?, token: LogToken,
    filter: RebuildFilter = .all,
    ownOrigins: [Origin] = [],
    progress: (RebuildProgress) throws -> Void = { _ in }, next: () throws -> StoredEvent?
  ) throws -> RebuildProgress {
    try rebuild(at: path, schema, versionVector, token, filter, ownOrigins, progress) { builder in
      try builder.insert(next, progress)
    }
  }

  /// As above, from all events of a log. A separate thread reads, unpacks and folds them while this
  /// one inserts rows. Several times as fast; the same events give the same tables.
  @discardableResult
  package static func rebuild(
    at path: String, schema: Schema, versionVector: VersionVector, token: LogToken, from files: RecordFiles,
    ownOrigins: [Origin] = [], progress: (RebuildProgress) throws -> Void = { _ in }
  ) throws -> RebuildProgress {
    try rebuild(at: path, schema, versionVector, token, .all, ownOrigins, progress) { builder in
      try builder.insert(from: files, progress)
    }
  }

  private static func rebuild(
    at path: String, _ schema: Schema, _ versionVector: VersionVector?, _ token: LogToken,
    _ filter: RebuildFilter,
    _ ownOrigins: [Origin], _ progress: (RebuildProgress) throws -> Void,
    insert: (inout TablesBuilder) throws -> Void
  ) throws -> RebuildProgress {
    try Tables.checkLength(ofPath: path)
    let staged = path + Tables.unfinishedSuffix
    try FileReplacement.remove(staged)
    do {
      let acknowledged = acknowledgements(ofOld: path)
      var configuration = Configuration()
      configuration.busyMode = .immediateError
      let queue = try DatabaseQueue(path: staged, configuration: configuration)
      let file = try SyncedFile(staged)
      let result = try queue.writeWithoutTransaction { database in
        let connection = Connection(handle: try database.sqliteHandle, path: staged)
        // No process opens the unfinished file. The next rebuild replaces it after a crash.
        for pragma in ["journal_mode = OFF", "synchronous = OFF", "cache_size = -4096", "threads = 2"] {
          try connection.execute("PRAGMA \(pragma)")
        }
        try connection.execute("BEGIN EXCLUSIVE")
        defer { connection.rollBack() }
        // Memory freed earlier, as by a clone, would otherwise add to that of merging and sorting.
        stemma_return_free_memory()
        var builder = try TablesBuilder(
          TableSet(schema), connection, filter, StreamSummary(versionVector, ownOrigins: ownOrigins))
        try insert(&builder)
        // The rows are written to disk while the indexes are built.
        let syncing = MadeAhead { Result { () throws(TablesError) in try file.sync() } }
        try builder.finish(token, acknowledged, progress)
        try syncing.take().get()
        try connection.execute("COMMIT")
        try connection.execute("PRAGMA journal_mode = WAL")
        return builder.progress
      }
      try queue.close()
      var report = result
      report.step = .sync
      try progress(report)
      try FileReplacement.replace(path, with: file)
      report.step = .done
      try progress(report)
      return report
    } catch let error as DatabaseError {
      try FileReplacement.remove(staged)
      throw TablesError.from(error, path)
    } catch {
      try FileReplacement.remove(staged)
      throw error
    }
  }

  /// Empty if the old tables are unreadable: peers then confirm again at the next sync.
  private static func acknowledgements(ofOld path: String) -> [Acknowledgement] {
    do {
      guard try FileReplacement.isThere(path) else { return [] }
      var configuration = Configuration()
      configuration.readonly = true
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      return try queue.read { database in
        let connection = Connection(handle: try database.sqliteHandle, path: path)
        guard try Meta.integer("format", of: connection) == TableSet.format else { return [] }
        return try TablesReader(connection: connection, tableSet: TableSet(Schema())).acknowledgements()
      }
    } catch {
      return []
    }
  }
}
