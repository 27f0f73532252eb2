import ArgumentParser

/// A time as an argument: a whole number of seconds, minutes, hours or days.
struct TimeSpan: ExpressibleByArgument {
  /// At most ten million days.
  let milliseconds: UInt64

  private static let units: [Character: UInt64] = ["s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]

  init?(argument: String) {
    guard let unit = argument.last.flatMap({ Self.units[$0] }), let count = UInt64(argument.dropLast()),
      (1...10_000_000).contains(count)
    else { return nil }
    milliseconds = count * unit
  }
}
