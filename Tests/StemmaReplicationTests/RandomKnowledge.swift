import StemmaEvents
import StemmaSimulation

extension SplitMix64 {
  mutating func hash() -> StreamHash { StreamHash(high: next(), low: next()) }

  mutating func versionVector(partitions: Int) -> VersionVector {
    var versionVector = VersionVector()
    for index in 0..<partitions {
      for _ in 0...below(3) {
        versionVector[Partition("tenant=\(index)é"), Origin(next())] = StreamHead(
          sequence: SequenceNumber(1 + next() % 1_000_000), hash: hash())
      }
    }
    return versionVector
  }
}
