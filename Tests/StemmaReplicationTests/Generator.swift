import StemmaEvents

/// A seeded source of test data (SplitMix64, Steele et al. 2014).
struct Generator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
  mutating func element<T>(_ items: [T]) -> T { items[below(items.count)] }

  mutating func hash() -> StreamHash { StreamHash(high: next(), low: next()) }

  mutating func knowledge(partitions: Int) -> Knowledge {
    var knowledge = Knowledge()
    for index in 0..<partitions {
      for _ in 0...below(3) {
        knowledge[Partition("tenant=\(index)é"), Origin(next())] = StreamHead(
          sequence: Sequence(1 + next() % 1_000_000), hash: hash())
      }
    }
    return knowledge
  }
}
