/// Mints UUIDs of version 7 (RFC 9562, section 5.7) as lower-case text.
///
/// 48 bits of milliseconds come first, so ids rise with time, and new rows go to the end of a
/// table's B-tree. Within one millisecond, or when the clock steps back, a random step raises the
/// random bits (the RFC's method 2). So the ids of one minter always rise.
package struct UUIDv7: Sendable {
  private var milliseconds: UInt64 = 0
  /// The 12 bits of `rand_a`, then the 62 bits of `rand_b`.
  private var high: UInt64 = 0
  private var low: UInt64 = 0

  package init() {}

  /// Traps if a part has too many bits. In debug builds after each id.
  package func checkInvariants() {
    precondition(milliseconds >> 48 == 0 && high >> 12 == 0 && low >> 62 == 0, "each part has its bits")
  }

  package mutating func mint(clock: some Clock, random: some RandomSource) -> String {
    defer { assert(holds(checkInvariants)) }
    let now = min(clock.milliseconds(), (1 << 48) - 1)
    if now > milliseconds {
      milliseconds = now
      draw(random)
    } else {
      // A step of 1 to 2^32, so that the next id cannot be guessed from the last.
      low += random.next() >> 32 + 1
      if low >> 62 != 0 {
        low &= 1 << 62 - 1
        high += 1
        if high >> 12 != 0 {
          milliseconds += 1
          draw(random)
        }
      }
    }
    return text
  }

  private mutating func draw(_ random: some RandomSource) {
    // The top bit stays free, so that steps have room before the millisecond is full.
    high = random.next() >> 53
    low = random.next() >> 2
  }

  private var text: String {
    let first = milliseconds << 16 | 7 << 12 | high
    let second = 1 << 63 | low
    var digits: [UInt8] = []
    digits.reserveCapacity(36)
    let alphabet = Array("0123456789abcdef".utf8)
    for index in 0..<32 {
      if [8, 12, 16, 20].contains(index) { digits.append(UInt8(ascii: "-")) }
      let word = index < 16 ? first : second
      digits.append(alphabet[Int(word >> UInt64(60 - index % 16 * 4) & 15)])
    }
    return String(decoding: digits, as: UTF8.self)
  }
}
