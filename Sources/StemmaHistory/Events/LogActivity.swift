import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication

/// Counts of events by day, partition and model, which grow with the log: each count reads only the
/// events that were appended since the one before. Memory: an entry for each day, partition and
/// model with an event.
package struct LogActivity: Sendable {
  /// The partitions that are counted.
  package let scope: NarrowedScope
  private var extent = LogExtent()
  private var days: [Int64: UInt64] = [:]
  private var partitions: [Partition: UInt64] = [:]
  private var models: [String: [UInt64]] = [:]
  private var events: UInt64 = 0

  /// The number of partitions listed.
  private static let listed = 20
  private static let dayMilliseconds: UInt64 = 86_400_000

  package init(within scope: NarrowedScope) { self.scope = scope }

  /// Counts the events from there on. If events were removed from the log, counts all again. Skips
  /// corruption, which other commands report.
  package mutating func update(_ node: Node) throws(NodeError) {
    let extent = try LogExtent(node)
    if !extent.hasGrown(from: self.extent) { self = LogActivity(within: scope) }
    guard self.extent.end < extent.end else { return }
    var filter = LogFilter()
    filter.scope = scope
    filter.since = .position(self.extent.end)
    do throws(NodeError) { try node.scan(filter, newestFirst: false) { count($0) } } catch {
      guard case .missing = error else { throw error }
    }
    self.extent = extent
  }

  private mutating func count(_ event: ScannedEvent) -> Bool {
    let (block, index) = (event.block, event.index)
    let key = block.key(index)
    events += 1
    days[Int64(block.timestamp(index).milliseconds / Self.dayMilliseconds), default: 0] += 1
    partitions[block.reader.partition(ofKey: key), default: 0] += 1
    let operation = EventOperation.allCases.firstIndex(of: block.operation(index)) ?? 0
    models[
      block.reader.model(ofKey: key), default: Array(repeating: 0, count: EventOperation.allCases.count)][
        operation] += 1
    return true
  }

  /// The counts, with the names of models that `description` knows.
  package func json(_ description: EventDescription) -> JSON {
    func number(_ value: UInt64) -> JSON { .int(Int64(clamping: value)) }
    let largest = partitions.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(Self.listed)
    let models = models.map { stored, operations in
      (name: description.model(storedName: stored)?.name ?? stored, operations, operations.reduce(0, +))
    }.sorted { ($1.2, $0.name) < ($0.2, $1.name) }
    return .object([
      ("events", number(events)), ("partitions", .int(Int64(partitions.count))),
      (
        "largestPartitions",
        .array(
          largest.map { .object([("partition", .string($0.key.description)), ("events", number($0.value))]) })
      ),
      (
        "models",
        .array(
          models.map { name, operations, events in
            .object(
              [("model", .string(name)), ("events", number(events))]
                + zip(EventOperation.allCases, operations).map { ($0.name, number($1)) })
          })
      ),
      (
        "days",
        .array(
          days.sorted { $0.key < $1.key }.map { day, events in
            let time = Timestamp(milliseconds: UInt64(day) * Self.dayMilliseconds)
            return .object([
              ("date", .string(String(description.time(time).prefix(10)))), ("events", number(events)),
            ])
          })
      ),
      ("end", .string("@\(extent.end)")),
    ])
  }
}
