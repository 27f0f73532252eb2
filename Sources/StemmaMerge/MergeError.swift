import StemmaEvents

/// Why an event or the bytes of a state were refused. The state is as it was before the call.
package enum MergeError: Error, Hashable, Sendable {
  /// The event's context names an event of this record that was not applied before it.
  case gap(Dot, missing: Dot)
  /// The event's context covers the event itself.
  case coversItself(Dot)
  /// The version is none that an event with this context can have, as far as the state can tell: `expected` are its
  /// bounds.
  case wrongVersion(Dot, found: Version, expected: ClosedRange<Version>)
  /// Two different events with the same dot.
  case fork(Dot)
  /// The bytes of a state are not what the format demands, at this byte offset.
  case malformedState(offset: Int, StateDefect)
}

/// What is wrong with the bytes of a state.
package enum StateDefect: Hashable, Sendable {
  case cutShort
  case unknownFormat
  /// A number is above what it may be.
  case outOfRange
  /// A list is not sorted, or names something twice.
  case unsorted
  case notUTF8
  /// A write that no register has, a register that equals the base, a name without a use, or bytes left over.
  case notCanonical
  /// The checksum behind the state is not that of what it covers.
  case checksum
}
