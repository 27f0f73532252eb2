import StemmaEvents
import StemmaSimulation

extension SplitMix64 {
  mutating func hash() -> StreamHash { StreamHash(high: next(), low: next()) }

  mutating func knowledge(partitions: Int) -> VersionVector {
    var knowledge = VersionVector()
    for index in 0..<partitions {
      for _ in 0...below(3) {
        knowledge[Partition("tenant=\(index)é"), Origin(next())] = StreamHead(
          sequence: Sequence(1 + next() % 1_000_000), hash: hash())
      }
    }
    return knowledge
  }
}
