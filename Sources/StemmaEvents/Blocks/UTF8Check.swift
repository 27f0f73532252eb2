extension UnsafeRawBufferPointer {
  /// Whether all bytes are below 0x80.
  var isASCII: Bool {
    var index = 0
    while index + 8 <= count {
      if loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { return false }
      index += 8
    }
    while index < count {
      if self[index] >= 0x80 { return false }
      index += 1
    }
    return true
  }

  /// Whether the bytes are UTF-8 by table 3-7 of the Unicode standard: no overlong forms, no
  /// surrogates, nothing above U+10FFFF. The standard library's validation makes a String, which
  /// costs an allocation for each text of a block.
  package var isUTF8: Bool {
    if isASCII { return true }
    var index = 0
    while index < count {
      let lead = self[index]
      index += 1
      if lead < 0x80 { continue }
      let more: Int
      var lowest: UInt8 = 0x80
      var highest: UInt8 = 0xBF
      switch lead {
      case 0xC2...0xDF: more = 1
      case 0xE0: (more, lowest) = (2, 0xA0)
      case 0xED: (more, highest) = (2, 0x9F)
      case 0xE1...0xEF: more = 2
      case 0xF0: (more, lowest) = (3, 0x90)
      case 0xF4: (more, highest) = (3, 0x8F)
      case 0xF1...0xF3: more = 3
      default: return false
      }
      guard count - index >= more, (lowest...highest).contains(self[index]) else { return false }
      for offset in 1..<Swift.max(more, 1) where self[index + offset] & 0xC0 != 0x80 { return false }
      index += more
    }
    return true
  }
}
