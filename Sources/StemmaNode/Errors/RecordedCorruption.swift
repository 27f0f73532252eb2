import StemmaEvents
import StemmaLog

/// Corruption of the log, kept in the node metadata until it is repaired. Every process that opens
/// the node can avoid the partitions with losses without reading the log.
package struct RecordedCorruption: Sendable, Equatable, Encodable {
  /// The position of corrupt bytes in a file.
  package struct Place: Sendable, Hashable, Encodable {
    /// The name of a file in `log/`.
    package var file: String
    package var offset: UInt64
    /// A description for people.
    package var what: String
  }

  /// Lost events of one stream.
  package struct Loss: Sendable, Hashable, Encodable {
    package var partition: String
    /// Sixteen hexadecimal digits.
    package var origin: String
    package var from: UInt64
    package var to: UInt64

    package var count: UInt64 { to - from + 1 }

    fileprivate func continues(_ other: Loss) -> Bool {
      other.to + 1 == from && partition == other.partition && origin == other.origin
    }
  }

  package var places: [Place] = []
  package var losses: [Loss] = []
  /// Whether more may be lost than `losses` lists. No partition is known to be complete then.
  package var isVague = false
  /// Whether the tables were rebuilt around the corruption, so that they lack lost events.
  package var areTablesPartial = false

  init(_ corruption: [Corruption], _ losses: Losses) {
    places = corruption.map { Self.place($0) }
    isVague = losses.isVague
    self.losses = Self.losses(losses.ranges)
  }

  static func losses(_ ranges: [LostRange]) -> [Loss] {
    var losses: [Loss] = []
    for range in ranges {
      let loss = Loss(
        partition: range.partition.description, origin: range.origin.description, from: range.from.rawValue,
        to: range.to.rawValue)
      if let last = losses.last, loss.continues(last) {
        losses[losses.count - 1].to = loss.to
      } else {
        losses.append(loss)
      }
    }
    return losses
  }

  /// Traps if a loss has an impossible range or is listed twice.
  func checkInvariants() {
    for loss in losses { precondition(0 < loss.from && loss.from <= loss.to, "a loss has an event") }
    precondition(Set(losses).count == losses.count, "a loss is listed once")
  }

  static func place(_ corruption: Corruption) -> Place {
    Place(file: corruption.path.fileName, offset: corruption.offset, what: corruption.flaw.description)
  }

  /// The corruption in sentences for people.
  package var sentences: [Notice] {
    let shown = places.count > Self.placesInWords ? Self.placesInWords - 1 : places.count
    var sentences: [Notice] = places.prefix(shown).map {
      "log/\($0.file) is corrupt at byte \($0.offset): \($0.what)"
    }
    if shown < places.count {
      sentences.append(
        "the log is corrupt in \(grouped(places.count - shown)) other places; \(step: .verify) lists them")
    }
    if let words = Self.words(losses) {
      sentences.append(
        "\(words) cannot be read; \(partitions.count == 1 ? "its" : "their") records can only be read until that is "
          + "repaired; \(step: .verify) shows how")
    }
    if isVague {
      sentences.append("other losses cannot be determined; nothing can be written until the log is repaired")
    }
    return sentences
  }

  private static let placesInWords = 3

  /// `1,203 events of partition site=berlin`, or the number of partitions; nil without losses.
  static func words(_ losses: [Loss]) -> String? {
    let partitions = Set(losses.map(\.partition))
    guard let first = partitions.first else { return nil }
    let count = losses.reduce(0) { $0 + $1.count }
    return "\(counted(count, "event")) of "
      + (partitions.count == 1 ? "partition \(first)" : counted(partitions.count, "partition"))
  }

  /// The partitions that lost events.
  var partitions: Set<Partition> { Set(losses.map { Partition($0.partition) }) }

  func contains(_ corruption: [Corruption]) -> Bool {
    // One corrupt checksum can be reported with two causes, so the cause is not compared.
    corruption.allSatisfy { corruption in
      let wanted = Self.place(corruption)
      return places.contains { $0.file == wanted.file && $0.offset == wanted.offset }
    }
  }
}

extension RecordedCorruption.Loss {
  package var json: JSON {
    .object([
      ("partition", .string(partition)), ("origin", .string(origin)), ("from", .int(Int64(from))),
      ("to", .int(Int64(to))),
    ])
  }
}
