import Foundation

/// One line of the table: a measurement, its baseline, and its goal.
package struct Row: Encodable {
  package enum Goal {
    case atLeast(Double)
    case atMost(Double)
    /// Shown for comparison only.
    case none
  }

  package let name: String
  package let ours: Double
  package let baseline: Double
  /// The unit of both numbers.
  package let unit: String
  package let goal: Goal
  /// Whether a side took so little time that the ratio has no meaning.
  package var isTooShort = false

  /// Ours by the baseline.
  package var ratio: Double { baseline == 0 ? .infinity : ours / baseline }

  package var wanted: Double? {
    switch goal {
    case .atLeast(let limit), .atMost(let limit): limit
    case .none: nil
    }
  }

  package var reached: Bool? {
    if isTooShort { return nil }
    return switch goal {
    case .atLeast(let limit): ratio >= limit
    case .atMost(let limit): ratio <= limit
    case .none: nil
    }
  }

  package var goalText: String {
    switch goal {
    case .atLeast(let limit): "≥ \(Report.number(limit))"
    case .atMost(let limit): "≤ \(Report.number(limit))"
    case .none: "-"
    }
  }

  private enum CodingKeys: String, CodingKey { case name, ours, baseline, unit, ratio, wanted, reached }

  package func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(name, forKey: .name)
    try members.encode(ours, forKey: .ours)
    try members.encode(baseline, forKey: .baseline)
    try members.encode(unit, forKey: .unit)
    // JSON has no infinity.
    try members.encode(ratio.isFinite ? ratio : nil, forKey: .ratio)
    try members.encode(wanted, forKey: .wanted)
    try members.encode(reached, forKey: .reached)
  }
}

package enum Report {
  package static func json(_ rows: [Row]) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(rows), as: UTF8.self)
  }

  /// Three significant figures.
  package static func number(_ number: Double) -> String {
    guard number.isFinite else { return "-" }
    let magnitude = abs(number)
    if magnitude >= 1000 { return String(Int(number.rounded())) }
    let places = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
    return String(format: "%.\(places)f", number)
  }

  private static let widths = [56, 11, 11, 14, 8, 8]

  private static func line(_ cells: [String]) -> String {
    var line = ""
    for (index, cell) in cells.enumerated() {
      let width = index < widths.count ? widths[index] : 0
      let gap = String(repeating: " ", count: max(0, width - cell.count))
      let isText = index == 0 || index == 3 || index >= widths.count
      line += isText ? cell + gap + " " : gap + cell + " "
    }
    return line
  }

  package static func printHead() { print(line(["", "ours", "baseline", "unit", "ratio", "wanted", ""])) }

  package static func print(_ rows: [Row]) {
    for row in rows {
      print(
        line([
          row.name, number(row.ours), number(row.baseline), row.unit, number(row.ratio), row.goalText,
          row.isTooShort ? "too short" : row.reached.map { $0 ? "reached" : "MISSED" } ?? "",
        ]))
    }
  }

  package static func printSummary(_ rows: [Row]) {
    let missed = rows.filter { $0.reached == false }.count
    print("\(rows.filter { $0.reached == true }.count) reached, \(missed) missed")
  }

  private static func print(_ text: String) {
    Swift.print(text)
    // Flushes the table line by line, also into a pipe.
    fflush(nil)
  }
}
