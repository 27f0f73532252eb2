import Foundation

/// A hybrid logical clock reading: 48 bits of milliseconds since 1970, 16 bits of counter.
package struct Timestamp: Hashable, Comparable, Sendable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// `milliseconds` beyond 48 bits become the latest time.
  package init(milliseconds: UInt64, counter: UInt16 = 0) {
    rawValue = min(milliseconds, Self.latestMilliseconds) << 16 | UInt64(counter)
  }

  /// The latest time that 48 bits hold: the year 10889.
  package static let latestMilliseconds: UInt64 = (1 << 48) - 1

  package static let zero = Timestamp(rawValue: 0)
  package static func < (a: Timestamp, b: Timestamp) -> Bool { a.rawValue < b.rawValue }

  package var milliseconds: UInt64 { rawValue >> 16 }
  package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// One counter tick later, carrying into the milliseconds. The last timestamp stays.
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

/// The source of random ids.
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

/// Issues the timestamps of local events.
///
/// Each is higher than all earlier ones. Within a bound, it is also higher than the observed
/// timestamps of other nodes: `max(wall, min(highest, wall + 60 s))` and one tick. So a clock that
/// is far ahead, of a peer or of this node an hour ago, does not move this node's time. The rule is
/// that of Kulkarni et al., "Logical Physical Clocks" (2014), with a bound. Causality relies on
/// contexts and versions. They need only timestamps above those of the context: see `floor`.
package struct HybridClock: Sendable {
  /// How far earlier timestamps may move this node ahead of the wall clock, in milliseconds.
  package static let tolerance: UInt64 = 60_000

  /// The highest issued or observed timestamp, without imported ones.
  package private(set) var highest = Timestamp.zero
  private var last = Timestamp.zero

  package init() {}

  package mutating func observe(_ timestamp: Timestamp) { highest = max(highest, timestamp) }

  /// The next local timestamp. `floor`, which does not move the clock: the highest timestamp of the
  /// event's context.
  package mutating func now(wall: UInt64, above floor: Timestamp = .zero) -> Timestamp {
    let ceiling = Timestamp(milliseconds: Self.limit(wall))
    var next = max(Timestamp(milliseconds: wall), min(highest.tick, ceiling))
    // At the ceiling, timestamps of one point in time must differ.
    if next <= last, last.milliseconds <= ceiling.milliseconds { next = last.tick }
    last = next
    highest = max(highest, next)
    return max(next, floor.tick)
  }

  /// Traps if the clock lacks an issued timestamp. For tests.
  package func checkInvariants() { precondition(last <= highest, "what was given is known") }

  /// How many milliseconds earlier timestamps are ahead of the wall clock, if that is beyond the
  /// tolerance; otherwise nil. Then this clock is wrong, or another one was.
  package func lag(wall: UInt64) -> UInt64? {
    highest.milliseconds > Self.limit(wall) ? highest.milliseconds - wall : nil
  }

  /// The latest accepted time, in milliseconds.
  private static func limit(_ wall: UInt64) -> UInt64 {
    min(wall, Timestamp.latestMilliseconds - tolerance) + tolerance
  }

  /// The timestamp of an imported event: the given time, at least one tick above `floor`. nil if
  /// the time is too far ahead: use `now`. Never moves the clock.
  package static func imported(
    milliseconds: UInt64, wall: UInt64, above floor: Timestamp
  ) -> Timestamp? {
    guard milliseconds <= limit(wall) else { return nil }
    let given = Timestamp(milliseconds: milliseconds)
    return floor == .zero || given > floor ? given : floor.tick
  }
}
