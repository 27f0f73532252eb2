/// Mints integer keys that are unique across nodes without communication.
///
///     63 bits   prefix, 36 bits of the origin's id · number, 27 bits
///
/// The number continues from the count of the origin's events. A minted id adds at least one event
/// to its commit, so the next commit continues behind it, in any process and after any crash.
/// Nothing is stored. After 2^27 numbers, another prefix is derived from the origin's id. Two
/// origins have the same prefix with a probability of 2^-36. Records with the same key then merge
/// like one.
package struct IntegerIdentifiers: Sendable {
  private let origin: Origin
  private var number: UInt64

  /// - Parameter eventCount: the number of the origin's events before the minting commit.
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

  /// A prefix, in the upper bits: the origin's random bits, then outputs of SplitMix64's finalizer
  /// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
  private func prefix(_ draw: UInt64) -> UInt64 {
    guard draw > 0 else { return origin.rawValue }
    var bits = origin.rawValue &+ draw &* 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return bits ^ bits >> 31
  }
}
