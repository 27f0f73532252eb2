import StemmaEvents
import StemmaSchema
import Testing

@Suite struct UUIDv7Tests {
  private struct StoppedClock: Clock {
    var now: UInt64
    func milliseconds() -> UInt64 { now }
  }
  private struct ConstantSource: RandomSource {
    var value: UInt64
    func next() -> UInt64 { value }
  }

  @Test func theLayoutIsThatOfTheRFC() {
    var minter = UUIDv7()
    // The time of the example in RFC 9562, appendix A.6.
    let id = minter.mint(clock: StoppedClock(now: 0x017F_22E2_79B0), random: ConstantSource(value: 0))
    #expect(id == "017f22e2-79b0-7000-8000-000000000000")
    let full = minter.mint(clock: StoppedClock(now: 0x017F_22E2_79B1), random: ConstantSource(value: .max))
    #expect(full == "017f22e2-79b1-77ff-bfff-ffffffffffff")
    #expect(full.isUUIDShaped)
  }

  @Test func idsRiseWhateverTheClockDoes() {
    var minter = UUIDv7()
    var ids: [String] = []
    let random = SystemRandomSource()
    for now in [UInt64(1000), 1000, 999, 5, 1001, 1001, 1 << 50, 1 << 50, 0] {
      for _ in 0..<100 { ids.append(minter.mint(clock: StoppedClock(now: now), random: random)) }
    }
    #expect(zip(ids, ids.dropFirst()).allSatisfy { $0.hasBytes(before: $1) })
  }

  /// Steps of the maximum size overflow the random bits into the next millisecond.
  @Test func aFullMillisecondCarriesOver() {
    var minter = UUIDv7()
    let clock = StoppedClock(now: 1)
    var last = minter.mint(clock: clock, random: ConstantSource(value: .max))
    for _ in 0..<5000 {
      let next = minter.mint(clock: clock, random: ConstantSource(value: .max))
      #expect(last.hasBytes(before: next))
      last = next
    }
  }
}
