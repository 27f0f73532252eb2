import StemmaEvents

/// All that a rebuild derives from the log, in a form that can be compared with other tables.
package struct TablesSummary: Sendable {
  fileprivate var rows: [TableDigest]
  fileprivate var conflicts: [TableDigest]
  fileprivate var versionVector: VersionVector
  /// The highest commit number of each origin.
  fileprivate var commits: [String: Int64] = [:]
  /// SQLite's findings, for example indexes that do not match their tables.
  fileprivate var flaws: [String] = []

  /// The differences from `fresh` in the selected partitions, one sentence each. A higher commit
  /// number is no difference: a purge keeps it. `comparesHeads`: false if `fresh` has only rows.
  package func differences(
    from fresh: TablesSummary, comparesHeads: Bool, in isCompared: (Partition) -> Bool = { _ in true }
  ) -> [String] {
    var found: [String] = []
    func note(_ partitions: Set<Partition>, _ what: String) {
      for partition in partitions.sorted() where isCompared(partition) {
        found.append("\(what) of partition \(partition) are not what the log says")
      }
    }
    note(Set(Set(rows).symmetricDifference(fresh.rows).map(\.partition)), "the rows")
    note(
      Set(Set(conflicts).symmetricDifference(fresh.conflicts).map(\.partition)), "the listed conflicts")
    guard comparesHeads else { return found + flaws.map { "SQLite says \($0)" } }
    let partitions = Set(versionVector.partitions.keys).union(fresh.versionVector.partitions.keys)
    note(
      partitions.filter { versionVector.partitions[$0] != fresh.versionVector.partitions[$0] },
      "the heads of streams"
    )
    for (origin, number) in fresh.commits.sorted(by: { $0.key < $1.key })
    where (commits[origin] ?? 0) < number {
      found.append("the number of commits of origin \(origin) is not what the log says")
    }
    return found + flaws.map { "SQLite says \($0)" }
  }
}

extension TablesReader {
  /// Reads everything. Memory: O(partitions).
  package func summary() throws(TablesError) -> TablesSummary {
    var summary = TablesSummary(
      rows: try digests(), conflicts: try conflictListDigests(), versionVector: try versionVector())
    let commits = try connection.prepare("SELECT origin, number FROM _stemma_commits")
    while try commits.step() { summary.commits[commits.text(0)] = commits.int(1) }
    let check = try connection.prepare("PRAGMA integrity_check(3)")
    while try check.step() {
      if check.text(0) != "ok" { summary.flaws.append(check.text(0)) }
    }
    return summary
  }
}
