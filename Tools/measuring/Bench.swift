import Foundation

/// The state that all subjects share: the amount of work, the files and the rows so far.
package final class Bench {
  package let events: Int
  package let rounds: Int
  /// The number of rounds for measurements of a second or less. Other load on the machine disturbs
  /// them more.
  package var roundsOfSeconds: Int { 3 * rounds }
  package let isLong: Bool
  /// The `stemma` tool; nil: rows that run it are left out.
  package let tool: String?
  private let folder: WorkFolder
  /// The folder of real data sets.
  package let data: String?
  /// A file of mutations and its schema, given by the user.
  package struct OwnData: Sendable {
    package let lines: String
    package let schema: String
  }

  package let own: OwnData?
  package private(set) var rows: [Row] = []
  private var printed = 0
  private var made: [String: Any] = [:]

  package init(
    events: Int, rounds: Int, isLong: Bool, tool: String?, parent: String, own: OwnData? = nil
  ) throws {
    self.own = own
    self.events = events
    self.rounds = rounds
    self.isLong = isLong
    self.tool = tool
    data = ProcessInfo.processInfo.environment["STEMMA_DATA"].flatMap { $0.isEmpty ? nil : $0 }
    folder = try WorkFolder(in: parent)
  }

  package func path(_ name: String) -> String { folder.path + "/" + name }

  /// A path of this name, with any old file removed.
  package func fresh(_ name: String) throws -> String {
    let path = path(name)
    for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
    return path
  }

  /// Makes a value once for all subjects that use it.
  package func shared<Value>(_ name: String, _ make: () throws -> Value) throws -> Value {
    if let value = made[name] as? Value { return value }
    let value = try make()
    made[name] = value
    return value
  }

  package func shared<Value>(_ name: String, _ make: () async throws -> Value) async throws -> Value {
    if let value = made[name] as? Value { return value }
    let value = try await make()
    made[name] = value
    return value
  }

  package func forget(_ name: String) { made[name] = nil }

  package func removeFiles() {
    folder.waitForSignal()
    do { try folder.remove() } catch { say("\(folder.path) stays: \(error)") }
  }

  /// Progress goes to standard error.
  package func say(_ text: String) { FileHandle.standardError.write(Data("… \(text)\n".utf8)) }

  // MARK: Rows

  package func add(
    _ name: String, ours: Double, baseline: Double, _ unit: String, _ goal: Row.Goal, isTooShort: Bool = false
  ) {
    rows.append(
      Row(name: name, ours: ours, baseline: baseline, unit: unit, goal: goal, isTooShort: isTooShort))
  }

  /// Adds rows for wall time and CPU time of `count` operations. `waits`: mostly waits for the
  /// disk, so CPU time has no goal.
  package func add(
    _ name: String, _ costs: Costs, count: Int, _ unit: String, _ goal: Row.Goal, waits: Bool = false
  ) {
    let count = Double(count)
    // A sync or a time slice of another process takes milliseconds.
    let isTooShort = min(costs.ours.wall, costs.baseline.wall) < 0.02
    add(
      name, ours: count / costs.ours.wall, baseline: count / costs.baseline.wall, unit + "/s", goal,
      isTooShort: isTooShort)
    add(
      name + ", CPU", ours: count / costs.ours.cpu, baseline: count / costs.baseline.cpu, unit + "/CPU s",
      waits ? .none : goal, isTooShort: isTooShort)
  }

  package func takeNewRows() -> [Row] {
    if printed == 0, !rows.isEmpty { Report.printHead() }
    defer { printed = rows.count }
    return Array(rows[printed...])
  }
}

/// Time in seconds.
package struct Cost {
  package var wall: Double
  /// Of all threads of this process, in user and system mode.
  package var cpu: Double

  package init(wall: Double = .infinity, cpu: Double = .infinity) { (self.wall, self.cpu) = (wall, cpu) }

  package func best(_ other: Cost) -> Cost { Cost(wall: min(wall, other.wall), cpu: min(cpu, other.cpu)) }

  package static func of(_ body: () throws -> Void) rethrows -> Cost {
    let (wall, cpu) = (wallSeconds(), cpuSeconds())
    try body()
    return Cost(wall: wallSeconds() - wall, cpu: cpuSeconds() - cpu)
  }

  package static func of(_ body: () async throws -> Void) async rethrows -> Cost {
    let (wall, cpu) = (wallSeconds(), cpuSeconds())
    try await body()
    return Cost(wall: wallSeconds() - wall, cpu: cpuSeconds() - cpu)
  }

  package static func wallSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  package static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// The best cost of each side.
package struct Costs {
  package var ours = Cost()
  package var baseline = Cost()

  package init() {}
}

extension Bench {
  /// Measures both sides alternately. Each body prepares itself and returns the cost of its
  /// measured part.
  package func byTurns(rounds: Int? = nil, ours: () throws -> Cost, baseline: () throws -> Cost) rethrows
    -> Costs
  {
    var costs = Costs()
    for _ in 0..<(rounds ?? self.rounds) {
      costs.baseline = costs.baseline.best(try baseline())
      costs.ours = costs.ours.best(try ours())
    }
    return costs
  }

  package func byTurns(
    rounds: Int? = nil, ours: () async throws -> Cost, baseline: () async throws -> Cost
  ) async rethrows -> Costs {
    var costs = Costs()
    for _ in 0..<(rounds ?? self.rounds) {
      costs.baseline = costs.baseline.best(try await baseline())
      costs.ours = costs.ours.best(try await ours())
    }
    return costs
  }
}

/// An invalid measurement: for example, the two sides do not produce the same rows.
package struct BenchError: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}
