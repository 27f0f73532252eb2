import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

extension Node {
  /// One record as it was; nil if it did not exist. Reads the blocks in which the record may stand.
  package func row(_ model: Model, _ key: Key, asOf moment: Moment) throws(NodeError) -> JSON? {
    let life = try life(of: key, in: model, asOf: moment)
    let state = try life.state()
    guard state.exists(life.rules) else { return nil }
    return .object([
      ("model", .string(model.name)), ("key", schema.json(of: key, model: model)),
      (
        "fields",
        .object(life.fields.map { ($0.name, state.value(of: $0.storedName, life.rules).json) })
      ),
      ("revision", .string(state.revision)),
    ])
  }

  /// Lets `body` read this node as it was: tables of then are made for it beside the system's other temporary
  /// files, of one model's partitions if it is named, and removed afterwards.
  package func withTables<Result>(
    asOf moment: Moment, of model: Model? = nil, _ body: (Node) throws -> Result
  ) throws -> Result {
    if moment == .now { return try body(self) }
    let scratch = NSTemporaryDirectory() + "/stemma-past-\(ports.newID())"
    try FileManager.default.createDirectory(atPath: scratch, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(atPath: scratch) } catch {} }
    let path = scratch + "/" + Self.tablesFileName
    let tables = try Self.wrapping {
      var filter = LogFilter()
      filter.model = model
      let total = try log.files().reduce(0) { $0 + $1.events }
      var reader = try log.eventsByKey(to: moment.end, partitions: filter.partitions)
      try Tables.rebuild(
        at: path, schema: schema, knowledge: nil, token: log.token, filter: moment.filter,
        progress: { options.progress($0.events, total) }, next: { try reader.next() })
      return try Tables.openForReading(at: path, schema: schema)
    }
    return try body(
      Node(directory: directory, mark: mark, schema: schema, options: options, log: log, tables: tables))
  }
}
