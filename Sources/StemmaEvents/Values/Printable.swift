/// The spelling of characters that a terminal would obey or that end a line.
package enum ControlSpelling {
  /// `\n`, `\t`, `\r`, else `\u{1b}`.
  case plain
  /// As above, but ends of lines stay: for text that has several lines by itself.
  case lines
  /// `\u009b`: for JSON text, whose strings already escape all characters below U+0020.
  case json
  /// `\n`, `\t`, `\r`, else the bytes as `\033`: what shells read in `$'…'` (POSIX.1-2024, 2.2.4).
  case shell

  fileprivate func spells(_ scalar: Unicode.Scalar) -> Bool {
    if case .lines = self, scalar == "\n" { return false }
    return switch scalar.value {
    // C0, DEL and C1; ends of lines and paragraphs; direction of text (Unicode annex 9, 2.1 … 2.4).
    case 0x00...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  fileprivate func spelled(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16)
    if case .json = self { return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits }
    switch scalar {
    case "\n": return "\\n"
    case "\t": return "\\t"
    case "\r": return "\\r"
    default: break
    }
    guard case .shell = self else { return "\\u{\(digits)}" }
    return String(scalar).utf8.map { byte in
      let octal = String(byte, radix: 8)
      return "\\" + String(repeating: "0", count: 3 - octal.count) + octal
    }.joined()
  }
}

/// Untrusted text for display. Spells out control characters, which a terminal would obey, and
/// characters that change the direction of text. Returns plain text unchanged.
package func printable(_ text: String, as spelling: ControlSpelling = .plain) -> String {
  guard hasOtherThanASCII(text), text.unicodeScalars.contains(where: spelling.spells) else { return text }
  var spelled = ""
  for scalar in text.unicodeScalars {
    if spelling.spells(scalar) {
      spelled += spelling.spelled(scalar)
    } else {
      spelled.unicodeScalars.append(scalar)
    }
  }
  return spelled
}

/// Whether any byte is not printable ASCII. Without branches, so that the compiler vectorizes it.
private func hasOtherThanASCII(_ text: String) -> Bool {
  var text = text
  return text.withUTF8 { bytes in
    var others: UInt8 = 0
    for byte in bytes { others |= byte &- 0x20 < 0x5F ? 0 : 1 }
    return others != 0
  }
}
