import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode

/// Conflicts as text.
struct ConflictText {
  private let description: EventDescription
  private let node: String
  /// Whether long values are written completely.
  private let isFull: Bool

  init(_ node: Node, isFull: Bool = false) {
    description = node.description
    self.node = node.metadata.name
    self.isFull = isFull
  }

  /// The maximum number of characters of a value in a list and in columns.
  private static let lineLimit = 120
  private static let columnLimit = 1_000
  /// The maximum length of the common part that is written before the first difference.
  private static let commonLimit = 100

  /// The conflicts of `MODEL KEY [FIELD]`; all conflicts without words.
  static func filter(_ node: Node, _ words: ArraySlice<String>) throws -> ConflictFilter {
    var filter = ConflictFilter()
    guard let name = words.first else { return filter }
    let reader = try RecordWords(node, model: name)
    let (key, rest) = try reader.key(Array(words.dropFirst()))
    guard rest.count <= 1 else { throw Failure("`\(rest.last ?? "")` is more than one field", .usage) }
    let record = try node.key(key, of: reader.model)
    for name in rest where !reader.isKnown(name) && !ExistenceName.matches(name, in: reader.model) {
      // A field that only another node's schema has may be in conflict here.
      guard try node.conflicts(of: record, in: reader.model).contains(where: { $0.isMeant(by: name, nil) })
      else { throw FieldChoice.unknown(name, [reader.model], reader.model, .badData) }
    }
    filter.model = reader.model
    filter.key = record
    filter.fields = Set(rest)
    return filter
  }

  static func title(_ conflict: ConflictDescription) -> String {
    let name = conflict.field ?? (conflict.isOfWholeRecord ? "(whole record)" : nil)
    let field = name.map { " " + Output.styled($0, .bold) } ?? ""
    return "\(Output.styled(conflict.kind.rawValue, .red)) \(conflict.keyText)\(field)"
  }

  /// The meaning of this conflict.
  static func meaning(_ conflict: ConflictDescription) -> String {
    switch conflict.kind {
    case .value: "written differently by writers that had not seen each other"
    case .delete:
      // The writer of the change had seen no deletion, or only one that was already in conflict.
      conflict.candidates.contains { $0.value == .bool(true) && $0.saw.isEmpty }
        ? "deleted by one, changed by another that had not seen the deletion"
        : "deleted, and changed by one that had seen the deletion, which an ordinary update does not bury"
    case .cardinality: "several records refer to this one, where one may"
    case .dangling: "refers to a record that is not there"
    }
  }

  /// The candidates' values. `limit`: the maximum number of characters of each. A longer value is
  /// cut, and its visible part begins shortly before the first difference.
  static func values(_ conflict: ConflictDescription, limit: Int? = nil) -> [String] {
    let values = conflict.candidates.map(conflict.text(of:))
    guard let limit, values.contains(where: { $0.utf8.count > limit }) else {
      return values.map { printable($0) }
    }
    let common = values.dropFirst().reduce(values[0].utf8.count) { min($0, commonBytes($1, values[0])) }
    let skipped = common > 2 * commonLimit ? common - commonLimit : 0
    return values.map { part($0, from: skipped, limit) }
  }

  /// The length of the common prefix in bytes.
  private static func commonBytes(_ a: String, _ b: String) -> Int {
    zip(a.utf8, b.utf8).prefix { $0 == $1 }.count
  }

  /// At most `limit` characters of a text, from byte `skipped` on. A cut text ends with its total
  /// size.
  private static func part(_ text: String, from skipped: Int, _ limit: Int) -> String {
    let start = text.utf8.index(text.startIndex, offsetBy: skipped, limitedBy: text.endIndex) ?? text.endIndex
    let end = text.index(start, offsetBy: limit, limitedBy: text.endIndex) ?? text.endIndex
    let shown = (start > text.startIndex ? "…" : "") + printable(String(text[start..<end]))
    if end == text.endIndex { return shown }
    return shown + "… (\(counted(UInt64(text.utf8.count), "byte")); conflicts --full shows all)"
  }

  func write(_ conflict: ConflictDescription) {
    Output.line("  " + Self.title(conflict))
    var table = TextTable(numeric: [0])
    let values = Self.values(conflict, limit: isFull ? nil : Self.lineLimit)
    for (candidate, value) in zip(conflict.candidates, values) {
      table.append([
        "\(candidate.number)", value, printable(candidate.event), candidate.time,
        printable(candidate.author ?? ""),
      ])
    }
    table.write(indent: "    ")
  }

  // MARK: Side by side

  /// The candidates in columns, or one below the other in a narrow terminal.
  func writeSideBySide(_ conflict: ConflictDescription) {
    Output.line("\(Output.styled(conflict.model, .bold)) \(Self.title(conflict)): \(Self.meaning(conflict))")
    Output.line()
    let values = Self.values(conflict, limit: isFull ? nil : Self.columnLimit)
    let cells = zip(conflict.candidates, values).map { Self.cell($0, $1, conflict) }
    let gap = 3
    let width = (Terminal.columns - 2) / max(1, cells.count) - gap
    guard width >= 24 else {
      for cell in cells {
        for line in cell { Output.line("  " + line) }
        Output.line()
      }
      return
    }
    let wrapped = cells.map { $0.flatMap { Self.wrap($0, width) } }
    for row in 0..<(wrapped.map(\.count).max() ?? 0) {
      var line = " "
      for cell in wrapped {
        let text = row < cell.count ? cell[row] : ""
        let padded = text + String(repeating: " ", count: max(0, width - displayWidth(text)))
        line +=
          " " + (row == 0 ? Output.styled(padded, .bold) : padded) + String(repeating: " ", count: gap - 1)
      }
      while line.last == " " { line.removeLast() }
      Output.line(line)
    }
    Output.line()
  }

  private static func cell(
    _ candidate: ConflictDescription.Candidate, _ value: String, _ conflict: ConflictDescription
  ) -> [String] {
    let isShown = candidate.number == 1 && conflict.kind != .dangling
    return [
      "\(candidate.number)\(isShown ? "  shown" : "")", value,
      printable("\(candidate.event), version \(candidate.version)"), candidate.time,
    ] + (candidate.saw.isEmpty ? [] : [printable("had seen \(candidate.saw.joined(separator: ", "))")])
      + (candidate.author.map { [printable("by \($0)")] } ?? [])
  }

  private static func wrap(_ text: String, _ width: Int) -> [String] {
    var lines: [String] = []
    var rest = Substring(text)
    // Examines no more of the rest than one line.
    while case let line = rest.prefix(columns: width), line.endIndex < rest.endIndex {
      // Breaks at a space near the end of the line, otherwise within a word.
      let cut = line.lastIndex(of: " ").flatMap {
        line.distance(from: line.startIndex, to: $0) > width / 2 ? $0 : nil
      }
      lines.append(String(line[..<(cut ?? line.endIndex)]))
      rest = rest[(cut.map { line.index(after: $0) } ?? line.endIndex)...]
    }
    return lines + [String(rest)]
  }

  /// The command that resolves a conflict, without the decision. `others`: all open conflicts of
  /// the record.
  static func command(_ conflict: ConflictDescription, beside others: [ConflictDescription]) -> String {
    var words = ["stemma resolve", conflict.model, conflict.keyText]
    if let field = conflict.field { words.append(field) }
    // `--keep` and `--delete` imply the kind.
    let isAmbiguous =
      conflict.kind != .delete
      && others.contains {
        $0.kind != conflict.kind && (conflict.field == nil || $0.field == conflict.field)
      }
    return words.joined(separator: " ") + (isAmbiguous ? " --kind \(conflict.kind.rawValue)" : "")
  }

  /// The commands that resolve a conflict. `others`: all open conflicts of the record.
  func writeAdvice(_ conflict: ConflictDescription, beside others: [ConflictDescription]) {
    let command = Self.command(conflict, beside: others)
    let ways: [(String, String)] =
      switch conflict.kind {
      case .value:
        conflict.candidates.map { ("--take \($0.number)", "") }
          // A conflict of a whole record accepts one field at a time.
          + [(conflict.isOfWholeRecord ? "FIELD --set VALUE" : "--set VALUE", "another value")]
      case .delete: [("--keep", "the record stays"), ("--delete", "the record goes")]
      case .cardinality: conflict.candidates.map { ("--take \($0.number)", "the others are unlinked") }
      case .dangling:
        [("--set KEY", "another record"), ("--unlink", "none"), ("--delete", "this record goes")]
      }
    var table = TextTable()
    for (way, what) in ways {
      table.append(what.isEmpty ? ["\(command) \(way)"] : ["\(command) \(way)", "# \(what)"])
    }
    table.write(indent: "  ")
    Output.line()
  }
}

/// The terminal of standard output.
enum Terminal {
  /// Its width, or 80 without a terminal. `COLUMNS` has precedence, as in other tools.
  static var columns: Int {
    if let text = ProcessInfo.processInfo.environment["COLUMNS"], let columns = Int(text), columns > 0 {
      return columns
    }
    var size = winsize()
    guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }
}
