/// Mints integers for keys that are unique across nodes without asking any.
///
///     63 bits   prefix, 36 bits of the origin's id · number, 27 bits
///
/// The number counts on from the events that the origin has written: an id that is minted becomes at least one event
/// of its commit, so the next commit begins behind it, in whatever process and after whatever crash, and
/// nothing has to be kept. Where 2^27 numbers are used up, the next prefix is drawn from the origin's id, too.
/// Two origins draw the same prefix with a probability of 2^-36; a pair of records that then has one key would merge as
/// two creations of one record do.
package struct IntegerIdentifiers: Sendable {
  private let origin: Origin
  private var number: UInt64

  /// - Parameter eventCount: how many events the origin has written before the commit that mints.
  package init(origin: Origin, eventCount: UInt64) {
    self.origin = origin
    number = eventCount
  }

  private static let numberBits: UInt64 = 27
  private static let prefixBits: UInt64 = 36

  package mutating func mint() -> Int64 {
    defer { number += 1 }
    let prefix = self.prefix(number >> Self.numberBits) >> (64 - Self.prefixBits)
    return Int64(prefix << Self.numberBits | number & (1 << Self.numberBits - 1))
  }

  /// The `draw`th of an origin's prefixes, in the upper bits: the origin's own random bits, then what SplitMix64's
  /// finalizer makes of them (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
  private func prefix(_ draw: UInt64) -> UInt64 {
    guard draw > 0 else { return origin.rawValue }
    var bits = origin.rawValue &+ draw &* 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return bits ^ bits >> 31
  }
}
