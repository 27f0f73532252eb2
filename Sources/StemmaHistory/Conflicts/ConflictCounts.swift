import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema

/// The numbers of open conflicts. An update looks only at the records that were written since the
/// one before, except for conflicts between records, which it searches all. Memory: an entry for
/// each record in conflict.
package struct ConflictCounts: Sendable {
  private struct Counts { var values = 0, deletions = 0 }

  /// The partitions that are counted.
  package let scope: NarrowedScope
  private var extent = LogExtent()
  /// The position up to which the counted tables had applied the log. A writer commits them after
  /// the log, so they can be behind it.
  private var applied = Position.first
  private var records: [RecordKey: Counts] = [:]
  /// The sums, by stored model name.
  private var models: [String: Counts] = [:]
  /// Conflicts between records.
  private var others = ConflictTally()

  package init(within scope: NarrowedScope) { self.scope = scope }

  package mutating func update(_ node: Node) throws(NodeError) {
    let extent = try LogExtent(node)
    let applied = try node.reading { try $0.token().position }
    if extent == self.extent, applied == self.applied { return }
    if let known = self.applied.previous, applied >= self.applied, extent.hasGrown(from: self.extent),
      let touched = try node.recordsTouched(between: .position(known), and: .now, of: nil).records
    {
      for record in touched { try count(record, node) }
    } else {
      (records, models) = ([:], [:])
      var filter = ConflictFilter()
      (filter.scope, filter.kinds) = (scope, [.value, .delete])
      try count(filter, node)
    }
    others = ConflictTally()
    var filter = ConflictFilter()
    (filter.scope, filter.kinds) = (scope, [.cardinality, .dangling])
    try node.openConflicts(filter) { others.add($0.model, $0.kind) }
    (self.extent, self.applied) = (extent, applied)
  }

  private mutating func count(_ record: RecordKey, _ node: Node) throws(NodeError) {
    if let old = records.removeValue(forKey: record) {
      models[record.model]?.values -= old.values
      models[record.model]?.deletions -= old.deletions
    }
    guard let model = node.description.model(storedName: record.model) else { return }
    var filter = ConflictFilter(model: model)
    (filter.scope, filter.kinds, filter.key) = (scope, [.value, .delete], record.key)
    try count(filter, node)
  }

  private mutating func count(_ filter: ConflictFilter, _ node: Node) throws(NodeError) {
    let schema = node.schema
    try node.openConflicts(filter) { conflict in
      guard let model = schema.model(named: conflict.model) else { return }
      let partition = Partition(model: model, key: conflict.key)
      let record = RecordKey(partition: partition, model: model.storedName, key: conflict.key)
      if conflict.kind == .delete {
        records[record, default: Counts()].deletions += 1
        models[record.model, default: Counts()].deletions += 1
      } else {
        records[record, default: Counts()].values += 1
        models[record.model, default: Counts()].values += 1
      }
    }
  }

  /// By model name, as `conflicts --count` lists them.
  package func tally(_ description: EventDescription) -> ConflictTally {
    var found: [String: Counts] = [:]
    for (model, counts) in models where counts.values + counts.deletions > 0 {
      found[description.model(storedName: model)?.name ?? model] = counts
    }
    var tally = ConflictTally()
    for model in Set(found.keys).union(others.models).sorted() {
      tally.add(model, .value, count: found[model]?.values ?? 0)
      tally.add(model, .delete, count: found[model]?.deletions ?? 0)
      for kind in [ConflictFilter.Kind.cardinality, .dangling] {
        tally.add(model, kind, count: others.count(model, kind))
      }
    }
    return tally
  }
}

/// The position of a log's next event, and the number of events before it.
struct LogExtent: Equatable, Sendable {
  private(set) var end = Position.first
  private(set) var events: UInt64 = 0

  /// Of an empty log.
  init() {}

  init(_ node: Node) throws(NodeError) {
    end = node.logEnd
    events = try Node.wrapping { try node.log.files().reduce(0) { $0 + $1.events } }
  }

  /// Whether events were only appended since. Each has a position, so a purge or a repair changes
  /// the difference of both numbers.
  func hasGrown(from old: LogExtent) -> Bool {
    old.end <= end && old.events <= events && events - old.events == end.distance(from: old.end)
  }
}
