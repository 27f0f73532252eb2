import StemmaEvents
import StemmaSchema

/// One requested change from a line of an import or from a command. Its syntax is checked; the
/// schema and the state of the record are not.
package struct Mutation: Sendable {
  package enum Operation: String, Sendable, CaseIterable {
    case create, update, upsert, delete, link, unlink
  }

  package var operation: Operation
  package var model: String
  /// `{part: value}`, the bare value of a one-part key, or nil.
  package var key: JSON?
  package var fields: [(name: String, value: JSON)]
  /// Milliseconds since 1970.
  package var milliseconds: UInt64?
  /// For an upsert: the previous key of the record. If it differs, that record is deleted.
  package var previousKey: JSON?
  /// Whether deleting an absent record has no effect instead of failing.
  package var toleratesAbsence = false

  package init(
    _ operation: Operation, model: String, key: JSON? = nil, fields: [(name: String, value: JSON)] = [],
    milliseconds: UInt64? = nil
  ) {
    self.operation = operation
    self.model = model
    self.key = key
    self.fields = fields
    self.milliseconds = milliseconds
  }

  /// Reads one line. A line without `op` is an upsert, so that the output of `export` can be
  /// imported. A line without a model has `defaultModel`.
  package init(line: UnsafeRawBufferPointer, defaultModel: String? = nil) throws(MutationError) {
    try self.init(members: try JSON.members(of: line), defaultModel: defaultModel)
  }

  /// The permitted members of a line.
  package static let memberNames = ["op", "model", "key", "fields", "ts", "revision"]

  /// Reads the members of a line's object.
  package init(members: [(name: String, value: JSON)], defaultModel: String?) throws(MutationError) {
    operation = .upsert
    fields = []
    var model: String?
    for (name, value) in members {
      switch (name, value) {
      case ("op", .string(let text)):
        guard let operation = Operation(rawValue: text) else { throw .unknownOperation(text) }
        self.operation = operation
      case ("model", .string(let text)): model = text
      case ("key", _): key = value
      case ("fields", .object(let members)): fields = members
      case ("ts", _): milliseconds = try Self.milliseconds(value)
      case ("revision", .string), ("conflicts", .array): break  // members of rows from `get` and `list`
      case ("op", _), ("model", _): throw .wrongShape("`\(name)` is not a string")
      case ("fields", _): throw .wrongShape("`fields` is not an object")
      default: throw .wrongShape("unknown member `\(name)`; known are op, model, key, fields and ts")
      }
    }
    guard let model = model ?? defaultModel else { throw .wrongShape("`model` is missing") }
    self.model = model
  }

  /// The form in an import file, without `op` for an upsert.
  package var json: JSON {
    var members: [(name: String, value: JSON)] = []
    if operation != .upsert { members.append(("op", .string(operation.rawValue))) }
    members.append(("model", .string(model)))
    if let key { members.append(("key", key)) }
    members.append(("fields", .object(fields)))
    return .object(members)
  }

  /// The smallest number in milliseconds: the year 5138 as seconds, 1973 as milliseconds.
  private static let leastMilliseconds = 100_000_000_000.0

  /// Reads a time: seconds or milliseconds since 1970, distinguished by size, or an ISO 8601 text
  /// (UTC unless it has an offset).
  package static func milliseconds(_ value: JSON) throws(MutationError) -> UInt64? {
    let number: Double?
    switch value {
    case .null: return nil
    case .int(let whole): number = Double(whole)
    case .number(let text): number = Double(text)
    case .string(let text):
      if text.utf8.count >= 10, let time = DateText(timeOrDate: text)?.millisecondsSince1970, time >= 0 {
        return UInt64(time)
      }
      number = nil
    default: number = nil
    }
    if let number, number >= 0, number < leastMilliseconds { return UInt64((number * 1000).rounded()) }
    if let number, number >= 0, number < leastMilliseconds * 1000 { return UInt64(number) }
    throw .wrongShape(
      "`ts` is not a time. Give seconds or milliseconds since 1970, or a text like 2026-11-21T05:14:01Z.")
  }
}

extension JSON {
  /// The members of a text that is a JSON object.
  package static func members(
    of text: UnsafeRawBufferPointer
  ) throws(MutationError) -> [(name: String, value: JSON)] {
    let json: JSON
    do { json = try parse(text) } catch { throw .notJSON(error) }
    guard case .object(let members) = json else { throw .wrongShape("the line is not a JSON object") }
    return members
  }
}

extension DateText {
  /// Reads a date-time. A missing zone means UTC, a space is read as the `T`. A date, month or
  /// year from 1900 to 2099 means its start.
  package init?(timeOrDate text: String) {
    var text = text
    let bytes = Array(text.utf8)
    if bytes.count > 10, bytes[10] == UInt8(ascii: " ") {
      text = String(text.prefix(10)) + "T" + text.dropFirst(11)
    }
    if Self.isYear(text) { text += "-01" }
    if text.utf8.count == 7 { text += "-01" }
    let read =
      DateText(dateTime: text) ?? DateText(dateTime: text + "Z") ?? DateText(dateTime: text + "T00:00:00Z")
    guard let read else { return nil }
    self = read
  }

  /// Whether the text is a year: four digits from 1900 to 2099.
  private static func isYear(_ text: String) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    return text.utf8.count == 4 && text.utf8.allSatisfy(digits.contains)
      && (text.hasPrefix("19") || text.hasPrefix("20"))
  }
}
