import Foundation
import Measuring
import StemmaEvents
import StemmaImport
import StemmaNode

/// Importing lines in commits of 1000, against prepared UPSERTs of the same parsed rows in durable
/// SQLite transactions of 1000. Measured with and without our parsing.
func measureImport(_ bench: Bench) throws {
  let lines = try bench.lines(bench.events)
  var changes = BareChanges()
  var workload = Workload(total: bench.events)
  while let change = workload.next() { change.append(to: &changes) }
  try measureImport(bench, "import", lines, schema: Workload.schema, changes, wanted: 2.5)
}

/// The same with a real history: many changes of few rows, in small tables.
func measureGitImport(_ bench: Bench) throws {
  guard let data = bench.data else { return bench.say("STEMMA_DATA is not set: import-git is left out") }
  try measureImport(
    bench, "git-grdb", lines: data + "/git-grdb/mutations.ndjson.gz",
    schema: data + "/git-grdb/schema.graphql")
}

/// The same with the data of `--data` and `--schema`.
func measureFileImport(_ bench: Bench) throws {
  guard let own = bench.own else { return bench.say("--data is not given: import-file is left out") }
  try measureImport(
    bench, URL(fileURLWithPath: own.lines).lastPathComponent, lines: own.lines, schema: own.schema)
}

private func measureImport(_ bench: Bench, _ name: String, lines: String, schema: String) throws {
  let text = String(decoding: try BareFiles.contents(schema), as: UTF8.self)
  let bytes = lines.hasSuffix(".gz") ? try BareFiles.gunzip(lines) : try BareFiles.contents(lines)
  let changes = try BareChanges(lines: bytes, name: lines, try BareSchema(text, name: schema))
  guard changes.count > 0 else { throw BenchError("\(lines) has no mutation") }
  // Inflating is not measured.
  let path = try bench.fresh("file.ndjson")
  try Data(bytes).write(to: URL(fileURLWithPath: path))
  do {
    try measureImport(bench, "import of \(name)", path, schema: text, changes)
  } catch let error as NodeError {
    throw BenchError("\(lines) is refused; `stemma import` into a node of \(schema) shows why: \(error)")
  }
  _ = try bench.fresh("file.ndjson")
}

private func measureImport(
  _ bench: Bench, _ name: String, _ lines: String, schema: String, _ changes: BareChanges,
  wanted: Double = 1.2
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
  bench.add("\(name), our parsing included", costs, count: changes.count, "changes", .atLeast(wanted))

  let mutations = try parsed(lines)
  let unparsed = try bench.byTurns(
    ours: {
      let node = try bench.emptyNode("imported", schema: schema)
      return try Cost.of { try write(mutations, to: node) }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("imported/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add("\(name), nothing parsed", unparsed, count: changes.count, "changes", .atLeast(wanted))
  for name in ["empty", "imported", "bare.sqlite"] { _ = try bench.fresh(name) }
}

private func parsed(_ path: String) throws -> [Mutation] {
  var reader = try LineReader(path: path)
  var mutations: [Mutation] = []
  while let mutation = try reader.next({ line throws(NodeError) -> Mutation? in
    // Empty lines are skipped.
    guard line.contains(where: { $0 > 0x20 }) else { return nil }
    do throws(MutationError) { return try Mutation(line: line) } catch { throw .mutation(error) }
  }) {
    if let mutation { mutations.append(mutation) }
  }
  return mutations
}

/// Commits parsed mutations as an import does.
private func write(_ mutations: [Mutation], to node: Node) throws {
  var start = 0
  while start < mutations.count {
    try node.series { series in
      repeat {
        let lines = mutations[start..<min(start + 1000, mutations.count)]
        try series.commit(CommitMessage(), durable: {}) { transaction throws(NodeError) in
          for mutation in lines { try transaction.perform(mutation) }
        }
        start = lines.endIndex
      } while start < mutations.count && !series.isFull
      series.holdsBack = start < mutations.count
    }
    try node.sealIfWanted()
  }
}
