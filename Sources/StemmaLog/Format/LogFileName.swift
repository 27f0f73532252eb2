/// The type of a file in `log/`, by its name: eight digits and the kind.
enum LogFileName: Hashable, Sendable {
  case segment(UInt64)
  case journal(UInt64)
  case watermark
  /// `manifest` or `manifest.previous`.
  case manifest
  /// A torn tail: `00000001.cut0`.
  case cut
  /// An unfinished file: `….partial`.
  case partial
  case other

  static let watermarkName = "watermark"
  static let manifestName = "manifest"
  static let previousManifestName = "manifest.previous"
  static let partialSuffix = ".partial"
  static let cutSuffix = ".cut"

  init(_ name: String) {
    func number(_ suffix: String, of name: some StringProtocol) -> UInt64? {
      guard name.hasSuffix(suffix), name.utf8.count == 8 + suffix.utf8.count,
        name.utf8.prefix(8).allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
        let number = UInt64(name.prefix(8)), number > 0
      else { return nil }
      return number
    }
    if name == Self.watermarkName {
      self = .watermark
    } else if name == Self.manifestName || name == Self.previousManifestName {
      self = .manifest
    } else if name.hasSuffix(Self.partialSuffix) {
      // The log adds this suffix to its own names only.
      self = Self(String(name.dropLast(Self.partialSuffix.count))) == .other ? .other : .partial
    } else if let number = number(".segment", of: name) {
      self = .segment(number)
    } else if let number = number(".journal", of: name) {
      self = .journal(number)
    } else {
      let stem = name.reversed().drop { $0.isASCII && $0.isNumber }.reversed()
      let isCut = stem.count < name.count && number(Self.cutSuffix, of: String(stem)) != nil
      self = isCut ? .cut : .other
    }
  }

  /// The number of a segment or a journal.
  var number: UInt64? {
    switch self {
    case .segment(let number), .journal(let number): number
    case .watermark, .manifest, .cut, .partial, .other: nil
    }
  }

  var isJournal: Bool { if case .journal = self { true } else { false } }

  /// The name of a segment or a journal.
  var text: String { Self.digits(number ?? 0) + (isJournal ? ".journal" : ".segment") }

  func path(in directory: String) -> String { directory + "/" + text }

  static func digits(_ number: UInt64) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, 8 - text.utf8.count)) + text
  }

  static func watermark(in directory: String) -> String { directory + "/" + watermarkName }
}
