import Foundation

/// The merge by its definition, over the lines of `log --ndjson`. The siblings of a register are
/// the writes that no other write of the register has seen. It shares no code with the tool.
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
      let listed = object["candidates"] as? [[String: Any]] ?? []
      self.init(
        key: NaiveFold.key(of: object), field: object["field"] as? String ?? "-",
        kind: object["kind"] as? String ?? "",
        candidates: listed.map { candidate in
          let whole = candidate["value"] as? [String: Any]
          return "\(candidate["event"] ?? "") \(whole.map(NaiveFold.text) ?? "\(candidate["value"] ?? "")")"
        })
    }
  }

  /// A whole record.
  private static func text(_ fields: [String: Any]) -> String {
    fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value is NSNull ? "<null>" : "\($0.value)")" }
      .joined(separator: ",")
  }

  fileprivate struct Write {
    var event: String
    var node: String
    var sequence: Int
    var version: Int
    var timestamp: Int
    var origin: String
    var seen: [String: Int]
    var value: String
    /// Whether it is a deletion, and whether it supersedes deletions that it has seen. An ordinary
    /// update does not.
    var isDeletion = false
    var buries = true

    func isBelow(_ other: Write) -> Bool {
      (version, timestamp, origin, sequence) < (other.version, other.timestamp, other.origin, other.sequence)
    }

    func hasSeen(_ other: Write) -> Bool { (seen[other.node] ?? 0) >= other.sequence }
  }

  /// The policy of a model: for fields whether time decides first, for existence the value that
  /// wins (1 or 0).
  struct Policy {
    var isLatest = false
    var winner: String?
    /// Whether a record is written as a whole. Its only value conflict has no field.
    var isWhole = false
  }

  var conflicts: [Conflict] = []
  /// By `key field`: the first part of (version, timestamp, origin) that distinguishes the winner
  /// from the best write of another value.
  var rules: [String: String] = [:]
  /// By `key event`: the concurrent deletions that a change had seen.
  var saw: [String: [String]] = [:]

  /// The values of a key in the order of its parts' names.
  static func key(of object: [String: Any]) -> String {
    let key = object["key"] as? [String: Any] ?? [:]
    return key.sorted { $0.key < $1.key }.map { "\($0.value)" }.joined(separator: " ")
  }

  init(_ log: [[String: Any]], _ policy: Policy = Policy()) throws {
    var records: [String: [[String: Any]]] = [:]
    for event in log {
      records[Self.key(of: event), default: []].append(event)
    }
    for (key, events) in records {
      var registers: [String: [Write]] = ["": []]
      let names = Set(events.flatMap { ($0["fields"] as? [String: Any] ?? [:]).keys }).subtracting(["_exists"]
      )
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
        var existence = write(operation == "delete" ? "0" : "1")
        existence.isDeletion = operation == "delete"
        existence.buries = ["create", "delete"].contains(operation) || fields["_exists"] != nil
        registers["", default: []].append(existence)
        if policy.isWhole {
          let whole = Dictionary(uniqueKeysWithValues: names.map { ($0, fields[$0] ?? NSNull()) })
          if operation != "delete", operation == "create" || names.contains(where: { fields[$0] != nil }) {
            registers["*", default: []].append(write(Self.text(whole)))
          }
          continue
        }
        for field in names {
          if let value = fields[field] {
            registers[field, default: []].append(write(value is NSNull ? "<null>" : "\(value)"))
          } else if operation == "create" {
            registers[field, default: []].append(write("<null>"))
          }
        }
      }
      func siblings(_ field: String) -> [Write] {
        let writes = registers[field] ?? []
        return writes.filter { write in
          !writes.contains { $0.hasSeen(write) && ($0.buries || !write.isDeletion) }
        }.sorted { policy.isOutdone($1, by: $0, isExistence: field.isEmpty) }
      }
      let existence = siblings("")
      let isContested = Set(existence.map(\.value)).count > 1
      if isContested {
        conflicts.append(
          Conflict(
            key: key, field: "-", kind: "delete", candidates: existence.map { "\($0.event) \($0.value)" }))
        rules["\(key) -"] = Self.rule(existence, policy, isExistence: true)
        for write in existence where !write.isDeletion {
          saw["\(key) \(write.event)"] = existence.filter { $0.isDeletion && write.hasSeen($0) }.map(\.event)
        }
      }
      guard existence.first?.value == "1" || isContested else { continue }
      for field in policy.isWhole ? ["*"] : names {
        let found = siblings(field)
        guard Set(found.map(\.value)).count > 1 else { continue }
        conflicts.append(
          Conflict(
            key: key, field: policy.isWhole ? "-" : field, kind: "value",
            candidates: found.map { "\($0.event) \($0.value)" })
        )
        rules["\(key) \(field)"] = Self.rule(found, policy, isExistence: false)
      }
    }
  }

  private static func rule(_ found: [Write], _ policy: Policy, isExistence: Bool) -> String {
    guard let winner = found.first, let other = found.first(where: { $0.value != winner.value }) else {
      return "agree"
    }
    if isExistence, let value = policy.winner { return value == "1" ? "update wins" : "delete wins" }
    if !isExistence, policy.isLatest, winner.timestamp != other.timestamp { return "timestamp" }
    if winner.version != other.version { return "version" }
    if winner.timestamp != other.timestamp { return "timestamp" }
    return winner.origin != other.origin ? "origin" : "sequence"
  }
}

extension NaiveFold.Policy {
  fileprivate func isOutdone(_ a: NaiveFold.Write, by b: NaiveFold.Write, isExistence: Bool) -> Bool {
    if isExistence, let winner, a.value != b.value { return b.value == winner }
    if !isExistence, isLatest, a.timestamp != b.timestamp { return a.timestamp < b.timestamp }
    return a.isBelow(b)
  }
}
