import StemmaEvents
import StemmaSchema
import StemmaTables

/// A point in a node's history: now, a time, or a position.
///
/// As of a time is the fold of all events with a timestamp up to it, which two nodes can compare; as of a
/// position is what this node knew when the event there was its newest.
package enum Moment: Hashable, Sendable {
  case now
  case time(Timestamp)
  case position(Position)

  package func includes(_ stored: StoredEvent) -> Bool {
    includes(stored.event.timestamp, stored.position)
  }

  func includes(_ timestamp: Timestamp, _ position: Position) -> Bool {
    switch self {
    case .now: true
    case .time(let latest): timestamp <= latest
    case .position(let last): position <= last
    }
  }

  package var filter: RebuildFilter {
    switch self {
    case .now: .all
    case .time(let timestamp): .time(timestamp)
    case .position(let position): .position(position)
    }
  }

  /// Behind which nothing has to be read.
  var end: Position? {
    guard case .position(let last) = self else { return nil }
    return last.next
  }

  /// Where the events are that this moment includes and another one does not: between which positions, and of which
  /// times. Nil if there can be none. `end`: that of the log.
  func span(
    without other: Moment, end: Position
  ) -> (positions: Range<Position>, times: ClosedRange<Timestamp>)? {
    var (first, last) = (Position(file: 0, index: 0), end)
    var (earliest, latest) = (Timestamp.zero, Timestamp(rawValue: .max))
    switch other {
    case .now: return nil
    case .time(let time):
      if time == latest { return nil }
      earliest = time.tick
    case .position(let position): first = position.next
    }
    switch self {
    case .now: break
    case .time(let time): latest = time
    case .position(let position): last = min(end, position.next)
    }
    return first < last && earliest <= latest ? (first..<last, earliest...latest) : nil
  }

  /// Reads a time: RFC 3339 (`2026-11-21T05:14:01Z`), the same without a zone or with a space for the `T`
  /// (`2026-11-21 05:14`, UTC as everything that is printed), a date, month or year (`2026-11-21`, `2026-11`, `2026`: its first
  /// moment in UTC; no other four digits are a year than those of 1900 to 2099), how long ago (`45s`, `30m`,
  /// `2h`, `3d`, `2w`), `now`, `today` (midnight in UTC) or `yesterday` (24 hours ago). Nil for anything else. More than
  /// four digits and a `d` are no days but those of an event's digest.
  ///
  /// `wall`: milliseconds since 1970. A time includes all events of its millisecond. `toTheEnd`: a date, month, year or
  /// `today` means its last moment, as people who say "until" do.
  package init?(time text: String, wall: UInt64, toTheEnd: Bool = false) {
    let day: UInt64 = 86_400_000
    let milliseconds: UInt64
    switch text {
    case "now":
      self = .now
      return
    case "today": milliseconds = wall - wall % day + (toTheEnd ? day - 1 : 0)
    case "yesterday": milliseconds = wall - min(wall, day)
    default:
      if let time = Self.dateTime(text) {
        let next = toTheEnd ? Self.following(text, time.millisecondsSince1970) : nil
        milliseconds = UInt64(max(0, next.map { $0 - 1 } ?? time.millisecondsSince1970))
      } else if let ago = Self.milliseconds(text) {
        milliseconds = wall - min(wall, ago)
      } else {
        return nil
      }
    }
    self = .time(Timestamp(milliseconds: milliseconds, counter: .max))
  }

  static func dateTime(_ text: String) -> DateText? {
    var text = text
    let bytes = Array(text.utf8)
    if bytes.count > 10, bytes[10] == UInt8(ascii: " ") {
      text = String(text.prefix(10)) + "T" + text.dropFirst(11)
    }
    if isYear(text) { text += "-01" }
    if text.utf8.count == 7 { text += "-01" }
    return DateText(dateTime: text) ?? DateText(dateTime: text + "Z")
      ?? DateText(dateTime: text + "T00:00:00Z")
  }

  /// Whether a text is a year: four digits from 1900 to 2099.
  static func isYear(_ text: String) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    return text.utf8.count == 4 && text.utf8.allSatisfy(digits.contains)
      && (text.hasPrefix("19") || text.hasPrefix("20"))
  }

  /// When the day, month or year after one begins; nil of a text that is none. `start`: when it begins itself.
  private static func following(_ text: String, _ start: Int64) -> Int64? {
    let numbers = text.split(separator: "-", omittingEmptySubsequences: false).compactMap { Int($0) }
    func first(_ year: Int, _ month: Int) -> Int64? {
      DateText(dateTime: "\(year)-\(month < 10 ? "0" : "")\(month)-01T00:00:00Z")?.millisecondsSince1970
    }
    switch (text.utf8.count, numbers.count) {
    case (4, 1): return first(numbers[0] + 1, 1)
    case (7, 2): return numbers[1] == 12 ? first(numbers[0] + 1, 1) : first(numbers[0], numbers[1] + 1)
    case (10, 3): return start + 86_400_000
    default: return nil
    }
  }

  /// Whether a text that names nothing was meant to be a time: it begins with a year and a month.
  static func resemblesTime(_ text: String) -> Bool {
    let bytes = Array(text.utf8.prefix(5))
    return bytes.count == 5 && bytes[4] == UInt8(ascii: "-")
      && bytes.prefix(4).allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// The milliseconds of `2h` and the like.
  private static func milliseconds(_ text: String) -> UInt64? {
    let units: [Character: UInt64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    guard let last = text.last, let unit = units[last], let count = UInt64(text.dropLast()), count < 1 << 32
    else { return nil }
    if last == "d", text.utf8.count > 5 { return nil }
    return count * unit * 1000
  }

  /// Whether a number of days may as well be the first digits of an event's digest.
  fileprivate static func resemblesDigest(_ text: String) -> Bool {
    (4...5).contains(text.utf8.count) && text.hasSuffix("d")
      && text.utf8.dropLast().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}

extension Position {
  /// Reads `@FILE.INDEX`. Nil for anything else.
  package init?(_ text: String) {
    guard text.hasPrefix("@") else { return nil }
    let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let file = UInt64(parts[0]), let index = UInt64(parts[1]) else { return nil }
    self.init(file: file, index: index)
  }

  /// The lowest position behind it. Behind the highest there is none, and no event is there: it is its own.
  var next: Position {
    if index < .max { return Position(file: file, index: index + 1) }
    return file < .max ? Position(file: file + 1, index: 0) : self
  }
}

extension Node {
  /// Reads a point in history as people write it: a time, `@POSITION`, or an event, which stands for its place in this
  /// node's log. `toTheEnd`: of a day, month or year its last moment, not its first.
  /// `partition`: the one in which the name of an event counts, as a pattern; `takesPartition`: whether it can be named.
  package func moment(
    _ text: String, toTheEnd: Bool = false, in partition: String? = nil, takesPartition: Bool = false
  ) throws(NodeError) -> Moment {
    if let moment = Moment(time: text, wall: ports.clock.milliseconds(), toTheEnd: toTheEnd) {
      guard Moment.resemblesDigest(text) else { return moment }
      let events = try names(ofEventsWithDigest: text)
      guard events.isEmpty else { throw .inspection(.daysOrEvent(text, events)) }
      return moment
    }
    if let position = Position(text) {
      if position >= log.end { throw .inspection(.beyondTheEnd(text, last: try lastPosition())) }
      return .position(position)
    }
    do throws(NodeError) {
      return .position(
        try event(named: text, partition: partition, takesPartition: takesPartition).stored.position)
    } catch {
      switch error {
      case .inspection(.notAnEvent): throw .inspection(.notAMoment(text))
      case .inspection(.noSuchEvent) where Moment.resemblesTime(text): throw .inspection(.notAMoment(text))
      default: throw error
      }
    }
  }

  /// Where the newest event stands.
  private func lastPosition() throws(NodeError) -> String? {
    var last: Position?
    do throws(NodeError) {
      try forEachEvent(LogFilter(), newestFirst: true) { stored, _ in
        last = stored.position
        return false
      }
    } catch {
      guard case .missing = error else { throw error }
    }
    return last?.description
  }
}
