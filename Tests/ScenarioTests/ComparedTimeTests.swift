import Foundation
import Stemma
import StemmaSimulation
import Testing

@Table private struct PointInTime {
  let id: Int
  @Column(as: String.AWSDateTime.self) var at: String
  @Column(as: String.AWSTime.self) var time: String
  @Column(as: Date.UnixTimeRepresentation.self) var second: Date
}

/// The tool and the library select the same records.
@Suite("comparing times")
struct ComparedTimeTests {
  private var random = SplitMix64(seed: 41)

  private mutating func number(_ digits: Int, below bound: Int) -> String {
    let text = String(random.below(bound))
    return String(repeating: "0", count: digits - text.count) + text
  }

  private mutating func offset() -> String {
    random.element(["Z", "+02:00", "-02:00", "+01:59:59"])
  }

  private mutating func time() -> String {
    let time = "\(number(2, below: 3)):\(number(2, below: 2))"
    return time + random.element(["", ":00", ":00.5", ":00.25", ":01"])
  }

  private mutating func dateTime() -> String { "2024-02-\(28 + random.below(2))T\(time())\(offset())" }

  private mutating func timeOfDay() -> String { time() + (random.chance(30) ? "" : offset()) }

  private mutating func second() -> Int { random.below(5) - 2 }

  @Test(
    "dates with times, times of day and seconds compare as points in time, by the tool and by the library")
  mutating func sameAnswers() async throws {
    let work = try Workplace()
    let store = try await Store(at: URL(fileURLWithPath: work.file("n")), models: PointInTime.self)
    for id in 0..<40 {
      let pointInTime = PointInTime.Draft(
        id: id, at: dateTime(), time: timeOfDay(), second: Date(timeIntervalSince1970: Double(second())))
      try await store.insert(pointInTime)
    }
    for signs in ["=", "!=", "<", "<=", ">", ">="] {
      for field in ["at", "time", "second"] {
        let text = field == "at" ? dateTime() : field == "time" ? timeOfDay() : String(second())
        let told = try work.stemma(
          "-C", "n", "list", "PointInTime", "--where", "\(field)\(signs)\(text)", "--order=-\(field)",
          "--json"
        ).array().compactMap { $0.object("key")["id"] as? Int }
        let found = try await ids(store, field, signs, text)
        #expect(told == found, "\(field)\(signs)\(text)")
      }
    }
  }

  private func ids(_ store: Store, _ field: String, _ sign: String, _ text: String) async throws -> [Int] {
    switch field {
    case "at":
      let value = String.AWSDateTime(representing: text)
      return try await PointInTime.where { Self.compared($0.at, sign, value) }
        .order { $0.at.desc() }.order { $0.id }.fetchAll(store).map(\.id)
    case "time":
      let value = String.AWSTime(representing: text)
      return try await PointInTime.where { Self.compared($0.time, sign, value) }
        .order { $0.time.desc() }.order { $0.id }.fetchAll(store).map(\.id)
    default:
      let seconds = try #require(Double(text))
      let value = Date.UnixTimeRepresentation(representing: Date(timeIntervalSince1970: seconds))
      return try await PointInTime.where { Self.compared($0.second, sign, value) }
        .order { $0.second.desc() }.order { $0.id }.fetchAll(store).map(\.id)
    }
  }

  private static func compared<Value: ColumnValue>(
    _ column: some ExpressionProtocol<Value>, _ sign: String, _ value: Value
  ) -> ColumnExpression<Bool> {
    switch sign {
    case "=": column == value
    case "!=": column != value
    case "<": column < value
    case "<=": column <= value
    case ">": column > value
    default: column >= value
    }
  }

  /// Half past midnight two hours east of UTC is before midnight; half a second past ten is after
  /// ten.
  @Test("times are ordered as instants")
  func order() throws {
    let work = try Workplace()
    try work.write(
      "events.graphql", "type Event @model { id: ID! @primaryKey at: AWSDateTime time: AWSTime }")
    try work.stemma("init", "n", "--schema", "events.graphql")
    let times = ["00:30+02:00", "09:00:00.5+02:00", "10:00:00.5", "10:00", "23:59Z"]
    for (id, time) in times.enumerated() {
      let at = "2024-01-01T\(time)" + (time.hasSuffix("Z") || time.contains("+") ? "" : "Z")
      try work.stemma("-C", "n", "create", "Event", "id=\(id)", "time=\(time)", "at=\(at)")
    }
    try work.stemma("-C", "n", "create", "Event", "id=none")
    func ids(_ words: String...) throws -> [String?] {
      try Tool.run(Tool.path, ["-C", "n", "list", "Event", "--json"] + words, in: work.path).array()
        .map { $0.object("key").text("id") }
    }
    for field in ["at", "time"] {
      let prefix = field == "at" ? "2024-01-01T" : ""
      #expect(try ids("--order", field) == ["none", "0", "1", "3", "2", "4"])
      #expect(try ids("--where", "\(field)<\(prefix)10:00:00.2Z") == ["0", "1", "3"])
      #expect(try ids("--where", "\(field)=\(prefix)08:00:00.0-02:00") == ["3"])
      #expect(try ids("--where", "\(field)!=\(prefix)08:00-02:00") == ["0", "1", "2", "4", "none"])
      #expect(try ids("--where", "\(field)^=\(prefix)10") == ["2", "3"])
    }
  }
}
