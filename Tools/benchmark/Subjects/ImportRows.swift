import Foundation
import Measuring
import StemmaEvents
import StemmaNode

/// Importing lines, commits of 1000, against prepared UPSERTs of the same rows, already parsed, in durable SQLite
/// transactions of 1000. Both ways: our parsing timed, and not.
func measureImport(_ bench: Bench) throws {
  let lines = try bench.lines(bench.events)
  var changes = BareChanges()
  var workload = Workload(total: bench.events)
  while let change = workload.next() { change.append(to: &changes) }
  try measureImport(bench, "import", lines, schema: Workload.schema, changes)
}

/// The same of a real history: many changes of few rows, in small tables.
func measureGitImport(_ bench: Bench) throws {
  guard let data = bench.data else { return bench.say("STEMMA_DATA is not set: import-git is left out") }
  let lines = try BareFiles.gunzip(data + "/git-grdb/mutations.ndjson.gz")
  let path = try bench.fresh("git.ndjson")
  try Data(lines).write(to: URL(fileURLWithPath: path))
  let schema = try BareFiles.contents(data + "/git-grdb/schema.graphql")
  try measureImport(
    bench, "import of git-grdb", path, schema: String(decoding: schema, as: UTF8.self),
    try BareChanges(git: lines))
}

/// The same of anybody's data: `--data` and `--schema`.
func measureFileImport(_ bench: Bench) throws {
  guard let own = bench.own else { return bench.say("--data is not given: import-file is left out") }
  let lines = own.lines
  let schema = String(decoding: try BareFiles.contents(own.schema), as: UTF8.self)
  let empty = try bench.emptyNode("empty", schema: schema)
  let tables = Dictionary(
    uniqueKeysWithValues: empty.schema.models.map { ($0.name, $0.tableName) })
  let layouts = try BareSQLite(empty.directory + "/tables.sqlite").modelTables()
  let bytes = lines.hasSuffix(".gz") ? try BareFiles.gunzip(lines) : try BareFiles.contents(lines)
  let file = URL(fileURLWithPath: lines).lastPathComponent
  try measureImport(
    bench, "import of \(file)", lines, schema: schema,
    try BareChanges(lines: bytes) { model in layouts.first { $0.name == tables[model] } })
}

private func measureImport(
  _ bench: Bench, _ name: String, _ lines: String, schema: String, _ changes: BareChanges
) throws {
  let empty = try bench.emptyNode("empty", schema: schema)
  let tables = empty.directory + "/tables.sqlite"
  let baseline = { try changes.apply(to: try bench.fresh("bare.sqlite"), tablesOf: tables, batch: 1000) }

  let costs = try bench.byTurns(
    ours: {
      let node = try bench.emptyNode("imported", schema: schema)
      return try Cost.of { _ = try Import(into: node, options: .init()).run(path: lines) }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("imported/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add("\(name), our parsing included", costs, count: changes.count, "changes", .atLeast(0.8))

  let mutations = try parsed(lines)
  let unparsed = try bench.byTurns(
    ours: {
      let node = try bench.emptyNode("imported", schema: schema)
      return try Cost.of { try write(mutations, to: node) }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("imported/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add("\(name), nothing parsed", unparsed, count: changes.count, "changes", .atLeast(0.8))
  for name in ["empty", "imported", "bare.sqlite"] { _ = try bench.fresh(name) }
}

private func parsed(_ path: String) throws -> [Mutation] {
  var reader = try LineReader(path: path)
  var mutations: [Mutation] = []
  while let mutation = try reader.next({ line throws(NodeError) -> Mutation in
    do throws(MutationError) { return try Mutation(line: line) } catch { throw .mutation(error) }
  }) {
    mutations.append(mutation)
  }
  return mutations
}

/// What an import does with what it has read.
private func write(_ mutations: [Mutation], to node: Node) throws {
  var start = 0
  while start < mutations.count {
    try node.series { series in
      repeat {
        let lines = mutations[start..<min(start + 1000, mutations.count)]
        try series.commit(CommitNote(), durable: {}) { transaction throws(NodeError) in
          for mutation in lines { try transaction.perform(mutation) }
        }
        start = lines.endIndex
      } while start < mutations.count && !series.isFull
    }
    try node.sealIfWanted()
  }
}
