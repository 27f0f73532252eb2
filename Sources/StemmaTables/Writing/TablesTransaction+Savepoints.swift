import StemmaLog

/// Undoes the changes of a transaction since a savepoint, provided that none of them was written.
struct Undo {
  /// Records as they were, and their indexes.
  var records: [(place: Int, record: TablesTransaction.Record)] = []
  var token: AppliedPosition?
}

/// SQLite creates a savepoint only if changes must be written after it, or inside of another one.
/// Most commits are small: the changes of a failed one are still in memory and are undone there.
extension TablesTransaction {
  /// Runs `body`. If it throws, all its changes are undone, and the transaction continues. For one
  /// of several commits that share a transaction. Savepoints may be nested.
  @discardableResult
  package func savepoint<Result>(
    _ body: () throws(TablesError) -> Result
  ) throws(TablesError) -> Result {
    try savepoint({ $0 }, body)
  }

  /// As above, for a body that throws errors of its own.
  @discardableResult
  package func savepoint<Result, Failure: Error>(
    _ wrap: (TablesError) -> Failure, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let tokenBefore = token
    do throws(TablesError) { try beginSavepoint() } catch { throw wrap(error) }
    var outcome: Swift.Result<Result, Failure>
    do throws(Failure) { outcome = .success(try body()) } catch { outcome = .failure(error) }
    if case .success = outcome {
      do throws(TablesError) { try releaseSavepoint() } catch { outcome = .failure(wrap(error)) }
    }
    if case .success(let result) = outcome { return result }
    do throws(TablesError) { try undoSavepoint(tokenBefore) } catch { throw wrap(error) }
    return try outcome.get()
  }

  private func beginSavepoint() throws(TablesError) {
    if savepointDepth > 0 {
      try flush()
      try connection.prepareOnce(Self.savepointStatement).run()
    } else {
      savepointNumber += 1
      undo = Undo(token: token)
      streams.beginUndo(savepointNumber)
    }
    savepointDepth += 1
  }

  private func releaseSavepoint() throws(TablesError) {
    if undo != nil {
      undo = nil
      streams.endUndo()
    } else {
      try flush()
      try connection.prepareOnce("RELEASE stemma").run()
    }
    savepointDepth -= 1
  }

  private func undoSavepoint(_ tokenBefore: AppliedPosition?) throws(TablesError) {
    savepointDepth -= 1
    token = tokenBefore
    if undo != nil {
      exchangeRecords()
      streams.exchangeUndo()
      undo = nil
      streams.endUndo()
      return
    }
    forget()
    try connection.prepareOnce("ROLLBACK TO stemma").run()
    try connection.prepareOnce("RELEASE stemma").run()
  }

  private static let savepointStatement: StaticString = "SAVEPOINT stemma"

  /// Call before a record changes.
  func remember(_ place: Int) {
    guard undo != nil, records[place].changedSince != savepointNumber else { return }
    undo?.records.append((place, records[place]))
    records[place].changedSince = savepointNumber
  }

  /// Call before anything is written. Turns the current savepoint into one of SQLite, after writing
  /// the changes from before it.
  func writeSavepoint() throws(TablesError) {
    guard undo != nil else { return }
    let tokenNow = token
    token = undo?.token
    exchangeRecords()
    streams.exchangeUndo()
    try writeAll()
    try connection.prepareOnce(Self.savepointStatement).run()
    streams.exchangeUndo()
    streams.endUndo()
    for (place, changed) in undo?.records ?? [] {
      // `writeAll` may have changed how the record is stored.
      let before = records[place]
      records[place] = changed
      records[place].stored = before.stored
      records[place].isConflictStored = before.isConflictStored
      records[place].size = before.size
      noteDirty(place)
    }
    token = tokenNow
    undo = nil
  }

  /// Swaps the records since the savepoint with those from before it.
  private func exchangeRecords() {
    guard var exchanged = undo?.records else { return }
    for index in exchanged.indices {
      swap(&records[exchanged[index].place], &exchanged[index].record)
    }
    undo?.records = exchanged
  }
}
