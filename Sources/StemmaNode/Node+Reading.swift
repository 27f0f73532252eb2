import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaReplication
import StemmaTables

extension Node {
  /// The number of attempts if other processes replace the tables before a read.
  private static let readingAttempts = 10

  /// Reads one committed state of the tables. Reopens tables that another process has rebuilt.
  ///
  /// - Throws: `.tables(.replaced)` if they are replaced repeatedly, or while `lockState.isHeld`.
  package func reading<Result>(_ body: (TablesReader) throws -> Result) throws(NodeError) -> Result {
    for _ in 1..<Self.readingAttempts {
      // A started body may have delivered results, so it is not repeated.
      var isBegun = false
      do throws(NodeError) {
        return try readingOnce { reader in
          isBegun = true
          return try body(reader)
        }
      } catch .tables(.replaced) where !isBegun && !lockState.isHeld { try adoptOthers() }
    }
    return try readingOnce(body)
  }

  private func readingOnce<Result>(_ body: (TablesReader) throws -> Result) throws(NodeError) -> Result {
    try Self.wrapping {
      try tables.read({ $0 as any Error }) { (reader) throws(any Error) in try body(reader) }
    }
  }

  /// Applies the events that other processes have appended to this node's log. Candidates of newer
  /// conflicts get their authors from them.
  package func adoptOthers() throws(NodeError) { try locked { () throws(NodeError) in } }

  // MARK: Records

  package func key(_ json: JSON, of model: Model) throws(NodeError) -> Key {
    do { return try schema.key(json, of: model) } catch { throw .mutation(.value(error)) }
  }

  package func state(of key: Key, in model: Model) throws(NodeError) -> RecordState? {
    try reading { reader in
      guard let state = try reader.state(of: key, in: model), state.exists(MergeRules(model)) else {
        return nil
      }
      return state
    }
  }

  /// The limit for nested included relationships. Each adds levels of JSON, which parsers limit to
  /// `JSON.depthLimit`.
  package static let inclusionDepth = 32

  /// One record with related records; a path is relationship names with dots between. Nil if
  /// the record does not exist.
  ///
  /// - Throws: `wrongShape` for a path longer than `inclusionDepth`; `unknownRelationship`.
  package func row(_ model: Model, _ key: Key, including paths: [String]) throws(NodeError) -> JSON? {
    let paths: [[String]] = paths.map { $0.split(separator: ".").map(String.init) }
    if let path = paths.first(where: { $0.count > Self.inclusionDepth }) {
      throw .mutation(
        .wrongShape("\(path.count) relationships one after the other are more than \(Self.inclusionDepth)"))
    }
    return try reading { reader in
      guard let row = try reader.get(model.name, key) else { return nil }
      return try json(row, model, paths, reader)
    }
  }

  private func json(_ row: Row, _ model: Model, _ paths: [[String]], _ reader: TablesReader) throws -> JSON {
    var members: [(name: String, value: JSON)] = [
      ("model", .string(row.model)), ("key", schema.json(of: row.key, model: model)),
      ("fields", .object(row.fields.map { ($0.field, $0.value.json) })), ("revision", .string(row.revision)),
    ]
    members += Self.conflictMember(row.fieldsInConflict, model)
    var included: [(name: String, value: JSON)] = []
    var outside: [(name: String, value: JSON)] = []
    for name in paths.compactMap(\.first) where !included.contains(where: { $0.name == name }) {
      let further = paths.filter { $0.first == name && $0.count > 1 }.map { Array($0.dropFirst()) }
      guard let relationship = model.relationship(named: name),
        let target = schema.model(named: relationship.target)
      else {
        throw MutationError.unknownRelationship(
          model: model.name, name: name, known: model.relationships.map(\.name))
      }
      var cursor = try reader.related(to: row.key, of: model.name, through: name)
      let rows = try cursor.all().map { try json($0, target, further, reader) }
      let isMany = relationship.kind == .hasMany || relationship.kind == .manyToMany
      included.append((name, isMany ? .array(rows) : rows.first ?? .null))
      if rows.isEmpty, let key = try keyOutsideScope(row, relationship, target) {
        outside.append((name, key))
      }
    }
    if !included.isEmpty { members.append(("included", .object(included))) }
    if !outside.isEmpty { members.append(("outsideScope", .object(outside))) }
    return .object(members)
  }

  /// The key of the record that a reference of this row leads to, if it is out of scope.
  private func keyOutsideScope(
    _ row: Row, _ relationship: Relationship, _ target: Model
  ) throws -> JSON? {
    guard relationship.storesReference, let model = schema.model(named: row.model) else { return nil }
    let own = schema.json(of: row.key, model: model)
    let parts: [(name: String, value: JSON)] = zip(target.keyFields, relationship.referenceFields).map {
      part, field in
      (target.fields[part].name, row.value(of: field)?.json ?? own[field] ?? .null)
    }
    if parts.contains(where: { $0.value.isNull }) { return nil }
    let key = try key(.object(parts), of: target)
    return metadata.scope.contains(Partition(model: target, key: key))
      ? nil : schema.json(of: key, model: target)
  }

  /// The member of a row that lists fields in conflict; empty if there are none.
  package static func conflictMember(_ fields: [String], _ model: Model) -> [(name: String, value: JSON)] {
    if fields.isEmpty { return [] }
    let names = fields.map { $0 == Event.existenceField ? ExistenceName.name(in: model) : $0 }
    return [("conflicts", .array(names.map { .string($0) }))]
  }

  /// Calls `body` with each row of a model in the form of `get`. With a narrow scope, limit and
  /// offset count the rows in scope, and the time is that of all rows that fulfil the conditions.
  package func list(
    _ listing: Listing, within scope: NarrowedScope = NarrowedScope(.everything),
    _ body: (JSON) throws -> Void
  ) throws(NodeError) {
    guard let model = schema.model(named: listing.model) else { return }
    if let only = Partition(of: model), !scope.contains(only) { return }
    var selected = listing
    var (skipped, left) = (0, Int.max)
    if !scope.isEverything {
      (skipped, left) = (listing.offset, listing.limit ?? .max)
      (selected.offset, selected.limit) = (0, nil)
    }
    try reading { reader in
      var cursor = try reader.list(selected)
      while left > 0, let row = try cursor.next() {
        guard scope.contains(Partition(model: model, key: row.key)) else { continue }
        if skipped > 0 {
          skipped -= 1
          continue
        }
        left -= 1
        try body(try json(row, model, [], reader))
      }
    }
  }

  /// Calls `body` with the lines of an export, several at a time.
  package func export(_ models: [Model], _ body: ([UInt8]) throws -> Void) throws(NodeError) {
    try reading { reader in
      var cursor = try reader.export(models.isEmpty ? nil : models.map(\.name))
      var bytes: [UInt8] = []
      while try cursor.next(into: &bytes) {
        guard bytes.count > 32 << 10 else { continue }
        try body(bytes)
        bytes.removeAll(keepingCapacity: true)
      }
      try body(bytes)
    }
  }

  /// Runs one read-only SQL statement.
  ///
  /// - Parameter time: how long it may run; nil: as long as it takes. Then SQLite reports that it
  ///   was interrupted.
  package func query(
    _ sql: String, within time: Duration? = nil, _ body: (_ columns: [String], _ row: [Value]) throws -> Void
  ) throws(NodeError) {
    try reading { reader in
      var cursor = try reader.query(sql, within: time)
      while let row = try cursor.next() { try body(cursor.columns, row) }
    }
  }

  // MARK: The log

  package func scope(_ patterns: [String]) throws(NodeError) -> Scope { try Self.scope(patterns) }

  /// The patterns, including exclusions, that match no partition with events at this node.
  package func idlePatterns(_ patterns: [String]) throws(NodeError) -> [String] {
    if patterns.isEmpty { return [] }
    let partitions = try reading { try $0.versionVector() }.partitions.keys
    var idle: [String] = []
    for pattern in patterns {
      let scope = try scope([pattern.hasPrefix("!") ? String(pattern.dropFirst()) : pattern])
      if !partitions.contains(where: scope.contains) { idle.append(pattern) }
    }
    return idle
  }

  package static func scope(_ patterns: [String]) throws(NodeError) -> Scope {
    do { return try Scope(patterns: patterns) } catch { throw .replication(error) }
  }

  /// Applies the events appended since the last refresh or open. Returns true if there were any.
  package func refreshLog() throws(NodeError) -> Bool {
    let isChanged: Bool
    do throws(LogError) {
      isChanged = try log.refresh()
      guard log.lacksWatermark else { return isChanged }
    } catch { throw .log(error) }
    // The log does not show how much of it is durable, and its writer may be gone. Opening the node
    // records that; if it cannot be written, the next writer does.
    do throws(NodeError) { try bringUpToDate() } catch {
      guard error.isInUse || error.isRefusalToWrite else { throw error }
      return isChanged
    }
    do throws(LogError) { return try log.refresh() || isChanged } catch { throw .log(error) }
  }

  /// The log position of the next event.
  package var logEnd: Position { log.end }

  /// The position behind the last event that is known durable.
  package var durableEnd: Position { log.durableEnd }

  /// The last durable event of each stream that has one from `position` on, and the end that was
  /// read. Reads these events only.
  package func heads(
    from position: Position
  ) throws(NodeError) -> (heads: [StreamID: SequenceNumber], end: Position) {
    try Self.wrapping {
      let end = log.durableEnd
      var heads: [StreamID: SequenceNumber] = [:]
      guard position < end else { return (heads, end) }
      var events = log.events(from: position, to: end, around: Omissions())
      while let event = try events.next()?.event { heads[StreamID(event)] = event.id.sequence }
      return (heads, end)
    }
  }

  /// Digests of one partition. They are equal on two nodes exactly if log and rows are equal.
  package struct PartitionDigest: Hashable, Codable, Sendable {
    package var partition: String
    package var events: UInt64
    /// The sum of the hashes of its streams.
    package var log: String
    /// Nil for a hub, which has no tables.
    package var tables: String?

    package init(partition: String, events: UInt64, log: String, tables: String?) {
      self.partition = partition
      self.events = events
      self.log = log
      self.tables = tables
    }

    /// Whether both have the same events, and the same rows if both have tables.
    func agrees(with other: PartitionDigest) -> Bool {
      let hasRows = tables != nil && other.tables != nil
      return events == other.events && log == other.log && (!hasRows || tables == other.tables)
    }
  }

  /// The digests of the partitions that are in all of the scopes.
  package func digests(within scopes: [Scope] = []) throws(NodeError) -> [PartitionDigest] {
    try reading { reader in
      let isIncluded: (Partition) -> Bool = { partition in scopes.allSatisfy { $0.contains(partition) } }
      let versionVector = try reader.versionVector()
      let tables = Dictionary(
        uniqueKeysWithValues: try reader.digests(where: isIncluded).map { ($0.partition, $0.description) })
      return versionVector.sortedPartitions.filter(isIncluded).map { partition in
        let streams = (versionVector.partitions[partition] ?? [:]).sorted { $0.key < $1.key }
        var sum = StreamHash.zero
        for (_, head) in streams { sum += head.hash }
        return PartitionDigest(
          partition: partition.description,
          events: streams.reduce(0) { $0 + $1.value.sequence.rawValue }, log: sum.description,
          tables: tables[partition] ?? StreamHash.zero.description)
      }
    }
  }
}
