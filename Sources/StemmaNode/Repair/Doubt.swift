import StemmaEvents
import StemmaLog
import StemmaSchema

// Readers continue past corruption of the log: they return everything readable, then report the
// losses. They omit results that lost events would make wrong. These are the past of a record that
// may have lost events, and the changes of an event with a lost cause.

/// The records that may have lost events.
private struct DoubtfulRecords {
  private let known: RecordedCorruption
  private let partitions: Set<Partition>
  /// Nil if the location of the lost events within their partitions is unknown.
  private let ranges: [HiddenRecords]?

  init(_ known: RecordedCorruption, _ corruption: [Corruption], _ log: Log) throws(LogError) {
    self.known = known
    partitions = known.partitions
    var ranges: [HiddenRecords]? = []
    for corruption in corruption {
      guard let range = try log.records(hiddenBy: corruption) else {
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

/// Determines whether a record may have lost events to the corruption that readers met so far.
package struct Doubt {
  private let node: Node
  private let omissions: Omissions
  private var corruption: [Corruption] = []
  private var doubtful: DoubtfulRecords?

  package init(_ node: Node, _ omissions: Omissions) {
    self.node = node
    self.omissions = omissions
  }

  package mutating func concerns(_ record: RecordKey) throws(NodeError) -> Bool {
    if omissions.isEmpty { return false }
    let found = omissions.corruption
    if doubtful == nil || found != corruption {
      corruption = found
      let known = try node.knownCorruption(found)
      do throws(LogError) { doubtful = try DoubtfulRecords(known, found, node.log) } catch {
        throw .log(error)
      }
    }
    return doubtful?.contains(record) ?? false
  }
}
