import Foundation
import GRDBSQLite
import Measuring
import StemmaEvents
import StemmaNode

/// Durable commits of one event each, against SQLite in WAL mode with synchronous=FULL and one row
/// per transaction. Measured with and without our parsing; for concurrent writers only without.
func measureCommits(_ bench: Bench) throws {
  let count = min(2000, bench.events / 200)
  var workload = Workload(total: count)
  var changes = BareChanges()
  var lines: [[UInt8]] = []
  while let change = workload.next() {
    change.append(to: &changes)
    var line: [UInt8] = []
    change.append(to: &line)
    lines.append(line)
  }
  func mutation(_ line: [UInt8]) throws -> Mutation { try line.withUnsafeBytes { try Mutation(line: $0) } }
  let mutations = try lines.map(mutation)
  let empty = try bench.emptyNode("empty")
  let tables = empty.directory + "/tables.sqlite"
  let baseline = { try changes.apply(to: try bench.fresh("bare.sqlite"), tablesOf: tables, batch: 1) }

  for isParsing in [false, true] {
    let single = try bench.byTurns(
      rounds: max(3, bench.rounds),
      ours: {
        let node = try bench.emptyNode("single")
        return try Cost.of {
          for index in lines.indices {
            let mutation = isParsing ? try mutation(lines[index]) : mutations[index]
            _ = try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
          }
        }
      }, baseline: baseline)
    try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
      as: bench.path("single/tables.sqlite"), leavingOut: ["_version", "_state"])
    let parsing = isParsing ? "our parsing included" : "nothing parsed"
    bench.add(
      "durable commits of one event, \(parsing)", single, count: count, "commits", .atLeast(1), waits: true)
  }

  let grouped = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      let node = try bench.emptyNode("grouped")
      let writers = ConcurrentWriters(mutations, count: 16)
      return try Cost.of { try writers.run(on: node) }
    }, baseline: baseline)
  try BareSQLite(bench.path("bare.sqlite")).checkSameRows(
    as: bench.path("grouped/tables.sqlite"), leavingOut: ["_version", "_state"])
  bench.add(
    "the same by 16 writers at once, nothing parsed", grouped, count: count, "commits", .atLeast(6),
    waits: true)
  for name in ["empty", "single", "grouped", "bare.sqlite"] { _ = try bench.fresh(name) }
}

/// Writer threads that each wait for their commit before the next request, and one committing
/// thread, as in the library. A request that arrives while a group is built joins that group. A
/// request that arrives while the group is stored joins the next one.
private final class ConcurrentWriters: Sendable {
  private final class Request: Sendable {
    let mutation: Mutation
    let outcome = Mutex<Result<Void, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    init(_ mutation: Mutation) { self.mutation = mutation }
  }

  private struct State {
    var waiting: [Request] = []
    var running: Int
    var failure: (any Error)?
  }

  /// The mutations of each writer. One writer makes all changes of a record, in order.
  private let work: [[Mutation]]
  private let state: Mutex<State>
  /// Signaled at each request and when a writer ends.
  private let hasChanged = DispatchSemaphore(value: 0)

  init(_ mutations: [Mutation], count: Int) {
    var work = [[Mutation]](repeating: [], count: count)
    var writers: [String: Int] = [:]
    for mutation in mutations {
      let record = mutation.key?.canonicalText ?? ""
      let writer = writers[record] ?? writers.count % count
      writers[record] = writer
      work[writer].append(mutation)
    }
    self.work = work
    state = Mutex(State(running: count))
  }

  /// Makes all commits on this thread. Call it only once.
  func run(on node: Node) throws {
    for mutations in work {
      let thread = Thread { [self] in
        var failed: (any Error)?
        for mutation in mutations where failed == nil {
          do { try commit(mutation) } catch { failed = error }
        }
        end(failed)
      }
      thread.start()
    }
    while let group = nextGroup() {
      for (request, outcome) in make(group, on: node) {
        request.outcome.withLock { $0 = outcome }
        request.isDone.signal()
      }
    }
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  /// Waits for requests and returns all of them. Returns nil when all writers are done.
  private func nextGroup() -> [Request]? {
    while true {
      hasChanged.wait()
      let (group, isOver) = state.withLock { state in
        defer { state.waiting = [] }
        return (state.waiting, state.running == 0)
      }
      if !group.isEmpty { return group }
      if isOver { return nil }
    }
  }

  private func commit(_ mutation: Mutation) throws {
    let request = Request(mutation)
    state.withLock { $0.waiting.append(request) }
    hasChanged.signal()
    request.isDone.wait()
    try request.outcome.withLock { $0 }?.get()
  }

  private func end(_ failure: (any Error)?) {
    state.withLock { state in
      state.failure = state.failure ?? failure
      state.running -= 1
    }
    hasChanged.signal()
  }

  private func make(_ first: [Request], on node: Node) -> [(Request, Result<Void, any Error>)] {
    var group: [Request] = []
    func join(_ requests: [Request]) -> [Node.CommitRequest] {
      group += requests
      return requests.map { request in
        Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
          _ = try transaction.perform(request.mutation)
        }
      }
    }
    do {
      let outcomes = try node.write(join(first), joining: { join(takeWaiting()) })
      return zip(group, outcomes).map { request, outcome in (request, Result { _ = try outcome.get() }) }
    } catch {
      return group.map { ($0, .failure(error)) }
    }
  }

  private func takeWaiting() -> [Request] {
    state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
  }
}
