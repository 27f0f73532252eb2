import StemmaEvents

/// A Bloom filter over the records of a segment: whether a file may have events of one record,
/// without reading its blocks. It has no false negatives.
///
/// Its size is limited to a part of the file's stored size: if records compress to a few bytes, a
/// filter costs more than the block that it saves. The hashes are those of Kirsch and Mitzenmacher,
/// "Less Hashing, Same Performance" (2006), over FNV-1a of partition, model and key.
struct KeyFilter: Equatable, Sendable {
  static let bitsPerKey = 8
  /// The filter takes at most 1/32 of the bytes of the blocks.
  static let share: UInt64 = 32

  private let hashes: Int
  private let bits: [UInt8]

  /// The bytes of a filter, none if fewer than two bits would be left for each key.
  static func encoded(_ keys: [UInt64], storedBytes: UInt64) -> [UInt8] {
    guard !keys.isEmpty else { return [] }
    let wanted = (keys.count * bitsPerKey + 7) / 8
    let size = Int(min(UInt64(wanted), storedBytes / share))
    guard size * 8 >= keys.count * 2 else { return [] }
    let perKey = size * 8 / keys.count
    let hashes = max(1, perKey * 7 / 10)
    var bytes = [UInt8](repeating: 0, count: size + 1)
    bytes[0] = UInt8(hashes)
    for key in keys {
      for bit in Self.bits(key, hashes, of: size) { bytes[1 + bit / 8] |= 1 << UInt8(bit % 8) }
    }
    return bytes
  }

  init(decoding bytes: [UInt8]) throws(Flaw) {
    guard bytes.isEmpty || (bytes.count > 1 && (1...32).contains(bytes[0])) else {
      throw .malformed("key filter")
    }
    hashes = Int(bytes.first ?? 0)
    bits = Array(bytes.dropFirst())
  }

  func mayContain(_ key: RecordKey) -> Bool { mayContain(Self.hash(key)) }

  func mayContain(_ hash: UInt64) -> Bool {
    if bits.isEmpty { return true }
    let step = hash >> 32 | 1
    let count = UInt64(bits.count * 8)
    for index in 0..<UInt64(hashes) {
      let bit = Int((hash &+ index &* step) % count)
      if bits[bit / 8] >> UInt8(bit % 8) & 1 == 0 { return false }
    }
    return true
  }

  private static func bits(_ hash: UInt64, _ hashes: Int, of size: Int) -> [Int] {
    let step = hash >> 32 | 1
    return (0..<UInt64(hashes)).map { Int((hash &+ $0 &* step) % UInt64(size * 8)) }
  }

  static func hash(_ key: RecordKey) -> UInt64 {
    let hash = KeyHash(partition: key.partition, model: key.model)
    return key.key.bytes.withUnsafeBytes { hash.of($0) }
  }
}

/// Hashes records of one partition and model.
package struct KeyHash {
  /// FNV-1a of the bytes before the key.
  private let start: UInt64

  package init(partition: Partition, model: String) {
    self = partition.bytes.withUnsafeBytes { KeyHash(partition: $0, model: model) }
  }

  package init(partition: UnsafeRawBufferPointer, model: String) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in partition { Self.add(byte, to: &hash) }
    Self.add(0, to: &hash)
    for byte in model.utf8 { Self.add(byte, to: &hash) }
    Self.add(0, to: &hash)
    start = hash
  }

  private static func add(_ byte: UInt8, to hash: inout UInt64) {
    hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  package func of(_ key: UnsafeRawBufferPointer) -> UInt64 {
    var hash = start
    for byte in key { Self.add(byte, to: &hash) }
    // FNV's low bits mix poorly; this is the finalizer of SplitMix64.
    hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
    hash = (hash ^ hash >> 27) &* 0x94d0_49bb_1331_11eb
    return hash ^ hash >> 31
  }
}
