import Foundation
import Measuring
import Testing

/// The JSON output of the benchmarks, and their goals. Serialized because a process has only one
/// work folder.
@Suite("rows of measurements", .serialized)
struct RowTests {
  /// The rows that a benchmark adds, read from its JSON.
  private func rows(_ add: (Bench) throws -> Void) throws -> [[String: Any]] {
    let bench = try Bench(
      events: 1000, rounds: 1, isLong: false, tool: nil, parent: NSTemporaryDirectory())
    defer { bench.removeFiles() }
    try add(bench)
    let text = try Report.json(bench.rows)
    return try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
  }

  @Test(arguments: [(0.69, false), (0.7, true), (0.71, true)])
  func aRowSaysWhetherTheRatioIsReached(ours: Double, isReached: Bool) throws {
    let rows = try rows { bench in
      bench.add("fast", ours: ours, baseline: 1, "rows/s", .atLeast(0.7))
      bench.add("small", ours: ours, baseline: 1, "bytes", .atMost(0.7))
      bench.add("shown", ours: ours, baseline: 1, "rows/s", .none)
      bench.add("hasty", ours: ours, baseline: 1, "rows/s", .atLeast(0.7), isTooShort: true)
    }
    #expect(rows.count == 4)
    for row in rows {
      #expect(Set(row.keys) == ["name", "ours", "baseline", "unit", "ratio", "wanted", "reached"])
      #expect(row["ratio"] as? Double == ours && row["ours"] as? Double == ours)
    }
    #expect(rows.map { $0["wanted"] as? Double } == [0.7, 0.7, nil, 0.7])
    #expect(rows.map { $0["reached"] as? Bool } == [isReached, ours <= 0.7, nil, nil])
    #expect(rows.map { $0["unit"] as? String } == ["rows/s", "bytes", "rows/s", "rows/s"])
  }

  @Test func nothingToCompareWithIsNoNumber() throws {
    let row = try #require(try rows { $0.add("new", ours: 1, baseline: 0, "rows/s", .none) }.first)
    #expect(row["ratio"] is NSNull && row["baseline"] as? Double == 0)
  }

  @Test func timesBecomeRates() throws {
    var costs = Costs()
    costs.ours = Cost(wall: 2, cpu: 4)
    costs.baseline = Cost(wall: 1, cpu: 1).best(Cost(wall: 5, cpu: 0.5))
    let rows = try rows { bench in
      bench.add("all", costs, count: 10, "rows", .atLeast(1))
      bench.add("waiting", costs, count: 10, "commits", .atLeast(0.25), waits: true)
    }
    #expect(rows.map { $0["name"] as? String } == ["all", "all, CPU", "waiting", "waiting, CPU"])
    #expect(rows.map { $0["ours"] as? Double } == [5, 2.5, 5, 2.5])
    #expect(rows.map { $0["baseline"] as? Double } == [10, 20, 10, 20])
    #expect(rows.map { $0["reached"] as? Bool } == [false, false, true, nil])
  }

  @Test func whatTakesNoTimeSaysNothing() throws {
    var costs = Costs()
    (costs.ours, costs.baseline) = (Cost(wall: 0.019, cpu: 0.019), Cost(wall: 1, cpu: 1))
    let rows = try rows { $0.add("all", costs, count: 10, "rows", .atLeast(1)) }
    #expect(rows.count == 2 && rows.allSatisfy { $0["reached"] is NSNull })
  }
}
