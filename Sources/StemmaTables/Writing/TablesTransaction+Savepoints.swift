import StemmaLog

/// What undoes the changes of a transaction since a savepoint, as long as none of them was written.
struct Undo {
  /// Records and their places, as they were.
  var records: [(place: Int, record: TablesTransaction.Record)] = []
  var token: LogToken?
}

/// A savepoint of SQLite is only made if something has to be written since, or inside of another one. Most commits
/// are small: what one that fails has changed is still in memory, and is taken back there.
extension TablesTransaction {
  /// Runs `body`; if it throws, everything that it changed is undone, and the transaction goes on. For one of
  /// several commits that share a transaction. Savepoints may be nested.
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

  private func undoSavepoint(_ tokenBefore: LogToken?) throws(TablesError) {
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

  /// Before a record is changed.
  func remember(_ place: Int) {
    guard undo != nil, records[place].changedSince != savepointNumber else { return }
    undo?.records.append((place, records[place]))
    records[place].changedSince = savepointNumber
  }

  /// Before anything is written: makes the savepoint that was begun one of SQLite, in front of which stands
  /// what was changed before it.
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
      // How it is stored may just have changed.
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

  /// Lets what was changed since the savepoint and what was before it change places.
  private func exchangeRecords() {
    guard var exchanged = undo?.records else { return }
    for index in exchanged.indices {
      swap(&records[exchanged[index].place], &exchanged[index].record)
    }
    undo?.records = exchanged
  }
}
