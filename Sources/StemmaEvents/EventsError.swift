/// What can be wrong with bytes and values that this module is asked to read.
package enum EventsError: Error, Equatable, Sendable {
  /// Bytes are not what the format demands: of what, and what was found instead.
  case malformed(_ subject: String, _ found: String)
  /// A length or count is above its limit in `Limits`.
  case overLimit(_ subject: String, found: UInt64, limit: UInt64)
}
