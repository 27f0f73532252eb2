import StemmaEvents
import StemmaNode
import StemmaSchema

/// Converts Kafka Connect values of database columns to field values. Other values stay as they
/// are, and the write of the field refuses them.
enum ColumnValue {
  static func value(
    _ value: JSON, _ field: Field, of model: Model, _ schema: Schema
  ) throws(MutationError) -> JSON {
    guard !field.type.isList, case .scalar(let scalar) = field.type.base else { return value }
    switch (scalar, value) {
    case (.boolean, .int(0)): return .bool(false)
    case (.boolean, .int(1)): return .bool(true)
    // io.debezium.time.Date
    case (.awsDate, .int(let days)): return date(days) ?? value
    case (.awsDateTime, .int(let time)): return dateTime(time) ?? value
    case (.awsTimestamp, .int(let time)): return .int(try seconds(time, field))
    // Decimals with decimal.handling.mode=string.
    case (.float, .string(let text)), (.int, .string(let text)):
      do { return try schema.json(text: text, for: field, of: model.name) } catch { throw .value(error) }
    default: return value
    }
  }

  private static func date(_ days: Int64) -> JSON? {
    let (milliseconds, isTooLarge) = days.multipliedReportingOverflow(by: 86_400_000)
    guard !isTooLarge, let text = DateText(millisecondsSince1970: milliseconds).utcText else { return nil }
    return .string(String(text.prefix(10)))
  }

  /// The unit of a time, derived from its size: milliseconds (io.debezium.time.Timestamp),
  /// microseconds (MicroTimestamp) or nanoseconds (NanoTimestamp). Each unit covers times before
  /// the year 5138. In the next smaller unit, the same number is before 1973.
  private static func parts(_ time: Int64) -> (inSecond: Int64, digits: Int) {
    switch time.magnitude {
    case ..<100_000_000_000_000: (1000, 3)
    case ..<100_000_000_000_000_000: (1_000_000, 6)
    default: (1_000_000_000, 9)
    }
  }

  private static func dateTime(_ time: Int64) -> JSON? {
    let (inSecond, digits) = parts(time)
    var (seconds, rest) = time.quotientAndRemainder(dividingBy: inSecond)
    if rest < 0 { (seconds, rest) = (seconds - 1, rest + inSecond) }
    guard let text = DateText(millisecondsSince1970: seconds * 1000).utcText else { return nil }
    guard rest > 0 else { return .string(text) }
    var fraction = String(rest)
    fraction = String(repeating: "0", count: digits - fraction.count) + fraction
    while fraction.hasSuffix("0") { fraction.removeLast() }
    return .string("\(text.dropLast()).\(fraction)Z")
  }

  /// A number below the millisecond range is in seconds already.
  private static func seconds(_ time: Int64, _ field: Field) throws(MutationError) -> Int64 {
    guard time.magnitude >= 100_000_000_000 else { return time }
    let inSecond = parts(time).inSecond
    guard time.isMultiple(of: inSecond) else {
      throw .wrongShape("`\(field.name)` is a whole number of seconds, and \(time) has parts of one")
    }
    return time / inSecond
  }
}
