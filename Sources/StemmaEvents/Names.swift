import StemmaSchema

/// The 64-bit random id of one writing incarnation of a node.
package struct Origin: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  package static func < (a: Origin, b: Origin) -> Bool { a.rawValue < b.rawValue }

  /// Sixteen lowercase hexadecimal digits.
  package var description: String {
    var digits: [UInt8] = []
    digits.append(hex: rawValue)
    return String(decoding: digits, as: UTF8.self)
  }
}

/// The number of an event in its stream: 1, 2, 3 … without a gap. 0 means none yet.
package struct SequenceNumber: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  package static let zero = SequenceNumber(0)
  package static func < (a: SequenceNumber, b: SequenceNumber) -> Bool { a.rawValue < b.rawValue }
  package var description: String { String(rawValue) }

  /// The next number. Traps at 2^64. Decoders limit numbers to `Limits.highestNumber`.
  package var next: SequenceNumber { SequenceNumber(rawValue + 1) }
}

/// Causal depth of an event in its record's history: 1 + the highest version in its context.
package struct Version: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  package static let zero = Version(0)
  package static func < (a: Version, b: Version) -> Bool { a.rawValue < b.rawValue }
  package var description: String { String(rawValue) }
  package var next: Version { Version(rawValue + 1) }
}

/// The id of an event in its partition: its origin, and its sequence.
package struct EventID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let origin: Origin
  package let sequence: SequenceNumber

  package init(_ origin: Origin, _ sequence: SequenceNumber) {
    self.origin = origin
    self.sequence = sequence
  }

  package static func < (a: EventID, b: EventID) -> Bool {
    (a.origin, a.sequence) < (b.origin, b.sequence)
  }
  package var description: String { "\(origin):\(sequence)" }
}

/// A log position: one number for each event, from 1, in the order of position in this node.
/// Positions can have gaps, and are never reused. Later events have higher positions.
package struct Position: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// The position of the first event of a log.
  package static let first = Position(1)
  /// A position behind every event.
  package static let end = Position(.max)

  /// The position `count` later, at most `end`.
  package func advanced(by count: UInt64) -> Position {
    let (sum, overflow) = rawValue.addingReportingOverflow(count)
    return overflow ? .end : Position(sum)
  }

  package var next: Position { advanced(by: 1) }
  /// Nil for the first position.
  package var previous: Position? { self == .first ? nil : Position(rawValue - 1) }

  /// The number of positions from another one to this one; 0 if this one is not later.
  package func distance(from other: Position) -> UInt64 {
    rawValue > other.rawValue ? rawValue - other.rawValue : 0
  }

  package static func < (a: Position, b: Position) -> Bool { a.rawValue < b.rawValue }
  package var description: String { String(rawValue) }
}

/// Identifies the events of one commit: the writer's origin, and its count of commits.
package struct CommitID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let origin: Origin
  package let number: UInt64

  package init(_ origin: Origin, _ number: UInt64) {
    self.origin = origin
    self.number = number
  }

  package static func < (a: CommitID, b: CommitID) -> Bool { (a.origin, a.number) < (b.origin, b.number) }
  package var description: String { "\(origin).\(number)" }
}

/// Author, message and source of a commit.
package struct CommitMessage: Hashable, Sendable {
  package var author: String?
  package var text: String?
  /// `file:line` of an import.
  package var source: String?

  package init(author: String? = nil, text: String? = nil, source: String? = nil) {
    self.author = author
    self.text = text
    self.source = source
  }

  package var isEmpty: Bool { author == nil && text == nil && source == nil }
}
