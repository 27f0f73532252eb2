import StemmaEvents
import StemmaLog
import StemmaSchema

// Readers continue past corruption of the log: they return everything readable, then report the
// losses. They omit results that lost events would make wrong. These are the past of a record that
// may have lost events, and the changes of an event with a lost cause.

/// The corruption that a reader met, after it returned everything readable.
package struct MissingEvents: Sendable {
  /// The requested record, if there was one.
  package var record: String?
  package var places: [RecordedCorruption.Place]
  /// The losses in the requested partitions.
  package var losses: [RecordedCorruption.Loss]
  /// Whether more may be lost than `losses` lists.
  package var isVague: Bool
  /// Whether a notice of the node has reported it on opening.
  package var isTold: Bool
}

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
struct Doubt {
  private let node: Node
  private let omissions: Omissions
  private var corruption: [Corruption] = []
  private var doubtful: DoubtfulRecords?

  init(_ node: Node, _ omissions: Omissions) {
    self.node = node
    self.omissions = omissions
  }

  mutating func concerns(_ record: RecordKey) throws(NodeError) -> Bool {
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

extension Node {
  /// Runs `body`. Its readers skip corruption and note it in the omissions.
  ///
  /// - Throws: `.missing` after `body` has finished, if they noted any.
  func readingAround<Result>(
    partitions filter: PartitionFilter? = nil, _ body: (Omissions) throws -> Result
  ) throws(NodeError) -> Result {
    let omissions = Omissions()
    let result = try Self.wrapping { try body(omissions) }
    if let missing = try missingEvents(omissions, partitions: filter) { throw .missing(missing) }
    return result
  }

  /// Records the corruption that readers skipped and returns it; nil if there is none.
  func missingEvents(
    _ omissions: Omissions, partitions filter: PartitionFilter? = nil
  ) throws(NodeError) -> MissingEvents? {
    if omissions.isEmpty { return nil }
    let found = omissions.corruption
    try recordMetCorruption(found)
    let known = try knownCorruption(found)
    return MissingEvents(
      record: nil, places: found.map(RecordedCorruption.place),
      losses: known.losses.filter { filter?(Partition($0.partition)) ?? true }, isVague: known.isVague,
      isTold: !hasUntoldCorruption && metadata.corruption?.contains(found) == true)
  }

  /// The recorded corruption if it includes `found`; otherwise the corrupt files are read.
  fileprivate func knownCorruption(_ found: [Corruption]) throws(NodeError) -> RecordedCorruption {
    if let known = metadata.corruption, known.contains(found) { return known }
    return RecordedCorruption(found, try losses(of: found))
  }
}
