import StemmaEvents
import StemmaLog
import StemmaSchema

// Reading goes around damage of the log: all that can be read is given, and then said what is missing. What would be
// wrong without the lost events is left out instead: the past of a record that may have lost some, and what an event
// changed of which a cause is lost.

/// What a reader met of damage to the log, after it has given all that can be read.
package struct MissingEvents: Sendable {
  /// The record that was asked for, if it was one.
  package var record: String?
  package var places: [RecordedDamage.Place]
  /// Of the partitions that were asked for.
  package var losses: [RecordedDamage.Loss]
  /// Whether more may be lost than `losses` says.
  package var isVague: Bool
  /// Whether the node's notices said it already when it was opened.
  package var isTold: Bool
}

/// The records of which damage may have taken events.
struct DoubtfulRecords {
  private let known: RecordedDamage
  private let partitions: Set<Partition>
  /// Nil: where in its partitions they stand cannot be told.
  private let ranges: [HiddenRecords]?

  fileprivate init(_ known: RecordedDamage, _ damage: [Damage], _ log: Log) throws(LogError) {
    self.known = known
    partitions = known.partitions
    var ranges: [HiddenRecords]? = []
    for damage in damage {
      guard let range = try log.records(hiddenBy: damage) else {
        ranges = nil
        break
      }
      ranges?.append(range)
    }
    self.ranges = ranges
  }

  func contains(_ record: RecordKey) -> Bool {
    if known.isVague { return true }
    guard partitions.contains(record.partition) else { return false }
    return ranges?.contains { $0.contains(record) } ?? true
  }
}

/// Tells of one record after the other whether damage that readers have noted by then may have taken events of it.
struct Doubt {
  private let node: Node
  private let omissions: Omissions
  private var damage: [Damage] = []
  private var doubtful: DoubtfulRecords?

  init(_ node: Node, _ omissions: Omissions) {
    self.node = node
    self.omissions = omissions
  }

  mutating func concerns(_ record: RecordKey) throws(NodeError) -> Bool {
    if omissions.isEmpty { return false }
    let found = omissions.damage
    if doubtful == nil || found != damage {
      damage = found
      doubtful = try node.doubtfulRecords(found)
    }
    return doubtful?.contains(record) ?? false
  }
}

extension Node {
  /// Runs `body`, whose readers note in the omissions what they go around.
  ///
  /// - Throws: `.missing` if they noted anything; `body` has run to its end then.
  func readingAround<Result>(
    partitions filter: PartitionFilter? = nil, _ body: (Omissions) throws -> Result
  ) throws(NodeError) -> Result {
    let omissions = Omissions()
    let result = try Self.wrapping { try body(omissions) }
    if let missing = try missingEvents(omissions, partitions: filter) { throw .missing(missing) }
    return result
  }

  /// What readers went around, which is recorded; nil if nothing.
  func missingEvents(
    _ omissions: Omissions, partitions filter: PartitionFilter? = nil
  ) throws(NodeError) -> MissingEvents? {
    if omissions.isEmpty { return nil }
    let found = omissions.damage
    try recordMetDamage(found)
    let known = try knownDamage(found)
    return MissingEvents(
      record: nil, places: found.map(RecordedDamage.place),
      losses: known.losses.filter { filter?(Partition($0.partition)) ?? true }, isVague: known.isVague,
      isTold: !hasUntoldDamage && mark.damage?.contains(found) == true)
  }

  fileprivate func doubtfulRecords(_ found: [Damage]) throws(NodeError) -> DoubtfulRecords {
    let known = try knownDamage(found)
    do throws(LogError) { return try DoubtfulRecords(known, found, log) } catch { throw .log(error) }
  }

  /// What the mark says, if it knows of this damage; else the damaged files are read.
  private func knownDamage(_ found: [Damage]) throws(NodeError) -> RecordedDamage {
    if let known = mark.damage, known.contains(found) { return known }
    return RecordedDamage(try survey(found))
  }
}
