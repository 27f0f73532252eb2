import Measuring
import StemmaLog
import StemmaNode

/// Reading the whole log in position order, against only inflating its blocks.
func measureReading(_ bench: Bench) throws {
  let directory = try bench.node(bench.events)
  let held = try Node.open(at: directory, .init(mode: .read)).status().events
  let log = try bench.log(of: directory)
  let blocks = try BareBlocks(log: directory + "/log")
  try measure("reading the log in relativePosition order", .atLeast(0.7)) {
    // In place: the values are inflated and checked, too.
    var scan = log.scan()
    var events = 0
    try scan.forEach { event in
      events += 1
      guard event.block.id(event.index).sequence > .zero else {
        throw BenchError("an event without a number")
      }
      return true
    }
    return events
  }
  try measure("the same, making each event", .none) {
    var reader = log.events()
    var events = 0
    while try reader.next() != nil { events += 1 }
    return events
  }

  func measure(_ name: String, _ goal: Row.Goal, read: () throws -> Int) throws {
    var events = 0
    let costs = try bench.byTurns(
      rounds: max(3, bench.rounds),
      ours: {
        let cost = try Cost.of { events = try read() }
        guard UInt64(events) == held else {
          throw BenchError("\(events) events were read, and the node has \(held)")
        }
        return cost
      },
      baseline: {
        var sum = 0
        let cost = try Cost.of { sum = try blocks.inflateAll() }
        guard sum == blocks.rawBytes else { throw BenchError("\(sum) bytes instead of \(blocks.rawBytes)") }
        return cost
      })
    bench.add(name, costs, count: events, "events", goal)
  }
}
