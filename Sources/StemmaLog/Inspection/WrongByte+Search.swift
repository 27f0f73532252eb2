import StemmaEvents

// Which byte is wrong?
//
// A CRC is linear: the difference between the checksum that stands in the file and that of the bytes depends
// only on the difference of the bytes, and on how many follow it. Stepping the register back over the bytes,
// from the last one to the first, the difference becomes a number below 256 exactly where one byte alone can
// have caused it, and that number is what the byte differs in. In n bytes chance does the same about n / 2^24
// times, so a place counts only if the bytes decode once it is mended, and with no other place mended.

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

extension WrongByte {
  /// The same for bytes of which four, from `place` on, are the checksum of all before them, and may be what is
  /// wrong themselves.
  static func candidates(in bytes: [UInt8], checksumAt place: Int) -> [(index: Int, mask: UInt8)] {
    let found = bytes.crc32c(0..<place)
    var stored: [UInt8] = []
    stored.put(found)
    let wrong = (0..<4).filter { stored[$0] != bytes[place + $0] }
    if wrong.count == 1 { return [(place + wrong[0], stored[wrong[0]] ^ bytes[place + wrong[0]])] }
    let expected = bytes[place..<place + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return candidates(in: Array(bytes[..<place]), expected: expected, found: found)
  }

  /// What can be read of bytes of which one is wrong, and which: the only one of the candidates with which `read`
  /// gives anything; nil if several do. The first byte stands at `start` in the file.
  static func mending<Content>(
    _ bytes: [UInt8], at start: UInt64, _ candidates: [(index: Int, mask: UInt8)],
    read: ([UInt8]) -> Content?
  ) -> (content: Content, byte: WrongByte)? {
    var found: (content: Content, byte: WrongByte)?
    for (index, mask) in candidates {
      var mended = bytes
      mended[index] ^= mask
      guard let content = read(mended) else { continue }
      if found != nil { return nil }
      let byte = WrongByte(
        offset: start + UInt64(index), found: bytes[index], expected: mended[index])
      found = (content, byte)
    }
    return found
  }

  /// The same for bytes that end with their own checksum: as they were.
  static func mending(
    _ bytes: [UInt8], at start: UInt64, isWhole: ([UInt8]) -> Bool
  ) -> (content: [UInt8], byte: WrongByte)? {
    guard bytes.count > 4 else { return nil }
    let candidates = candidates(in: bytes, checksumAt: bytes.count - 4)
    return mending(bytes, at: start, candidates) { isWhole($0) ? $0 : nil }
  }

  /// The register of CRC32C before a byte, by that behind it.
  private static func register(before byte: UInt8, _ behind: UInt32) -> UInt32 {
    let entry = byLeadingBits[Int(behind >> 24)]
    return (behind ^ table[Int(entry)]) << 8 | entry ^ UInt32(byte)
  }

  /// The same of several bytes.
  static func register(before bytes: ArraySlice<UInt8>, _ behind: UInt32) -> UInt32 {
    bytes.reversed().reduce(behind) { register(before: $1, $0) }
  }

  /// Where `count` bytes may be taken out of `bytes` so that the CRC of the rest is `expected`: going forth from
  /// the beginning and back from the end, the register has the same value on both sides of them. Time and
  /// memory: of the order of the bytes.
  static func surplus(of count: Int, in bytes: [UInt8], expected: UInt32) -> [Int] {
    guard count > 0, count <= bytes.count else { return [] }
    // Before each byte, counted from the one behind the first `count`.
    var behind = [UInt32](repeating: 0, count: bytes.count - count + 1)
    var register = ~expected
    behind[bytes.count - count] = register
    for index in (count..<bytes.count).reversed() {
      register = Self.register(before: bytes[index], register)
      behind[index - count] = register
    }
    var places: [Int] = []
    register = ~0
    for index in 0...bytes.count - count {
      if register == behind[index] { places.append(index) }
      register = table[Int((register ^ UInt32(bytes[index % bytes.count])) & 0xFF)] ^ register >> 8
    }
    return places
  }
}

extension WrongByte {
  /// Where a byte may be put into `bytes`, and which, so that their CRC is `expected`: it goes into the register one beside
  /// the other, so that it is that in which the registers on both sides differ, the one behind it stepped back over a zero.
  /// Chance does the same for one place in 2^24. nil: nowhere, or at places where what comes out is not the same. Time and
  /// memory: of the order of the bytes.
  static func lacking(in bytes: [UInt8], expected: UInt32) -> (index: Int, byte: UInt8)? {
    var before = [UInt32](repeating: ~0, count: bytes.count + 1)
    for (index, byte) in bytes.enumerated() {
      before[index + 1] = table[Int((before[index] ^ UInt32(byte)) & 0xFF)] ^ before[index] >> 8
    }
    var found: (index: Int, byte: UInt8)?
    var next = 0
    var register = ~expected
    for index in (0...bytes.count).reversed() {
      if index < bytes.count { register = Self.register(before: bytes[index], register) }
      let missing = before[index] ^ Self.register(before: 0, register)
      guard missing < 256 else { continue }
      let byte = UInt8(missing)
      if let found {
        // Beside an equal byte the same comes out.
        guard next == index + 1, found.byte == byte, bytes[index] == byte else { return nil }
      } else {
        found = (index, byte)
      }
      next = index
    }
    return found
  }
}

extension InspectedPart {
  /// Says that the checksum of a block does not hold, and finds the wrong byte if it is only one. The block's
  /// bytes are the last ones that the checksum covers; the first of them stands at `start` in the file.
  package mutating func complain(
    checksum expected: UInt32, found: UInt32, of bytes: [UInt8], at start: UInt64
  ) {
    let candidates = WrongByte.candidates(in: bytes, expected: expected, found: found)
    if let mended = WrongByte.mending(bytes, at: start, candidates, read: BlockReader.init(inspecting:)) {
      block = mended.content
      isChecked = true
      complain(.checksum(expected: expected, found: found), byte: mended.byte)
    } else {
      complain(.checksum(expected: expected, found: found), in: start..<start + UInt64(bytes.count))
    }
  }

  /// Says that something is wrong with bytes of which it cannot be told which.
  package mutating func complain(_ flaw: Flaw, in range: Range<UInt64>) {
    flaws.append(InspectedFlaw(offset: range.lowerBound, flaw: flaw, range: range.isEmpty ? nil : range))
  }
}
