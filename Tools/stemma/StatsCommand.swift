import ArgumentParser
import Foundation
import StemmaEvents
import StemmaMerge
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema

struct Stats: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    abstract: "Show what the log is made of, and how it grows.",
    discussion: """
      The hottest records, the largest partitions, the fields that people disagree about, and the growth per day, \
      month or year. Reads the whole log once; bytes are those before compression.
      Examples:
        stemma stats
        stemma stats --top 3 --per day --partition 'tenantId=ac*'
        stemma stats --json | jq '.days | last'
      """)
  @Option(help: ArgumentHelp("How long the lists are.", valueName: "count")) var top = 10
  enum Period: String, ExpressibleByArgument, CaseIterable {
    case day, month, year

    /// The length of the date's prefix.
    fileprivate var length: Int {
      switch self {
      case .day: 10
      case .month: 7
      case .year: 4
      }
    }
  }

  @Option(help: "Growth per day, month or year; without it the first of these that fits on a screen.")
  var per: Period?
  @Option(help: "Only this model.", completion: .modelNames) var model: String?
  @Option(
    parsing: .singleValue, help: ArgumentHelp("Only these partitions; may be repeated.", valueName: "pattern")
  )
  var partition: [String] = []
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if !(1...10_000).contains(top) { throw ValidationError("--top takes a number from 1 to 10000") }
  }

  func run() throws {
    let node = try options.open()
    var filter = LogFilter()
    if let model {
      let declared = try RecordWords(node, model: model).model
      (filter.model, filter.modelNames) = (declared, [declared.storedName])
    }
    if !partition.isEmpty { filter.scope = NarrowedScope(try node.scope(ofPartitions: partition)) }
    let bar = ProgressBar("counting")
    let statistics = try node.statistics(top: top, filter) { bar.update($0, of: $1) }
    bar.finish()
    if format.isJSON {
      Output.line(statistics.json)
    } else {
      write(statistics, node.schema)
    }
    Output.flush()
    if let missing = statistics.missing { throw NodeError.missing(missing) }
  }

  private func write(_ statistics: LogStatistics, _ schema: Schema) {
    Output.line(
      "\(counted(Int(clamping: statistics.events), "event")) of "
        + "\(counted(Int(clamping: statistics.records), "record")) in "
        + "\(counted(Int(statistics.partitionCount), "partition")), \(size(statistics.bytes))")
    section("models", ["model", "records", "events", "bytes"], statistics.models) { load in
      ([printable(load.model), grouped(load.records), grouped(load.events), size(load.bytes)], load.events)
    }
    section("hottest records", ["record", "events", "bytes", "last"], statistics.hottest) { record in
      (
        [
          "\(printable(record.model)) \(record.keyText)", grouped(record.events), size(record.bytes),
          String(record.last.prefix(10)),
        ], record.events
      )
    }
    section(
      "largest partitions", ["partition", "records", "events", "events/day", "bytes"], statistics.partitions
    ) { load in
      (
        [
          printable(load.partition), grouped(load.records), grouped(load.events),
          String(format: "%.1f", load.perDay),
          size(load.bytes),
        ], load.bytes
      )
    }
    section("fields in conflict", ["field", "open", "resolved"], statistics.fields) { field in
      (
        [
          "\(field.model)."
            + (field.field ?? ExistenceName.name(in: schema.model(named: field.model))),
          grouped(field.open), grouped(field.resolved),
        ], field.open + field.resolved
      )
    }
    if statistics.fields.contains(where: { $0.isWrittenWithOthers(schema) }) {
      Output.line("  Fields that are written together are counted together, whichever of them differ.")
    }
    let (unit, periods) = periods(statistics.days)
    section("growth per \(unit)", [unit.rawValue, "events", "bytes"], periods) { period in
      ([period.date, grouped(period.events), size(period.bytes)], period.events)
    }
  }

  /// A table whose rows end in bars. Omitted without rows.
  private func section<Row>(
    _ title: String, _ header: [String], _ rows: [Row], _ row: (Row) -> (cells: [String], weight: UInt64)
  ) {
    if rows.isEmpty { return }
    Output.line("\n" + Output.styled(title, .bold))
    var table = TextTable(header, numeric: Set(1..<header.count))
    let rows = rows.map(row)
    let highest = rows.map(\.weight).max() ?? 0
    for (cells, weight) in rows { table.append(cells + [Bar.text(weight, of: highest)]) }
    table.write(indent: "  ")
  }

  /// Days, months or years: the requested unit, or the first that fits on a screen.
  private func periods(_ days: [LogStatistics.Day]) -> (unit: Period, [LogStatistics.Day]) {
    if let per { return (per, Self.gathered(days, per.length)) }
    for unit in [Period.day, .month] {
      let periods = Self.gathered(days, unit.length)
      if periods.count <= 24 { return (unit, periods) }
    }
    return (.year, Self.gathered(days, Period.year.length))
  }

  /// Merges days with a common date prefix.
  private static func gathered(_ days: [LogStatistics.Day], _ length: Int) -> [LogStatistics.Day] {
    var periods: [LogStatistics.Day] = []
    for day in days {
      let date = String(day.date.prefix(length))
      if let last = periods.last, last.date == date {
        periods[periods.count - 1].events += day.events
        periods[periods.count - 1].bytes += day.bytes
      } else {
        var period = day
        period.date = date
        periods.append(period)
      }
    }
    return periods
  }
}

/// Small bars in steps of an eighth of a character.
enum Bar {
  private static let width = 20
  private static let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

  static func text(_ value: UInt64, of highest: UInt64) -> String {
    guard highest > 0, value > 0 else { return "" }
    let length = max(1, Int((Double(value) / Double(highest) * Double(width * 8)).rounded()))
    return String(repeating: "█", count: length / 8) + eighths[length % 8]
  }
}

extension LogStatistics.Field {
  /// Whether the merge policy groups the field with others: a whole record, or a reference.
  fileprivate func isWrittenWithOthers(_ schema: Schema) -> Bool {
    guard let field, let model = schema.model(named: model), let declared = model.field(named: field) else {
      return false
    }
    let rules = MergeRules(model)
    guard case .field(let index) = rules.place(of: declared.storedName) else { return false }
    return rules.fieldsWritten(with: index).count > 1
  }
}
