import Foundation
import GRDBSQLite
import Measuring
import StemmaEvents
import StemmaHistory
import StemmaImport
import StemmaNode

/// Counting and listing value conflicts and dangling references from the command line. Compared
/// with fixed limits, and with bare SQLite that only counts or reads the same rows. The start of
/// the tool (`--version`) is excluded; times are processor times.
func measureConflicts(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: conflicts are left out") }
  let count = min(50_000, bench.events / 2)
  let rounds = bench.roundsOfSeconds
  let start = try ChildCost.best(of: rounds, tool, ["--version"]).cpu
  for backlog in [try bench.conflicts(count), try bench.danglingReferences(count)] {
    try backlog.check(count)
    for (command, query, limit) in [
      (["conflicts", "--count"], backlog.count, 1.0), (["conflicts"], backlog.rows, 3.0),
    ] {
      let ours = try ChildCost.best(of: rounds, tool, ["-C", backlog.node] + command).cpu - start
      var bare = Cost()
      for _ in 0..<rounds { bare = bare.best(try Cost.of { try backlog.read(query) }) }
      let name = "\(command.joined(separator: " ")), \(count) \(backlog.name)"
      bench.add("\(name); \(Int(limit)) s, CPU", ours: ours, baseline: limit, "s", .atMost(1))
      bench.add("\(name); bare SQLite, CPU", ours: ours, baseline: bare.cpu, "s", .none)
    }
  }
}

/// A node with a number of open conflicts, and the SQLite query that finds them in its tables.
private struct Backlog {
  let name: String
  let node: String
  let kind: ConflictFilter.Kind
  let count: String
  let rows: String

  /// Throws unless the node and the query of the baseline find this number.
  func check(_ expected: Int) throws {
    var found = 0
    try Node.open(at: node, .init(mode: .read)).openConflicts(ConflictFilter()) {
      if $0.kind == kind { found += 1 }
    }
    let counted = try BareSQLite(node + "/tables.sqlite").texts(count)
    guard found == expected, counted == [["\(expected)"]] else {
      throw BenchError("\(found) \(name) instead of \(expected), and \(counted) in the tables")
    }
  }

  /// Reads every column of every row.
  func read(_ query: String) throws {
    let database = try BareSQLite(node + "/tables.sqlite")
    let statement = try database.prepare(query)
    defer { sqlite3_finalize(statement) }
    var bytes = 0
    while sqlite3_step(statement) == SQLITE_ROW {
      for column in 0..<sqlite3_column_count(statement) {
        _ = sqlite3_column_blob(statement, column)
        bytes += Int(sqlite3_column_bytes(statement, column))
      }
    }
    guard bytes > 0 else { throw database.failure(query) }
  }
}

extension Bench {
  private static let petSchema = """
    type Owner @model {
      id: ID!
      pets: [Pet] @hasMany(references: ["ownerID"])
    }

    type Pet @model {
      id: ID!
      name: String!
      ownerID: ID
      owner: Owner @belongsTo(references: ["ownerID"])
    }
    """

  /// The directory of a node with that many conflicts.
  func nodeWithConflicts(_ count: Int) throws -> String { try conflicts(count).node }

  /// Pets whose name two nodes changed concurrently.
  fileprivate func conflicts(_ count: Int) throws -> Backlog {
    let node = try emptyNode("conflicts", schema: Self.petSchema)
    try add(count, to: node) {
      #"{"op":"create","model":"Pet","key":"\#($0)","fields":{"name":"pet \#($0)"}}"#
    }
    let other = try fresh("conflicts-other")
    _ = try Node.clone(from: node.directory, to: other, partitions: [], name: "other") { _, _ in }
    for (directory, name) in [(node.directory, "Ada"), (other, "Ben")] {
      try add(count, to: try Node.open(at: directory, .init(mode: .write))) {
        #"{"op":"update","model":"Pet","key":"\#($0)","fields":{"name":"\#(name) \#($0)"}}"#
      }
    }
    _ = try Node.open(at: node.directory, .init(mode: .write)).exchange(
      with: RemotePeer(name: "other", address: other), pulls: true, pushes: false, partitions: []
    ) { _, _ in }
    return Backlog(
      name: "conflicts", node: node.directory, kind: .value,
      count: "SELECT count(*) FROM _stemma_conflicts", rows: "SELECT * FROM pets")
  }

  /// Pets whose owners do not exist.
  fileprivate func danglingReferences(_ count: Int) throws -> Backlog {
    let node = try emptyNode("dangling", schema: Self.petSchema)
    try add(count, to: node) {
      #"{"op":"create","model":"Pet","key":"\#($0)","fields":{"name":"pet \#($0)","ownerID":"\#($0)"}}"#
    }
    let dangling = "FROM pets WHERE NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = pets.ownerID)"
    return Backlog(
      name: "dangling references", node: node.directory, kind: .dangling,
      count: "SELECT count(*) \(dangling)", rows: "SELECT * \(dangling)")
  }

  /// Imports one line per number.
  private func add(_ count: Int, to node: Node, _ line: (Int) -> String) throws {
    let path = try fresh("pets.ndjson")
    let lines = (0..<count).map { line($0) + "\n" }.joined()
    try Data(lines.utf8).write(to: URL(fileURLWithPath: path))
    _ = try Import(into: node, options: .init()).run(path: path)
    _ = try fresh("pets.ndjson")
  }
}
