import StemmaEvents

/// The 64-bit random id of one log: every file of it carries the id.
package struct LogID: Hashable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// Sixteen lowercase hexadecimal digits.
  package var description: String { Origin(rawValue).description }
}
