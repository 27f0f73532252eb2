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

/// The number of an event in its stream: 1, 2, 3 … without a hole. 0 stands for "none yet".
package struct Sequence: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  package static let zero = Sequence(0)
  package static func < (a: Sequence, b: Sequence) -> Bool { a.rawValue < b.rawValue }
  package var description: String { String(rawValue) }

  /// The next number. Traps at 2^64, which no writer reaches; numbers from outside are limited to
  /// `Limits.highestNumber` when they are decoded.
  package var next: Sequence { Sequence(rawValue + 1) }
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

/// The name of an event inside of its partition.
package struct Dot: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let origin: Origin
  package let sequence: Sequence

  package init(_ origin: Origin, _ sequence: Sequence) {
    self.origin = origin
    self.sequence = sequence
  }

  package static func < (a: Dot, b: Dot) -> Bool {
    (a.origin, a.sequence) < (b.origin, b.sequence)
  }
  package var description: String { "\(origin):\(sequence)" }
}

/// The order in which this node came to hold its events: which file, and the place in its arrival order.
/// Local to one node; later events have higher positions.
package struct Position: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let file: UInt64
  package let index: UInt64

  package init(file: UInt64, index: UInt64) {
    self.file = file
    self.index = index
  }

  package static func < (a: Position, b: Position) -> Bool { (a.file, a.index) < (b.file, b.index) }
  package var description: String { "\(file).\(index)" }
}

/// Names the events that were appended together: the writer's origin, and its count of commits.
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

/// Who made a commit, why, and from what.
package struct CommitNote: Hashable, Sendable {
  package var by: String?
  package var note: String?
  /// `file:line` of an import.
  package var source: String?

  package init(by: String? = nil, note: String? = nil, source: String? = nil) {
    self.by = by
    self.note = note
    self.source = source
  }

  package var isEmpty: Bool { by == nil && note == nil && source == nil }
}
