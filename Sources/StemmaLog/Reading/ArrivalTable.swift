/// Numbers at places 0 ..< count, 0 where there is none: one for each event of a segment, at its arrival.
///
/// After a purge few events may be left of many arrivals, and a footer can claim any: it is not proven before its blocks are
/// read. So a table of all places is made only where there are few (`LogLimits.fewArrivals`), or where blocks of their length
/// can hold an eighth as many events; else only what is entered takes memory. Beyond the first 8 MiB that is 8 KiB for each byte of
/// the blocks at most, and only where deflate could make so many events of them.
struct ArrivalTable: Sendable {
  let count: Int
  /// Of all places; or none, and `entries` counts.
  private var places: [UInt64]
  private var entries: [Int: UInt64] = [:]

  /// For arrivals that blocks have.
  init(_ count: Int, for blocks: [BlockEntry]) {
    self.count = count
    let events = blocks.reduce(0) { $0 + Self.mostEvents($1) }
    let isDense = count <= max(LogLimits.fewArrivals, events * LogLimits.sparseArrivals)
    places = isDense ? [UInt64](repeating: 0, count: count) : []
  }

  /// How many events a block can hold that is as long as the footer says. A gap has none that could be read.
  private static func mostEvents(_ block: BlockEntry) -> Int {
    block.isGap ? 0 : min(block.events, block.length * LogLimits.eventsOfAByte)
  }

  /// Whether there is memory for all places.
  var isDense: Bool { places.count == count }

  subscript(place: Int) -> UInt64 {
    get { isDense ? places[place] : entries[place, default: 0] }
    set { if isDense { places[place] = newValue } else { entries[place] = newValue } }
  }

  /// Traps if anything is entered where no place is. For tests and the suites.
  func checkInvariants() {
    precondition(places.isEmpty || entries.isEmpty, "a place is kept once")
    precondition(entries.keys.allSatisfy { (0..<count).contains($0) }, "each arrival has a place")
  }
}
