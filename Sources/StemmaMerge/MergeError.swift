import StemmaEvents

/// Why an event or the bytes of a state were rejected. The state is unchanged.
package enum MergeError: Error, Hashable, Sendable {
  /// The event's context names an event of this record that was not applied before.
  case gap(EventID, missing: EventID)
  /// The event's context covers the event itself.
  case coversItself(EventID)
  /// No event with this context can have this version. `expected` are the bounds that the state
  /// implies.
  case wrongVersion(EventID, found: Version, expected: ClosedRange<Version>)
  /// Two different events with the same event id.
  case fork(EventID)
  /// The bytes of a state violate the format: where, and what was found.
  case malformed(_ subject: String, _ found: String)
}

extension MergeError: ByteReaderError {
  package static func overLimit(_ subject: String, found: UInt64, limit: UInt64) -> Self {
    outOfRange(subject)
  }

  static func outOfRange(_ subject: String) -> Self { .malformed(subject, "a number is too large") }

  /// A list has a duplicate or is not in order.
  static func unsorted(_ subject: String) -> Self { .malformed(subject, "a list is not in order") }

  /// A write without a register, a register that equals the base, or a name without a use.
  static func notCanonical(_ subject: String) -> Self {
    .malformed(subject, "it is not written as it would be here")
  }
}
