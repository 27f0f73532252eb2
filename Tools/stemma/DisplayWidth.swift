/// The number of terminal columns of a text. East Asian characters and pictures take two (Unicode
/// Standard Annex 11, wide and fullwidth), color codes none.
func displayWidth(_ text: some StringProtocol) -> Int {
  if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text.utf8.count }
  var width = 0
  var isInSequence = false
  for character in text {
    if isInSequence {
      isInSequence = !character.isLetter
    } else if character == "\u{1B}" {
      isInSequence = true
    } else {
      width += character.unicodeScalars.first.map(isWide) ?? false ? 2 : 1
    }
  }
  return width
}

private let wideRanges: [ClosedRange<UInt32>] = [
  0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
  0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
  0x20000...0x3FFFD,
]

private func isWide(_ scalar: Unicode.Scalar) -> Bool {
  wideRanges.contains { $0.contains(scalar.value) }
}

extension StringProtocol {
  /// The longest prefix within a number of columns, but at least one character.
  func prefix(columns: Int) -> SubSequence {
    var width = 0
    var end = startIndex
    while end < endIndex {
      let following = index(after: end)
      width += displayWidth(self[end..<following])
      if width > columns, end > startIndex { break }
      end = following
    }
    return self[..<end]
  }
}
