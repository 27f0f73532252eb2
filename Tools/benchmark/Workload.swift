import Foundation
import Measuring

/// The generated data: tasks of a hundred tenants, created and changed over a year.
///
/// Two changes in five create a task. The others change one or two fields of a mostly recent task
/// (its age is the fourth power of a uniform number). Keys are texts: the tenant, and a UUID of
/// version 7. One partition is one tenant, so it has about 1 % of the events.
struct Workload {
  static let schema = """
    enum Status { OPEN STARTED BLOCKED DONE }

    type Task @model {
      tenant: String! @primaryKey(sortKeyFields: ["id"])
      id: ID!
      title: String!
      status: Status!
      assignee: String @index(name: "byAssignee", sortKeyFields: ["due"])
      priority: Int!
      isUrgent: Boolean
      due: AWSDate
      effort: Float
      note: String
    }
    """

  static let table = "tasks"
  static let model = "Task"
  static let tenants = 100
  /// 2024-01-01T00:00:00Z.
  private static let start: Int64 = 1_704_067_200

  enum Value {
    case int(Int64)
    case double(Double)
    case bool(Bool)
    case text(String)
  }

  struct Change {
    var isCreate: Bool
    var tenant: String
    var id: String
    var fields: [(String, Value)]
    /// Seconds since 1970.
    var time: Int64
  }

  private let total: Int
  private var dice: Dice
  private(set) var made = 0
  private(set) var records: Int
  private let createsRecords: Bool

  /// `total` changes, two fifths of them creates.
  init(total: Int, seed: UInt64 = 1) {
    self.total = total
    dice = Dice(seed)
    records = 0
    createsRecords = true
  }

  /// Only changes of the records of the first `records` creates of another workload.
  init(changing records: Int, total: Int, seed: UInt64) {
    self.total = total
    dice = Dice(seed)
    self.records = records
    createsRecords = false
  }

  mutating func next() -> Change? {
    guard made < total else { return nil }
    made += 1
    let time = Self.start + Int64(Double(made) / Double(total) * 31_536_000)
    if createsRecords, records == 0 || dice.below(5) < 2 {
      records += 1
      let (tenant, id) = Self.key(records - 1)
      return Change(isCreate: true, tenant: tenant, id: id, fields: newFields(), time: time)
    }
    let age = dice.fraction()
    let record = records - 1 - Int(Double(records) * age * age * age * age)
    let (tenant, id) = Self.key(max(0, record))
    return Change(isCreate: false, tenant: tenant, id: id, fields: changedFields(), time: time)
  }

  private static func key(_ record: Int) -> (tenant: String, id: String) {
    var dice = Dice(UInt64(record) &+ 0x5eed)
    let tenant = "tenant-\(100 + dice.below(tenants))"
    let milliseconds = UInt64(start * 1000) + UInt64(record) * 78_000
    let high = milliseconds << 16 | 0x7000 | dice.next() >> 52
    let low = 1 << 63 | dice.next() >> 2
    let digits = hex(high) + hex(low)
    var id = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { id.append("-") }
      id.append(digit)
    }
    return (tenant, id)
  }

  private static func hex(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  private static let words = [
    "invoice", "order", "customer", "review", "paint", "window", "contract", "update", "check",
    "server", "kitchen", "report", "draft", "north", "south", "budget", "release", "ticket",
    "garden", "meeting", "label", "archive", "travel", "phone", "sample", "door", "colour",
    "engine", "bridge", "paper", "winter", "summer",
  ]

  private mutating func text(_ count: Int) -> String {
    (0..<count).map { _ in Self.words[dice.below(Self.words.count)] }.joined(separator: " ")
  }

  private mutating func value(_ field: String) -> Value {
    switch field {
    case "title": .text(text(3 + dice.below(4)))
    case "status": .text(["OPEN", "STARTED", "BLOCKED", "DONE"][dice.below(4)])
    case "assignee": .text("\(Self.words[dice.below(16)]).\(Self.words[dice.below(16)])@example.org")
    case "priority": .int(Int64(dice.below(10)))
    case "isUrgent": .bool(dice.below(8) == 0)
    case "due":
      .text("2024-\(Self.two(1 + dice.below(12)))-\(Self.two(1 + dice.below(28)))")
    case "effort": .double(Double(dice.below(400)) / 4)
    default: .text(text(5 + dice.below(8)))
    }
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }

  private mutating func newFields() -> [(String, Value)] {
    var names = ["title", "status", "assignee", "priority", "isUrgent", "due"]
    if dice.below(2) == 0 { names.append("effort") }
    if dice.below(3) == 0 { names.append("note") }
    return names.map { ($0, value($0)) }
  }

  private mutating func changedFields() -> [(String, Value)] {
    let first = ["status", "assignee", "priority", "due", "effort", "note", "title"][dice.below(7)]
    var fields = [(first, value(first))]
    if first == "status", dice.below(2) == 0 { fields.append(("isUrgent", value("isUrgent"))) }
    return fields
  }
}

extension Workload.Change {
  /// The line of an import. No text of the workload needs an escape.
  func append(to bytes: inout [UInt8]) {
    let operation = isCreate ? "create" : "update"
    var line = """
      {"op":"\(operation)","model":"\(Workload.model)","key":{"tenant":"\(tenant)","id":"\(id)"},"fields":{
      """
    for (index, (name, value)) in fields.enumerated() {
      if index > 0 { line += "," }
      line += "\"\(name)\":"
      switch value {
      case .int(let number): line += String(number)
      case .double(let number): line += number.description
      case .bool(let flag): line += flag ? "true" : "false"
      case .text(let text): line += "\"\(text)\""
      }
    }
    line += "},\"ts\":\(time)}\n"
    bytes.append(contentsOf: line.utf8)
  }

  /// The same change for bare SQLite.
  func append(to changes: inout BareChanges) {
    let key = [("tenant", changes.texts.text(tenant)), ("id", changes.texts.text(id))]
    let fields = self.fields.map { name, value -> (String, BareValue) in
      switch value {
      case .int(let number): (name, .int(number))
      case .double(let number): (name, .double(number))
      case .bool(let flag): (name, .int(flag ? 1 : 0))
      case .text(let text): (name, changes.texts.text(text))
      }
    }
    changes.upsert(Workload.table, key: key, fields: fields)
  }
}

extension Workload {
  /// Writes a file of lines for `import`.
  mutating func write(to path: String) throws {
    guard let file = fopen(path, "w") else { throw BenchError("cannot write \(path)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    while let change = next() {
      change.append(to: &bytes)
      if bytes.count > 1 << 20 {
        fwrite(bytes, 1, bytes.count, file)
        bytes.removeAll(keepingCapacity: true)
      }
    }
    fwrite(bytes, 1, bytes.count, file)
  }
}
