import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

extension Import {
  /// Makes a node follow a source that is imported repeatedly under one name.
  ///
  /// Each row is compared with the last import of that name. Only fields that changed in the source
  /// are written, so other changes of the node stay. A row unknown to that name is an upsert.
  /// `deleteVanished` deletes the records of rows that are gone from the source.
  package final class Snapshot {
    package struct Counts: Sendable {
      /// Records that rows of the source created or changed.
      package var (created, changed) = (0, 0)
      /// Deleted records, including those that were deleted along with them.
      package var deleted = 0
      /// Rows that are gone from the source and whose records stay.
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
    /// Rows of commits that are not yet durable.
    private var pending: [RecordName: [UInt64]] = [:]

    /// - Parameters:
    ///   - keepsMissing: whether records stay if their rows are gone from the source.
    ///   - allowsEmpty: whether all records of a model may be deleted.
    ///   - isDryRun: whether the node stores nothing of it.
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

    /// A copy that stores no rows.
    func copy() throws(NodeError) -> Snapshot { try Snapshot(copying: self) }

    private static func wrapping<Result>(
      _ body: () throws(TablesError) -> Result
    ) throws(NodeError) -> Result {
      do throws(TablesError) { return try body() } catch { throw .tables(error) }
    }

    /// Writes the fields of one row that changed in the source.
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

    /// Remembers rows of a commit that is not yet durable.
    func note(_ rows: Rows) { pending.merge(rows.fields) { $1 } }

    /// Stores rows of a durable commit.
    func record(_ rows: Rows) throws(NodeError) {
      try Self.wrapping { () throws(TablesError) in
        try file.record(
          rows.fields.map { SnapshotFile.Row(model: $0.model, key: $0.key, fields: $1) })
      }
      for name in rows.fields.keys { pending[name] = nil }
      counts.created += rows.created
      counts.changed += rows.changed
    }

    /// The models with recorded rows that were not found. Models outside of the schema are ignored.
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

  /// Deletes the records of rows that are gone from the sources. The caller has imported all
  /// sources. Rows of records outside of the node's scope stay in the snapshot.
  ///
  /// - Parameter isComplete: whether every row was accepted. If not, nothing is deleted.
  /// - Throws: `malformedInput` before any deletion, if a model has no row and that is not allowed.
  ///   `restricted` after all other deletions, for a record that others refer to.
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
        let message = CommitMessage(
          author: options.author, text: options.message, source: "snapshot \(snapshot.name)")
        try delete(models, snapshot, &summary) { keys, model in
          try node.write(message) { transaction throws(NodeError) in
            try transaction.deleteVanished(keys, model)
          }
        }
      }
    }
    try snapshot.countKept(models)
    return summary
  }

  private func delete(
    _ models: [Model], _ snapshot: Snapshot, _ summary: inout Summary,
    _ commit: ([Key], Model) throws -> VanishedRows
  ) throws {
    var refusal: NodeError?
    var isFurther = true
    // A record that others refer to can be deleted after them.
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
