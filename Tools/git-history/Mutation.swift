import StemmaEvents

typealias Members = [(name: String, value: JSON)]

/// One line of output.
struct Mutation {
  enum Operation: String { case create, update, delete, link, unlink }

  var operation: Operation
  var model: String
  var key: Members
  var fields: Members = []
  /// Seconds since 1970.
  var time: Int64

  /// `{"op":…,"model":…,"key":{…},"fields":{…},"ts":…}` and a line feed. A time before 1970 is left
  /// out, because timestamps cannot represent it.
  func append(to bytes: inout [UInt8]) {
    var members: Members = [
      ("op", .string(operation.rawValue)), ("model", .string(model)), ("key", .object(key)),
    ]
    if !fields.isEmpty { members.append(("fields", .object(fields))) }
    if time >= 0 { members.append(("ts", .int(time))) }
    JSON.object(members).append(to: &bytes)
    bytes.append(10)
  }
}
