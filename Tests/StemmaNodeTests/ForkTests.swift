import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// A machine is set back, and its two histories reach two nodes. All nodes end with every event
/// once, for every order and pairing of repairs.
struct ForkTests {
  private typealias Pair = (String, String)
  private static let names = ["a", "p", "q"]
  private static let pairs = names.flatMap { one in names.filter { $0 != one }.map { (one, $0) } }

  /// The written events.
  private struct History {
    let bench: Bench
    var events = 0

    mutating func write(_ name: String, _ lines: String...) throws {
      for line in lines { events += try bench.open(name).commit(line).count }
    }

    func sync(_ one: String, _ other: String) throws { try bench.open(one).sync(try bench.open(other)) }

    func repair(_ one: String, from other: String) throws -> ForkReport {
      try bench.open(one).repairFork(with: RemotePeer(name: other, address: bench.path(other))) { _, _ in }
    }

    /// Node `a` wrote note 2 to p, was set back, and wrote note x to q. The bits of `builds` select
    /// the nodes that build on these.
    init(builds: Int) throws {
      bench = try Bench()
      for name in ForkTests.names { _ = try bench.node(name, DirectoryTests.note) }
      try write("a", DirectoryTests.create("1"))
      try sync("a", "p")
      try sync("a", "q")
      let before = try bench.contents("a")
      try write("a", DirectoryTests.create("2"))
      try sync("a", "p")
      try bench.setBack("a", to: before)
      bench.clock.set(FixedClock.start + 60_000)
      try write(
        "a", DirectoryTests.create("x"), #"{"op":"update","model":"Note","key":"x","fields":{"text":"a"}}"#)
      try sync("a", "q")
      if builds & 1 != 0 {
        try write("q", #"{"op":"update","model":"Note","key":"x","fields":{"stars":1}}"#)
      }
      if builds & 2 != 0 {
        try write("p", #"{"op":"update","model":"Note","key":"2","fields":{"stars":2}}"#)
      }
      if builds & 4 != 0 {
        try sync("a", "q")
        try write("a", #"{"op":"update","model":"Note","key":"x","fields":{"text":"again"}}"#)
      }
    }

    /// Follows the advice of the errors until no sync is refused.
    func heal(_ comment: Comment) throws {
      for _ in 0..<6 {
        var isQuiet = true
        for (one, other) in [("a", "p"), ("a", "q"), ("p", "q")] {
          do { try sync(one, other) } catch NodeError.replication(let error) {
            _ = try #require(error.fork, comment)
            isQuiet = false
            if try repair(one, from: other).events == 0 { _ = try repair(other, from: one) }
          }
        }
        if isQuiet { return }
      }
      Issue.record("no end: \(comment)")
    }

    func check(_ comment: Comment) throws {
      try sync("a", "p")
      let digests = try bench.open("a").digestTexts
      for name in ForkTests.names {
        let node = try bench.open(name)
        #expect(try node.history.count == events, "\(name), \(comment)")
        #expect(try node.digestTexts == digests, "\(name), \(comment)")
        #expect(try node.conflictTexts == [], "\(name), \(comment)")
        #expect(try node.fields("Note", #""2""#) != nil, "\(name), \(comment)")
        try node.checkInvariants()
      }
    }
  }

  /// `first`: the index in `pairs` of the first repair, or the count for none.
  @Test(arguments: [0, 3, 7], 0...pairs.count)
  func inAnyOrderAllEndWithEveryEventOnce(builds: Int, first: Int) throws {
    let begun = Self.pairs[first...].prefix(1)
    var orders: [[Pair]] = [Array(begun)]
    // If all nodes built on forked events, tries two repairs, and with STEMMA_LONG in every order.
    if builds == 7, !begun.isEmpty {
      let step = Trials.stride(3)
      orders += stride(from: first % step, to: Self.pairs.count, by: step).map { begun + [Self.pairs[$0]] }
    }
    for order in orders {
      let comment: Comment = "builds \(builds), repaired \(order)"
      let history = try History(builds: builds)
      for (one, other) in order { _ = try history.repair(one, from: other) }
      try history.heal(comment)
      try history.check(comment)
    }
  }

  @Test func whatWasWrittenAgainIsNotTakenBackUnderItsOldName() throws {
    let history = try History(builds: 0)
    #expect(try history.repair("a", from: "p").events == 2)
    let error = #expect(throws: NodeError.self) { try history.sync("a", "q") }
    guard case .replication(let reason) = try #require(error) else { throw try #require(error) }
    #expect(reason.fork != nil)
    #expect(try history.bench.open("a").history.count == 3)
    #expect(try history.repair("q", from: "a").events == 2)
    try history.sync("a", "q")
    try history.sync("a", "p")
    try history.sync("p", "q")
    try history.check("by way of a")
  }
}
