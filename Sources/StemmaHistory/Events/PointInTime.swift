import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

/// A point in a node's history: now, a time, or a position.
///
/// A time includes all events with a timestamp up to it, which two nodes can compare. A position
/// includes what this node held when the event at that position was its newest.
package enum PointInTime: Hashable, Sendable {
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

  /// The position at which reading can stop.
  var end: Position? {
    guard case .position(let last) = self else { return nil }
    return last.next
  }

  /// The positions and times of the events that this point in time includes and `other` does not.
  /// Nil if there can be none. `end` is the end of the log.
  func span(
    without other: PointInTime, end: Position
  ) -> (positions: Range<Position>, times: ClosedRange<Timestamp>)? {
    var (first, last) = (Position.first, end)
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

  /// Reads a time; nil for anything else. RFC 3339 is accepted (`2026-11-21T05:14:01Z`), also
  /// without a zone or with a space for the `T` (in UTC). A date, month or year from 1900 to 2099
  /// means its first point in time in UTC (`2026-11-21`, `2026-11`, `2026`). An age counts back
  /// from `wall` (`45s`, `30m`, `2h`, `3d`, `2w`). Words are `now`, `today` (midnight in UTC) and
  /// `yesterday` (24 hours ago). More than four digits and a `d` are the prefix of a digest.
  ///
  /// The unit of `wall` is milliseconds since 1970. A time includes all events of its millisecond.
  /// With `toTheEnd`, a date, month, year or `today` means its last point in time, as for "until".
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
      if let time = DateText(timeOrDate: text) {
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

  /// The start of the next day, month or year; nil for other texts. `start`: that of this one.
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

  /// Whether an unmatched text was probably meant as a time: it begins with a year and a month.
  static func resemblesTime(_ text: String) -> Bool {
    let bytes = Array(text.utf8.prefix(5))
    return bytes.count == 5 && bytes[4] == UInt8(ascii: "-")
      && bytes.prefix(4).allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// The milliseconds of an age such as `2h`.
  private static func milliseconds(_ text: String) -> UInt64? {
    let units: [Character: UInt64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    guard let last = text.last, let unit = units[last], let count = UInt64(text.dropLast()), count < 1 << 32
    else { return nil }
    if last == "d", text.utf8.count > 5 { return nil }
    return count * unit * 1000
  }

  /// Whether a number of days is also a possible prefix of a digest.
  static func resemblesDigest(_ text: String) -> Bool {
    (4...5).contains(text.utf8.count) && text.hasSuffix("d")
      && text.utf8.dropLast().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}

extension Position {
  /// Reads `@NUMBER`; nil for anything else.
  package init?(_ text: String) {
    guard text.hasPrefix("@"), text.dropFirst().utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }),
      let number = UInt64(text.dropFirst())
    else { return nil }
    self.init(number)
  }
}
