/// Corrupts the bytes of a file, to test that readers survive it.
package enum FileMutation {
  /// One to three changes: bits and bytes that change, and bytes cut, inserted, zeroed or
  /// duplicate.
  package static func apply(to bytes: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var bytes = bytes
    for _ in 0...random.below(3) {
      guard !bytes.isEmpty else { return bytes }
      let place = random.below(bytes.count)
      let length = min(1 + random.below(200), bytes.count - place)
      switch random.below(8) {
      case 0: bytes[place] ^= 1 << UInt8(random.below(8))
      case 1: bytes[place] = UInt8(random.below(256))
      case 2: bytes.removeSubrange(place...)
      case 3: bytes.removeSubrange(..<place)
      case 4: bytes.removeSubrange(place..<place + length)
      case 5: bytes.insert(contentsOf: (0..<length).map { _ in UInt8(random.below(256)) }, at: place)
      case 6: bytes.replaceSubrange(place..<place + length, with: [UInt8](repeating: 0, count: length))
      default: bytes.insert(contentsOf: bytes[place..<place + length], at: random.below(bytes.count))
      }
    }
    return bytes
  }
}
