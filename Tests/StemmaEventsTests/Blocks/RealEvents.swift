import Foundation
import StemmaEvents
import StemmaSchema

/// The mutations of a data set as events of one origin, in commits of a thousand.
struct RealEvents {
  var events: [BlockEvent] = []
  /// The size of the mutations under `gzip -9`.
  var gzipBytes = 0

  /// `directory`: holds `schema.graphql` and `mutations.ndjson.gz`.
  init(_ directory: URL) throws {
    let text = try String(contentsOf: directory.appendingPathComponent("schema.graphql"), encoding: .utf8)
    let schema = try SDL.read(text).schema
    let file = directory.appendingPathComponent("mutations.ndjson.gz").path
    let lines = try output(of: "gzip -dc '\(file)'")
    gzipBytes = try output(of: "gzip -dc '\(file)' | gzip -9").count
    var history = History(schema: schema)
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      events.append(BlockEvent(relativePosition: UInt64(events.count), event: try history.event(Array(line))))
    }
  }

  /// The events in blocks of `rawBytes`, as in a segment: each a range of (partition, model, key).
  func blocks(rawBytes: Int, level: Int32 = 6) -> [[UInt8]] {
    var writer = BlockWriter(level: level)
    var blocks: [[UInt8]] = []
    for range in ranges(rawBytes: rawBytes) {
      for event in range { writer.append(event.event, relativePosition: event.relativePosition) }
      blocks.append(writer.finish())
    }
    return blocks
  }

  /// Each range in position order.
  func ranges(rawBytes: Int) -> [[BlockEvent]] {
    var sizes = BlockWriter()
    var ranges: [[BlockEvent]] = []
    var range: [BlockEvent] = []
    var sequence: UInt64 = 0
    for stored in events.sorted(by: order) {
      // Only the size matters, and it does not depend on the order. The writer requires increasing
      // sequence numbers.
      sequence += 1
      var event = stored.event
      event.id = EventID(event.id.origin, SequenceNumber(sequence))
      sizes.append(event, relativePosition: sequence)
      range.append(stored)
      if sizes.rawBytes >= rawBytes {
        _ = sizes.finish()
        ranges.append(range.sorted { $0.relativePosition < $1.relativePosition })
        range = []
      }
    }
    if !range.isEmpty { ranges.append(range.sorted { $0.relativePosition < $1.relativePosition }) }
    return ranges
  }
}

private struct History {
  let schema: Schema
  private let origin = Origin(0x51_7E_3A_90_11_C2_D4_07)
  private var sequences: [Partition: UInt64] = [:]
  private var contexts: [BlockReader.Record: Context] = [:]
  private var versions: [BlockReader.Record: UInt64] = [:]
  private var count: UInt64 = 0

  init(schema: Schema) { self.schema = schema }

  mutating func event(_ line: [UInt8]) throws -> Event {
    let mutation = try JSON.parse(line)
    guard case .string(let name)? = mutation["model"], let model = schema.model(named: name),
      case .string(let op)? = mutation["op"], let keyJSON = mutation["key"],
      case .int(let time)? = mutation["ts"]
    else { throw EventsError.malformed("mutation", String(decoding: line, as: UTF8.self)) }
    let key = try schema.key(keyJSON, of: model)
    var operation = try operation(op)
    var relationship: String?
    var assignments: [String: Value] = [:]
    if case .object(let members)? = mutation["fields"] {
      for member in members {
        if let field = model.field(named: member.name), model.relationship(named: member.name) == nil {
          assignments[field.storedName] = try schema.value(member.value, for: field, of: name)
        } else if let link = model.relationship(named: member.name) {
          relationship = member.name
          try assign(link, member.value, operation, model, &assignments)
        }
      }
    }
    if model.isJoinModel, operation == .link || operation == .unlink {
      operation = operation == .link ? .create : .delete
      relationship = nil
      assignments = [:]
    }
    if operation == .create {
      for (index, field) in model.fields.enumerated()
      where !model.isKeyField(index) && assignments[field.storedName] == nil {
        assignments[field.storedName] = .null
      }
    }
    return append(model, key, operation, relationship, assignments, time)
  }

  private func operation(_ name: String) throws -> EventOperation {
    for operation in EventOperation.allCases where operation.name == name { return operation }
    throw EventsError.malformed("operation", name)
  }

  private func assign(
    _ link: Relationship, _ target: JSON, _ operation: EventOperation, _ model: Model,
    _ assignments: inout [String: Value]
  ) throws {
    guard let other = schema.model(named: link.target) else { return }
    var parts: [KeyPart?] = link.referenceFields.map { _ in nil }
    if operation == .link { parts = try schema.key(target, of: other).parts }
    for (name, part) in zip(link.referenceFields, parts) {
      guard let index = model.index(ofField: name), !model.isKeyField(index) else { continue }
      assignments[model.fields[index].storedName] = part?.value ?? .null
    }
  }

  private mutating func append(
    _ model: Model, _ key: Key, _ operation: EventOperation, _ relationship: String?,
    _ assignments: [String: Value], _ time: Int64
  ) -> Event {
    let partition = Partition(model: model, key: key)
    let record = BlockReader.Record(partition: partition, model: model.storedName, key: key)
    sequences[partition, default: 0] += 1
    versions[record, default: 0] += 1
    count += 1
    let id = EventID(origin, SequenceNumber(sequences[partition, default: 0]))
    let context = contexts[record] ?? .empty
    contexts[record, default: .empty].insert(id)
    return Event(
      partition: partition, model: model.storedName, key: key, operation: operation,
      relationship: relationship,
      assignments: assignments.map { Assignment($0.key, $0.value) }
        .sorted { $0.field.hasBytes(before: $1.field) },
      id: id, context: context, version: Version(versions[record, default: 0]),
      timestamp: Timestamp(milliseconds: UInt64(time) * 1000),
      commit: CommitID(origin, 1 + (count - 1) / 1000))
  }
}

private func output(of command: String) throws -> [UInt8] {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sh")
  process.arguments = ["-c", command]
  let pipe = Pipe()
  process.standardOutput = pipe
  try process.run()
  let bytes = try pipe.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return [UInt8](bytes)
}
