import Measuring
import StemmaLog

/// Reading the whole log in arrival order, against inflating its blocks and nothing else.
func measureReading(_ bench: Bench) throws {
  let directory = try bench.node(bench.events)
  let log = try bench.log(of: directory)
  let blocks = try BareBlocks(log: directory + "/log")
  var events = 0
  let costs = try bench.byTurns(
    rounds: max(3, bench.rounds),
    ours: {
      events = 0
      return try Cost.of {
        var reader = log.events()
        while try reader.next() != nil { events += 1 }
      }
    },
    baseline: {
      var sum = 0
      let cost = try Cost.of { sum = try blocks.inflateAll() }
      guard sum == blocks.rawBytes else { throw BenchError("\(sum) bytes instead of \(blocks.rawBytes)") }
      return cost
    })
  bench.add("reading the log in arrival order", costs, count: events, "events", .atLeast(0.7))
}
