extension TablesTransaction {
  /// Traps if the state in memory is inconsistent. For tests, between two calls; debug builds call
  /// it at the end of every transaction.
  ///
  /// - Each record is found by its name, and every change will be written.
  /// - A record is stored as nothing exactly if it has no state, and as a tombstone only in a model
  ///   that has some.
  /// - The undo list has each record and stream once, and exists only without a SQLite savepoint.
  package func checkInvariants() {
    precondition(recordIndex.count == records.count, "each record has a name of its own")
    let changed = dirty.map { Set($0) }
    for (place, record) in records.enumerated() {
      let model = record.name.model
      precondition(recordIndex[record.name] == place, "a record is found by its name")
      precondition(!record.isDirty || changed[model].contains(place), "what was changed is written")
      precondition(
        record.isDirty || (record.stored == .nothing) == record.state.isEmpty, "what was written is")
      precondition(record.stored != .tombstone || hasTombstones[model] == true, "tombstones are known of")
      precondition(record.size == 0 || record.partition != nil, "what was written was changed by events")
      record.state.checkInvariants()
    }
    for (model, places) in changed.enumerated() {
      precondition(
        places.allSatisfy { records[$0].name.model == model }, "records are written with their model")
    }
    if let undo {
      precondition(savepointDepth == 1, "nothing is taken back in memory below a savepoint of SQLite")
      precondition(
        Set(undo.records.map(\.place)).count == undo.records.count, "a record is as it was at one time")
      for (place, before) in undo.records {
        precondition(records[place].name == before.name, "a record takes back its own changes")
        precondition(records[place].changedSince == savepointNumber, "only what was changed is taken back")
      }
    }
    streams.checkInvariants(inSavepoint: undo == nil ? nil : savepointNumber)
  }
}
