/// Numbers at places 0 ..< count, one for each event of a segment at its position; 0: no event.
///
/// After a purge, few events may remain of many positions, and an unverified footer can claim any
/// number. The table is dense only for few positions (`LogLimits.fewPositions`), or if blocks of
/// their length can hold an eighth as many events. Otherwise only entries take memory. Beyond the
/// first 8 MiB, a dense table takes at most 8 KiB for each byte of the blocks.
struct PositionTable: Sendable {
  let count: Int
  /// All places; empty if `entries` is in use.
  private var places: [UInt64]
  private var entries: [Int: UInt64] = [:]

  /// A table for the positions of blocks.
  init(_ count: Int, for blocks: [BlockEntry]) {
    self.count = count
    let events = blocks.reduce(0) { $0 + Self.mostEvents($1) }
    let isDense = count <= max(LogLimits.fewPositions, events * LogLimits.sparsePositions)
    places = isDense ? [UInt64](repeating: 0, count: count) : []
  }

  /// The maximum of events in a block of this length.
  private static func mostEvents(_ block: BlockEntry) -> Int {
    min(block.events, block.length * LogLimits.eventsOfAByte)
  }

  /// Whether all places are allocated.
  var isDense: Bool { places.count == count }

  subscript(place: Int) -> UInt64 {
    get { isDense ? places[place] : entries[place, default: 0] }
    set { if isDense { places[place] = newValue } else { entries[place] = newValue } }
  }

  /// Traps if an entry has no place. For tests and the suites.
  func checkInvariants() {
    precondition(places.isEmpty || entries.isEmpty, "a place is kept once")
    precondition(entries.keys.allSatisfy { (0..<count).contains($0) }, "each relativePosition has a place")
  }
}
