import StemmaEvents

/// The 64-bit random id of one log: every file of it carries the id.
package struct LogID: Hashable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// Sixteen lowercase hexadecimal digits.
  package var description: String { Origin(rawValue).description }
}

/// What a file in `log/` is, by its name: eight digits and the kind.
enum LogFileName: Hashable, Comparable {
  case segment(UInt64)
  case journal(UInt64)
  case watermark
  /// A torn tail: `00000001.cut0`.
  case cut
  /// One of these that was being written when a process ended: `….partial`.
  case partial
  /// What stood where a file was to get its name: `….aside0`. Nobody reads it.
  case aside
  case other

  static let watermarkName = "watermark"
  static let partialSuffix = ".partial"
  static let asideSuffix = ".aside"
  static let cutSuffix = ".cut"

  init(_ name: String) {
    func number(_ suffix: String, of name: String) -> UInt64? {
      guard name.hasSuffix(suffix), name.utf8.count == 8 + suffix.utf8.count,
        name.utf8.prefix(8).allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
        let number = UInt64(name.prefix(8))
      else { return nil }
      return number
    }
    if name == Self.watermarkName {
      self = .watermark
    } else if name.hasSuffix(Self.partialSuffix) {
      // Whatever else ends so was put there by somebody.
      self = Self(String(name.dropLast(Self.partialSuffix.count))).isOfTheLog ? .partial : .other
    } else if Self.uncounted(name).hasSuffix(Self.asideSuffix) {
      self = Self(String(Self.uncounted(name).dropLast(Self.asideSuffix.count))) == .other ? .other : .aside
    } else if number(Self.cutSuffix, of: Self.uncounted(name)) != nil {
      self = .cut
    } else if let number = number(".segment", of: name) {
      self = .segment(number)
    } else if let number = number(".journal", of: name) {
      self = .journal(number)
    } else {
      self = .other
    }
  }

  private var isOfTheLog: Bool { number != nil || self == .watermark }

  /// A name without the number at its end.
  private static func uncounted(_ name: String) -> String {
    let digits = name.utf8.reversed().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.count
    return digits > 0 ? String(name.dropLast(digits)) : ""
  }

  /// Of a segment or a journal. No file is made with 0; one may get that name.
  var number: UInt64? {
    switch self {
    case .segment(let number), .journal(let number): number
    case .watermark, .cut, .partial, .aside, .other: nil
    }
  }

  var isJournal: Bool { if case .journal = self { true } else { false } }

  /// The segment's name of a journal's number, and the other way round.
  var other: LogFileName? { number.map { isJournal ? .segment($0) : .journal($0) } }

  /// Of a segment or a journal.
  var text: String { Self.digits(number ?? 0) + (isJournal ? ".journal" : ".segment") }

  func path(in directory: String) -> String { directory + "/" + text }

  /// By number, the segment of one first.
  static func < (a: LogFileName, b: LogFileName) -> Bool {
    (a.number ?? 0, a.isJournal ? 1 : 0) < (b.number ?? 0, b.isJournal ? 1 : 0)
  }

  static func digits(_ number: UInt64) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, 8 - text.utf8.count)) + text
  }

  static func segment(_ number: UInt64, in directory: String) -> String {
    directory + "/" + digits(number) + ".segment"
  }

  static func journal(_ number: UInt64, in directory: String) -> String {
    directory + "/" + digits(number) + ".journal"
  }

  static func watermark(in directory: String) -> String { directory + "/" + watermarkName }
}
