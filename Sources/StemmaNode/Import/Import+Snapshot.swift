import StemmaEvents
import StemmaSchema
import StemmaTables

extension Import {
  /// Makes a node follow a source that is imported again and again under one name.
  ///
  /// Each row is compared with the last import of that name. Only the fields that the source changed since are written,
  /// so what was changed elsewhere stays. A row that the name does not know is an upsert. `deleteVanished` deletes the
  /// records of rows that are not in the source any more.
  package final class Snapshot {
    package struct Counts: Sendable {
      /// Records that rows of the source created or changed.
      package var (created, changed) = (0, 0)
      /// Records that were deleted, those included that cannot be without them.
      package var deleted = 0
      /// Rows that are not in the source, whose records stay.
      package var kept = 0
    }

    fileprivate struct RecordName: Hashable {
      var model: String
      var key: Key
    }

    /// The rows of one commit, until it is durable.
    struct Rows {
      fileprivate var fields: [RecordName: [UInt64]] = [:]
      fileprivate var (created, changed) = (0, 0)
    }

    package let name: String
    package private(set) var counts = Counts()
    fileprivate let keepsMissing: Bool
    fileprivate let allowsEmpty: Bool
    private let file: SnapshotFile
    /// Of commits that are not durable.
    private var pending: [RecordName: [UInt64]] = [:]

    /// - Parameters:
    ///   - keepsMissing: whether the records of rows that are not in the source stay.
    ///   - allowsEmpty: whether all records of a model may be deleted.
    ///   - isDryRun: whether the node remembers nothing of it.
    package init(
      _ name: String, of node: Node, keepsMissing: Bool = false, allowsEmpty: Bool = false,
      isDryRun: Bool = false
    ) throws(NodeError) {
      self.name = name
      self.keepsMissing = keepsMissing
      self.allowsEmpty = allowsEmpty
      file = try Self.wrapping { () throws(TablesError) in
        try SnapshotFile(
          Node.path(node.directory, Node.snapshotsFileName), name: name, wait: node.options.waitMilliseconds,
          isCopy: isDryRun)
      }
    }

    private init(copying other: Snapshot) throws(NodeError) {
      (name, keepsMissing, allowsEmpty) = (other.name, other.keepsMissing, other.allowsEmpty)
      file = try Self.wrapping { () throws(TablesError) in try other.file.copy() }
    }

    /// One whose rows are not remembered.
    func copy() throws(NodeError) -> Snapshot { try Snapshot(copying: self) }

    private static func wrapping<Result>(
      _ body: () throws(TablesError) -> Result
    ) throws(NodeError) -> Result {
      do throws(TablesError) { return try body() } catch { throw .tables(error) }
    }

    /// Writes what the source changed of one row.
    func follow(
      _ mutation: Mutation, _ rows: inout Rows, _ transaction: WriteTransaction
    ) throws(NodeError) {
      guard mutation.operation == .upsert || mutation.operation == .create else {
        throw .mutation(
          .wrongShape("a snapshot consists of rows, and `\(mutation.operation.rawValue)` is none"))
      }
      let row = try transaction.sourceRow(mutation)
      let name = RecordName(model: row.model.storedName, key: row.key)
      let fields = row.values.map { SnapshotFile.digest(of: $0) }
      let last = try last(name, rows)
      if let last, last.isFound {
        guard last.fields == fields else {
          throw .mutation(
            .wrongShape(
              "the source has \(row.model.name) \(transaction.text(row.key, row.model)) twice, with different values"
            ))
        }
        return
      }
      let change = try transaction.follow(row, last?.fields, fields, mutation.milliseconds)
      rows.fields[name] = fields
      switch change {
      case .create: rows.created += 1
      case .update: rows.changed += 1
      default: break
      }
    }

    private func last(_ name: RecordName, _ rows: Rows) throws(NodeError) -> SnapshotFile.Recorded? {
      if let fields = rows.fields[name] ?? pending[name] {
        return SnapshotFile.Recorded(fields: fields, isFound: true)
      }
      return try Self.wrapping { () throws(TablesError) in try file.recorded(name.model, name.key) }
    }

    /// Notes rows whose commit was made, and will be durable.
    func note(_ rows: Rows) { pending.merge(rows.fields) { $1 } }

    /// Records rows whose commit is durable.
    func record(_ rows: Rows) throws(NodeError) {
      try Self.wrapping { () throws(TablesError) in
        try file.record(
          rows.fields.map { SnapshotFile.Row(model: $0.model, key: $0.key, fields: $1) })
      }
      for name in rows.fields.keys { pending[name] = nil }
      counts.created += rows.created
      counts.changed += rows.changed
    }

    /// The models of which recorded rows were not found. Models that the node's schema lacks are left alone.
    fileprivate func vanishedModels(_ schema: Schema, deletes: Bool) throws(NodeError) -> [Model] {
      var models: [Model] = []
      for model in schema.models {
        let counts = try Self.wrapping { () throws(TablesError) in try file.counts(model.storedName) }
        guard counts.vanished > 0 else { continue }
        models.append(model)
        guard counts.found == 0, deletes, !allowsEmpty else { continue }
        throw .malformedInput(
          source: name,
          what: "snapshot \(name): the source has no row of \(model.name), and its last import had "
            + "\(counted(UInt64(counts.vanished), "row")). Nothing was deleted. Delete them with --allow-empty, or keep "
            + "them with --keep-missing.")
      }
      return models
    }

    fileprivate func vanished(_ model: Model, after key: Key?, limit: Int) throws(NodeError) -> [Key] {
      try Self.wrapping { () throws(TablesError) in
        try file.vanished(model.storedName, after: key, limit: limit).map(\.key)
      }
    }

    fileprivate func remove(_ keys: [Key], of model: Model, deleted: Int) throws(NodeError) {
      try Self.wrapping { () throws(TablesError) in
        try file.remove(keys.map { SnapshotFile.Row(model: model.storedName, key: $0, fields: []) })
      }
      counts.deleted += deleted
    }

    fileprivate func countKept(_ models: [Model]) throws(NodeError) {
      counts.kept = 0
      for model in models {
        counts.kept += try Self.wrapping { () throws(TablesError) in
          try file.counts(model.storedName).vanished
        }
      }
    }
  }

  // MARK: Rows that vanished

  /// The outcome for some rows that are not in the source.
  fileprivate struct Deletion {
    /// Rows whose records are gone.
    var done: [Key] = []
    var deleted = 0
    var events = 0
    /// Why the record of another one may not be deleted.
    var refusal: NodeError?
  }

  /// Deletes the records of rows that the snapshot has and its sources do not have. To be called after all sources of
  /// an import. The rows of records outside of the node's scope stay in the snapshot.
  ///
  /// - Parameter isComplete: whether every row of the sources was taken. If not, nothing is deleted.
  /// - Throws: `malformedInput` if the sources have no row of a model and that is not allowed: nothing was deleted.
  ///   `restricted` for a record that others refer to. All other records were deleted.
  /// - Returns: the events and commits of the deletions.
  package func deleteVanished(isComplete: Bool) throws -> Summary {
    var summary = Summary()
    guard let snapshot else { return summary }
    let deletes = isComplete && !snapshot.keepsMissing
    let models = try snapshot.vanishedModels(node.schema, deletes: deletes)
    if deletes {
      if options.isDryRun {
        var outcome = Result<Void, any Error>.success(())
        try node.rehearse { transaction throws(NodeError) in
          outcome = Result {
            try delete(models, snapshot, &summary) { keys, model in
              defer { transaction.forgetEvents() }
              return try transaction.deleteVanished(keys, model)
            }
          }
        }
        try outcome.get()
      } else {
        let note = CommitNote(by: options.by, note: options.note, source: "snapshot \(snapshot.name)")
        try delete(models, snapshot, &summary) { keys, model in
          try node.write(note) { transaction throws(NodeError) in try transaction.deleteVanished(keys, model)
          }
        }
      }
    }
    try snapshot.countKept(models)
    return summary
  }

  private func delete(
    _ models: [Model], _ snapshot: Snapshot, _ summary: inout Summary,
    _ commit: ([Key], Model) throws -> Deletion
  ) throws {
    var refusal: NodeError?
    var isFurther = true
    // A record that others may not lose goes after them.
    while isFurther {
      (refusal, isFurther) = (nil, false)
      for model in models {
        var last: Key?
        while true {
          let keys = try snapshot.vanished(model, after: last, limit: options.batch)
          guard let end = keys.last else { break }
          last = end
          let deletion = try commit(keys, model)
          try snapshot.remove(deletion.done, of: model, deleted: deletion.deleted)
          summary.events += deletion.events
          if deletion.events > 0 { summary.commits += 1 }
          isFurther = isFurther || !deletion.done.isEmpty
          refusal = refusal ?? deletion.refusal
        }
      }
      if refusal == nil { return }
    }
    if let refusal { throw refusal }
  }
}

// MARK: - Writing

/// A row of a source, as stored values.
private struct SourceRow {
  var model: Model
  var key: Key
  var values: [Assignment]
}

extension WriteTransaction {
  fileprivate func sourceRow(_ mutation: Mutation) throws(NodeError) -> SourceRow {
    let model = try model(mutation.model)
    let key = try key(mutation.key, of: model)
    return SourceRow(model: model, key: key, values: try assignments(model, key, mutation.fields))
  }

  /// Writes the fields of a row that are not among the digests `last`; all, if there are none, or the node has never
  /// held the record. A record that was deleted is created again if the source has changed its row since.
  ///
  /// - Parameter fields: the digests of the row's values.
  /// - Returns: what was written, nil: nothing.
  fileprivate func follow(
    _ row: SourceRow, _ last: [UInt64]?, _ fields: [UInt64], _ milliseconds: UInt64?
  ) throws(NodeError) -> Operation? {
    let state = try state(row.model, row.key)
    var changed = row.values
    if let last, !state.isEmpty {
      changed = zip(row.values, fields).filter { !last.contains($1) }.map(\.0)
      if changed.isEmpty { return nil }
    }
    let before = events.count
    if state.exists(rules(row.model)) {
      try update(row.model, row.key, state, changed, milliseconds)
    } else {
      try create(row.model, row.key, state, row.values, milliseconds: milliseconds)
    }
    return events.count > before ? events[before].operation : nil
  }

  fileprivate func deleteVanished(_ keys: [Key], _ model: Model) throws(NodeError) -> Import.Deletion {
    var deletion = Import.Deletion()
    let before = events.count
    for key in keys {
      guard key.parts.count == model.keyFields.count, isInScope(Partition(model: model, key: key)) else {
        continue
      }
      do throws(NodeError) {
        if try exists(model, key) { try delete(model, key, milliseconds: nil) }
        deletion.done.append(key)
      } catch {
        // Refused before anything was recorded.
        guard case .mutation(.restricted) = error else { throw error }
        deletion.refusal = deletion.refusal ?? error
      }
    }
    deletion.events = events.count - before
    deletion.deleted = events[before...].count { $0.operation == .delete }
    return deletion
  }
}
