import Foundation

/// The merge by its definition, over the lines of `log --ndjson`: for each register, the writes that no other
/// write of the register has seen. Shares no code with the tool.
struct NaiveFold {
  struct Conflict: Hashable {
    var key: String
    var field: String
    var kind: String
    /// `event value`, the shown one first.
    var candidates: [String]

    init(key: String, field: String, kind: String, candidates: [String]) {
      self.key = key
      self.field = field
      self.kind = kind
      self.candidates = candidates
    }

    init(_ object: [String: Any]) {
      let key = object["key"] as? [String: String] ?? [:]
      let listed = object["candidates"] as? [[String: Any]] ?? []
      self.init(
        key: "\(key["episode"] ?? "") \(key["path"] ?? "")", field: object["field"] as? String ?? "-",
        kind: object["kind"] as? String ?? "",
        candidates: listed.map { "\($0["event"] ?? "") \($0["value"] ?? "")" })
    }
  }

  private struct Write {
    var event: String
    var node: String
    var sequence: Int
    var version: Int
    var timestamp: Int
    var origin: String
    var seen: [String: Int]
    var value: String

    func isBelow(_ other: Write) -> Bool {
      (version, timestamp, origin, sequence) < (other.version, other.timestamp, other.origin, other.sequence)
    }
  }

  var conflicts: [Conflict] = []
  /// By `key field`: the first part of (version, timestamp, origin) in which the winner and the best write with
  /// another value differ.
  var rules: [String: String] = [:]

  init(_ log: [[String: Any]]) throws {
    var records: [String: [[String: Any]]] = [:]
    for event in log {
      let key = event["key"] as? [String: String] ?? [:]
      records["\(key["episode"] ?? "") \(key["path"] ?? "")", default: []].append(event)
    }
    for (key, events) in records {
      var registers: [String: [Write]] = ["": []]
      let names = Set(events.flatMap { ($0["fields"] as? [String: Any] ?? [:]).keys })
      for event in events {
        let name = event["event"] as? String ?? ""
        let fields = event["fields"] as? [String: Any] ?? [:]
        let operation = event["op"] as? String ?? ""
        func write(_ value: String) -> Write {
          Write(
            event: name, node: String(name.prefix { $0 != ":" }), sequence: event["sequence"] as? Int ?? 0,
            version: event["version"] as? Int ?? 0,
            timestamp: Int(event["timestamp"] as? String ?? "") ?? event["timestamp"] as? Int ?? 0,
            origin: event["origin"] as? String ?? "", seen: event["context"] as? [String: Int] ?? [:],
            value: value)
        }
        registers["", default: []].append(write(operation == "delete" ? "0" : "1"))
        for field in names {
          if let value = fields[field] {
            registers[field, default: []].append(write("\(value)"))
          } else if operation == "create" {
            registers[field, default: []].append(write("<null>"))
          }
        }
      }
      func siblings(_ field: String) -> [Write] {
        let writes = registers[field] ?? []
        return writes.filter { write in
          !writes.contains { ($0.seen[write.node] ?? 0) >= write.sequence }
        }.sorted { $1.isBelow($0) }
      }
      let existence = siblings("")
      let isContested = Set(existence.map(\.value)).count > 1
      if isContested {
        conflicts.append(
          Conflict(
            key: key, field: "-", kind: "delete", candidates: existence.map { "\($0.event) \($0.value)" }))
      }
      guard existence.first?.value == "1" || isContested else { continue }
      for field in names {
        let found = siblings(field)
        guard Set(found.map(\.value)).count > 1 else { continue }
        conflicts.append(
          Conflict(key: key, field: field, kind: "value", candidates: found.map { "\($0.event) \($0.value)" })
        )
        rules["\(key) \(field)"] = Self.rule(found)
      }
    }
  }

  private static func rule(_ found: [Write]) -> String {
    guard let winner = found.first, let other = found.first(where: { $0.value != winner.value }) else {
      return "agree"
    }
    if winner.version != other.version { return "version" }
    if winner.timestamp != other.timestamp { return "timestamp" }
    return winner.origin != other.origin ? "origin" : "sequence"
  }
}
