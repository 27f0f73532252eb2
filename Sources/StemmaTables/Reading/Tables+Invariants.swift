import StemmaEvents
import StemmaMerge
import StemmaSchema

extension TablesReader {
  /// Checks that the tables are consistent; reads everything. Throws `inconsistent`.
  ///
  /// - A row's record exists. A tombstone's record does not, and has no row. Both have the checksum
  ///   and the version of their state.
  /// - Every record is in its key's partition, which has a stream for each origin of the record's
  ///   context. The stream's head covers the context.
  /// - `_stemma_conflicts` lists exactly the records with a value or delete conflict.
  package func checkInvariants() throws(TablesError) {
    let versionVector = try versionVector()
    var conflicts = try records("SELECT model, key, partition FROM _stemma_conflicts")
    func check(_ layout: TableLayout, _ key: Key, _ state: RecordState) throws(TablesError) {
      func require(_ holds: Bool, _ what: String) throws(TablesError) {
        if !holds {
          throw .inconsistent("\(layout.model.name) \(KeyWords.text(key, of: layout.model)): \(what)")
        }
      }
      let partition = try layout.partition(of: key)
      for entry in state.context.entries {
        let head = versionVector[partition, entry.origin].sequence
        try require(head >= entry.sequence, "the stream of \(entry.origin) ends before the context")
      }
      let listed = conflicts.removeValue(forKey: RecordName(model: layout.model.storedName, key: key))
      try require(listed == nil || listed == partition, "conflict in another partition")
      try require(
        (listed != nil) == !state.conflicts(layout.rules).isEmpty, "_stemma_conflicts disagrees")
    }
    var tombstones = try records("SELECT model, key, partition FROM _stemma_tombstones")
    for layout in tableSet.layouts {
      let statement = try connection.prepare(layout.selectAll)
      while try statement.step() {
        let key = try layout.key(statement)
        let state = try layout.state(statement, key)
        guard state.exists(layout.rules) else {
          throw .inconsistent(
            "\(layout.model.name) \(KeyWords.text(key, of: layout.model)): a row of a deleted record")
        }
        guard tombstones[RecordName(model: layout.model.storedName, key: key)] == nil else {
          throw .inconsistent(
            "\(layout.model.name) \(KeyWords.text(key, of: layout.model)): both a row and a tombstone")
        }
        try check(layout, key, state)
      }
    }
    let statement = try connection.prepare("SELECT model, key, version, state FROM _stemma_tombstones")
    while try statement.step() {
      guard let model = tableSet.index(ofStoredName: statement.text(0)) else {
        throw .inconsistent("tombstone of an unknown model \(statement.text(0))")
      }
      let layout = tableSet.layouts[model]
      let key = Key(trusted: statement.blob(1))
      let state = try layout.tombstone(statement, 2, key)
      if state.exists(layout.rules) {
        throw .inconsistent(
          "\(layout.model.name) \(KeyWords.text(key, of: layout.model)): a tombstone of a record that exists")
      }
      let partition = try layout.partition(of: key)
      if tombstones.removeValue(forKey: RecordName(model: layout.model.storedName, key: key)) != partition {
        throw .inconsistent(
          "\(layout.model.name) \(KeyWords.text(key, of: layout.model)): tombstone in another partition")
      }
      try check(layout, key, state)
    }
    if !conflicts.isEmpty {
      throw .inconsistent("\(conflicts.count) conflicts of records that are not there")
    }
  }

  private struct RecordName: Hashable {
    let model: String
    let key: Key
  }

  private func records(_ sql: String) throws(TablesError) -> [RecordName: Partition] {
    let statement = try connection.prepare(sql)
    var records: [RecordName: Partition] = [:]
    while try statement.step() {
      let name = RecordName(model: statement.text(0), key: Key(trusted: statement.blob(1)))
      records[name] = partition(statement, 2)
    }
    return records
  }
}
