import StemmaEvents

// Which byte is wrong?
//
// A CRC is linear: the difference between the checksum that stands in the file and that of the bytes depends
// only on the difference of the bytes, and on how many follow it. Stepping the register back over the bytes,
// from the last one to the first, the difference becomes a number below 256 exactly where one byte alone can
// have caused it, and that number is what the byte differs in. In n bytes chance does the same about n / 2^24
// times, so a place counts only if the bytes decode once it is mended.

extension WrongByte {
  /// The register of CRC32C after one byte, for each byte.
  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0x82f6_3b78 : crc >> 1 }
  }
  /// The byte for which the table's entry begins with these eight bits; each has one.
  private static let byLeadingBits: [UInt32] = {
    var bytes = [UInt32](repeating: 0, count: 256)
    for (byte, entry) in table.enumerated() { bytes[Int(entry >> 24)] = UInt32(byte) }
    return bytes
  }()

  /// Where one byte of `bytes` may differ so that their CRC is `expected` instead of `found`, and in what.
  /// Time: of the order of the bytes.
  static func candidates(in bytes: [UInt8], expected: UInt32, found: UInt32) -> [(index: Int, mask: UInt8)] {
    var register = expected ^ found
    var candidates: [(Int, UInt8)] = []
    for index in bytes.indices.reversed() {
      let byte = byLeadingBits[Int(register >> 24)]
      register = (register ^ table[Int(byte)]) << 8 | byte
      if register < 256, register > 0 { candidates.append((index, UInt8(register))) }
    }
    return candidates
  }
}

extension InspectedPart {
  /// Says that the checksum of a block does not hold, and finds the wrong byte if it is only one. The
  /// checksum covers `covered`, whose last bytes are the block's; the first of these stands at `start` in the
  /// file.
  mutating func complain(
    checksum expected: UInt32, found: UInt32, of covered: [UInt8], block length: Int, at start: UInt64
  ) {
    let front = covered.count - length
    for (index, mask) in WrongByte.candidates(in: covered, expected: expected, found: found)
    where index >= front {
      var mended = Array(covered[front...])
      mended[index - front] ^= mask
      guard let reader = BlockReader(inspecting: mended) else { continue }
      block = reader
      isChecked = true
      let byte = WrongByte(
        offset: start + UInt64(index - front), found: covered[index], expected: covered[index] ^ mask)
      return complain(.checksum(expected: expected, found: found), byte: byte)
    }
    complain(.checksum(expected: expected, found: found), at: start)
    flaws[flaws.count - 1].range = start..<start + UInt64(length)
  }
}
