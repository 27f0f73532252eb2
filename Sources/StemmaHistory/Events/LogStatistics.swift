import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSchema

/// Statistics of a log: the records, partitions and days that make it grow, and contested fields.
///
/// Exact. Computed in one pass in key order, in which the events of a record and the records of a
/// partition are adjacent. Memory: the lists, and one entry for each day with an event.
package struct LogStatistics: Sendable {
  package struct Record: Sendable {
    package var model: String
    package var key: JSON
    package var keyText: String
    package var events: UInt64
    /// Raw bytes.
    package var bytes: UInt64
    package var last: String
  }

  package struct PartitionLoad: Sendable {
    package var partition: String
    package var events: UInt64
    package var records: UInt64
    package var bytes: UInt64
    package var first: String
    package var last: String
    /// Events per day from the first to the last event, both days included.
    package var perDay: Double
  }

  package struct ModelLoad: Sendable {
    package var model: String
    package var records: UInt64
    package var bytes: UInt64
    /// In the order of `EventOperation.allCases`.
    package var operations: [UInt64]
    package var events: UInt64 { operations.reduce(0, +) }
  }

  package struct Field: Sendable {
    package var model: String
    /// Nil for the record's existence.
    package var field: String?
    /// Open conflicts.
    package var open: UInt64
    /// Events that resolved one.
    package var resolved: UInt64
  }

  package struct Day: Sendable {
    package var date: String
    package var events: UInt64
    package var bytes: UInt64
  }

  package var events: UInt64 = 0
  package var records: UInt64 = 0
  package var partitionCount: UInt64 = 0
  package var bytes: UInt64 = 0
  /// Records with the most events first.
  package var hottest: [Record] = []
  /// Partitions with the most bytes first.
  package var partitions: [PartitionLoad] = []
  /// Models with the most events first.
  package var models: [ModelLoad] = []
  /// Fields with the most conflicts first.
  package var fields: [Field] = []
  /// In order, without days that have no event.
  package var days: [Day] = []
  /// Unreadable events, which are not counted.
  package var missing: MissingEvents?
}

struct ContestedField: Hashable, Comparable {
  var model: String
  var field: String?

  static func < (a: Self, b: Self) -> Bool {
    a.model == b.model ? (a.field ?? "") < (b.field ?? "") : a.model < b.model
  }
}

/// The state of the pass over the events.
struct LogCount {
  private typealias Times = (first: Timestamp, last: Timestamp)

  private let description: EventDescription
  private var statistics = LogStatistics()
  private var hottest: Leaders<LogStatistics.Record>
  private var largest: Leaders<LogStatistics.PartitionLoad>
  private let top: Int
  private var models: [String: LogStatistics.ModelLoad] = [:]
  private var resolved: [ContestedField: UInt64] = [:]
  private var days: [Int64: (events: UInt64, bytes: UInt64)] = [:]
  /// The last event, and the counts of its record and its partition so far.
  private var current: Event?
  private var record: (events: UInt64, bytes: UInt64, times: Times) = (0, 0, (.zero, .zero))
  private var partition: (events: UInt64, records: UInt64, bytes: UInt64, times: Times) =
    (0, 0, 0, (.zero, .zero))

  private static let day: UInt64 = 86_400_000

  init(_ description: EventDescription, top: Int) {
    self.description = description
    self.top = top
    hottest = Leaders(top)
    largest = Leaders(top)
  }

  mutating func add(_ event: Event) {
    if let before = current {
      let isSamePartition = before.partition == event.partition
      if !isSamePartition || before.key != event.key || !before.model.hasSameBytes(as: event.model) {
        endRecord(before)
        if !isSamePartition { endPartition(before) }
      }
    }
    current = event
    let bytes = UInt64(event.rawSize)
    let time = event.timestamp
    if record.events == 0 { record.times = (time, time) }
    record.events += 1
    record.bytes += bytes
    record.times = (min(record.times.first, time), max(record.times.last, time))
    let model = description.modelName(event)
    var load =
      models[model]
      ?? LogStatistics.ModelLoad(
        model: model, records: 0, bytes: 0, operations: EventOperation.allCases.map { _ in 0 })
    load.bytes += bytes
    load.operations[Int(event.operation.rawValue)] += 1
    models[model] = load
    let day = Int64(time.milliseconds / Self.day)
    days[day, default: (0, 0)].events += 1
    days[day, default: (0, 0)].bytes += bytes
    if event.isDecision { countResolved(event, model) }
  }

  private mutating func countResolved(_ event: Event, _ model: String) {
    let declared = description.model(of: event)
    for assignment in event.assignments {
      let isExistence = assignment.field == Event.existenceField
      let field = isExistence ? nil : description.fieldName(assignment.field, declared)
      resolved[ContestedField(model: model, field: field), default: 0] += 1
    }
  }

  private mutating func endRecord(_ event: Event) {
    models[description.modelName(event)]?.records += 1
    if partition.events == 0 { partition.times = record.times }
    partition.times = (
      min(partition.times.first, record.times.first), max(partition.times.last, record.times.last)
    )
    partition.events += record.events
    partition.bytes += record.bytes
    partition.records += 1
    if hottest.admits(record.events) {
      hottest.insert(
        LogStatistics.Record(
          model: description.modelName(event), key: description.key(event),
          keyText: description.keyText(event), events: record.events, bytes: record.bytes,
          last: description.time(record.times.last)), record.events)
    }
    record = (0, 0, (.zero, .zero))
  }

  private mutating func endPartition(_ event: Event) {
    statistics.events += partition.events
    statistics.records += partition.records
    statistics.bytes += partition.bytes
    statistics.partitionCount += 1
    if largest.admits(partition.bytes) {
      let times = partition.times
      let days = times.last.milliseconds / Self.day - times.first.milliseconds / Self.day + 1
      largest.insert(
        LogStatistics.PartitionLoad(
          partition: event.partition.description, events: partition.events, records: partition.records,
          bytes: partition.bytes, first: description.time(times.first), last: description.time(times.last),
          perDay: Double(partition.events) / Double(days)), partition.bytes)
    }
    partition = (0, 0, 0, (.zero, .zero))
  }

  /// Traps if the totals disagree. Runs in debug builds at the end.
  func checkInvariants() {
    let loads = models.values
    precondition(
      loads.reduce(0) { $0 + $1.operations.reduce(0, +) } == statistics.events, "each event is of a model")
    precondition(loads.reduce(0) { $0 + $1.records } == statistics.records, "each record is of a model")
    precondition(loads.reduce(0) { $0 + $1.bytes } == statistics.bytes, "each byte is of a model")
    precondition(days.values.reduce(0) { $0 + $1.events } == statistics.events, "each event is of a day")
    precondition(days.values.reduce(0) { $0 + $1.bytes } == statistics.bytes, "each byte is of a day")
    hottest.checkInvariants()
    largest.checkInvariants()
  }

  mutating func finish(_ open: [ContestedField: UInt64]) -> LogStatistics {
    if let current {
      endRecord(current)
      endPartition(current)
    }
    assert(holds(checkInvariants))
    statistics.hottest = hottest.values
    statistics.partitions = largest.values
    statistics.models = Array(
      models.values.sorted { ($1.events, $0.model) < ($0.events, $1.model) }.prefix(top))
    let contested = Set(open.keys).union(resolved.keys).sorted().map { field in
      LogStatistics.Field(
        model: field.model, field: field.field, open: open[field] ?? 0, resolved: resolved[field] ?? 0)
    }
    // The sort is stable: equal counts stay in the order of names.
    statistics.fields = Array(
      contested.enumerated().sorted {
        ($1.element.open + $1.element.resolved, $0.offset) < (
          $0.element.open + $0.element.resolved, $1.offset
        )
      }.map(\.element).prefix(top))
    statistics.days = days.sorted { $0.key < $1.key }.map { day, sum in
      let time = Timestamp(milliseconds: UInt64(day) * Self.day)
      return LogStatistics.Day(
        date: String(description.time(time).prefix(10)), events: sum.events, bytes: sum.bytes)
    }
    return statistics
  }
}

/// The values with the highest counts, up to a limit. Among equal counts, earlier ones win.
private struct Leaders<Value> {
  private let limit: Int
  private var entries: [(value: Value, count: UInt64)] = []

  init(_ limit: Int) { self.limit = limit }

  var values: [Value] { entries.map(\.value) }

  /// Traps if there are too many, or if the order is wrong.
  func checkInvariants() {
    precondition(entries.count <= limit, "there are few")
    for (a, b) in zip(entries, entries.dropFirst()) { precondition(a.count >= b.count, "counts fall") }
  }

  func admits(_ count: UInt64) -> Bool {
    entries.count < limit || entries.last.map { $0.count < count } ?? false
  }

  mutating func insert(_ value: Value, _ count: UInt64) {
    let place = entries.firstIndex { $0.count < count } ?? entries.count
    entries.insert((value, count), at: place)
    if entries.count > limit { entries.removeLast() }
  }
}

extension LogStatistics {
  package var json: JSON {
    func number(_ value: UInt64) -> JSON { StemmaEvents.Value.int(Int64(clamping: value)).json }
    return .object([
      ("events", number(events)), ("records", number(records)), ("partitions", number(partitionCount)),
      ("rawBytes", number(bytes)),
      (
        "hottestRecords",
        .array(
          hottest.map { record in
            .object([
              ("model", .string(record.model)), ("key", record.key), ("events", number(record.events)),
              ("rawBytes", number(record.bytes)), ("last", .string(record.last)),
            ])
          })
      ),
      (
        "largestPartitions",
        .array(
          partitions.map { load in
            .object([
              ("partition", .string(load.partition)), ("events", number(load.events)),
              ("records", number(load.records)), ("rawBytes", number(load.bytes)),
              ("first", .string(load.first)), ("last", .string(load.last)),
              ("eventsPerDay", StemmaEvents.Value.double(load.perDay).json),
            ])
          })
      ),
      (
        "models",
        .array(
          models.map { load in
            .object(
              [
                ("model", .string(load.model)), ("records", number(load.records)),
                ("events", number(load.events)), ("rawBytes", number(load.bytes)),
              ] + zip(EventOperation.allCases, load.operations).map { ($0.name, number($1)) })
          })
      ),
      (
        "contestedFields",
        .array(
          fields.map { field in
            .object([
              ("model", .string(field.model)), ("field", field.field.map { .string($0) } ?? .null),
              ("open", number(field.open)), ("resolved", number(field.resolved)),
            ])
          })
      ),
      (
        "days",
        .array(
          days.map { day in
            .object([
              ("date", .string(day.date)), ("events", number(day.events)), ("rawBytes", number(day.bytes)),
            ])
          })
      ),
    ])
  }
}
