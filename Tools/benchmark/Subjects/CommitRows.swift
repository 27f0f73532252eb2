import Foundation
import GRDBSQLite
import Measuring
import StemmaEvents
import StemmaNode

/// Durable commits of one event each, against SQLite in WAL mode with synchronous=FULL, one row a transaction.
func measureCommits(_ bench: Bench) throws {
  let count = min(2000, bench.events / 10)
  var workload = Workload(total: count)
  var changes = BareChanges()
  var mutations: [Mutation] = []
  while let change = workload.next() {
    change.append(to: &changes)
    var line: [UInt8] = []
    change.append(to: &line)
    mutations.append(try line.withUnsafeBytes { try Mutation(line: $0) })
  }
  let empty = try bench.emptyNode("empty")
  let tables = empty.directory + "/tables.sqlite"
  let baseline = { try changes.apply(to: try bench.fresh("bare.sqlite"), tablesOf: tables, batch: 1) }

  let single = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      let node = try bench.emptyNode("single")
      return try Cost.of {
        for mutation in mutations {
          _ = try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
        }
      }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("single/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add("durable commits of one event", single, count: count, "commits", .atLeast(1), waits: true)

  let grouped = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      let node = try bench.emptyNode("grouped")
      let writers = ConcurrentWriters(node, mutations, count: 16)
      return try Cost.of { try writers.run() }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("grouped/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add("the same by 16 writers at once", grouped, count: count, "commits", .atLeast(6), waits: true)
  for name in ["empty", "single", "grouped", "bare.sqlite"] { _ = try bench.fresh(name) }
}

/// Threads that each wait for their commit before they ask for the next one, and one that makes the commits, as a
/// library's does: what is asked for while a group of commits is being made is the next group.
///
/// Unchecked: all members but the node are touched with the condition locked, and the node only by the thread that makes
/// the commits.
private final class ConcurrentWriters: @unchecked Sendable {
  /// Unchecked: its outcome is written before `isDone` is signalled, and read after.
  private final class Request: @unchecked Sendable {
    let mutation: Mutation
    let isDone = DispatchSemaphore(value: 0)
    var outcome: Result<Void, any Error>?
    init(_ mutation: Mutation) { self.mutation = mutation }
  }

  private let node: Node
  /// By writer; all changes of a record are one writer's, in their order.
  private var work: [[Mutation]]
  private let condition = NSCondition()
  private var waiting: [Request] = []
  private var running = 0
  private var failure: (any Error)?

  init(_ node: Node, _ mutations: [Mutation], count: Int) {
    self.node = node
    work = Array(repeating: [], count: count)
    var writers: [String: Int] = [:]
    for mutation in mutations {
      let record = mutation.key?.canonicalText ?? ""
      let writer = writers[record] ?? writers.count % count
      writers[record] = writer
      work[writer].append(mutation)
    }
  }

  func run() throws {
    running = work.count
    for mutations in work {
      let thread = Thread { [self] in
        var failed: (any Error)?
        for mutation in mutations where failed == nil {
          do { try commit(mutation) } catch { failed = error }
        }
        condition.lock()
        failure = failure ?? failed
        running -= 1
        condition.signal()
        condition.unlock()
      }
      thread.start()
    }
    while let group = nextGroup() {
      for (request, outcome) in zip(group, make(group)) {
        request.outcome = outcome
        request.isDone.signal()
      }
    }
    if let failure { throw failure }
  }

  /// What waits, as soon as anything does; nil when all writers are done.
  private func nextGroup() -> [Request]? {
    condition.lock()
    defer { condition.unlock() }
    while waiting.isEmpty, running > 0 { condition.wait() }
    defer { waiting = [] }
    return waiting.isEmpty ? nil : waiting
  }

  private func commit(_ mutation: Mutation) throws {
    let request = Request(mutation)
    condition.lock()
    waiting.append(request)
    condition.signal()
    condition.unlock()
    request.isDone.wait()
    try request.outcome?.get()
  }

  private func make(_ group: [Request]) -> [Result<Void, any Error>] {
    do {
      let requests = group.map { request in
        Node.CommitRequest(CommitNote()) { transaction throws(NodeError) in
          _ = try transaction.perform(request.mutation)
        }
      }
      return try node.write(requests).map { outcome in Result { _ = try outcome.get() } }
    } catch {
      return group.map { _ in .failure(error) }
    }
  }
}
