import Foundation

/// A hybrid logical clock reading: 48 bits of milliseconds since 1970, 16 bits of counter.
package struct Timestamp: Hashable, Comparable, Sendable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// `milliseconds` beyond 48 bits are cut to the highest time there is.
  package init(milliseconds: UInt64, counter: UInt16 = 0) {
    rawValue = min(milliseconds, Self.latestMilliseconds) << 16 | UInt64(counter)
  }

  /// The latest time that 48 bits hold: the year 10889.
  package static let latestMilliseconds: UInt64 = (1 << 48) - 1

  package static let zero = Timestamp(rawValue: 0)
  package static func < (a: Timestamp, b: Timestamp) -> Bool { a.rawValue < b.rawValue }

  package var milliseconds: UInt64 { rawValue >> 16 }
  package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// One counter tick later; a full counter carries into the milliseconds. The very last timestamp stays.
  package var tick: Timestamp { rawValue == .max ? self : Timestamp(rawValue: rawValue + 1) }
}

/// The wall clock.
package protocol Clock: Sendable {
  /// Milliseconds since 1970; a time before is 0.
  func milliseconds() -> UInt64
}

package struct SystemClock: Clock {
  package init() {}
  package func milliseconds() -> UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1000)) }
}

/// Where random ids come from.
package protocol RandomSource: Sendable {
  func next() -> UInt64
}

package struct SystemRandomSource: RandomSource {
  package init() {}
  package func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

/// Gives the timestamps of local events.
///
/// Each is higher than all before it and, as far as a sane clock allows, than all that were seen in events
/// of others: `max(wall, min(highest, wall + 60 s))` and one tick. So a clock that is far ahead, a peer's or this
/// node's own of an hour ago, does not drag this node along; the rule is Kulkarni et al., "Logical Physical Clocks"
/// (2014), with a bound. What follows from what is said by contexts and versions: of the timestamps they need
/// only that each is above those of its own context, which `floor` sees to whatever the clock does.
package struct HybridClock: Sendable {
  /// How far beyond the wall clock timestamps of before may pull this node, in milliseconds.
  package static let tolerance: UInt64 = 60_000

  /// The highest timestamp that was given or observed; imported ones are neither.
  package private(set) var highest = Timestamp.zero
  private var last = Timestamp.zero

  package init() {}

  package mutating func observe(_ timestamp: Timestamp) { highest = max(highest, timestamp) }

  /// The next local timestamp. `floor`: the highest timestamp of the event's context; being above it does not
  /// move the clock.
  package mutating func now(wall: UInt64, above floor: Timestamp = .zero) -> Timestamp {
    let ceiling = Timestamp(milliseconds: Self.limit(wall))
    var next = max(Timestamp(milliseconds: wall), min(highest.tick, ceiling))
    // Where the ceiling holds the clock, what is given in one moment still differs.
    if next <= last, last.milliseconds <= ceiling.milliseconds { next = last.tick }
    last = next
    highest = max(highest, next)
    return max(next, floor.tick)
  }

  /// Traps if a timestamp was given that the clock does not know of. For tests.
  package func checkInvariants() { precondition(last <= highest, "what was given is known") }

  /// By how many milliseconds timestamps of before lie beyond what this clock accepts; nil if none does. Then this
  /// clock is, or another was, wrong.
  package func lag(wall: UInt64) -> UInt64? {
    highest.milliseconds > Self.limit(wall) ? highest.milliseconds - wall : nil
  }

  /// The latest time that is accepted, in milliseconds.
  private static func limit(_ wall: UInt64) -> UInt64 {
    min(wall, Timestamp.latestMilliseconds - tolerance) + tolerance
  }

  /// The timestamp of an imported event: the given time, unless it lies too far ahead (nil then: use
  /// `now`); raised above `floor` by one tick where it is not above it. Never moves the clock.
  package static func imported(
    milliseconds: UInt64, wall: UInt64, above floor: Timestamp
  ) -> Timestamp? {
    guard milliseconds <= limit(wall) else { return nil }
    let given = Timestamp(milliseconds: milliseconds)
    return floor == .zero || given > floor ? given : floor.tick
  }
}
